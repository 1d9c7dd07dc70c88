"""Suites name scores that tasks really give, their means are the papers', and none leaves a score out silently."""

from itertools import permutations
from pathlib import Path

import pytest
from cases import by_text, skipping
from cases_classification import MLDOC_LABELS, mtop_data, pawsx_data, put, xnli_data
from folders import numbered, tatoeba

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.importers import SHORT_TEXTS
from isoglot.evaluation import TASKS, Score
from isoglot.evaluation.base import averages
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.run import plan
from isoglot.evaluation.suites import SUITES, Column, Suite, by_key, list_scores
from isoglot.evaluation.tasks import classification
from isoglot.evaluation.tasks.classification import undersample
from isoglot.evaluation.tasks.language_id import SETS
from isoglot.evaluation.tasks.retrieval import LASER_112

PAIRS = ("de-en", "fr-en", "ru-en", "zh-en")
FLORES = ("eng_Latn", "kor_Hang", "fra_Latn", "jpn_Jpan", "rus_Cyrl")
ENGLISH = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
# Codes of tasks that have no table of them.
CODES = {
    **dict.fromkeys(("bucc/xtreme", "bucc/oracle", "bucc/moco", "bucc/ease", "bucc/mteb"), PAIRS),
    **dict.fromkeys((*ENGLISH, "sts-b/mteb"), ("eng",)),
    "sib-200": ("deu_Latn", "kor_Hang", "swh_Latn"),
    "xsim/flores-devtest": tuple(map("-".join, permutations(FLORES, 2))),
    "tnews": ("zho",),
    "retrieval/questions": ("monolingual", "crosslingual", "mean"),
    "language-id": tuple(map("-".join, SETS)),
}


def named(name):
    """The averages that a task gives, and the subsets they are over, by its own tables."""
    return dict(TASKS[name].lists)


def row(name, metric, percents):
    """Scores of a task from a row of a paper, `{subset: percent}`, with the averages that the task would give."""
    scores = [Score(name, subset, metric, percent / 100, 1000) for subset, percent in percents.items()]
    means = [averages(scores, average, over=over) for average, over in named(name).items()]
    return [*scores, *(score for mean in means for score in mean)]


def value(suite, label, scores):
    return column(suite, label).mean({key: score.value for key, score in by_key(scores).items()}) * 100


def column(suite, label):
    (one,) = [one for one in SUITES[suite].columns if one.label == label]
    return one


def by_code(codes, percents):
    names = codes.split() if isinstance(codes, str) else codes
    return dict(zip(names, map(float, percents.split()), strict=True))


def english_with(codes):
    return [f"{code}-eng" for code in codes.split()]


def mldoc(folder):
    """MLDoc in its eight languages, a line of each class in a file."""
    names = ("german", "spanish", "french", "italian", "japanese", "russian", "chinese", "english")
    for file in (*(f"{name}.test" for name in names), "english.train.1000", "english.dev"):
        put(folder / file, [f"{label}\t{file} {label}" for label in MLDOC_LABELS])


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_names_tasks_subsets_and_metrics_that_exist(name):
    for task, subset, metric in (key for column in SUITES[name].columns for key in column.keys):
        assert metric in {one.name for one in TASKS[task].metrics}
        lists = named(task)
        known = {*lists, *(member for over in lists.values() for member in over), *CODES.get(task, ())}
        assert subset in known, task


@pytest.fixture(scope="module")
def all_of_tatoeba(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tatoeba")
    tatoeba(folder, {code: numbered(code, 2) for code in LASER_112})
    return folder


@pytest.mark.parametrize(
    "task, write",
    [
        ("tatoeba", None),
        ("mtop", lambda folder: mtop_data(folder, TASKS["mtop"].lists["mtop-6"], sizes={"train": 8, "test": 1})),
        ("mldoc", mldoc),
        ("xnli", lambda folder: xnli_data(folder, TASKS["xnli"].lists["xtreme-15"], premises=10)),
    ],
)
@pytest.mark.slow
def test_a_task_gives_its_averages_where_all_subsets_are_there(tmp_path, all_of_tatoeba, task, write, monkeypatch):
    monkeypatch.setattr(classification, "undersample", lambda labels: undersample(labels)[:1])
    if write:
        write(tmp_path)
    lists, data = TASKS[task].lists, tmp_path if write else all_of_tatoeba
    over = {score.subset: len(score.over) for score in evaluate(by_text, [task], data=data) if score.over}
    assert over == {name: len(codes) for name, codes in lists.items()} | {"mean": max(map(len, lists.values()))}


@pytest.mark.parametrize(
    "bucc, rest, mean",
    [
        ("96.9 97.8 97.6 98.1", (96.0, 95.4, 76.9, 61.5, 86.1), 85.6),  # LaBSE, several positives
        ("94.9 96.0 95.2 96.4", (92.0, 90.4, 73.2, 61.4, 84.5), 82.9),  # XLM-R, several
        ("85.2 83.1 80.2 88.3", (70.5, 64.4, 57.0, 53.4, 62.3), 65.3),  # mBERT, one
    ],
)
def test_the_mean_of_mpcl_is_that_of_its_tables_1_and_5(bucc, rest, mean):
    scores = [
        *row("bucc/xtreme", "f1", by_code(PAIRS, bucc)),
        *row("tatoeba", "accuracy/en-xx", dict(zip(("xtreme-14", "xtreme-36"), rest[:2], strict=True))),
        *row("sts17", "spearman", {"mteb-11": rest[2]}),
        *row("sts22/v1", "spearman", {"mpcl-17": rest[3]}),
        *row("mtop", "accuracy", {"mtop-6": rest[4]}),
    ]
    assert value("mpcl", "mean", scores) == pytest.approx(mean, abs=0.05 + 1e-9)


def multilingual_e5():
    """The untrained student of the soft contrastive paper, tables 7 to 9."""
    into = by_code(FLORES, "0.05 0.40 0.12 0.02 0.20")
    return [
        *row("tatoeba", "accuracy/mean", by_code(english_with("kor fra jpn rus"), "87.5 95.1 93.1 93.6")),
        *row("bucc/mteb", "accuracy", {"fr-en": 98.4, "ru-en": 97.8}),
        *row("xsim/flores-devtest", "error/ratio", {f"{a}-{b}": into[b] for a, b in permutations(FLORES, 2)}),
    ]


def english(way, percents):
    """The seven English STS sets."""
    return [score for name, found in by_code(ENGLISH, percents).items() for score in row(name, way, {"eng": found})]


def codes(task, metric, names, percents):
    return row(task, metric, by_code(names, percents))


STS17 = "eng-eng ara-ara spa-spa ara-eng deu-eng tur-eng spa-eng fra-eng ita-eng nld-eng"
MEANS = [  # suite, column, scores, the mean that the paper states with its decimals
    ("moco", "STS wmean", english("spearman/wmean", "68.85 77.52 75.85 83.14 80.15 77.50 72.48"), "76.50"),  # table 3
    ("moco", "STS all", english("spearman/all", "70.99 76.51 73.17 82.09 78.32 77.50 72.48"), "75.87"),  # table 8
    *(("softcl", *each) for each in zip(
        ("Tatoeba mean", "BUCC mean", "xSIM"), [multilingual_e5()] * 3, ("92.3", "98.1", "0.16"), strict=True)),
    # EASE-BERT in English, EASE-mBERT elsewhere
    ("ease", "STS, 7 sets", english("spearman/all", "72.8 81.8 73.7 82.3 79.5 78.9 69.7"), "77.0"),  # table 14
    ("ease", "STC, 8 sets", codes("stc", "accuracy", [f"eng-{name}" for name in SHORT_TEXTS],
        "85.8 36.2 60.5 60.4 67.0 71.7 68.1 54.8"), "63.1"),  # table 15
    ("ease", "STS17", codes("sts17", "spearman", STS17, "79.3 62.8 79.4 31.6 59.8 26.4 53.7 59.2 59.4 60.7"), "57.2"),
    ("ease", "MewsC-16", codes("mewsc-16", "accuracy", "ar ca cs de en eo es fa fr ja ko pl pt ru sv tr",
        "31.9 29.6 38.8 38.5 30.2 34.5 37.2 36.7 30.4 49.3 36.2 40.0 41.0 27.0 30.5 44.7"), "36.0"),
    ("ease", "Tatoeba-16", codes("tatoeba", "accuracy/mean",
        english_with("ara cat ces deu epo spa fra ita jpn kor nld pol por rus swe tur"),
        "32.1 66.5 47.7 74.2 26.1 70.1 66.7 65.3 59.2 46.8 69.2 55.4 69.1 64.4 59.4 38.1"), "56.9"),
    ("ease", "MLDoc", codes("mldoc", "accuracy", "deu spa fra ita jpn rus zho", "69.9 69.2 80.1 66.8 62.8 64.4 73.2"),
        "69.5"),  # table 6
]  # fmt: skip


@pytest.mark.parametrize(("suite", "label", "scores", "mean"), MEANS, ids=[f"{one[0]} {one[1]}" for one in MEANS])
def test_the_means_of_the_papers_are_their_own(suite, label, scores, mean):
    digits = len(mean.partition(".")[2])
    assert value(suite, label, scores) == pytest.approx(float(mean), abs=0.5 * 10**-digits + 1e-9)


def test_xsim_of_softcl_is_over_the_twenty_directions_of_its_languages_and_nothing_else():
    other = row("xsim/flores-devtest", "error/ratio", {"deu_Latn-eng_Latn": 50.0, "xx-eng_Latn": 50.0, "mean": 50.0})
    scores = [*multilingual_e5(), *other]
    assert value("softcl", "xSIM", scores) == value("softcl", "xSIM", multilingual_e5())
    present = by_key(score for score in scores if "jpn" not in score.subset)
    missing = column("softcl", "xSIM").lacking(present)
    assert column("softcl", "xSIM").cell(present) == "–"
    assert sorted(subset for _, subset, _ in missing) == sorted(s for s in CODES[missing[0][0]] if "jpn" in s)


def test_tatoeba_counts_in_the_direction_of_each_paper_and_the_other_reading_stands_beside():
    for name, ways in {"mpcl": "en-xx", "moco": "xx-en en-xx", "msimcse": "en-xx mean", "softcl": "mean xx-en"}.items():
        keys = [key for column in SUITES[name].columns for key in column.keys if key[0] == "tatoeba"]
        assert {key[2] for key in keys} == {f"accuracy/{way}" for way in ways.split()}


def test_papers_older_than_revision_2_of_sts22_are_held_against_revision_1():
    assert all("sts22" not in suite.tasks for suite in SUITES.values())
    assert {name for name, suite in SUITES.items() if "sts22/v1" in suite.tasks} == {"mpcl", "softcl"}


def test_in_a_mean_of_columns_each_weighs_once():
    three = Column("three", tuple(("t", subset, "m") for subset in "abc"))
    whole = Column("mean", (three, Column("d", (("t", "d", "m"),))))
    scores = by_key(Score("t", subset, "m", float(subset == "d"), 9) for subset in "abcd")
    assert whole.cell(scores) == "50.0"
    del scores["t", "a", "m"]
    assert (whole.cell(scores), whole.lacking(scores)) == ("–", [("t", "a", "m")])
    assert whole.note == "mean: mean of the columns three, d"
    assert three.note == "three: t a b c m"
    keys = [("sts17", "deu-eng", "spearman"), ("sts-b", "eng", "spearman/all"), ("sts17", "fra-eng", "spearman")]
    assert list_scores(keys) == "sts17 deu-eng fra-eng spearman, sts-b eng spearman/all"


def test_a_suite_brings_its_languages_and_yours_go_first():
    languages = {task.name: wanted for task, wanted in plan(["quick"])}
    assert set(languages["tatoeba"]) == set(SUITES["quick"].languages["tatoeba"])
    assert languages["sts17"] == ()
    assert {wanted for _, wanted in plan(["quick"], languages=["ko"])} == {("ko",)}
    assert [task.name for task, _ in plan(["tatoeba", "quick", "tatoeba"])] == ["tatoeba", "sts17", "sib-200"]


@pytest.mark.parametrize("name", sorted(name for name in SUITES if "tatoeba" in SUITES[name].languages))
def test_of_tatoeba_a_suite_has_the_languages_that_its_columns_need_and_no_other(name, all_of_tatoeba):
    scores = evaluate(by_text, ["tatoeba"], data=all_of_tatoeba, languages=SUITES[name].languages["tatoeba"])
    needed = {key for column in SUITES[name].columns for key in column.keys if key[0] == "tatoeba"}
    found = [score for score in scores if (score.task, score.subset, score.metric) in needed]
    assert len(found) == len(needed)
    named = {code for score in found for code in score.over or (score.subset,)}
    assert named == {score.subset for score in scores if not score.over}


@pytest.mark.parametrize("order", [*permutations(["quick", "few", "ours"])])
def test_what_several_suites_ask_of_a_task_is_brought_together(order, monkeypatch):
    column = Column("a", (("tatoeba", "kor-eng", "accuracy/mean"),))
    monkeypatch.setitem(SUITES, "few", Suite("few", (column,), {"tatoeba": ("kor", "cat")}))
    monkeypatch.setitem(SUITES, "ours", Suite("ours", (column,), {"tatoeba": ("bel",)}))
    languages = {task.name: wanted for task, wanted in plan(order)}
    assert languages["tatoeba"] == tuple(sorted({*SUITES["quick"].languages["tatoeba"], "cat", "bel"}))


@pytest.mark.parametrize("tasks", [("quick", "ease"), ("ease", "quick"), ("quick", "tatoeba"), ("tatoeba", "quick")])
def test_who_asks_for_all_languages_of_a_task_gets_them(tasks):
    languages = {task.name: wanted for task, wanted in plan(tasks)}
    assert languages["tatoeba"] == ()
    assert languages["sib-200"] == ("deu", "kor", "swh")


def test_the_page_says_how_to_leave_fine_tuning_out():
    page = Path(__file__).parents[2] / "docs" / "evaluate.md"
    others = [name for name in SUITES["msimcse"].tasks if not getattr(TASKS[name], "needs_model", False)]
    assert f"--tasks {','.join(others)} " in page.read_text(encoding="utf-8")


def test_a_task_that_trains_the_model_is_told_and_left_out_without_one(tmp_path):
    told, task = [], TASKS["paws-x/finetune"]
    pawsx_data(tmp_path, ["en"], pairs=2, splits=("train", "dev", "test"))
    assert skipping(told, by_text, [task], data=tmp_path) == []
    assert told == ["paws-x/finetune: needs a transformer to fine-tune, not only vectors"]
    assert skipping(told, by_text, [task], data=tmp_path, languages=["en", "ar"]) == []
    assert told[1].startswith(f"paws-x/finetune: {tmp_path} has no data for ar")
    assert told[2] == told[0]
    with pytest.raises(EvaluationError, match="needs a transformer"):
        evaluate(by_text, [task], data=tmp_path)
