"""JSON lines in all their shapes."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from isoglot.data.groups import Group
from isoglot.data.readers import read_jsonl

SENTENCE = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(str.strip)
LANGUAGE = st.sampled_from(["eng", "deu", "zho_Hans", "und"])
NUMBER = st.floats(-3e38, 3e38)
PAIRS = st.lists(st.tuples(SENTENCE, LANGUAGE), max_size=4)


def write(path, *items):
    path.write_text("".join((item if isinstance(item, str) else json.dumps(item)) + "\n" for item in items))
    return path


@given(
    pairs=PAIRS.filter(bool),
    hard=PAIRS,
    key=st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    extras=st.dictionaries(st.sampled_from("abc"), NUMBER | st.lists(NUMBER, max_size=3).map(tuple)),
    ascii_only=st.booleans(),
)
def test_a_group_written_out_comes_back(tmp_path_factory, pairs, hard, key, extras, ascii_only):
    group = (
        Group(*map(tuple, zip(*pairs, strict=True)), key, *map(tuple, zip(*hard, strict=True)), **({"extras": extras}))
        if hard
        else Group(*map(tuple, zip(*pairs, strict=True)), key, extras=extras)
    )
    item = {name: getattr(group, name) for name in Group.__slots__}
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    path.write_bytes(json.dumps(item, ensure_ascii=ascii_only).encode() + b"\n")
    assert list(read_jsonl(path)) == [group]


def test_translations(tmp_path):
    path = write(
        tmp_path / "a.jsonl",
        {"en": "Hi", "zh-CN": "你好", "de": "", "fr": None, "score": 1.5, "key": "k"},
        {"id": "7", "translation": {"en": "Hi", "de": "Hallo"}},
    )
    assert list(read_jsonl(path)) == [
        Group(("Hi", "你好"), ("eng", "zho_Hans"), "k", extras={"score": 1.5}),
        Group(("Hi", "Hallo"), ("eng", "deu")),
    ]


def test_queries_with_positives_and_negatives(tmp_path):
    path = write(
        tmp_path / "a.jsonl",
        {"query": "q", "pos": ["p", "r"], "neg": ["n", "m"]},
        {"query": "q", "pos": ["p"], "neg": []},
        {"anchor": "a", "positive": "p", "negative": "n"},
        {"text": "alone"},
        {"texts": ["a", "b"]},
    )
    assert list(read_jsonl(path, language="en")) == [
        Group(("q", "p", "r"), ("eng",) * 3, "", ("n", "m"), ("eng",) * 2),
        Group(("q", "p"), ("eng",) * 2),
        Group(("a", "p"), ("eng",) * 2, "", ("n",), ("eng",)),
        Group(("alone",), ("eng",)),
        Group(("a", "b"), ("eng",) * 2),
    ]


def test_a_blank_sentence_of_a_group_is_left_out(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"texts": ["Hi: 1", "\\u3000"], "langs": ["en", "de"]}\n{"texts": "ab", "langs": "en"}\n')
    assert list(read_jsonl(path)) == [Group(("Hi: 1",), ("eng",)), Group(("ab",), ("eng",))]
