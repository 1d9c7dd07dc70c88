"""The folder of entity-linked sentences: rows of the table, hard entities drawn once, and every fault with its line."""

import json
import lzma
from collections import Counter

import pytest

from isoglot.core.errors import CorpusError, RecipeError
from isoglot.data.batching import Batches, Batching
from isoglot.data.corpus import Corpus, FileSource
from isoglot.data.readers import read, read_entities
from isoglot.data.table import GroupTable
from toys import ToyEncoder

IDS = [f"Q{number}" for number in (64, 90, 220, 585, 70, 1741)]
HARD = ["Q90", "Q220", "Q585", "Q70"]


def write(folder, *items, ids=IDS):
    lines = (item if isinstance(item, str) else json.dumps(item) for item in items)
    (folder / "sentences.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    (folder / "entities.tsv").write_text("".join(f"{name}\t12\tLabel of {name}\n" for name in ids), encoding="utf-8")
    return folder


def item(entity="Q64", text="Berlin ist groß.", lang="deu", **more):
    return {"text": text, "lang": lang, "entity": entity, "page": "Berlin", "start": 0, "end": 6} | more


def test_an_instance_becomes_a_group_with_rows_of_the_table(tmp_path):
    folder = write(tmp_path, item(hard=["Q585"]), item("Q1741", "Vienna.", "en", hard=["Q90"]))
    first, second = read("entities", folder)
    assert (first.texts, first.langs, first.key) == (("Berlin ist groß.",), ("deu",), "")
    assert first.extras == {"entity": 0, "hard_entities": (3,)}
    assert (second.langs, second.extras) == (("eng",), {"entity": 5, "hard_entities": (1,)})


def test_sentences_may_be_compressed(tmp_path):
    folder = write(tmp_path, item(hard=HARD))
    plain = list(read_entities(folder))
    (folder / "sentences.jsonl.xz").write_bytes(lzma.compress((folder / "sentences.jsonl").read_bytes()))
    (folder / "sentences.jsonl").unlink()
    assert list(read_entities(folder)) == plain
    with pytest.raises(CorpusError, match="needs the folder that contains this file"):
        list(read_entities(folder / "sentences.jsonl.xz"))


def test_folders_that_number_entities_in_their_own_way_are_no_stream(tmp_path):
    folders = [tmp_path / name for name in ("de", "en", "ja")]
    for folder, ids in zip(folders, (IDS, IDS, IDS[::-1]), strict=True):
        folder.mkdir()
        write(folder, item(hard=HARD), ids=ids)
    Corpus([FileSource("entities", folder, name=folder.name) for folder in folders[:2]]).check()
    for sources in ([FileSource("entities", folder, name=folder.name) for folder in folders[1:]],
                    [FileSource("entities", tmp_path / "*")]):  # fmt: skip
        with pytest.raises(RecipeError, match=r"numbered by one entities\.tsv, and its folders have several"):
            Corpus(sources).check()


def test_hard_entities_have_a_fixed_number_and_minus_one_where_there_are_none(tmp_path):
    folder = write(tmp_path, item(hard=HARD[:2]), item(hard=[]), item())
    drawn = [group.extras["hard_entities"] for group in read_entities(folder, hard=3)]
    assert sorted(drawn[0]) == [-1, 1, 2]
    assert drawn[0][2] == -1
    assert drawn[1:] == [(-1, -1, -1)] * 2
    assert all("hard_entities" not in group.extras for group in read_entities(folder, hard=0))


def test_the_draw_is_fixed_by_seed_and_line_and_even(tmp_path):
    folder = write(tmp_path, *[item(hard=HARD)] * 400)
    draws = {seed: [group.extras["hard_entities"][0] for group in read_entities(folder, seed=seed)] for seed in (0, 1)}
    assert draws[0] == [group.extras["hard_entities"][0] for group in read_entities(folder)]
    assert draws[0] != draws[1]
    counts = Counter(draws[0])
    assert set(counts) == {1, 2, 3, 4}
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 16.3  # chi-square, 3 degrees, p = 0.001


def test_batches_carry_integer_columns(tmp_path):
    folder = write(tmp_path, *[item(name, f"text {name}", hard=[]) for name in IDS])
    table = GroupTable.build([("wikipedia", read_entities(folder, hard=2))], ToyEncoder().tokenize)
    batch = Batches(table, Batching(size=6, views=2), seed=0).next()
    assert len(batch) == 12
    assert sorted(batch.extras["entity"].tolist()) == sorted([*range(6)] * 2)
    assert batch.extras["hard_entities"].shape == (12, 2)
    assert not batch.extras["hard_entities"].is_floating_point()
