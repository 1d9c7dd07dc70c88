"""Tables, JSON lines and saved datasets: what a row of each becomes, and that what is written comes back."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.core.errors import CorpusError, MissingExtraError
from isoglot.data.groups import Group
from isoglot.data.readers import read
from isoglot.data.readers.jsonl import read_dataset, read_jsonl
from isoglot.data.readers.tsv import read_tsv

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
CELL = st.text(st.characters(exclude_characters="\0\n\r\t\ufeff", exclude_categories=["Cs"]), max_size=20)
NUMBER = st.floats(-3e38, 3e38)
PAIRS = st.lists(st.tuples(TEXT.filter(str.strip), st.sampled_from(["eng", "deu", "zho_Hans", "und"])), max_size=4)
EN, PAIR = ("eng",), Group(("Hi", "Hallo"), ("eng", "deu"))

ROWS = [  # reader, content, options, groups
    ("tsv", "Hi\tHallo", {"languages": "en,de"}, [PAIR]),
    ("tsv", "Hi\tHallo", {"languages": ["en", "_"]}, [Group(("Hi",), EN)]),
    ("tsv", "en\tdeu\nHi\tHallo", {"languages": "en,de"}, [PAIR]),  # a header that repeats the languages
    ("tsv", "en\tde\tfr\nHi\t\tSalut", {}, [Group(("Hi", "Salut"), ("eng", "fra"))]),
    ("tsv", "en\tde\n\u3000\tJa", {}, [Group(("Ja",), ("deu",))]),
    ("tsv", "score\ten\tde\n1.25\tHi\tHallo", {}, [Group(PAIR.texts, PAIR.langs, extras={"score": 1.25})]),
    ("tsv", "key\ten\tde\nk\tHi\tHallo", {}, [Group(PAIR.texts, PAIR.langs, "k")]),
    ("tsv", "german\tenglish\nHallo\tHi", {"columns": {"english": "en", "german": "de"}, "languages": "en,de"},
        [Group(("Hallo", "Hi"), ("deu", "eng"))]),
    ("jsonl", '{"en": "Hi", "de": "Hallo", "key": 0}', {}, [Group(PAIR.texts, PAIR.langs, "0")]),
    ("jsonl", '{"source": "Hi", "target": "Hallo", "key": 7}', {"language": "en,de"},
        [Group(PAIR.texts, PAIR.langs, "7")]),
    ("jsonl", '{"en": "Hi", "zh-CN": "你好", "de": "", "fr": null, "score": 1.5, "key": "k"}', {},
        [Group(("Hi", "你好"), ("eng", "zho_Hans"), "k", extras={"score": 1.5})]),
    ("jsonl", '{"id": "7", "translation": {"en": "Hi", "de": "Hallo"}}', {}, [PAIR]),
    ("jsonl", '{"query": "q", "pos": ["p", "r"], "neg": ["n", "m"]}', {"language": "en"},
        [Group(("q", "p", "r"), EN * 3, "", ("n", "m"), EN * 2)]),
    ("jsonl", '{"query": "q", "pos": ["p"], "neg": []}', {"language": "en"}, [Group(("q", "p"), EN * 2)]),
    ("jsonl", '{"anchor": "a", "positive": "p", "negative": "n"}', {"language": "en"},
        [Group(("a", "p"), EN * 2, "", ("n",), EN)]),
    ("jsonl", '{"text": "Hi", "language": "en", "translation": "Hallo", "translation_language": "de"}', {}, [PAIR]),
    ("jsonl", '{"text": "Hi", "language": "en", "translation": null}', {"language": "fr"}, [Group(("Hi",), EN)]),
    ("tsv", "text\tlanguage\nHi\ten", {"languages": "fr"}, [Group(("Hi",), EN)]),
    ("jsonl", '{"text": "alone"}', {"language": "en"}, [Group(("alone",), EN)]),
    ("jsonl", '{"texts": ["a", "b"]}', {"language": "en"}, [Group(("a", "b"), EN * 2)]),
    ("jsonl", '{"texts": ["Hi: 1", "\\u3000"], "langs": ["en", "de"]}', {}, [Group(("Hi: 1",), EN)]),
    ("jsonl", '{"texts": "ab", "langs": "en"}', {}, [Group(("ab",), EN)]),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "content", "options", "groups"), ROWS)
def test_rows_become_groups(tmp_path, reader, content, options, groups):
    (tmp_path / "a").write_text(content + "\n", encoding="utf-8")
    assert list(read(reader, tmp_path / "a", **options)) == groups


def test_the_lines_before_a_fault_are_given(tmp_path):
    (tmp_path / "a.tsv").write_text("en\tde\nHi\tHallo\nc\n")
    groups = read_tsv(tmp_path / "a.tsv")
    assert next(groups) == PAIR
    with pytest.raises(CorpusError, match=r"a\.tsv:3: "):
        next(groups)


@given(st.lists(st.lists(CELL.filter(str.strip), min_size=3, max_size=3), min_size=1, max_size=8))
def test_a_table_comes_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tsv") / "a.tsv"
    path.write_bytes("\n".join("\t".join(row) for row in [["deu", "zho_Hans", "und"], *rows]).encode())
    assert list(read_tsv(path)) == [Group(tuple(row), ("deu", "zho_Hans", "und")) for row in rows]


@given(
    PAIRS.filter(bool), PAIRS, TEXT, st.dictionaries(st.sampled_from("abc"), NUMBER | st.lists(NUMBER).map(tuple)),
    st.booleans(),
)  # fmt: skip
def test_a_group_written_out_comes_back(tmp_path_factory, pairs, hard, key, extras, ascii_only):
    texts, negatives = ([*map(tuple, zip(*some, strict=True))] or [(), ()] for some in (pairs, hard))
    group = Group(*texts, key, *negatives, extras)
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    item = {name: getattr(group, name) for name in Group.__slots__}
    path.write_bytes(json.dumps(item, ensure_ascii=ascii_only).encode() + b"\n")
    assert list(read_jsonl(path)) == [group]


def test_saved_datasets_and_their_splits(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list([{"id": 1, "a": "Hi", "b": "Hallo"}, {"id": 2, "a": "Yes", "b": None}])
    dataset.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": dataset}).save_to_disk(tmp_path / "many")
    for path, split in (("one", None), ("many", "train")):
        groups = read_dataset(tmp_path / path, columns={"a": "en"}, split=split)
        assert list(groups) == [Group(("Hi",), EN), Group(("Yes",), EN)]
    for path, split, column, problem in [
        ("many", "test", "a", "'test'.*train"), ("nothing", None, "a", "nothing: "), ("one", None, "z", "row 1 .*'z'")
    ]:  # fmt: skip
        with pytest.raises(CorpusError, match=problem):
            list(read_dataset(tmp_path / path, columns={column: "en"}, split=split))
    monkeypatch.setitem(sys.modules, "datasets", None)  # not installed
    with pytest.raises(MissingExtraError, match=r"isoglot\[datasets\]"):
        list(read_dataset(tmp_path))
