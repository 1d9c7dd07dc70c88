"""Groups of data in memory: what a notebook may hand over, and what it is told."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas
import pytest

from isoglot.core.errors import CorpusError
from isoglot.data import Group, groups_of
from isoglot.mining import MinedPair

PAIRS = [("Good morning!", "Guten Morgen!"), ("Thanks.", "Danke.")]
EXPECTED = [Group(pair, ("eng", "deu")) for pair in PAIRS]
COLUMNS = {"en": [first for first, _ in PAIRS], "de": [second for _, second in PAIRS]}


def frame(kind, columns):
    if kind == "dict":
        return columns
    if kind == "rows":
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table(columns)
    if kind in ("pandas", "polars"):
        return pytest.importorskip(kind).DataFrame(columns)
    dataset = pytest.importorskip("datasets").Dataset.from_dict(columns)
    return dataset.to_iterable_dataset() if kind == "streaming" else dataset


KINDS = ["dict", "rows", "pandas", "polars", "pyarrow", "datasets", "streaming"]


FRENCH = [Group(("a", "b", "c"), ("fra",) * 3), Group(("d",), ("fra",))]
SIDES = [Group(("a",), ("eng",)), Group(("b",), ("deu",)), Group(("a", "b"), ("eng", "deu"))]
HARD = [{"anchor": "a", "positive": positive, "negative": "c"} for positive in ("b", None)]


@pytest.mark.parametrize(
    "data, languages, groups",
    [
        (PAIRS, ("en", "de"), EXPECTED),
        ([list(pair) for pair in PAIRS], "eng,deu", EXPECTED),
        (np.array(PAIRS), ("en", "de"), EXPECTED),
        (iter(PAIRS), ["en", "deu"], EXPECTED),
        ((pair for pair in EXPECTED), None, EXPECTED),
        (EXPECTED, ("fr",), EXPECTED),
        ([EXPECTED[0], {"en": "Thanks.", "de": "Danke."}], None, EXPECTED),
        ([{"source": a, "target": b} for a, b in PAIRS], ("en", "de"), EXPECTED),
        ([Group(list(pair), ["en", "ger"]) for pair in PAIRS], None, EXPECTED),
        (COLUMNS | {"fr": ["Bonjour", None]}, ("en", "de"), EXPECTED),
        ({"english": COLUMNS["en"], "german": COLUMNS["de"], "url": [1, 2]}, {"english": "en", "german": "de"},
         EXPECTED),
        (["a", "b"], None, [Group(("a",), ("und",)), Group(("b",), ("und",))]),
        ([("a", "b", "c"), ("d",)], "fr", FRENCH),
        # Of two languages a missing side takes its own away.
        ([{"source": a, "target": b} for a, b in (("a", None), (None, "b"), ("a", "b"))], ("en", "de"), SIDES),
        ([{"query": "a", "pos": None}, {"query": None, "pos": ["b", "c"]}], ("en", "de", "fr"),
         [SIDES[0], Group(("b", "c"), ("deu", "fra"))]),
        # A hard negative has the language of the positive.
        (HARD, ("en", "de"), [Group(one.texts, one.langs, "", ("c",), ("deu",)) for one in (SIDES[2], SIDES[0])]),
        (HARD[:1], "en", [Group(("a", "b"), ("eng", "eng"), "", ("c",), ("eng",))]),
        ([{"anchor": "a", "positive": "b", "negative_1": "c", "negative_2": None, "negative_10": "d"}], None,
         [Group(("a", "b"), ("und",) * 2, "", ("c", "d"), ("und",) * 2)]),
        ([{"anchor": "a", "positive": "b", "negatives": ["c", "d"]}], None,
         [Group(("a", "b"), ("und",) * 2, "", ("c", "d"), ("und",) * 2)]),
        ([{"source": "a", "target": "b", "negative1": "c", "hard_neg_2": "d"}], None,
         [Group(("a", "b"), ("und",) * 2, "", ("c", "d"), ("und",) * 2)]),
        ([MinedPair(1.5, "a", "b", "1", "2")], "de", [Group(("a", "b"), ("deu",) * 2, extras={"score": 1.5})]),
        ([{"no": "17", "en": "17"}], None, [Group(("17", "17"), ("nor", "eng"))]),
        ([{"id": "Selamat pagi!", "en": "a"}], None, [Group(("Selamat pagi!", "a"), ("ind", "eng"))]),
        ([{"id": "s-1", "en": "a", "de": "b"}], ("en", "de"), [Group(("a", "b"), ("eng", "deu"))]),  # an id, left out
        ([{"id": "s-1", "text": "s-2"}], None, [Group(("s-2",), ("und",))]),
        ([{"text": "a", "lang": "de"}], None, [Group(("a",), ("deu",))]),
    ],
)  # fmt: skip
def test_pairs_groups_rows_and_columns(data, languages, groups):
    assert list(groups_of(data, languages)) == groups


@pytest.mark.parametrize("kind", KINDS)
def test_frames_and_datasets(kind):
    data = frame(kind, COLUMNS | {"score": [1.5, 2.0], "label": [0, 2], "key": ["", "k"]})
    groups = list(groups_of(data))
    assert [(group.texts, group.langs) for group in groups] == [(group.texts, group.langs) for group in EXPECTED]
    assert [group.extras for group in groups] == [{"score": 1.5, "label": 0}, {"score": 2.0, "label": 2}]
    assert [group.key for group in groups] == ["", "k"]


@pytest.mark.parametrize("kind", KINDS)
def test_missing_cells_and_hard_negatives(kind):
    columns = {"anchor": ["a", "b"], "positive": ["c", None], "negative": [None, "d"]}
    groups = list(groups_of(frame(kind, columns), "en" if kind != "rows" else "eng"))
    assert groups[0] == Group(("a", "c"), ("eng", "eng"))
    assert groups[1] == Group(("b",), ("eng",), "", ("d",), ("eng",))
    named = {"x": ["a"], "y": ["b"], "n": ["c"]}
    found = list(groups_of(frame(kind, named), {"x": "en", "y": "de"}, hard_negatives={"n": "fr"}))
    assert found == [Group(("a", "b"), ("eng", "deu"), "", ("c",), ("fra",))]


def test_columns_of_hard_negatives_change_nothing_else():
    row = {"source": "a", "target": "b", "score": 0.5, "n": "c"}
    expected = Group(("a", "b"), ("eng", "deu"), "", ("c",), ("deu",), {"score": 0.5})
    assert list(groups_of([row], ("en", "de"), hard_negatives={"n": "de"})) == [expected]
    skipped, row = Counter(), {"en": "a", "de": "b", "xx": "x", "fr": "d", "n": "c"}
    found = groups_of([row], ("en", "de"), hard_negatives={"n": "de"}, skipped=skipped)
    assert list(found) == [replace(expected, extras={})]
    assert skipped.total() == 1


@pytest.mark.parametrize("positive", ["b", None])
def test_hard_negatives_of_texts_have_the_language_of_the_positive(positive):
    row = {"texts": ["a", positive or " "], "hard_negatives": ["c", "d"]}
    code = "deu" if positive else "eng"  # of a group of one, that of its sentence
    assert next(groups_of([row], ("en", "de"))).hard_langs == (code, code)
    assert next(groups_of([row | {"langs": ["en", "de"]}])).hard_langs == (code, code)


@pytest.mark.parametrize("texts, langs", [("ab", "de"), (("a", "b"), "de"), (("a",), None), ({"a": 1}, ("de",))])
def test_a_group_is_not_made_of_a_string(texts, langs):
    with pytest.raises(TypeError, match="of a Group is"):
        Group(texts, langs)


def test_numbers_of_numpy_are_numbers():
    group = next(groups_of([{"en": "a", "de": "b", "score": np.float32(1.5), "label": np.int64(2)}]))
    assert group.extras == {"score": 1.5, "label": 2}
    assert type(group.extras["label"]) is int


@pytest.mark.parametrize(
    "data, parts",
    [
        ("pairs.tsv", ["'pairs.tsv'", "list of pairs", "readers.read"]),
        (None, ["None", "list of pairs"]),
        (3, ["int", "list of pairs"]),
        ({"Hello": "Hallo"}, ["dict", "{'en': [...]"]),
        ({"train": frame("datasets", COLUMNS)}, ["data['train']"]),
        ([("a", "b"), ("c", None)], ["row 2", "None"]),
        ([("a", 0.5)], ["row 1", "float"]),
        ([("a", "b"), 3], ["row 2", "int"]),
        ([{"a"}], ["row 1", "set"]),
        (([*"abc"], [*"def"]), ["2 lists of 3", "zip"]),
        ([np.array([*"abc"]), pandas.Series([*"def"])], ["2 lists of 3", "zip"]),
        (np.array([[*"abc"], [*"def"]]), ["2 lists of 3", "zip"]),
        ({"en": [*"abc"], "de": [*"def"]}.values(), ["2 lists of 3", "zip"]),
        ([[*"abcd"], [*"efgh"], [*"ijkl"]], ["3 lists of 4", "zip"]),
    ],
    ids=str,
)
def test_wrong_kinds_get_one_sentence_that_says_what_to_pass(data, parts):
    with pytest.raises(TypeError) as error:
        list(groups_of(data))
    assert "\n" not in str(error.value)
    assert all(part in str(error.value) for part in parts), error.value


@pytest.mark.parametrize(
    "data, languages, parts",
    [
        ([("a", "b"), ("c", " ")], None, ["row 2", "empty"]),
        ([("a", "b", "c")], ("en", "de"), ["row 1", "3 sentences", "eng, deu"]),
        ([{"en": "a"}, {"comment": "b"}], None, ["row 2", "'comment'"]),
        ([{"en": "a"}, {"en": None}], None, ["row 2", "no text"]),
        ({"id": ["s-1"], "en": ["a"], "de": ["b"]}, None, ["row 1", "Indonesian", "'s-1'"]),
        ({"No": ["1"], "en": ["a"], "de": ["b"]}, None, ["row 1", "Norwegian", "'1'"]),
        (pandas.DataFrame({"en": ["a"], "de": ["b"], "doc": ["news"]}), None, ["row 1", "column doc"]),
        ({"en": ["a"], "zh": ["b"]}, ("en", "fr"), ["no column in fra", "eng, zho"]),
        ([{"premise": "a", "hypothesis": "b", "gold_label": "neutral"}], None, ["row 1", "'gold_label'", "'neutral'"]),
        ([{"en": "a", "score": float("inf")}], None, ["row 1", "'score'", "inf"]),
        ([{"x": 1}], {"x": "en"}, ["row 1", "'x'", "int"]),
        ([{"x": "a"}], {"y": "en"}, ["row 1", "'y'", "'x'"]),
        (PAIRS, ("en", "xx"), ["'xx'"]),
        ([Group(("a", "b"), ("en", "xx"))], None, ["row 1", "'xx'"]),
        ([Group(("a",), ("en",), "", ("b",), ("yy",))], None, ["row 1", "'yy'"]),
        ([Group(("a",), (None,))], None, ["row 1", "(None,)"]),
        ([Group(("a",), (["en"],))], None, ["row 1", "['en']"]),
        ([{"source": None, "target": None}], ("en", "de"), ["row 1", "no text"]),
        ([{"text": "a"}], ("en", "de"), ["row 1", "2 languages"]),
        ([{"query": None, "pos": ["a", "b"]}], ("en", "de"), ["row 1", "3 sentences", "2 languages"]),
    ],
)
def test_mistakes_in_a_row_are_named(data, languages, parts):
    with pytest.raises(CorpusError) as error:
        list(groups_of(data, languages))
    assert all(part in str(error.value) for part in parts), error.value


@pytest.mark.parametrize(
    "data, languages",
    [
        ([[*"abc"], [*"def"]], ("de", "en", "fr")),
        ([tuple("abc"), tuple("def")], None),
        ([[*"ab"], [*"cd"]], None),
        (np.array([[*"ab"], [*"cd"], [*"ef"]]), None),
    ],
)
def test_two_groups_are_not_mistaken_for_columns(data, languages):
    assert [group.texts for group in groups_of(data, languages)] == [tuple(row) for row in data]


def test_what_looks_like_metadata_may_be_selected_or_left_out():
    table = pandas.DataFrame({"en": ["a"], "zh": ["b"], "doc": ["news"]})
    assert [*groups_of(table, ["en", "zh-CN"])] == [Group(("a", "b"), ("eng", "zho"))]
    assert [*groups_of(table, {"en": "en", "doc": "doc"})] == [Group(("a", "news"), ("eng", "doc"))]
    roles = [{"query": "a", "pos": "b", "neg": "c"}]  # of these one is the name of a role
    assert next(iter(groups_of(roles, "en"))).texts == ("a", "b")


def test_columns_of_one_name_are_refused():
    """pandas returns a table for such a name."""
    with pytest.raises(ValueError, match="'en'"):
        groups_of(pandas.DataFrame([("a", "b")], columns=["en", "en"]))


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="'en': 2, 'de': 1"):
        groups_of({"en": ["a", "b"], "de": ["c"]})


def test_columns_that_are_no_languages_are_answered_with_names_that_are_known():
    with pytest.raises(CorpusError, match=r"row 1 of data: unknown language 'question'.* source and target"):
        list(groups_of({"question": ["a"], "answer": ["b"]}))
