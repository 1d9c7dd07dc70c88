"""The seven English sets: how corpora are put together, the layouts of SentEval, blank gold, refused input, counts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from cases import by_text
from cases_sts import CORPORA, WAYS, cosine_of_gold, english, export, rows, semeval, sick, stsb
from folders import write
from scipy.stats import spearmanr

from isoglot.errors import EvaluationError
from isoglot.evaluation.statistics import STATISTICS
from isoglot.evaluation.tasks.sts_english import ENGLISH, combine

SHARED = Path(os.environ.get("ISOGLOT_DATA") or Path(__file__).parents[4] / "shared" / "data")
COUNTS = {
    **{"sts12": 3108, "sts13": 1500, "sts14": 3750, "sts15": 3000, "sts16": 1186},
    **{"sts-b": 1379, "sts-b/dev": 1500, "sick-r": 4927},
}


def values(scores):
    return {score.metric: score.value for score in scores}


def shifted():
    """Two corpora, each ranked perfectly, the second with higher gold and lower cosines."""
    low = np.array([[0, 0.7], [1, 0.8], [2, 0.9]], np.float32)
    high = np.array([[3, 0.1], [4, 0.2]], np.float32)
    return [low, high]


def test_all_differs_from_the_means_where_corpora_lie_at_different_heights():
    found = values(combine(shifted(), task="sts13", kind="spearman"))
    assert [found["spearman/wmean"], found["spearman/mean"]] == pytest.approx([1, 1])
    assert found["spearman/all"] == pytest.approx(spearmanr([0, 1, 2, 3, 4], [0.7, 0.8, 0.9, 0.1, 0.2]).statistic)
    assert found["spearman/all"] < 0


def test_wmean_weighs_by_pairs_and_mean_does_not():
    low, high = shifted()
    found = values(combine([low, high * [1, -1]], task="sts13", kind="spearman"))
    assert found["spearman/wmean"] == pytest.approx((3 * 1 + 2 * -1) / 5)
    assert found["spearman/mean"] == pytest.approx(0)


def test_a_run_puts_corpora_together_as_the_loop_does(tmp_path):
    english("sts13", 90)(tmp_path)
    semeval(tmp_path / "STS/STS13-en-test", rows("FNWN", 11), "FNWN")
    scores = ENGLISH["sts13"].run(by_text, tmp_path)
    single, sizes, together = [], [], []
    for corpus in CORPORA["sts13"]:
        table = rows(corpus, 11 if corpus == "FNWN" else 30)
        first, second = (by_text([row[side] for row in table]) for side in (0, 1))
        cosines = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in zip(first, second, strict=True)]
        single.append(spearmanr([row[2] for row in table], cosines).statistic)
        sizes.append(len(table))
        together += [(row[2], cosine) for row, cosine in zip(table, cosines, strict=True)]
    found = values(scores)
    assert sizes == [11, 30, 30]
    assert found["spearman/all"] == pytest.approx(spearmanr(*zip(*together, strict=True)).statistic)
    assert found["spearman/wmean"] == pytest.approx(sum(a * b for a, b in zip(single, sizes, strict=True)) / 71)
    assert found["spearman/mean"] == pytest.approx(sum(single) / 3)
    assert {score.n for score in scores} == {71}
    for score in scores:
        assert STATISTICS[score.statistic](score.items) == pytest.approx(score.value, abs=1e-7)


@pytest.mark.parametrize("task", ["sts-b", "sts-b/dev", "sick-r"])
def test_a_set_of_one_corpus_has_one_value_in_all_three_ways(tmp_path, task):
    {"sts-b": stsb("test"), "sts-b/dev": stsb("dev"), "sick-r": sick}[task](tmp_path)
    found = values(ENGLISH[task].run(by_text, tmp_path))
    assert tuple(found) == WAYS
    for kind in ("spearman", "pearson"):
        assert len({found[f"{kind}/{way}"] for way in ("all", "wmean", "mean")}) == 1


@pytest.mark.parametrize("name", ["sts12-sts", "STS12", "datasets--mteb--sts12-sts/snapshots/a0d5"])
def test_the_copy_of_mteb_does_not_tell_corpora_so_only_all_is_given(tmp_path, name):
    export(tmp_path / name, rows("b", 30))
    found = values(ENGLISH["sts12"].run(cosine_of_gold, tmp_path))
    assert found == {"spearman/all": pytest.approx(1), "pearson/all": pytest.approx(1)}
    english("sts12", 100)(tmp_path)
    assert tuple(values(ENGLISH["sts12"].run(cosine_of_gold, tmp_path))) == WAYS


def test_what_mteb_has_of_stsb_and_sick_is_another_task(tmp_path):
    export(tmp_path / "STSBenchmark", rows("b", 30))
    export(tmp_path / "SICK-R", rows("s", 30, (1, 5)))
    assert [name for name, one in ENGLISH.items() if one.subsets(tmp_path)] == ["sts-b/mteb", "sick-r/mteb"]
    export(tmp_path / "SICK-R", rows("s", 30, (0, 5)))
    with pytest.raises(EvaluationError, match=r"sick-r/mteb eng: .*test.jsonl:1: the score 0.0 is no number from 1 to"):
        ENGLISH["sick-r/mteb"].run(by_text, tmp_path)


@pytest.mark.parametrize("place", ["", "senteval-en", "downstream", "data/downstream", "SentEval/data/downstream"])
@pytest.mark.parametrize("task", sorted(COUNTS))
def test_every_layout_is_found(tmp_path, place, task):
    fill = english(task) if task in CORPORA else {"sts-b": stsb("test"), "sts-b/dev": stsb("dev"), "sick-r": sick}[task]
    fill(tmp_path / place)
    assert [name for name, one in ENGLISH.items() if one.subsets(tmp_path)] == [task]
    assert values(ENGLISH[task].run(cosine_of_gold, tmp_path))["spearman/all"] == pytest.approx(1)


def test_the_folder_of_a_set_may_lie_at_the_top_and_be_compressed(tmp_path):
    semeval(tmp_path / "STS13-en-test", rows("headlines", 9), "headlines")
    for corpus in ("FNWN", "OnWN"):
        for kind in ("input", "gs"):
            text = (tmp_path / f"STS13-en-test/STS.{kind}.headlines.txt").read_text(encoding="utf-8")
            write(tmp_path / f"STS13-en-test/STS.{kind}.{corpus}.txt.gz", text)
    assert ENGLISH["sts13"].run(cosine_of_gold, tmp_path)[0].n == 27


def test_pairs_without_gold_take_no_part(tmp_path):
    english("sts13", 30)(tmp_path)
    labelled = rows("FNWN", 10)
    table = [row for kept in labelled for row in (("nobody", "judged this", None), kept)]
    semeval(tmp_path / "STS/STS13-en-test", table, "FNWN")
    first, *_ = ENGLISH["sts13"].run(cosine_of_gold, tmp_path)
    assert (first.value, first.n) == (pytest.approx(1), 30)
    assert first.items[:10, 0] == pytest.approx([row[2] for row in labelled])


def test_english_is_asked_for_by_any_code_and_nothing_else_is(tmp_path):
    stsb("test")(tmp_path)
    task = ENGLISH["sts-b"]
    assert task.subsets(tmp_path, languages=["en"]) == task.subsets(tmp_path) == ("eng",)
    assert task.subsets(tmp_path, languages=["de"]) == ()
    assert task.run(by_text, tmp_path, languages=["de"]) == []


@pytest.mark.parametrize(
    ("sentences", "gold", "message"),
    [
        ("a\tb\nc\td\n", "1\n", r"input.FNWN.txt has 2 lines and .*gs.FNWN.txt has 1, so from line 2 on"),
        ("a\tb\n", "1\n2\n", r"input.FNWN.txt has 1 lines and .*gs.FNWN.txt has 2, so from line 2 on"),
        ("a\tb\nc\td\n", "1\nhigh\n", r".*STS.gs.FNWN.txt:2: the score 'high' is no number"),
        ("a\tb\nc\td\n", "1\n5.1\n", r".*STS.gs.FNWN.txt:2: the score '5.1' is no number from 0 to 5"),
        ("a\tb\nc\td\n", "1\nnan\n", r".*STS.gs.FNWN.txt:2: the score 'nan' is no number"),
        ("a\tb\nc\t \n", "1\n2\n", r".*STS.input.FNWN.txt:2: sentence 2 is empty; restore it"),
        ("a\tb\nc d\n", "1\n2\n", r"input.FNWN.txt:2: 1 cells between tabs where 2 are expected"),
        ("a\tb\n\nc\td\n", "1\n2\n3\n", r"input.FNWN.txt:2: 1 cells"),
        ("a\tb\r\nc\td\r\n", "1\n2\n", r"input.FNWN.txt:1: .*carriage return"),
        ("a\tb\nc\td\n", "1\n2\r\n", r"gs.FNWN.txt:2: .*carriage return"),
        ("a\tb\nc\td\n", "\n\n", r"its 0 labelled pairs have no two different scores"),
        ("a\tb\nc\td\n", None, r"gs.FNWN.txt: no such file"),
    ],
)
def test_unusable_files_are_refused_with_corpus_and_line(tmp_path, sentences, gold, message):
    english("sts13", 30)(tmp_path)
    folder = tmp_path / "STS/STS13-en-test"
    write(folder / "STS.input.FNWN.txt", sentences)
    if gold is None:
        (folder / "STS.gs.FNWN.txt").unlink()
    else:
        write(folder / "STS.gs.FNWN.txt", gold)
    with pytest.raises(EvaluationError, match=rf"^sts13 eng, corpus FNWN: .*{message}"):
        ENGLISH["sts13"].run(by_text, tmp_path)


def test_unusable_lines_of_the_single_files_are_refused(tmp_path):
    write(tmp_path / "sts-test.csv", "g\tf\ty\t1\t2.0\ta\tb\ng\tf\ty\t1\t2.0\ta\n")
    with pytest.raises(EvaluationError, match=r"^sts-b eng: .*sts-test.csv:2: 6 cells"):
        ENGLISH["sts-b"].run(by_text, tmp_path)
    write(tmp_path / "SICK_test_annotated.txt", "pair_ID\ta\tb\tc\td\n1\ta\tb\t2\tX\n")
    with pytest.raises(EvaluationError, match=r"^sick-r eng: .*:1: the header lacks sentence_A, sentence_B, related"):
        ENGLISH["sick-r"].run(by_text, tmp_path)
    write(
        tmp_path / "SICK_test_annotated.txt",
        "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n1\ta\tb\t0.5\tX\r\n",
    )
    with pytest.raises(EvaluationError, match=r"annotated.txt:2: the score '0.5' is no number from 1 to 5"):
        ENGLISH["sick-r"].run(by_text, tmp_path)


@pytest.mark.data
@pytest.mark.parametrize("task", sorted(COUNTS))
def test_the_published_files_have_the_published_numbers_of_pairs(task):
    folder = SHARED / "senteval-en"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; set ISOGLOT_DATA to the folder of the data sets")

    def by_words(texts):  # of any quality, and quick
        return np.array([[len(text), text.count(" ") + 1, len(set(text))] for text in texts])

    scores = ENGLISH[task].run(by_words, SHARED)
    assert {score.n for score in scores} == {COUNTS[task]}
    assert scores == ENGLISH[task].run(by_words, folder)


def test_the_line_of_a_vector_that_is_not_finite_counts_pairs_without_a_score(tmp_path):
    table = rows("sts13", 9)
    english("sts13", 90)(tmp_path)
    partly = [(a, b, gold if i % 3 else None) for i, (a, b, gold) in enumerate(table)]
    semeval(tmp_path / "STS/STS13-en-test", partly, "FNWN")
    bad = table[7][1]
    with pytest.raises(EvaluationError, match=r"corpus FNWN, sentence 2, language eng: \S*STS.input.FNWN.txt:8: .*NaN"):
        ENGLISH["sts13"].run(lambda texts: [[np.nan if text == bad else 1.0] for text in texts], tmp_path)
