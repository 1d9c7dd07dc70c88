"""`isoglot.Index` as a notebook uses it: in memory and on disk, texts as queries, translations, and wrong arguments."""

import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch

import isoglot
from conftest import SENTENCES
from isoglot.core.errors import CorpusError, MissingExtraError, OutputError, SearchError
from isoglot.index import Sentence
from isoglot.index import table as module
from isoglot.index.table import Table, find_nearest
from isoglot.search import neighbours

CODES = ["eng", "deu"]


@pytest.fixture(params=["memory", "disk"])
def index(request, tmp_path, toy_static):
    folder = None if request.param == "memory" else tmp_path / "i"
    with isoglot.Index.build(
        toy_static, SENTENCES, languages=[CODES[at % 2] for at in range(len(SENTENCES))],
        translations=[f"T{at}" if at else None for at in range(len(SENTENCES))], translation_languages="ko",
        folder=folder,
    ) as made:  # fmt: skip
        yield made


def test_every_sentence_is_its_own_best_hit(index):
    for row, text in enumerate(SENTENCES):
        (hit,) = index.search(text, 1)
        expected = (text, CODES[row % 2], f"T{row}" if row else None, row)
        assert (hit.text, hit.language, hit.translation, hit.row) == expected
        assert 1 - 1e-6 < hit.score <= 1
        assert (hit.percent, hit.count) == (100, 1)
        assert hit.translation_language == ("kor" if row else "und")
    lists = index.search(SENTENCES[:3], 4)
    assert [hits[0].text for hits in lists] == SENTENCES[:3]
    assert index.search(index.vectors(range(3)), 4) == lists
    large = index.search(1e60 * index.vectors(range(3)).astype(np.float64), 4)
    assert [[hit.row for hit in hits] for hits in large] == [[hit.row for hit in hits] for hits in lists]
    assert {hit.language for hit in index.search(SENTENCES[0], 50, languages="de")} == {"deu"}
    assert {hit.language for hit in index.search(SENTENCES[0], 50, exclude="de")} == {"eng"}
    assert index.search(SENTENCES[0], 50, languages="de", exclude=["deu"]) == []
    assert index.search([]) == []
    assert index.languages() == {"deu": len(SENTENCES) // 2, "eng": -(-len(SENTENCES) // 2)}


def test_a_model_whose_settings_were_changed_is_another_one(index):
    hits, model = index.search(SENTENCES[1]), index.model
    model.prompt = "The "
    for call in (index.search, lambda text: index.add([text])):
        with pytest.raises(SearchError, match="is not the model of this index"):
            call(SENTENCES[1])
    model.prompt = ""
    assert index.search(SENTENCES[1]) == hits


@pytest.mark.parametrize("kind", ["x", 5])
def test_a_kind_that_cannot_be_adds_nothing(index, kind):
    size = len(index)
    with pytest.raises((ValueError, TypeError), match=repr(kind)):
        index.add(["one more"], kind=kind)
    assert len(index) == size


def test_growing_saving_and_opening(index, toy_static, tmp_path):
    size = len(index)
    assert index.add(["one more", "and another"], languages="fr").new == 2
    assert (index.search("one more", 1)[0].row, index.search("one more", 1)[0].language) == (size, "fra")
    assert index.add([], kind="hnsw").new == 0
    assert index.kind == "hnsw"
    found = index.search([*SENTENCES, "one more"], 3)
    index.save(tmp_path / "saved")
    with isoglot.Index.open(tmp_path / "saved", toy_static) as again:
        assert again.search([*SENTENCES, "one more"], 3) == found
    with pytest.raises(OutputError, match="not empty"):
        index.save(tmp_path / "saved")


def test_an_index_is_opened_in_each_process(index):
    with pytest.raises(TypeError, match=r"isoglot\.Index\.open\(folder\)"):
        pickle.dumps(index)


def test_a_corrected_translation_replaces_the_one_that_is_there(toy_static, tmp_path):
    folder, texts = tmp_path / "i", ["cat", "dog"]
    for translations in (["Kaze", "Hund"], ["Katze", None]):
        with isoglot.Index.build(
            toy_static, texts, folder=folder, translations=translations, translation_languages="deu", ids=["1", "2"]
        ) as index:
            hits = [index.search(text, 1)[0] for text in texts]
    assert [(hit.translation, hit.translation_language) for hit in hits] == [("Katze", "deu"), (None, "und")]


def test_a_sentence_with_an_empty_id_is_an_entry_of_its_own(toy_static):
    index = isoglot.Index.build(toy_static, ["one", "two", "three"], ids=["", "b", ""])
    assert {hit.text for hit in index.search("one", k=5)} == {"one", "two", "three"}


def test_of_an_id_that_is_given_twice_the_last_translation_counts(toy_static, monkeypatch):
    """In one piece and in two."""
    twice = [isoglot.index.Sentence("1", "hi", "eng", text, "deu") for text in ("hallo", "guten Tag")]
    for rows in (2, 1):
        monkeypatch.setattr("isoglot.index.table.ROWS", rows)
        assert isoglot.Index.build(toy_static, twice).search("hi")[0].translation == "guten Tag"


def test_a_saved_index_loads_its_model_by_name(toy_static, tmp_path):
    toy_static.save(tmp_path / "model")
    isoglot.Index.build(tmp_path / "model", SENTENCES).save(tmp_path / "i")
    assert isoglot.Index.open(tmp_path / "i").search(SENTENCES[2])[0].row == 2
    (tmp_path / "model").rename(tmp_path / "moved")
    with pytest.raises(SearchError, match="--model"):
        isoglot.Index.open(tmp_path / "i").search("x")
    assert isoglot.Index.open(tmp_path / "i", tmp_path / "moved").search(SENTENCES[2])[0].row == 2


def test_exact_search_needs_no_faiss(toy_static, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    index = isoglot.Index.build(toy_static, SENTENCES)
    assert index.search(SENTENCES[3])[0].row == 3
    with pytest.raises(MissingExtraError, match=r"isoglot\[faiss\]"):
        isoglot.Index.build(toy_static, SENTENCES, kind="hnsw")


def test_the_nearest_of_many_blocks_in_the_order_of_rows(monkeypatch):
    """Whole numbers: scores are exact, and ties abound."""
    monkeypatch.setattr(module, "BLOCK", 100)
    rng = np.random.default_rng(0)
    table, queries = (rng.integers(-1, 2, (rows, 3)).astype(np.float32) for rows in (730, 20))
    for k in (1, 7, 120, 730, 900):
        expected = neighbours(queries, table, k).forward_ids
        np.testing.assert_array_equal(find_nearest(Table(table), queries, k), expected)
        keep = rng.random(730) < 0.3
        kept = np.flatnonzero(keep)
        expected = kept[neighbours(queries, table[kept], k).forward_ids]
        np.testing.assert_array_equal(find_nearest(Table(table), queries, k, keep=keep), expected)
        expected = 350 + neighbours(queries, table[350:], k).forward_ids
        np.testing.assert_array_equal(find_nearest(Table(table), queries, k, first=350), expected)


def test_threads_share_an_index_that_grows(index):
    def work(number):
        if number % 8 == 0:
            index.add([f"new {number}"], ids=[f"n{number}"])
        return index.search(SENTENCES[number % len(SENTENCES)], 1)[0].row

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(40))) == [number % len(SENTENCES) for number in range(40)]
    assert len(index) == len(SENTENCES) + 5


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_state_that_a_thread_was_slow_to_open_does_not_replace_a_newer_one(toy_static, tmp_path, in_memory):
    made = isoglot.Index.build(toy_static, ["a cat", "a dog"], folder=None if in_memory else tmp_path / "i")
    opened, opening, go = made._storage.open, threading.Event(), threading.Event()

    def open_slowly(name, rows):
        table = opened(name, rows)
        if threading.current_thread() is reader:
            opening.set()
            assert go.wait(20)
        return table

    made._storage.open = open_slowly
    reader, writer = threading.Thread(target=made._load), threading.Thread(target=made.add, args=(["the mat"],))
    reader.start()
    assert opening.wait(20)
    writer.start()
    writer.join(0.5)
    go.set()
    reader.join(20)
    writer.join(20)
    assert len(made) == 3
    assert made.search("the mat", 1)[0].text == "the mat"


def test_a_saved_index_is_of_the_same_kind(toy_static, tmp_path):
    texts = [f"{one} {number}" for one in SENTENCES for number in range(9)]
    made = isoglot.Index.build(toy_static, texts, kind="IVF2,Flat")
    made.save(tmp_path / "saved")
    with isoglot.Index.open(tmp_path / "saved", toy_static) as again:
        assert (again.kind, again._view.covered_rows, again.recall) == ("IVF2,Flat", 90, made.recall)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sentences": "one string"}, TypeError, "list of sentences"),
        ({"sentences": pd.DataFrame({"de": SENTENCES})}, TypeError, r"sentences: .*DataFrame.*table\['text'\]"),
        ({"sentences": [Sentence("1", "Hallo", "xx")]}, CorpusError, r"sentences\[0\]: unknown language 'xx'"),
        ({"sentences": [Sentence("1", "Hallo", 5)]}, TypeError, r"sentences\[0\]: the language is 5"),
        ({"sentences": [Sentence("1", None)]}, TypeError, r"sentences\[0\]: the text is None"),
        ({"ids": [None] * 10}, TypeError, r"sentences\[0\]: the id is None"),
        ({"ids": [b"x"] * 10}, TypeError, r"sentences\[0\]: the id is b'x'"),
        ({"translations": [3] * 10}, TypeError, r"sentences\[0\]: the translation is 3"),
        ({"kind": "hsnw"}, ValueError, "did you mean 'hnsw'"),
        ({"kind": "IDMap,Flat"}, ValueError, "leave IDMap out"),
        ({"sentences": [Sentence("1", "Hallo")], "languages": "deu"}, ValueError, r"sentences\[0\] .* own languages"),
        ({"languages": ["eng"]}, ValueError, "languages has only 1"),
        ({"languages": ["eng"] * 11}, ValueError, "languages has more"),
        ({"ids": ["a", "b"] * 5}, SearchError, "'a' belongs to"),
        ({"languages": "nonsense"}, CorpusError, "nonsense"),
        ({"prompt": "x"}, ValueError, "isoglot.load"),
    ],
)
def test_wrong_arguments_make_nothing(toy_static, tmp_path, arguments, error, message):
    given = {"model": toy_static, "sentences": SENTENCES, "folder": tmp_path / "i"} | arguments
    with pytest.raises(error, match=message):
        isoglot.Index.build(given.pop("model"), given.pop("sentences"), **given)
    assert message.startswith(("'a'", "languages has")) or not (tmp_path / "i").exists()


def test_an_index_built_with_a_loaded_model_finds_it_again(toy_static, tmp_path, monkeypatch):
    toy_static.save(tmp_path / "run" / "model")
    monkeypatch.chdir(tmp_path)
    isoglot.Index.build(isoglot.load("run/model"), SENTENCES, folder="index").close()
    monkeypatch.chdir("run")
    with isoglot.Index.open("../index") as index:
        assert index.search(SENTENCES[1], k=1)[0].text == SENTENCES[1]


def test_languages_of_sentences_are_canonical(toy_static):
    sentences = [Sentence("1", "Hallo", "de", "Hello", "en"), Sentence("2", "你好", "zh-TW")]
    index = isoglot.Index.build(toy_static, sentences)
    assert index.add(sentences).known == 2
    index.add_vectors([Sentence("3", "Salut", "fr")], np.ones((1, index.origin.dim)))
    assert [hit.id for hit in index.search("Hallo", languages="de")] == ["1"]
    assert index.search("Hallo", 1, languages="deu")[0].translation_language == "eng"
    assert index.languages() == {"deu": 1, "fra": 1, "zho_Hant": 1}
    either = isoglot.Index.build(toy_static, ["你好", "a"], languages=["zh", "en"])
    assert [hit.text for hit in either.search("a", languages="zh-TW")] == ["你好"]
    assert [hit.text for hit in either.search("a", exclude="zh-TW")] == ["a"]


def test_unknown_languages_may_be_none(toy_static):
    index = isoglot.Index.build(toy_static, ["a", "b"], languages=["de", None], ids=[7, "x"], translations=["c", "d"],
                                translation_languages=[None, "en"])  # fmt: skip
    hits = {hit.id: (hit.language, hit.translation_language) for hit in index.search("a")}
    assert hits == {"7": ("deu", "und"), "x": ("und", "eng")}


def test_lone_surrogates_are_kept_as_they_are_encoded(index):
    for _ in range(2):
        index.add(["a \ud800 b", "\ud83d\ude00"], ids=["\udfff", "y"], translations=["\ud800", None])
    (hit,) = index.search("a \ud800 b", 1)
    assert (hit.id, hit.text, hit.translation) == ("\ufffd", "a \ufffd b", "\ufffd")
    assert index.search("\U0001f600", 1)[0].id == "y"


def test_threads_that_add_get_different_default_ids(index):
    def slowly(number):
        yield f"new {number}"
        time.sleep(0.05)
        yield f"other {number}"

    with ThreadPoolExecutor(4) as pool:
        assert [added.new for added in pool.map(lambda number: index.add(slowly(number)), range(4))] == [2] * 4
    assert len(index) == len(SENTENCES) + 8


def test_queries_of_every_kind(index):
    lists = index.search(SENTENCES[:3], 4)
    for texts in (np.array(SENTENCES[:3]), pd.Series(SENTENCES[:3]), iter(SENTENCES[:3]), tuple(SENTENCES[:3])):
        assert index.search(texts, 4) == lists
    rows = index.vectors(range(3))
    for vectors in (list(rows), rows.tolist(), torch.from_numpy(rows), list(torch.from_numpy(rows))):
        assert index.search(vectors, 4) == lists
    assert index.search(SENTENCES[0], 50, languages="de,en") == index.search(SENTENCES[0], 50)
    assert index.search(SENTENCES[0], 50, exclude="de,en") == []


def test_rows_that_are_not_in_the_index(index):
    assert index.vectors([]).shape == (0, index.origin.dim)
    for wrong in ([len(SENTENCES)], [0, -1]):
        with pytest.raises(ValueError, match=f"row {wrong[-1]} is not one of the 10"):
            index.vectors(wrong)
    for wrong in ([0.5], [True], ["a"]):
        with pytest.raises(TypeError, match=r"numbers of rows|a whole number"):
            index.vectors(wrong)


def test_a_closed_index_says_so(index):
    index.close()
    for call in (lambda: index.search("a"), lambda: index.add(["a"]), index.languages, lambda: index.kind):
        with pytest.raises(SearchError, match="is closed; open it again"):
            call()


@pytest.mark.parametrize(
    ("queries", "options", "error", "message"),
    [
        *((wrong, {}, TypeError, r"search takes texts or vectors \(N, D\)")
          for wrong in (None, 3, ["a", None], {"a": "b"}, pd.DataFrame({"a": ["b"]}))),
        *((wrong, {}, ValueError, "must be") for wrong in (np.ones((2, 3)), np.ones(8), [3], [0])),
        *((np.ones((1, 8), kind), {}, ValueError, f"vectors of {kind}") for kind in ("int8", "uint8")),
        ([np.ones(8, "int8")], {}, ValueError, "vectors of int8"),
        (np.full((1, 8), np.nan), {}, ValueError, "row 0 of the vectors contains NaN or infinity"),
        ("x", {"k": 0}, ValueError, "k is 0"),
        ("x", {"effort": -3}, ValueError, "effort is -3"),
        ("x", {"languages": ["qqqq"]}, CorpusError, "qqqq"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("index", ["memory"], indirect=True)
def test_wrong_queries(index, queries, options, error, message):
    with pytest.raises(error, match=message):
        index.search(queries, **options)


def test_blank_texts_are_left_out_as_in_files_and_are_no_queries(toy_static):
    """Some models put a text without words near every query."""
    index = isoglot.Index.build(toy_static, ["", "cat", " \n"], languages=["eng", "deu", "fra"], ids=["1", "2", "3"])
    assert index.add([Sentence("4", "\t"), Sentence("5", "dog", translation=" ")]).new == 1
    assert index.languages() == {"deu": 1, "und": 1}
    assert {(hit.id, hit.translation) for hit in index.search("bird")} == {("2", None), ("5", None)}
    for queries, place in (("", 0), (["cat", "  "], 1)):
        with pytest.raises(ValueError, match=rf"^queries\[{place}\] .*blank"):
            index.search(queries)


def test_columns_of_a_frame_may_have_missing_cells(toy_static):
    """They are NaN in pandas, and None elsewhere; so are blank cells of a file."""
    frame = pd.DataFrame(
        {"text": ["cat", "dog"], "of": ["Katze", None], "in": ["deu", None], "language": ["eng", None]}
    )
    columns = {"translations": frame["of"], "translation_languages": frame["in"], "languages": frame["language"]}
    hits = isoglot.Index.build(toy_static, frame["text"], **columns).search("cat")
    assert {(hit.language, hit.translation, hit.translation_language) for hit in hits} == {
        ("eng", "Katze", "deu"), ("und", None, "und")
    }  # fmt: skip


@pytest.mark.parametrize(
    "call", [lambda *args: isoglot.Index.build(*args), lambda *args: isoglot.Index.build(*args[:2], top=1)]
)
def test_a_wrong_call_names_the_arguments_that_there_are(toy_static, call):
    with pytest.raises(TypeError, match=r"^build .*\bmodel, sentences") as raised:
        call(toy_static, ["cat"], "eng")
    assert "cls" not in str(raised.value)
