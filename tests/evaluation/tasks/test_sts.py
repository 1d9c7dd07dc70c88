"""Similarity: correlations against scipy and loops, ways to put corpora together, names of subsets, revisions."""

from functools import partial

import numpy as np
import pytest
from cases import by_text, value
from cases_sts import (
    CORPORA,
    PAIRS,
    STS22,
    WAYS,
    cosine_of_gold,
    english,
    export,
    rows,
    semeval,
    sick,
    sts17,
    sts22,
    stsb,
    tsv,
)
from folders import write
from scipy.stats import pearsonr, spearmanr
from search_loops import cosine

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Row, Rows
from isoglot.evaluation.statistics import STATISTICS
from isoglot.evaluation.tasks.sts import (
    EXTENDED_10,
    MPCL_17,
    MTEB_11,
    STS,
    TRACKS_5,
    correlations,
    judge,
    mistakes,
    unit,
)

SEVENTEEN = STS["sts17"]


def score(items, kind):
    scores = correlations("sts", "deu", [np.array(items, np.float32)], ("",))
    return next(score.value for score in scores if score.metric == kind)


def test_a_run_equals_the_protocol_in_a_loop(tmp_path):
    generator = np.random.default_rng(3)
    table = [(f"left {i}", f"right {i}", int(generator.integers(0, 6))) for i in range(60)]
    vectors = {text: generator.standard_normal(8).astype(np.float32) for row in table for text in row[:2]}
    export(tmp_path / "sts17-crosslingual-sts/en-de", table)
    scores = SEVENTEEN.run(lambda texts: np.array([vectors[text] for text in texts]), tmp_path)
    cosines = [cosine(vectors[a], vectors[b]) for a, b, _ in table]
    gold = [row[2] for row in table]
    found = {one.metric: one for one in scores if one.subset == "deu-eng"}
    assert found["spearman"].value == pytest.approx(spearmanr(gold, cosines).statistic, abs=1e-12)
    assert found["pearson"].value == pytest.approx(pearsonr(gold, cosines).statistic, abs=1e-6)
    assert found["spearman"].items[:, 0].tolist() == gold
    assert found["spearman"].items[:, 1] == pytest.approx(cosines, abs=1e-6)


def judged(first, second, gold):
    table = {"a": np.array(first, np.float32), "b": np.array(second, np.float32)}
    answers = iter(table.values())
    pairs = Rows(Row((str(i), str(i)), (f"x:{i}",), score) for i, score in enumerate(gold))
    return judge(lambda _: next(answers), pairs, where="sts deu", languages=("deu", "deu"))


def test_the_cosine_of_a_zero_vector_is_zero_and_lengths_do_not_count():
    items = judged([[0, 0], [1, 1], [0, 0]], [[1, 2], [1, 1], [0, 0]], [0, 5, 1])
    assert items[:, 1].tolist() == [0, 1, 0]
    vectors = np.array([[3e-30, 4e-30], [3e37, 4e37], [0, 0], [-3, 4]])
    assert unit(vectors) == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8], [0, 0], [-0.6, 0.8]]))


def test_equal_sentences_tie_at_one_whatever_their_vector():
    vectors = np.random.default_rng(0).standard_normal((500, 37)) * 10.0 ** np.arange(-20, 20, 0.08)[:, None]
    items = judged(vectors, vectors, [*range(499), 1])
    assert set(items[:, 1].tolist()) == {1.0}
    assert score(items, "spearman") == 0


def test_sentences_that_have_nothing_in_common_tie_at_zero_though_vectors_are_rounded():
    rng = np.random.default_rng(1)
    pairs = []
    while len(pairs) < 200:  # as bags of hashed words with signs are: integers, of which many are orthogonal
        one, other = rng.integers(-2, 3, (2, 24))
        if (one @ other == 0) == (len(pairs) < 50) and one.any() and other.any():
            pairs.append((one, other))
    one, other = (np.array(side) for side in zip(*pairs, strict=True))
    single = [(side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32) for side in (one, other)]
    gold = rng.integers(0, 6, 200)
    items = judged(*single, gold)
    assert (items[:50, 1] == 0).all()
    assert not np.signbit(items[:50, 1]).any()
    exact = (one * other).sum(axis=1) / np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    assert score(items, "spearman") == pytest.approx(spearmanr(gold, exact.round(12)).statistic, abs=1e-12)


@pytest.mark.parametrize("gold", [(), (3.0,), (2.0, 2.0, 2.0)])
def test_gold_that_does_not_differ_is_refused(gold):
    with pytest.raises(EvaluationError, match=rf"^sts deu: its {len(gold)} labelled pairs have no two different"):
        judged(np.ones((len(gold), 2)), np.ones((len(gold), 2)), gold)


def test_mistakes_are_the_ten_largest_differences_of_rank():
    gold = np.arange(20.0)
    cosine = gold / 20
    cosine[[2, 17]] = cosine[[17, 2]]
    cosine[[5, 9]] = cosine[[9, 5]]
    pairs = Rows(Row((f"a{i}", "b" * 500), ("",), score) for i, score in enumerate(gold))
    (detail,) = mistakes(pairs, np.stack([gold, cosine], 1).astype(np.float32))
    assert (detail.kind, len(detail.rows)) == ("mistakes", 10)
    assert detail.columns == ("sentence 1", "sentence 2", "gold", "cosine", "rank difference")
    assert [row[0] for row in detail.rows[:5]] == ["a2", "a17", "a5", "a9", "a0"]
    assert [row[4] for row in detail.rows[:5]] == [0.75, -0.75, 0.2, -0.2, 0]
    assert detail.rows[0][2:4] == (2.0, pytest.approx(0.85))
    assert len(detail.rows[0][1]) == 300


def test_english_beside_another_language_need_not_be_asked_for(tmp_path):
    for name in ("en", "de-en", "de-fr", "zh", "zh-en"):
        write(tmp_path / f"sts/a.{name}.tsv", "sentence1\tsentence2\tscore\n")
    chosen = partial(STS["sts"].subsets, tmp_path)
    assert chosen() == ("deu-eng", "deu-fra", "eng", "zho", "zho-eng")
    assert chosen(languages=["de"]) == ("deu-eng",)
    assert chosen(languages=["en"]) == ("eng",)
    assert chosen(languages=["fr", "de"]) == ("deu-eng", "deu-fra")
    assert chosen(languages=["zho_Hans"]) == ("zho", "zho-eng")


def values(scores):
    return {score.metric: score.value for score in scores}


def test_a_run_puts_corpora_together_as_the_loop_does(tmp_path):
    english("sts13", 90)(tmp_path)
    semeval(tmp_path / "STS/STS13-en-test", rows("FNWN", 11), "FNWN")
    scores = STS["sts13"].run(by_text, tmp_path)
    single, sizes, together = [], [], []
    for corpus in CORPORA["sts13"]:
        table = rows(corpus, 11 if corpus == "FNWN" else 30)
        cosines = [cosine(*by_text(row[:2])) for row in table]
        single.append(spearmanr([row[2] for row in table], cosines).statistic)
        sizes.append(len(table))
        together += [(row[2], found) for row, found in zip(table, cosines, strict=True)]
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
    found = values(STS[task].run(by_text, tmp_path))
    assert tuple(found) == WAYS
    for kind in ("spearman", "pearson"):
        assert len({found[f"{kind}/{way}"] for way in ("all", "wmean", "mean")}) == 1


@pytest.mark.parametrize("name", ["sts12-sts", "STS12", "datasets--mteb--sts12-sts/snapshots/a0d5"])
def test_the_copy_of_mteb_does_not_tell_corpora_so_only_all_is_given(tmp_path, name):
    export(tmp_path / name, rows("b", 30))
    found = values(STS["sts12"].run(cosine_of_gold, tmp_path))
    assert found == {"spearman/all": pytest.approx(1), "pearson/all": pytest.approx(1)}
    english("sts12", 100)(tmp_path)
    assert tuple(values(STS["sts12"].run(cosine_of_gold, tmp_path))) == WAYS


def test_what_mteb_has_of_stsb_and_sick_is_another_task(tmp_path):
    export(tmp_path / "STSBenchmark", rows("b", 30))
    export(tmp_path / "SICK-R", rows("s", 30, (1, 5)))
    assert [name for name, one in STS.items() if one.subsets(tmp_path)] == ["sts-b/mteb", "sick-r/mteb"]
    export(tmp_path / "SICK-R", rows("s", 30, (0, 5)))
    with pytest.raises(EvaluationError, match=r"sick-r/mteb eng: .*test.jsonl:1: the score 0.0 is not a number"):
        STS["sick-r/mteb"].run(by_text, tmp_path)


def test_pairs_without_gold_take_no_part(tmp_path):
    english("sts13", 30)(tmp_path)
    labelled = rows("FNWN", 10)
    table = [row for kept in labelled for row in (("nobody", "judged this", None), kept)]
    semeval(tmp_path / "STS/STS13-en-test", table, "FNWN")
    first, *_ = STS["sts13"].run(cosine_of_gold, tmp_path)
    assert (first.value, first.n) == (pytest.approx(1), 30)
    assert first.items[:10, 0] == pytest.approx([row[2] for row in labelled])


def test_english_is_asked_for_by_any_code_and_nothing_else_is(tmp_path):
    stsb("test")(tmp_path)
    task = STS["sts-b"]
    assert task.subsets(tmp_path, languages=["en"]) == task.subsets(tmp_path) == ("eng",)
    assert task.subsets(tmp_path, languages=["de"]) == ()
    assert task.run(by_text, tmp_path, languages=["de"]) == []


TRACKS = ("1.ar-ar", "2.ar-en", "3.es-es", "4a.es-en", "4b.es-en", "5.en-en", "6.tr-en")
TRACK_SUBSETS = ("ara-ara", "ara-eng", "spa-spa", "spa-eng", "spa-eng-4b", "eng-eng", "tur-eng")


def means(scores):
    return {score.subset: score.over for score in scores if score.over and score.metric == "spearman"}


def shown(scores, subset):
    """The first sentences and the second ones of the mistakes of a subset."""
    (found,) = [score for score in scores if (score.subset, score.metric) == (subset, "spearman")]
    return [{row[side] for row in found.details[0].rows} for side in (0, 1)]


def official(folder, count=12):
    for track in TRACKS:
        number, languages = track.split(".")
        english_first = number in ("2", "4b", "6")
        table = [(f"{number} {a}", f"{number} {b}", gold) for a, b, gold in rows(languages, count)]
        if english_first:
            table = [(f"english {a}", b, gold) for a, b, gold in table]
        more = [("no", "gold")] * count if number == "6" else []
        semeval(folder, table, f"track{track}", folders=("STS2017.eval.v1.1", "STS2017.gs"), more=more)


@pytest.mark.parametrize("place", ["", "sts17-official", "Sts2017", "data/Sts2017"])
def test_tracks_are_found_in_every_layout(tmp_path, place):
    official(tmp_path / place)
    assert SEVENTEEN.subsets(tmp_path) == TRACK_SUBSETS
    scores = SEVENTEEN.run(cosine_of_gold, tmp_path)
    assert [score.value for score in scores if score.metric == "spearman"] == pytest.approx([1] * 9)
    assert {score.n for score in scores if not score.over} == {12}
    assert means(scores) == {"tracks-5": TRACKS_5, "mean": TRACK_SUBSETS}


def test_sentence_1_is_of_the_language_named_first_in_every_track(tmp_path):
    official(tmp_path)
    scores = SEVENTEEN.run(by_text, tmp_path)
    for subset in ("ara-eng", "spa-eng-4b", "tur-eng"):
        first, second = shown(scores, subset)
        assert not any(text.startswith("english") for text in first)
        assert all(text.startswith("english") for text in second)


def test_gold_may_be_short_in_track_6_only(tmp_path):
    official(tmp_path)
    for track in ("6.tr-en", "3.es-es"):
        write(tmp_path / f"STS2017.gs/STS.gs.track{track}.txt", "1\n2\n3\n")
    assert SEVENTEEN.run(by_text, tmp_path, languages=["tr"])[0].n == 3
    with pytest.raises(EvaluationError, match=r"sts17 spa-spa: .* from line 4 on"):
        SEVENTEEN.run(by_text, tmp_path, languages=["es"])
    (tmp_path / "STS2017.gs/STS.gs.track1.ar-ar.txt").unlink()
    with pytest.raises(EvaluationError, match=r"sts17 ara-ara: .*STS.gs.track1.ar-ar.txt: no such file"):
        SEVENTEEN.run(by_text, tmp_path, languages=["ar"])


def test_the_export_has_the_lists_of_three_papers(tmp_path):
    sts17(tmp_path, count=20)
    assert set(SEVENTEEN.subsets(tmp_path)) == set(MTEB_11)
    scores = SEVENTEEN.run(by_text, tmp_path)
    assert list(means(scores)) == ["tracks-5", "extended-10", "mteb-11", "mean"]
    for name, subsets in (("tracks-5", TRACKS_5), ("extended-10", EXTENDED_10), ("mteb-11", MTEB_11)):
        assert set(means(scores)[name]) == set(subsets)
        single = [value(scores, subset, "spearman") for subset in subsets]
        assert value(scores, name, "spearman") == pytest.approx(np.mean(single))


def test_lists_have_the_lengths_that_their_names_say():
    assert [len(set(names)) for names in (TRACKS_5, EXTENDED_10, MTEB_11, MPCL_17)] == [5, 10, 11, 17]
    assert set(TRACKS_5) < set(EXTENDED_10) < set(MTEB_11)
    assert "kor-kor" not in EXTENDED_10
    assert "spa-eng-4b" not in MTEB_11
    assert "fra-pol" not in MPCL_17


def test_tracks_are_preferred_and_the_export_adds_what_they_lack(tmp_path):
    official(tmp_path)
    sts17(tmp_path, count=20)
    scores = SEVENTEEN.run(cosine_of_gold, tmp_path)
    sizes = {score.subset: score.n for score in scores if not score.over}
    assert {subset for subset, size in sizes.items() if size == 12} == set(TRACK_SUBSETS)
    assert {subset for subset, size in sizes.items() if size == 20} == set(MTEB_11) - set(TRACK_SUBSETS)
    assert "mteb-11" in means(scores)


def test_sentence_1_is_of_the_language_named_first_in_an_export(tmp_path):
    export(tmp_path / "STS17/data/en-tr", [("english a", "turkish a", 1), ("english b", "turkish b", 2)])
    export(tmp_path / "STS17/data/es-en", [("spanish a", "english a", 1), ("spanish b", "english b", 2)])
    scores = SEVENTEEN.run(by_text, tmp_path)
    assert shown(scores, "tur-eng") == [{"turkish a", "turkish b"}, {"english a", "english b"}]
    assert shown(scores, "spa-eng") == [{"spanish a", "spanish b"}, {"english a", "english b"}]


def test_sts22_averages_17_of_18(tmp_path):
    sts22(tmp_path)
    task = STS["sts22"]
    assert len(task.subsets(tmp_path)) == 18
    assert task.subsets(tmp_path, languages=["zh"]) == ("zho", "zho-eng")
    scores = task.run(by_text, tmp_path)
    assert set(means(scores)["mpcl-17"]) == set(MPCL_17) == set(task.subsets(tmp_path)) - {"fra-pol"}
    assert len(means(scores)["mean"]) == 18


@pytest.mark.parametrize("empty", ["", "  ", "\u3000\n"])
def test_each_revision_of_sts22_is_refused_by_the_other_task(tmp_path, empty):
    sts22(tmp_path / "one", empty=empty)
    sts22(tmp_path / "two")
    with pytest.raises(EvaluationError, match=r"^sts22 spa: .*es/test.jsonl:4: sentence1 .* is empty.*sts22/v1"):
        STS["sts22"].run(by_text, tmp_path / "one")
    with pytest.raises(EvaluationError, match=r"^sts22/v1 eng: .*: no text of .*; evaluate it as sts22$"):
        STS["sts22/v1"].run(by_text, tmp_path / "two")
    scores = STS["sts22/v1"].run(by_text, tmp_path / "one", languages=["de"])
    assert {score.n for score in scores if not score.over} == {PAIRS}


def test_revisions_of_sts22_may_lie_side_by_side(tmp_path):
    sts22(tmp_path, "STS22", empty="", names=STS22[:4])
    sts22(tmp_path, "STS22.v2", names=STS22[:3])
    assert STS["sts22"].subsets(tmp_path) == ("eng", "deu", "spa")
    assert STS["sts22/v1"].subsets(tmp_path) == ("eng", "deu", "spa", "pol")
    for task in ("sts22", "sts22/v1"):
        assert STS[task].run(cosine_of_gold, tmp_path)[0].value == pytest.approx(1)


def test_tables_of_ones_own(tmp_path):
    tsv(tmp_path)
    write(tmp_path / "sts.tsv", "sentence1\tsentence2\tscore\na\tb\t-7\nc\td\t\ne\tf\t1e3\n")
    pairs = "english a\tfrench a\t1\nenglish b\tfrench b\t2\n"
    write(tmp_path / "sts.en-fr.tsv.gz", f"sentence1\tsentence2\tscore\n{pairs}")
    write(tmp_path / "sts/README.md", "not a table")
    task = STS["sts"]
    assert task.subsets(tmp_path) == ("deu", "deu-kor", "fra-eng", "und")
    assert task.subsets(tmp_path, languages=["fr"]) == ("fra-eng",)
    scores = task.run(by_text, tmp_path)
    sizes = {score.subset: score.n for score in scores if not score.over}
    assert sizes == {"fra-eng": 2, "und": 2, "deu-kor": PAIRS, "deu": PAIRS}
    assert shown(scores, "fra-eng") == [{"french a", "french b"}, {"english a", "english b"}]
    assert task.subsets(tmp_path / "sts.en-fr.tsv.gz") == ("fra-eng",)  # one table may be the data
    assert task.run(by_text, tmp_path / "sts.en-fr.tsv.gz")[0].n == 2


def test_translations_of_stsb_are_read_from_the_copy_of_mteb(tmp_path):
    for code in ("de", "zh"):
        export(tmp_path / "stsb_multi_mt" / code, rows(code, 30), field="similarity_score")
        export(tmp_path / "stsb_multi_mt" / code, rows(code, 20), field="similarity_score", split="dev")
    for name, count in (("sts-b-multi", 30), ("sts-b-multi/dev", 20)):
        scores = [one for one in STS[name].run(cosine_of_gold, tmp_path) if not one.over]
        assert [(one.subset, one.n) for one in scores[::2]] == [("deu", count), ("zho", count)]
        assert [one.value for one in scores[::2]] == pytest.approx([1, 1])
    for revision in ("aa", "bb"):  # of which neither is asked: Japanese, too, is looked for in the one copy
        export(tmp_path / "datasets--mteb--stsb_multi_mt/snapshots" / revision / "ja", rows("ja", 30))
    assert STS["sts-b-multi"].subsets(tmp_path) == ("deu", "zho")
