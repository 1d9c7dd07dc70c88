"""`isoglot.mine` as a function: lists and files, results as named tuples, frames and files, and wrong arguments."""

import json
import pickle
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import isoglot
from conftest import SENTENCES
from isoglot.core.errors import CorpusError, EncoderError, IsoglotError, MissingExtraError, OutputError
from isoglot.data.readers import read_jsonl, read_moses, read_tmx, read_tsv
from isoglot.index import read_sentences
from isoglot.mining import Computation, Filters, Output
from isoglot.mining.formats import format_of
from isoglot.scale import Cluster
from isoglot.search import approximate, others, tune
from isoglot.search import mine as mine_vectors

GERMAN = [f"das {number}" for number in range(30)]
ENGLISH = [f"the {number}" for number in reversed(range(30))]


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    middle = rng.standard_normal((30, 16), np.float32)
    return middle, middle[::-1] + 0.3 * rng.standard_normal((30, 16), np.float32)


@pytest.fixture
def pairs(vectors):
    return isoglot.mine(None, GERMAN, ENGLISH, vectors=vectors, languages="deu,eng")


def test_lists_give_named_tuples(pairs, vectors):
    expected = mine_vectors(*vectors)
    assert len(pairs) == len(expected) == len(list(pairs))
    score, source, target = pairs[0]
    assert (score, source, target) == (pairs[0].score, pairs[0].source, pairs[0].target)
    for pair, row, column in zip(pairs, expected.source, expected.target, strict=True):
        assert (pair.source, pair.target) == (GERMAN[row], ENGLISH[column])
        assert (pair.source_id, pair.target_id) == (row, column)  # indices of the lists
    assert pairs[-1] == list(pairs)[-1]
    assert pairs[:3] == list(pairs)[:3]
    with pytest.raises(IndexError):
        pairs[len(pairs)]
    again = pickle.loads(pickle.dumps(pairs[1]))
    assert (again, again.source_id) == (pairs[1], pairs[1].source_id)


def test_a_wrong_name_of_a_model_leaves_nothing(tmp_path):
    with pytest.raises(EncoderError, match="'isoglot-smal' not found"):
        isoglot.mine("isoglot-smal", GERMAN, ENGLISH, output=tmp_path / "out.tsv")
    assert [*tmp_path.iterdir()] == []


def test_parquet_without_pyarrow_is_an_error_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    model = isoglot.load("isoglot-static")
    monkeypatch.setattr(type(model), "encode", lambda *_, **__: pytest.fail("encoded"))
    with pytest.raises(MissingExtraError, match="parquet"):
        isoglot.mine(model, GERMAN, ENGLISH, output=tmp_path / "out.parquet")


def test_the_reported_recall_within_a_side_is_that_of_the_others():
    """Each row finds itself, which made up a fifth of the neighbours counted."""
    pytest.importorskip("faiss", reason="FAISS is not installed")
    vectors, lines = np.random.default_rng(0).standard_normal((900, 16), np.float32), []
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T - 9 * np.eye(900)
    nearest = np.argsort(-cosines, axis=1)[:, :4]
    found = others(approximate(vectors, vectors, 5, index="ivf", probes=1)).forward_ids
    shares = [len({*a} & {*b}) / 4 for a, b in zip(nearest.tolist(), found.tolist(), strict=True)]
    texts, computation = [*map(str, range(900))], Computation(index="ivf", probes=1)
    isoglot.mine(None, texts, vectors=vectors, computation=computation, report=lines.append)
    (line,) = (line for line in lines if "recall" in line)
    assert float(line.partition("recall ")[2].partition("%")[0]) / 100 == pytest.approx(np.mean(shares), abs=1e-4)


def test_lists_and_files_give_the_same_pairs(toy_static, tmp_path):
    (tmp_path / "a.deu").write_text("".join(f"{text}\n" for text in SENTENCES))
    (tmp_path / "b.eng").write_text("".join(f"{text}\n" for text in SENTENCES[::-1]))
    for prompt in (None, "cat "):
        lists = isoglot.mine(toy_static, SENTENCES, SENTENCES[::-1], computation=Computation(prompt=prompt))
        files = isoglot.mine(
            toy_static, str(tmp_path / "a.deu"), tmp_path / "b.eng", computation=Computation(prompt=prompt)
        )
        assert [pair[1:] for pair in files] == [pair[1:] for pair in lists]
        np.testing.assert_allclose(files.rows.score, lists.rows.score, atol=1e-6)
        assert [pair.source_id for pair in files] == [pair.source_id + 1 for pair in lists]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.deu", "b.eng"]
    assert not list(Path(tempfile.gettempdir()).glob("isoglot-*/source.txt"))
    toy_static.save(tmp_path / "model")
    named, given = (isoglot.mine(model, SENTENCES, SENTENCES[::-1]) for model in (tmp_path / "model", toy_static))
    assert [pair[1:] for pair in named] == [pair[1:] for pair in given]


def test_repeated_blank_and_filtered_sentences(vectors):
    german = [*GERMAN[:28], GERMAN[0], " "]
    messages = []
    found = isoglot.mine(None, german, ENGLISH, vectors=vectors, direction="forward", report=messages.append)
    assert {pair.source_id for pair in found} == set(range(28))
    assert "sources: 30 sentences, 2 skipped" in messages[0]
    every = Filters(keep_duplicates=True)
    kept = isoglot.mine(None, german, ENGLISH, vectors=vectors, direction="forward", filters=every)
    assert {pair.source_id for pair in kept} == set(range(29))
    same = isoglot.mine(None, GERMAN, GERMAN, vectors=(vectors[0], vectors[0]), filters=Filters(drop_identical=True))
    assert all(pair.source != pair.target for pair in same)
    mixed = [*GERMAN[:29], "это русский"]
    found = isoglot.mine(
        None, mixed, ENGLISH, vectors=vectors, languages=("de", "en"), direction="forward",
        filters=Filters(check_language="script"),
    )  # fmt: skip
    assert {pair.source_id for pair in found} == set(range(29))


def test_a_language_check_may_say_that_it_does_not_know(vectors):
    """None is another language; what langid returns, a code with a score, is an error that names the sentence."""
    settings = {"vectors": vectors, "languages": ("de", "en"), "direction": "forward"}
    known = Filters(check_language=lambda text: None if text == GERMAN[0] else "de" if text in GERMAN else "en")
    found = isoglot.mine(None, GERMAN, ENGLISH, filters=known, **settings)
    assert {pair.source_id for pair in found} == set(range(1, 30))
    scored = Filters(check_language=lambda _: ("de", -50.0))
    with pytest.raises(CorpusError, match=r"\('de', -50\.0\) for .*None"):
        isoglot.mine(None, GERMAN, ENGLISH, filters=scored, **settings)


def test_thresholds(vectors, pairs):
    gold = [(row, 29 - row) for row in range(30)]
    tuned = isoglot.mine(None, GERMAN, ENGLISH, vectors=vectors, gold=gold)
    best = tune(mine_vectors(*vectors), gold)
    assert (tuned.threshold, tuned.quality) == (best.threshold, best)
    assert len(tuned) == len(pairs.above(best.threshold))
    named = isoglot.mine(
        None, GERMAN, ENGLISH, vectors=vectors, gold=[(f"s{a}", f"t{b}") for a, b in gold],
        ids=([f"s{row}" for row in range(30)], [f"t{row}" for row in range(30)]),
    )  # fmt: skip
    assert named.quality == best
    assert named[0].source_id.startswith("s")
    guessed = isoglot.mine(None, GERMAN, ENGLISH, vectors=vectors, threshold="estimate")
    assert guessed.threshold == guessed.estimated.threshold <= guessed[-1].score
    messages = []
    noise = np.random.default_rng(1).standard_normal((2, 500, 16))
    sides = [[f"{word} {number}" for number in range(500)] for word in ("das", "the")]
    isoglot.mine(None, *sides, vectors=noise, threshold="estimate", report=messages.append)
    assert any("no clear threshold" in message for message in messages)


def test_a_known_pair_that_was_left_out_counts_once(vectors):
    german = [*GERMAN[:29], " "]
    for gold in ([(29, 0), (0, 29)], [(29, 0), (0, 29), ("29", 0)]):
        assert isoglot.mine(None, german, ENGLISH, vectors=vectors, gold=gold).quality.recall == 0.5


def test_known_pairs_of_one_side_count_once_in_both_directions():
    """Of those that were left out, too; the other pairs are pairs of rows, lower one first."""
    vectors = np.repeat(np.random.default_rng(0).standard_normal((3, 8), np.float32), 2, axis=0)
    gold, texts = [(0, 1), (2, 3), (4, 5)], ["a", "b", "c", "d", " ", "f"]
    for known in (gold, gold + [(b, a) for a, b in gold]):
        quality = isoglot.mine(None, texts, vectors=vectors, k=2, gold=known).quality
        assert (quality.precision, quality.recall) == (1, pytest.approx(2 / 3))


def test_pairs_above_a_lower_threshold_have_that_they_were_cut_at(vectors):
    pairs = isoglot.mine(None, GERMAN, ENGLISH, vectors=vectors, threshold=1.1)
    assert [pairs.above(threshold).threshold for threshold in (0.5, 1.2)] == [1.1, 1.2]


def test_indonesian_in_json_lines_is_not_taken_for_ids(pairs, tmp_path):
    pairs.save(tmp_path / "p.jsonl", languages="id,en")
    assert {group.langs for group in read_jsonl(tmp_path / "p.jsonl")} == {("ind", "eng")}
    assert [one.text for one in read_sentences(str(tmp_path / "p.jsonl"))][:2] == [*pairs[0][1:]]


def test_gold_pairs_are_read_before_anything_is_encoded(toy_static, monkeypatch):
    monkeypatch.setattr(type(toy_static), "tokenize", None)  # fails if it is used
    with pytest.raises(ValueError, match=r"gold\[1\]: 30 is not an index from 0 to 29"):
        isoglot.mine(toy_static, GERMAN, ENGLISH, gold=[(0, 0), (30, 1)])


@pytest.mark.parametrize(("true", "others", "cut"), [(120, 60, True), (8, 160, False), (0, 150, False)])
def test_pairs_are_cut_by_default_where_the_estimate_is_reliable(true, others, cut):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, true + others, 48))
    y[:true] = x[:true] + 0.3 * rng.standard_normal((true, 48))
    sides = [[f"{word} {number}" for number in range(len(x))] for word in ("das", "the")]
    messages = []
    mined = isoglot.mine(None, *sides, vectors=(x, y), report=messages.append)
    whole = isoglot.mine(None, *sides, vectors=(x, y), threshold="all")
    if cut:
        assert {pair.source_id for pair in mined} == set(range(true))
        assert mined.estimated.reliable
        assert len(whole) > len(mined)
    else:
        assert np.array_equal(mined.rows.score, whole.rows.score)
        assert mined.threshold is None
        assert any("all pairs are kept" in message for message in messages)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(pairs, library, monkeypatch):
    pytest.importorskip(library)
    frame = pairs.to_frame(library)
    assert list(frame.columns) == ["score", "source", "target", "source_id", "target_id"]
    assert frame["source"].to_list() == [pair.source for pair in pairs]
    with pytest.raises(ValueError, match="did you mean 'pandas'"):
        pairs.to_frame("panda")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=f"pip install {library}"):
        pairs.to_frame(library)


def test_every_format_is_read_back(pairs, tmp_path):
    expected = [(pair.source, pair.target) for pair in pairs]
    for name in ("p.tsv", "p.jsonl", "p.tmx", "p.de-en"):
        assert pairs.save(tmp_path / name) == tmp_path / name
    groups = {
        "tsv": list(read_tsv(tmp_path / "p.tsv", languages="score,deu,eng")),
        "jsonl": list(read_jsonl(tmp_path / "p.jsonl")),
        "tmx": list(read_tmx(tmp_path / "p.tmx")),
        "moses": list(read_moses(tmp_path / "p.de-en")),
    }
    for form, found in groups.items():
        assert [group.texts for group in found] == expected, form
        assert {group.langs for group in found} == {("deu", "eng")}
    assert [group.extras["score"] for group in groups["jsonl"]] == [round(pair.score, 6) for pair in pairs]


def test_parquet_and_ids(pairs, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pairs.save(tmp_path / "p.parquet", ids=True)
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table["score"].to_pylist() == [pair.score for pair in pairs]
    assert table["target_id"].to_pylist() == [str(pair.target_id) for pair in pairs]
    assert table.schema.metadata[b"isoglot.languages"] == b"deu,eng"
    assert {group.langs for group in read_jsonl(tmp_path / "p.parquet")} == {("deu", "eng")}
    pairs.save(tmp_path / "p.jsonl", ids=True)
    first = json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])
    assert (first["source_id"], first["target_id"]) == (pairs[0].source_id, pairs[0].target_id)


@pytest.mark.parametrize("languages", ["deu,eng", None])
def test_json_lines_with_ids_are_read(vectors, tmp_path, languages):
    names = [[f"{side}{number}" for number in range(30)] for side in "ab"]
    for ids in (names, False):
        mined = isoglot.mine(None, GERMAN, ENGLISH, vectors=vectors, languages=languages, ids=ids)
        groups = list(read_jsonl(mined.save(tmp_path / "p.jsonl", ids=True)))
        assert [group.texts for group in groups] == [(pair.source, pair.target) for pair in mined]
        assert {(*group.extras,) for group in groups} == {("score",)}


@pytest.mark.parametrize("name", ["p.npy", "p.xlsx", "p.tsv.gz", "p.json", "p.xx-yy9"])
def test_a_suffix_that_does_not_fit_writes_nothing(pairs, tmp_path, name):
    with pytest.raises(OutputError, match="format"):
        pairs.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="did you mean 'tsv'"):
        pairs.save(tmp_path / "x", format="tsvs")
    with pytest.raises(ValueError, match="languages"):
        isoglot.mine(None, GERMAN, GERMAN, vectors=np.ones((2, 30, 3))).save(tmp_path / "x.tmx")


def test_formats_by_name():
    forms = {name: format_of(Path(name)) for name in ("p", "p.txt", "p.jsonl", "p.tmx", "x.de-en", "a.b.zho-por")}
    assert list(forms.values()) == ["tsv", "tsv", "jsonl", "tmx", "moses", "moses"]


def test_the_output_holds_what_is_returned(toy_static, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in SENTENCES))
    found = isoglot.mine(toy_static, tmp_path / "a.txt", output=Output(tmp_path / "p.tsv", write_ids=True))
    rows = [line.split("\t") for line in (tmp_path / "p.tsv").read_text().splitlines()]
    assert rows == [[f"{p.score:.6f}", str(p.source_id), str(p.target_id), p.source, p.target] for p in found]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "p.tsv"]


UNEQUAL = np.ones((30, 2)), np.ones((29, 2))
BROKEN = np.ones((2, 30, 3))
BROKEN[1, 7, 1] = np.nan


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": GERMAN, "vectors": None}, TypeError, "a model or a model's name first, not a list"),
        ({"model": np.ones((3, 2))}, TypeError, "isoglot.search.mine"),
        ({"vectors": None}, TypeError, "needs a model or vectors"),
        ({"model": "model"}, TypeError, "not both"),
        ({"sources": pd.DataFrame({"de": GERMAN})}, TypeError, r"sources: .*DataFrame.*table\['text'\]"),
        ({"vectors": 3}, TypeError, "vectors is 3"),
        ({"ids": ["a", "b"]}, TypeError, r"ids\[0\] is 'a'"),
        *(({"ids": [GERMAN, ["a", one]]}, TypeError, r"ids\[1\]\[1\] is ") for one in (None, float("nan"), b"x")),
        ({"sources": Path("a"), "ids": [["a"], ["b"]]}, TypeError, "sentences are in files"),
        ({"sources": [*GERMAN[:29], None]}, TypeError, r"sources\[29\] is None"),
        ({"output": Output(work="w")}, TypeError, "work resumes mining of files"),
        ({"threshold": "guess"}, ValueError, "threshold is 'guess'"),
        ({"threshold": 1.0, "gold": [(0, 0)]}, ValueError, "exclude each other"),
        ({"margin": "ratios"}, ValueError, "did you mean 'ratio'"),
        ({"direction": "maximum"}, ValueError, "did you mean 'max'"),
        ({"k": 0}, ValueError, "k is 0"),
        ({"computation": Computation(budget="lots")}, ValueError, "'lots' is not a size"),
        ({"computation": Computation(cluster=Cluster("local"), index="ivf")}, ValueError, "exactly"),
        ({"computation": Computation(cluster=Cluster("local")), "device": "cpu"}, ValueError, "device=cpu"),
        ({"computation": Computation(probes=3)}, ValueError, "probes needs index"),
        *(
            ({"computation": Computation(**one)}, ValueError, "vectors are compared as they are; leave out prompt")
            for one in ({"prompt": "x"}, {"pooling": "cls"}, {"dtype": "float16"})
        ),
        ({"output": Output("x", format="xlsx")}, ValueError, "format is 'xlsx'"),
        ({"languages": "deu"}, ValueError, "1 languages for 2 sides"),
        ({"languages": "english,de"}, CorpusError, "unknown language"),
        ({"languages": ("de", "xx")}, CorpusError, "unknown language"),
        ({"filters": Filters(check_language="script")}, ValueError, "needs the languages"),
        ({"ids": (["a"], ["b"])}, ValueError, "1 ids for 30 sentences"),
        ({"ids": [GERMAN]}, ValueError, "1 lists for 2 sides"),
        ({"gold": [(0, 0), (0, 0, 1)]}, ValueError, r"gold\[1\]: \(0, 0, 1\) is not a pair"),
        ({"gold": ["ab"]}, ValueError, r"gold\[0\]: 'ab' is not a pair"),
        ({"vectors": ([[1.0]], [[1.0], [1.0, 2.0]])}, ValueError, r"vectors\[1\]"),
        ({"vectors": (["a"], ["b"])}, ValueError, "floats"),
        ({"vectors": np.ones((1, 30, 3))}, ValueError, "1 tables"),
        ({"vectors": np.ones((2, 30, 3), int)}, ValueError, "floats"),
        ({"vectors": UNEQUAL}, EncoderError, r"vectors\[1\]: 29 rows for the 30 sentences of targets"),
        ({"vectors": BROKEN}, CorpusError, r"vectors\[1\]: row 7"),
        ({"sources": "none.txt", "targets": None, "vectors": np.ones((1, 30, 3))}, CorpusError, "no such file"),
        ({"sources": ["", " "], "targets": None, "vectors": np.ones((2, 2))}, IsoglotError, "all are blank"),
    ],
)
def test_wrong_arguments_are_one_sentence(options, error, message):
    given = {"model": None, "sources": GERMAN, "targets": ENGLISH, "vectors": np.ones((2, 30, 3)), **options}
    with pytest.raises(error, match=message) as raised:
        isoglot.mine(**given)
    assert "\n" not in str(raised.value)


def test_a_word_that_is_no_filter_of_languages_is_an_error_at_once():
    with pytest.raises(ValueError, match="check_language is 'scripts'"):
        Filters(check_language="scripts")


def test_vectors_are_arrays_lists_or_tensors_and_ids_of_any_kind(vectors, pairs):
    for convert in (np.ndarray.tolist, torch.from_numpy, list, lambda rows: torch.from_numpy(rows).requires_grad_()):
        assert list(isoglot.mine(None, GERMAN, ENGLISH, vectors=[convert(side) for side in vectors])) == list(pairs)
    one = isoglot.mine(None, GERMAN, vectors=torch.from_numpy(vectors[0]))
    assert list(one) == list(isoglot.mine(None, GERMAN, vectors=vectors[0]))
    names = np.array([[f"s{at}" for at in range(30)], [f"t{at}" for at in range(30)]])
    found = isoglot.mine(None, GERMAN, ENGLISH, vectors=vectors, ids=names)
    assert [(pair.source_id, pair.target_id) for pair in found] == [
        (f"s{pair.source_id}", f"t{pair.target_id}") for pair in pairs
    ]


def test_mined_pairs_are_compared_as_objects(pairs):
    assert pairs == pairs
    assert pairs != pairs.above(0.0)
    assert len({pairs, pairs.rows, pairs.above(0.0)}) == 3


def test_lone_surrogates_are_mined_as_they_are_encoded(toy_static, tmp_path):
    sentences = ["the \ud800 cat", "a dog", "\ud83d\ude00 sun"]
    found = isoglot.mine(toy_static, sentences, sentences[::-1], output=tmp_path / "p.tsv")
    assert {pair.source for pair in found} == {"the \ufffd cat", "a dog", "\U0001f600 sun"}
    assert len((tmp_path / "p.tsv").read_text().splitlines()) == 3


def test_one_sentence_has_no_pair():
    assert len(isoglot.mine(None, ["one"], vectors=np.ones((1, 2)))) == 0
