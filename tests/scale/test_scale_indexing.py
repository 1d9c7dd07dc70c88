"""An index that is made in pieces equals one that is made at once; one that was cut short is completed."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from killed import tree
from ray_workers import descendants

from conftest import SENTENCES, build_tokenizer
from isoglot.core.errors import EncoderError, SearchError
from isoglot.encoders import StaticEncoder
from isoglot.index import Index, Sentence, structures
from isoglot.index import table as tables
from isoglot.scale import Cluster, index_shards, indexing, merge_shards

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
    assert tree(tmp_path / "plain" / "faiss") == tree(tmp_path / "pieces" / "faiss")
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


MANY = [Sentence(f"s{row}", f"{SENTENCES[row % 10]} {row}", ("deu", "eng")[row % 2]) for row in range(3000)]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="workers are found through /proc")
@pytest.mark.parametrize("task", ["ray::_encode", "ray::encode_rows"])
def test_a_cluster_gives_the_same_bytes_though_a_worker_is_killed(model, tmp_path, monkeypatch, task):
    pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("faiss")
    monkeypatch.setattr(tables, "ROWS", 20)
    monkeypatch.setattr(structures, "BLOCK", 20 * 4 * 8)
    killed, stop = [], threading.Event()

    def kill_one():
        while not killed and not stop.wait(0.001):
            for worker in descendants(task)[:1]:
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)

    settings = {"kind": "IVF2,Flat"}
    Index.build(model, MANY, folder=tmp_path / "plain", device="cpu", **settings).close()
    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        index_shards(model, MANY, tmp_path / "pieces", cluster=Cluster("local", workers=2), **settings).close()
    finally:
        stop.set()
        killer.join()
    assert killed
    assert tree(tmp_path / "plain") == tree(tmp_path / "pieces")


def start(script, *words):
    """A process that runs a script with words, in which the modules of these tests can be imported."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, words)], env=environment)


DRIVER = """
import os, signal, sys
from isoglot.index import structures, table
from isoglot.scale import Cluster, index_shards
from test_scale_indexing import MANY

def kill_at(count):
    calls = iter(range(count))
    return lambda *_: next(calls, None) is None and os.kill(os.getpid(), signal.SIGKILL)

stage, model, folder = sys.argv[1:]
table.ROWS, structures.BLOCK, structures._PART = 20, 20 * 4 * 8, 10_000
if stage == "coding":
    write, stop = structures.atomic_write, kill_at(4)
    structures.atomic_write = lambda *given, **settings: (stop(), write(*given, **settings))[1]
progress = kill_at(50) if stage == "encoding" else None
index_shards(model, MANY, folder, kind="IVF2,Flat", cluster=Cluster("auto"), progress=progress)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9 is of POSIX systems")
@pytest.mark.parametrize(("stage", "known", "parts"), [("encoding", 1020, 0), ("coding", 3000, 3)])
def test_a_driver_that_was_killed_and_is_started_again(model, tmp_path, monkeypatch, stage, known, parts):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("faiss")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setattr(tables, "ROWS", 20)
    monkeypatch.setattr(structures, "BLOCK", 20 * 4 * 8)
    Index.build(model, MANY, folder=tmp_path / "plain", device="cpu", kind="IVF2,Flat").close()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        assert start(DRIVER, stage, model, tmp_path / "pieces").wait() == -signal.SIGKILL
        assert len(list((tmp_path / "pieces").rglob("*.parts/*.npy"))) == parts
        with Index.open(tmp_path / "pieces") as begun:
            assert len(begun) == known
        words = list[str]()
        settings = {"cluster": Cluster("auto"), "kind": "IVF2,Flat", "report": words.append}
        index_shards(model, MANY, tmp_path / "pieces", **settings).close()
    finally:
        ray.shutdown()
    assert f"{known:,} already there" in words[0]
    assert content(tmp_path / "pieces") == content(tmp_path / "plain")
    assert tree(tmp_path / "plain" / "faiss") == tree(tmp_path / "pieces" / "faiss")


def make_shards(model, folder, count, numbers=None, sentences=TEXTS, **settings):
    for number in numbers or range(count, 0, -1):
        index_shards(model, sentences, folder, shard=(number, count), **settings).close()


@pytest.mark.parametrize(("kind", "count"), [(None, 1), ("flat", 3), ("IVF2,Flat", 2), ("IVF2,PQ4x2np", 11)])
@pytest.mark.slow
def test_merged_shards_are_the_index_made_at_once(model, tmp_path, kind, count):
    if kind not in (None, "flat"):
        pytest.importorskip("faiss")
    make_shards(model, tmp_path / "merged", count, prompt="a ", query_prompt="b ")
    plain = Index.build(
        model, TEXTS, folder=tmp_path / "plain", kind=kind, device="cpu", prompt="a ", query_prompt="b "
    )
    with plain, merge_shards(tmp_path / "merged", kind=kind) as merged:
        texts = [one.text for one in TEXTS]
        assert plain.search(texts, 5) == merged.search(texts, 5)
        assert (plain.origin, plain.kind, plain.recall) == (merged.origin, merged.kind, merged.recall)
    assert tree(tmp_path / "plain") == tree(tmp_path / "merged")
    merge_shards(tmp_path / "merged").close()  # adds nothing
    with Index.open(tmp_path / "merged") as again:
        assert len(again) == len(TEXTS)


def test_shards_with_repeated_sentences_and_entries_of_several_sides(model, tmp_path):
    sides = [Sentence(f"s{row // 3}", f"{SENTENCES[row % 10]} {row}", "eng") for row in range(30)]
    twice = [*sides, *sides[:9], *sides[3:12], Sentence("last", sides[4].text, "deu")]
    make_shards(model, tmp_path / "merged", 4, sentences=twice)
    Index.build(model, twice, folder=tmp_path / "plain", device="cpu").close()
    with Index.open(tmp_path / "plain") as plain, merge_shards(tmp_path / "merged") as merged:
        assert plain.store.by_row(range(31)) == merged.store.by_row(range(31))
        np.testing.assert_allclose(plain.vectors(range(31)), merged.vectors(range(31)), atol=1e-6)
    other = [*sides, Sentence("s1", "another text", "eng")]
    make_shards(model, tmp_path / "clash", 2, sentences=other)
    with pytest.raises(SearchError, match="the id 's1' belongs to"):
        merge_shards(tmp_path / "clash")


def test_columns_beside_the_sentences_of_shards(model, tmp_path):
    columns = {"ids": [f"n{row}" for row in range(30)], "languages": "eng", "translations": ["x", None, "y"] * 10}
    texts = [one.text for one in TEXTS]
    make_shards(model, tmp_path / "merged", 3, sentences=texts, **columns)
    merge_shards(tmp_path / "merged").close()
    Index.build(model, texts, folder=tmp_path / "plain", device="cpu", **columns).close()
    assert tree(tmp_path / "plain") == tree(tmp_path / "merged")


def test_shards_and_a_merge_that_were_cut_short_are_completed(model, tmp_path, monkeypatch):
    encode, encoded, apply, applied = indexing._encode, [], Index._apply, []

    def stopped(counts, function, at, *given):
        counts.append(1)
        if len(counts) == at:
            raise KeyboardInterrupt
        return function(*given)

    monkeypatch.setattr(indexing, "_encode", lambda *given: stopped(encoded, encode, 3, *given))
    with pytest.raises(KeyboardInterrupt):
        make_shards(model, tmp_path / "merged", 2, [1])
    with pytest.raises(SearchError, match=r"merged.shards: not complete; .* --shard 1/2, 2/2$"):
        merge_shards(tmp_path / "merged")
    make_shards(model, tmp_path / "merged", 2)
    monkeypatch.setattr(Index, "_apply", lambda *given: stopped(applied, apply, 6, *given))
    with pytest.raises(KeyboardInterrupt):
        merge_shards(tmp_path / "merged")
    merge_shards(tmp_path / "merged").close()
    assert len(applied) == 5 + 1 + 3  # eight pieces, of which five are not added again
    Index.build(model, TEXTS, folder=tmp_path / "plain", device="cpu").close()
    assert content(tmp_path / "merged") == content(tmp_path / "plain")


SHARD = """
import os, signal, sys
from isoglot.index import table
from isoglot.scale import index_shards
from test_scale_indexing import MANY

number, model, folder, last = sys.argv[1:]
table.ROWS = 20
kill = lambda done, _: done > int(last) and os.kill(os.getpid(), signal.SIGKILL)
index_shards(model, MANY, folder, shard=(int(number), 3), progress=kill).close()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9 is of POSIX systems")
def test_processes_that_make_shards_at_once_one_of_which_is_killed(model, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 20)
    for last, code in ((400, -signal.SIGKILL), (3000, 0)):
        jobs = [start(SHARD, number, model, tmp_path / "merged", last if number == 2 else 3000) for number in (1, 2, 3)]
        assert [job.wait() for job in jobs] == [0, code, 0]
    Index.build(model, MANY, folder=tmp_path / "plain", device="cpu").close()
    merge_shards(tmp_path / "merged").close()
    assert tree(tmp_path / "plain") == tree(tmp_path / "merged")


@pytest.fixture(scope="module")
def two_shards(tmp_path_factory):
    """Two shards, the folder of the model that they were made with, and that of another model."""
    folder = tmp_path_factory.mktemp("shards")
    for seed in (1, 2):
        StaticEncoder.create(build_tokenizer(), 8, seed=seed).save(folder / f"model{seed}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS", 4)
        make_shards(folder / "model1", folder / "merged", 2)
    return folder / "merged.shards", folder / "model1", folder / "model2"


def make_anew(folder, shard, model, sentences=TEXTS):
    """Make the second shard again, of other sentences or with another model."""
    shutil.rmtree(shard)
    shard.with_suffix(".json").unlink()
    make_shards(model, folder, 2, [2], sentences)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda folder, shard, model, other: shard.with_suffix(".json").unlink(), "not complete; .* --shard 2/2$"),
        (lambda folder, shard, model, other: make_anew(folder, shard, model, TEXTS[1:]),
         "2-of-2: is of other sentences than 1-of-2; remove one of them"),
        (lambda folder, shard, model, other: make_shards(model, folder, 2, [2], TEXTS[1:]),
         "2-of-2: was begun with other sentences; remove"),
        (lambda folder, shard, model, other: make_anew(folder, shard, other),
         "2-of-2: was made with another model or prompt than .*1-of-2; remove one of them"),
        (lambda folder, shard, model, other: make_shards(other, folder, 2, [2]), "is not the model of this index"),
        (lambda folder, shard, model, other: make_shards(model, folder, 3, [1]),
         "merged.shards: contains shards of 2 and of 3; remove those of one division$"),
        (lambda folder, shard, model, other: shutil.rmtree(shard.parent), "merged.shards: contains no shards"),
        (lambda folder, shard, model, other: shutil.rmtree(shard), "2-of-2: contains no index"),
    ],
)  # fmt: skip
def test_shards_that_do_not_belong_together(two_shards, tmp_path, monkeypatch, change, problem):
    shards, *models = two_shards
    monkeypatch.setattr(tables, "ROWS", 4)
    shutil.copytree(shards, tmp_path / "merged.shards")

    def merge():
        change(tmp_path / "merged", tmp_path / "merged.shards" / "2-of-2", *models)
        merge_shards(tmp_path / "merged")

    with pytest.raises(SearchError, match=problem):
        merge()
    assert not (tmp_path / "merged").exists()


def test_impossible_shards(model, tmp_path):
    for name, texts, settings, error, message in (
        (model, TEXTS, {"shard": (3, 2)}, ValueError, r"shard is 3/2; it must be 1/2"),
        (model, iter(TEXTS), {}, TypeError, "are read twice; pass a list"),
        (model, TEXTS, {"kind": "ivf"}, ValueError, "pass the kind to merge_shards"),
        ("no-model", TEXTS, {}, EncoderError, "no-model"),
    ):
        with pytest.raises(error, match=message):
            index_shards(name, texts, tmp_path / "index", **{"shard": (1, 2), **settings})
    assert not list(tmp_path.rglob("1-of-2*"))
