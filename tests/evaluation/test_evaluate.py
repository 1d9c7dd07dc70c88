"""`isoglot.evaluate` on tasks, translations and rated pairs, and the `Scores` that it returns."""

import numpy as np
import pandas
import pytest
from cases import by_text
from folders import numbered, tatoeba

import isoglot
from isoglot.core.errors import EvaluationError, OutputError
from isoglot.data.groups import Group
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Score
from isoglot.evaluation.precomputed import export_texts
from isoglot.evaluation.run import plan
from isoglot.evaluation.scores import Scores, read_results
from isoglot.evaluation.tasks.retrieval import Retrieval

PAIRS = [("Hallo.", "Hello."), ("Guten Morgen.", "Good morning."), ("Danke.", "Thanks."), ("Nein.", "No.")]
RATED = [("a", "a", 5), ("b", "b", 4.5), ("a", "b", 1), ("a", "c", 0.5)]


def translated(texts):
    """Equal vectors for the two sentences of a pair."""
    places = {text: place for place, pair in enumerate(PAIRS) for text in pair}
    return np.eye(len(PAIRS))[[places[text] for text in texts]]


@pytest.fixture
def data(tmp_path):
    return tatoeba(tmp_path, {"deu": numbered("deu", 2)})


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        [Group(pair, ("deu", "eng")) for pair in PAIRS],
        {"de": [pair[0] for pair in PAIRS], "en": [pair[1] for pair in PAIRS]},
        iter(PAIRS),
        pandas.DataFrame(PAIRS, columns=["de", "en"]),
    ],
    ids=["tuples", "groups", "columns", "iterator", "frame"],
)
def test_translations_in_memory_are_scored_in_both_directions(pairs):
    scores = isoglot.evaluate(translated, pairs=pairs)
    assert {score.task for score in scores} == {"retrieval"}
    assert [score.metric.partition("/")[0] for score in scores] == ["accuracy"] * len(scores)
    assert {score.value for score in scores} == {1.0}
    assert scores["retrieval", "mean"].main[0].value == 1.0
    halves = isoglot.evaluate(lambda texts: translated(texts) * [1, 1, 0, 0], pairs=PAIRS)
    assert halves["retrieval", "source-target"].main[0].value < 1
    assert isoglot.evaluate(translated, pairs=PAIRS, languages=["de", "en"])["retrieval", "deu-eng"][0].n == 4


@pytest.mark.parametrize("wrap", [dict, pandas.DataFrame], ids=["columns", "frame"])
def test_one_language_of_columns_is_scored_with_english(wrap):
    """The column of English was left out, so that no row had a translation."""
    columns = dict(zip(("de", "en"), map(list, zip(*PAIRS, strict=True)), strict=True))
    scores = isoglot.evaluate(translated, pairs=wrap(columns | {"fr": columns["de"]}), languages="de")
    assert {score.subset for score in scores} == {"deu-eng", "mean"}


@pytest.mark.parametrize(
    "arguments",
    [{"tasks": [Retrieval((Group(PAIRS[0], ("deu", "eng")),)), Retrieval()]}, {"tasks": "retrieval", "pairs": PAIRS}],
)
def test_two_tasks_of_one_name_are_refused_before_anything_is_encoded(arguments, tmp_path):
    """Of two objects the second was left out; beside data in memory the scores could not be saved at the end."""
    with pytest.raises(EvaluationError, match="two different tasks have the name 'retrieval'"):
        isoglot.evaluate(lambda _: pytest.fail("encoded"), **arguments, data=tmp_path, output=tmp_path / "out")
    assert len(plan(["retrieval", Retrieval(), TASKS["retrieval"]])) == 1


def test_a_row_in_memory_is_named_by_its_place():
    """Not by its place among the rows of its languages."""
    groups = [Group(("a", "b"), ("deu", "fra")), Group(("c", "d"), ("deu", "eng"))]
    with pytest.raises(EvaluationError, match="deu-eng, language eng: row 2: "):
        isoglot.evaluate(lambda texts: [[np.nan if text == "d" else 1, 2] for text in texts], pairs=groups)


def test_a_language_that_a_row_has_twice_changes_nothing_for_the_others():
    """All rows lost their languages, so that pairs of other languages counted too."""
    groups = [Group(pair, ("deu", "eng")) for pair in PAIRS[:2]] + [Group(pair, ("fra", "eng")) for pair in PAIRS[2:]]
    twice = Group(("Hallo.", "Hello.", "Hello."), ("deu", "eng", "eng"))
    for rows in (groups, [*groups[1:], twice]):
        scores = isoglot.evaluate(translated, pairs=rows, languages=["de", "en"])
        assert {(score.subset, score.n) for score in scores if score.subset != "mean"} == {("deu-eng", 2)}


def test_rated_pairs_in_memory_are_correlated_with_cosines():
    def encode(texts):
        return np.array([{"a": (1, 0), "b": (0.9, 0.5), "c": (0, 1)}[text] for text in texts])

    scores = isoglot.evaluate(encode, sts=RATED)
    assert [(score.subset, score.metric) for score in scores][:2] == [("pairs", "spearman"), ("pairs", "pearson")]
    columns = dict(zip(("sentence1", "sentence2", "score"), zip(*RATED, strict=True), strict=True))
    assert isoglot.evaluate(encode, sts=columns) == scores
    assert 0.8 < scores["sts", "pairs", "spearman"].value < 1
    both = isoglot.evaluate(encode, pairs=[("a", "b"), ("c", "a")], sts=RATED, languages=["de"])
    assert [*dict.fromkeys(score.task for score in both)] == ["retrieval", "sts"]
    assert both["sts", "deu", "spearman"].unit == "correlation"


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"model": np.eye(3), "pairs": PAIRS}, TypeError, "pass a model, a name or folder"),
        ({"model": ["a"], "pairs": PAIRS}, TypeError, "pass a model, a name or folder"),
        ({"tasks": PAIRS}, TypeError, "pairs="),
        ({"tasks": [3]}, TypeError, "names of tasks"),
        ({"pairs": "pairs.tsv"}, TypeError, "pairs of strings"),
        ({"pairs": ([*"abc"], [*"def"])}, TypeError, "2 lists of 3 items"),
        ({"pairs": {"de": ["a"], "en": ["b"]}, "languages": "es"}, EvaluationError, "in es; it has deu, eng"),
        ({"sts": [("a", "b")]}, TypeError, "row 1 of sts"),
        ({"sts": [("a", "b", 1), ("a", "b", "high")]}, TypeError, "row 2 of sts"),
        ({"sts": [("a", "b", 1), ("a", "b", float("nan"))]}, TypeError, "row 2 of sts"),
        ({"sts": "sts.tsv"}, TypeError, "rows"),
        (
            {"sts": {"sentence1": ["a", "a"], "sentence2": ["b", "c"], "score": [1.5, None], "label": [1, 0]}},
            TypeError,
            "row 2 of sts has no score",
        ),
        ({"pairs": {"de": ["a"], "fr": ["b"]}, "languages": "fr"}, EvaluationError, "scored with English"),
        (
            {"pairs": [Group(("a", "b"), ("eng", "deu")), Group(("c", "d"), ("eng", "eng"))]},
            EvaluationError,
            "row 2 of",
        ),
        ({}, EvaluationError, "pass tasks"),
        *(({name: []}, EvaluationError, name) for name in ("pairs", "sts")),
        ({"pairs": [("alone",)]}, EvaluationError, "row 1 of pairs"),
        ({"pairs": [("a", "b"), ("c",), ("d", "e")]}, EvaluationError, "row 2 of pairs"),
        ({"pairs": PAIRS, "precision": "bfloat16"}, EvaluationError, "bfloat16"),
        ({"tasks": ["tatoeba"], "cache": "kept"}, EvaluationError, "cache"),
        *(
            ({"tasks": [name]}, EvaluationError, f"did you mean '{near}'")  # the nearest in any case
            for name, near in (("STS17", "sts17"), ("Tatoba", "tatoeba"), ("QUICK", "quick"))
        ),
    ],
)
def test_what_cannot_be_evaluated_is_an_error_in_one_sentence(arguments, error, says, data):
    with pytest.raises(error, match=says) as caught:
        isoglot.evaluate(**{"model": by_text, "data": data, **arguments})
    assert "\n" not in str(caught.value)


def test_data_come_from_the_environment(data, monkeypatch):
    monkeypatch.setenv("ISOGLOT_DATA", str(data))
    assert isoglot.evaluate(by_text, "tatoeba") == isoglot.evaluate(by_text, ["tatoeba"], data=data)
    assert export_texts(data / "texts.jsonl", ["tatoeba"]) == 4


def test_missing_data_are_an_error_unless_they_are_skipped(data):
    with pytest.raises(EvaluationError, match="retrieval"):
        isoglot.evaluate(by_text, ["tatoeba", "retrieval"], data=data)
    lines = []
    scores = isoglot.evaluate(by_text, ["tatoeba", "retrieval"], data=data, skip_missing=True, report=lines.append)
    assert {score.task for score in scores} == {"tatoeba"}
    assert [line.partition(":")[0] for line in scores.missing] == ["retrieval"]
    assert [line.partition(":")[0] for line in lines] == ["tatoeba", "retrieval"]
    assert "missing: retrieval" in str(scores)


def test_scores_are_found_by_their_names(data):
    scores = isoglot.evaluate(by_text, ["tatoeba"], data=data, name="mine")
    assert isinstance(scores["tatoeba"], Scores)
    assert scores["tatoeba"] == scores
    assert scores["tatoeba", "mean", "accuracy/mean"] is scores["tatoeba", "mean"].main[0]
    assert isinstance(scores[0], Score)
    assert scores[:2].model == "mine"
    assert {score.metric for score in scores.main} == {"accuracy/mean"}
    for key in ("tatoba", ("tatoeba", "meen"), ("tatoeba", "mean", "acuracy/mean")):
        with pytest.raises(KeyError, match="did you mean"):
            scores[key]


def test_scores_are_text_html_and_a_frame(data):
    scores = isoglot.evaluate(by_text, ["quick", TASKS["tatoeba"]], data=data, skip_missing=True, name="<b>")
    text = str(scores)
    assert all(part in text for part in ("Suite quick", "deu-eng", "accuracy/xx-en", "missing: "))
    assert "<td" in scores._repr_html_()
    assert "<b>" not in scores._repr_html_().replace("<b>–</b>", "")
    frame = scores.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["value"].tolist() == [score.value for score in scores]
    assert set(frame.loc[frame["average"], "subset"]) == {"mean"}


def test_scores_are_saved_and_read_and_compared(data, tmp_path):
    scores = isoglot.evaluate(by_text, ["tatoeba"], data=data, name="runs/first/model")
    scores.save(tmp_path / "a")
    isoglot.evaluate(by_text, ["tatoeba"], data=data, name="runs/first/model", output=tmp_path / "b")
    files = [sorted(p.relative_to(tmp_path / x) for p in (tmp_path / x).rglob("*") if p.is_file()) for x in "ab"]
    assert {"items.npz", "page.html", "results.json", "results.md"} <= {str(path) for path in files[0]}
    assert files[0] == files[1]
    for file in files[0]:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert read_results(tmp_path / "a") == scores
    assert isoglot.compare(scores, tmp_path / "b", names=["a", "b"], resamples=20).tables
    with pytest.raises(OutputError):
        scores.save(tmp_path / "a" / "page.html")


def test_the_precision_is_passed_on_recorded_and_part_of_the_cache(toy_static, data, tmp_path, monkeypatch):
    asked = []
    encode = type(toy_static).encode

    def recorded(self, texts, **settings):
        asked.append(settings["precision"])
        return encode(self, texts, **settings)

    monkeypatch.setattr(type(toy_static), "encode", recorded)
    toy_static.name, cache = "toy", tmp_path / "cache"
    for precision, name in ((None, "float32"), ("bf16", "bfloat16")):
        scores = isoglot.evaluate(toy_static, ["tatoeba"], data=data, cache=cache, precision=precision)
        assert (scores.model, scores.settings["precision"]) == ("toy", name)
        assert scores.settings.keys() >= {"encoder", "max_length", "prompt", "version"}
    assert {*asked} == {None, "bf16"}
    assert len([*cache.iterdir()]) == 2
    with pytest.raises(EvaluationError, match=r"bfloat16.*'half'"):
        isoglot.evaluate(toy_static, pairs=PAIRS, precision="half")
