"""An index that is made in pieces equals one that is made at once; one that was cut short is completed."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import SENTENCES
from isoglot.core.errors import SearchError
from isoglot.index import Index, Sentence, structures
from isoglot.index import table as tables
from isoglot.scale import Cluster, index_shards, indexing

TEXTS = [Sentence(f"s{row}", f"{SENTENCES[row % 10]} {row}", ("deu", "eng")[row % 2]) for row in range(30)]


@pytest.fixture
def model(toy_static, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 4)  # sentences of a piece
    toy_static.save(tmp_path / "model")
    return tmp_path / "model"


def content(folder):
    with Index.open(folder) as index:
        return index.store.by_row(range(len(index))), (folder / "vectors.npy").read_bytes()


def test_equals_an_index_made_at_once(model, tmp_path):
    Index.build(model, TEXTS, folder=tmp_path / "plain", device="cpu").close()
    seen = []
    with index_shards(model, iter(TEXTS), tmp_path / "pieces", progress=lambda *event: seen.append(event)) as index:
        assert index.search(TEXTS[7].text, k=1)[0].id == "s7"
    assert content(tmp_path / "pieces") == content(tmp_path / "plain")
    assert seen == [(done, None) for done in (4, 8, 12, 16, 20, 24, 28, 30)]


def test_codes_that_are_computed_in_pieces_are_those_of_one_process(model, tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(structures, "BLOCK", 7 * 4 * 8)
    computed, encode = [], structures.encode_rows
    monkeypatch.setattr(structures, "encode_rows", lambda *given: computed.append(len(given[1])) or encode(*given))
    for name, build in (("plain", Index.build), ("pieces", index_shards)):
        build(model, TEXTS, folder=tmp_path / name, kind="IVF2,Flat").close()
    files = [(tmp_path / name / "faiss" / "IVF2-Flat-30.faiss").read_bytes() for name in ("plain", "pieces")]
    assert files[0] == files[1]
    assert computed == [7, 7, 7, 7, 2] * 2


def test_one_that_was_cut_short_is_completed(model, tmp_path, monkeypatch):
    encode, encoded = indexing._encode, []

    def stopped(*given):
        encoded.append(len(given[-1]))
        if len(encoded) == 4:
            raise KeyboardInterrupt
        return encode(*given)

    monkeypatch.setattr(indexing, "_encode", stopped)
    with pytest.raises(KeyboardInterrupt):
        index_shards(model, TEXTS, tmp_path / "pieces")
    index_shards(model, TEXTS, tmp_path / "pieces").close()
    assert encoded == [4, 4, 4, 4, 0, 0, 0, 4, 4, 4, 4, 2]  # the first three pieces are not encoded again
    Index.build(model, TEXTS, folder=tmp_path / "plain", device="cpu").close()
    assert content(tmp_path / "pieces") == content(tmp_path / "plain")


def test_sentences_twice_in_pieces_that_were_read_ahead(model, toy_static, tmp_path):
    def ahead(origin, pieces):
        yield from [toy_static.encode(texts, normalize_embeddings=True) for texts in list(pieces)]

    twice = [*TEXTS[:6], *TEXTS[2:10], *TEXTS[:3]]
    Index.build(model, twice, folder=tmp_path / "ahead", device="cpu", encoding=ahead).close()
    Index.build(model, TEXTS[:10], folder=tmp_path / "plain", device="cpu").close()
    (some, _), (others, _) = content(tmp_path / "ahead"), content(tmp_path / "plain")
    assert some == others
    with Index.open(tmp_path / "ahead") as one, Index.open(tmp_path / "plain") as two:
        np.testing.assert_allclose(one.vectors(range(10)), two.vectors(range(10)), atol=1e-6)
    other = Sentence("s1", "another text", "eng")
    with pytest.raises(SearchError, match="the id 's1' belongs to"):
        Index.build(model, [*TEXTS[:6], other], folder=tmp_path / "clash", device="cpu", encoding=ahead)


def test_a_worker_with_another_model_is_an_error(model, toy_static, tmp_path):
    with index_shards(model, TEXTS[:4], tmp_path / "index") as index:
        origin = index.origin
    toy_static.table.data.mul_(2)
    toy_static.save(tmp_path / "other")
    with pytest.raises(SearchError, match="is not the model of this index"):
        indexing._encode(origin, str(tmp_path / "other"), 1, False, ["a"])


@pytest.mark.slow
def test_a_cluster_gives_the_same_bytes(model, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed")
    Index.build(model, TEXTS, folder=tmp_path / "plain", device="cpu").close()
    index_shards(model, TEXTS, tmp_path / "pieces", cluster=Cluster("local", workers=2)).close()
    assert content(tmp_path / "pieces") == content(tmp_path / "plain")
