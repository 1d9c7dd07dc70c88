"""Sentences in languages that nobody knows: an error, or left out and counted."""

from __future__ import annotations

from collections import Counter

import pytest

from isoglot import recipe as recipes
from isoglot.data import Group
from isoglot.data.readers import read
from isoglot.errors import CorpusError

PAIR = Group(("Hi", "Hallo"), ("eng", "deu"))
UNIT = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
FILES = {
    "tsv": "en\tqx9\tde\nHi\tx\tHallo\n",
    "jsonl": '{"en": "Hi", "qx9": "x", "de": "Hallo"}\n',
    "tmx": "".join(
        [
            "<tmx><body><tu>",
            *(UNIT.format(*each) for each in [("en", "Hi"), ("qx9", "x"), ("de", "Hallo")]),
            "</tu></body></tmx>",
        ]
    ),
}


@pytest.mark.parametrize("reader", FILES)
def test_they_are_an_error_or_counted(reader, tmp_path):
    path, counts = tmp_path / "file", Counter()
    path.write_text(FILES[reader])
    with pytest.raises(CorpusError, match="qx9"):
        list(read(reader, path))
    assert list(read(reader, path, on_unknown_language="skip", counts=counts)) == [PAIR]
    assert sum(count for name, count in counts.items() if "unknown language" in name) == 1


def test_of_a_group_written_out_and_of_one_that_is_left_empty(tmp_path):
    path, counts = tmp_path / "file", Counter()
    path.write_text('{"texts": ["Hi", "x", "Hallo"], "langs": ["en", "qx9", "de"]}\n{"qx9": "y"}\n')
    assert list(read("jsonl", path, on_unknown_language="skip", counts=counts)) == [PAIR]
    assert counts == {"sentences in unknown languages": 2}


def test_of_entities_and_datasets(tmp_path):
    (tmp_path / "sentences.jsonl").write_text(
        '{"text": "a", "lang": "qx9", "entity": "Q1"}\n{"text": "b", "lang": "de", "entity": "Q1"}\n'
    )
    (tmp_path / "entities.tsv").write_text("Q1\t3\tOne\n")
    with pytest.raises(CorpusError, match=r"sentences\.jsonl:1: .*qx9"):
        list(read("entities", tmp_path))
    (group,) = read("entities", tmp_path, on_unknown_language="skip")
    assert group.langs == ("deu",)
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list([{"en": "Hi", "qx9": "x", "de": "Hallo"}]).save_to_disk(tmp_path / "set")
    assert list(read("dataset", tmp_path / "set", on_unknown_language="skip")) == [PAIR]


@pytest.mark.parametrize("place", ["stream", "source"])
def test_a_recipe_says_it_for_a_source_or_for_all(place, tmp_path):
    (tmp_path / "a.tsv").write_text(FILES["tsv"])
    skip = {"on_unknown_language": "skip"}
    source = {"reader": "tsv", "path": "a.tsv"} | (skip if place == "source" else {})
    stream = {"objectives": [{"name": "info_nce"}], "sources": [source]} | (skip if place == "stream" else {})
    data = {"name": "r", "encoder": {"kind": "static"}, "optimizer": {"lr": 1.0}, "steps": 1, "streams": [stream]}
    recipe = recipes.parse(data, folder=tmp_path)
    corpus = recipe.corpus(recipe.stages[0].streams[0])
    corpus.check()
    assert [group for _, groups in corpus.named() for group in groups] == [PAIR]
