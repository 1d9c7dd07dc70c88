"""The sets in several languages: names of subsets, layouts, traps of STS 2017, revisions of STS 2022, own tables."""

from __future__ import annotations

import csv
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from cases import by_text
from cases_sts import PAIRS, STS17, STS22, cosine_of_gold, export, rows, semeval, sts17, sts22, stsb_multi, tsv
from folders import write

from isoglot.errors import EvaluationError
from isoglot.evaluation.tasks.sts_sets import EXTENDED_10, MPCL_17, MTEB_11, MULTILINGUAL, TRACKS_5

SHARED = Path(os.environ.get("ISOGLOT_DATA") or Path(__file__).parents[4] / "shared" / "data")
TRACKS = ("1.ar-ar", "2.ar-en", "3.es-es", "4a.es-en", "4b.es-en", "5.en-en", "6.tr-en")
TRACK_SUBSETS = ("ara-ara", "ara-eng", "spa-spa", "spa-eng", "spa-eng-4b", "eng-eng", "tur-eng")


def value(scores, subset, metric="spearman"):
    (found,) = [score for score in scores if (score.subset, score.metric) == (subset, metric)]
    return found.value


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
        semeval(folder, table, f"track{track}")
        sentences, gold = (folder / f"STS.{kind}.track{track}.txt" for kind in ("input", "gs"))
        text = sentences.read_text(encoding="utf-8") + ("no\tgold\n" * count if number == "6" else "")
        write(folder / f"STS2017.eval.v1.1/{sentences.name}", text)
        write(folder / f"STS2017.gs/{gold.name}", gold.read_text(encoding="utf-8"))
        sentences.unlink()
        gold.unlink()


@pytest.mark.parametrize("place", ["", "sts17-official", "Sts2017", "data/Sts2017"])
def test_tracks_are_found_in_every_layout(tmp_path, place):
    official(tmp_path / place)
    task = MULTILINGUAL["sts17"]
    assert task.subsets(tmp_path) == TRACK_SUBSETS
    scores = task.run(cosine_of_gold, tmp_path)
    assert [score.value for score in scores if score.metric == "spearman"] == pytest.approx([1] * 9)
    assert {score.n for score in scores if not score.over} == {12}
    assert means(scores) == {"tracks-5": TRACKS_5, "mean": TRACK_SUBSETS}


def test_sentence_1_is_of_the_language_named_first_in_every_track(tmp_path):
    official(tmp_path)
    scores = MULTILINGUAL["sts17"].run(by_text, tmp_path)
    for subset in ("ara-eng", "spa-eng-4b", "tur-eng"):
        first, second = shown(scores, subset)
        assert not any(text.startswith("english") for text in first)
        assert all(text.startswith("english") for text in second)


def test_gold_may_be_short_in_track_6_only(tmp_path):
    official(tmp_path)
    for track in ("6.tr-en", "3.es-es"):
        write(tmp_path / f"STS2017.gs/STS.gs.track{track}.txt", "1\n2\n3\n")
    assert MULTILINGUAL["sts17"].run(by_text, tmp_path, languages=["tr"])[0].n == 3
    with pytest.raises(EvaluationError, match=r"sts17 spa-spa: .* from line 4 on"):
        MULTILINGUAL["sts17"].run(by_text, tmp_path, languages=["es"])
    (tmp_path / "STS2017.gs/STS.gs.track1.ar-ar.txt").unlink()
    with pytest.raises(EvaluationError, match=r"sts17 ara-ara: .*STS.gs.track1.ar-ar.txt: no such file"):
        MULTILINGUAL["sts17"].run(by_text, tmp_path, languages=["ar"])


def test_the_export_has_the_lists_of_three_papers(tmp_path):
    sts17(tmp_path, count=20)
    task = MULTILINGUAL["sts17"]
    assert set(task.subsets(tmp_path)) == set(MTEB_11)
    scores = task.run(by_text, tmp_path)
    assert list(means(scores)) == ["tracks-5", "extended-10", "mteb-11", "mean"]
    for name, subsets in (("tracks-5", TRACKS_5), ("extended-10", EXTENDED_10), ("mteb-11", MTEB_11)):
        assert set(means(scores)[name]) == set(subsets)
        assert value(scores, name) == pytest.approx(np.mean([value(scores, subset) for subset in subsets]))


def test_lists_have_the_lengths_that_their_names_say():
    assert [len(set(names)) for names in (TRACKS_5, EXTENDED_10, MTEB_11, MPCL_17)] == [5, 10, 11, 17]
    assert set(TRACKS_5) < set(EXTENDED_10) < set(MTEB_11)
    assert "kor-kor" not in EXTENDED_10
    assert "spa-eng-4b" not in MTEB_11
    assert "fra-pol" not in MPCL_17


def test_a_list_is_left_out_when_one_of_its_subsets_is(tmp_path):
    sts17(tmp_path, [name for name in STS17 if name != "nl-en"], count=20)
    assert list(means(MULTILINGUAL["sts17"].run(by_text, tmp_path))) == ["tracks-5", "mean"]


def test_tracks_are_preferred_and_the_export_adds_what_they_lack(tmp_path):
    official(tmp_path)
    sts17(tmp_path, count=20)
    scores = MULTILINGUAL["sts17"].run(cosine_of_gold, tmp_path)
    sizes = {score.subset: score.n for score in scores if not score.over}
    assert {subset for subset, size in sizes.items() if size == 12} == set(TRACK_SUBSETS)
    assert {subset for subset, size in sizes.items() if size == 20} == set(MTEB_11) - set(TRACK_SUBSETS)
    assert "mteb-11" in means(scores)


def test_sentence_1_is_of_the_language_named_first_in_an_export(tmp_path):
    export(tmp_path / "STS17/data/en-tr", [("english a", "turkish a", 1), ("english b", "turkish b", 2)])
    export(tmp_path / "STS17/data/es-en", [("spanish a", "english a", 1), ("spanish b", "english b", 2)])
    scores = MULTILINGUAL["sts17"].run(by_text, tmp_path)
    assert shown(scores, "tur-eng") == [{"turkish a", "turkish b"}, {"english a", "english b"}]
    assert shown(scores, "spa-eng") == [{"spanish a", "spanish b"}, {"english a", "english b"}]


def test_sts22_averages_17_of_18(tmp_path):
    sts22(tmp_path)
    task = MULTILINGUAL["sts22"]
    assert len(task.subsets(tmp_path)) == 18
    assert task.subsets(tmp_path, languages=["zh"]) == ("zho", "zho-eng")
    scores = task.run(by_text, tmp_path)
    assert set(means(scores)["mpcl-17"]) == set(MPCL_17) == set(task.subsets(tmp_path)) - {"fra-pol"}
    assert len(means(scores)["mean"]) == 18


@pytest.mark.parametrize("empty", ["", "  ", "\u3000\n"])
def test_each_revision_of_sts22_is_refused_by_the_other_task(tmp_path, empty):
    sts22(tmp_path / "one", empty=empty)
    sts22(tmp_path / "two")
    with pytest.raises(EvaluationError, match=r"^sts22 spa: .*es/test.jsonl:4: sentence 1 is empty; .*sts22/v1"):
        MULTILINGUAL["sts22"].run(by_text, tmp_path / "one")
    with pytest.raises(EvaluationError, match=r"^sts22/v1 eng: no text of .*; evaluate it as sts22$"):
        MULTILINGUAL["sts22/v1"].run(by_text, tmp_path / "two")
    scores = MULTILINGUAL["sts22/v1"].run(by_text, tmp_path / "one", languages=["de"])
    assert {score.n for score in scores if not score.over} == {PAIRS}


def test_revisions_of_sts22_may_lie_side_by_side(tmp_path):
    sts22(tmp_path, "STS22", empty="", names=STS22[:4])
    sts22(tmp_path, "STS22.v2", names=STS22[:3])
    assert MULTILINGUAL["sts22"].subsets(tmp_path) == ("eng", "deu", "spa")
    assert MULTILINGUAL["sts22/v1"].subsets(tmp_path) == ("eng", "deu", "spa", "pol")
    for task in ("sts22", "sts22/v1"):
        assert MULTILINGUAL[task].run(cosine_of_gold, tmp_path)[0].value == pytest.approx(1)


def test_a_score_of_sts22_on_another_scale_is_refused(tmp_path):
    export(tmp_path / "STS22.v2/de", [("a", "b", 1), ("c", "d", 0.5)])
    with pytest.raises(EvaluationError, match=r"^sts22 deu: .*:2: the score 0.5 is no number from 1 to 4"):
        MULTILINGUAL["sts22"].run(by_text, tmp_path)


def test_records_that_are_no_pairs_are_refused(tmp_path):
    export(tmp_path / "STS17/en-de", [("a", "b", 1), (7, "d", 2)])
    with pytest.raises(EvaluationError, match=r"^sts17 deu-eng: .*:2: sentence 1 is empty"):
        MULTILINGUAL["sts17"].run(by_text, tmp_path)
    export(tmp_path / "STS17/en-de", [("a", "b", 1), ("c", "d", None), ("e", "f", 3), ("g", "h", [4])])
    with pytest.raises(EvaluationError, match=r"^sts17 deu-eng: .*:4: the score \[4\] is no number from 0 to 5"):
        MULTILINGUAL["sts17"].run(by_text, tmp_path)


def test_quoted_tables_of_each_split(tmp_path):
    stsb_multi("test")(tmp_path)
    assert MULTILINGUAL["sts-b-multi/dev"].subsets(tmp_path) == ()
    task = MULTILINGUAL["sts-b-multi"]
    assert task.subsets(tmp_path) == ("deu", "zho")
    scores = task.run(cosine_of_gold, tmp_path)
    assert means(scores) == {"mean": ("deu", "zho")}
    first, second = shown(scores, "deu")
    assert all(text.startswith('a "quoted", de right') for text in second)
    assert all(text.startswith("de left") for text in first)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,1\r\nc,d\r\n", r"stsb-de-test.csv:2: 2 cells where 3 are expected"),
        ("a,b,1\r\nc,d,e,2\r\n", r":2: 4 cells"),
        ('a,b,1\r\n"c,d,2\r\n', r"is no CSV"),
        ("a,b,1\r\nc,,2\r\n", r":2: sentence 2 is empty"),
        ("a,b,1\r\nc,d,-1\r\n", r":2: the score '-1' is no number from 0 to 5"),
        ("sentence1,sentence2,score\r\nc,d,1\r\n", r":1: the score 'score' is no number"),
    ],
)
def test_unusable_quoted_tables_are_refused(tmp_path, text, message):
    write(tmp_path / "stsb-de-test.csv", text)
    with pytest.raises(EvaluationError, match=rf"^sts-b-multi deu: .*{message}"):
        MULTILINGUAL["sts-b-multi"].run(by_text, tmp_path)


def test_tables_of_ones_own(tmp_path):
    tsv(tmp_path)
    write(tmp_path / "sts.tsv", "sentence1\tsentence2\tscore\na\tb\t-7\nc\td\t\ne\tf\t1e3\n")
    write(
        tmp_path / "sts.en-fr.tsv.gz", "sentence1\tsentence2\tscore\nenglish a\tfrench a\t1\nenglish b\tfrench b\t2\n"
    )
    write(tmp_path / "sts/README.md", "not a table")
    task = MULTILINGUAL["sts"]
    assert task.subsets(tmp_path) == ("deu", "deu-kor", "fra-eng", "und")
    assert task.subsets(tmp_path, languages=["fr"]) == ("fra-eng",)
    scores = task.run(by_text, tmp_path)
    assert {score.subset: score.n for score in scores if not score.over} == {
        **{"fra-eng": 2, "und": 2, "deu-kor": PAIRS, "deu": PAIRS}
    }
    assert shown(scores, "fra-eng") == [{"french a", "french b"}, {"english a", "english b"}]


def test_one_table_may_be_the_data(tmp_path):
    write(tmp_path / "judged.deu.tsv", "sentence1\tsentence2\tscore\na\tb\t1\nc\td\t2\n")
    assert MULTILINGUAL["sts"].subsets(tmp_path / "judged.deu.tsv") == ("deu",)
    assert MULTILINGUAL["sts"].run(by_text, tmp_path / "judged.deu.tsv")[0].n == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.deu.tsv", "sentence1\tscore\tother\n", r"a.deu.tsv:1: the header lacks sentence2"),
        ("a.deu.tsv", "sentence1\tsentence2\tscore\na\tb\t1\tx\n", r"a.deu.tsv:2: 4 cells .* the header has 3"),
        ("a.deu.tsv", "sentence1\tsentence2\tscore\na\tb\tinf\n", r":2: the score 'inf' is no finite number"),
        ("a.deu.tsv", "sentence1\tsentence2\tscore\na\t\t1\n", r":2: sentence 2 is empty"),
        ("a.deu.tsv", "sentence1\tsentence2\tscore\r\na\tb\t1\r\n", r":1: .*carriage return"),
        ("a.deu.tsv", "", r"holds no text"),
        ("b.deu.tsv", "sentence1\tsentence2\tscore\n", r"its 0 labelled pairs"),
        ("a.chapter.tsv", "", r"a.chapter.tsv: 'chapter' names no languages; call the file"),
        ("a.de-en-fr.tsv", "", r"'de-en-fr' names no languages"),
    ],
)
def test_unusable_tables_are_refused(tmp_path, name, text, message):
    write(tmp_path / "sts" / name, text)
    with pytest.raises(EvaluationError, match=rf"^sts.*{message}"):
        MULTILINGUAL["sts"].run(by_text, tmp_path)


def test_two_tables_of_the_same_languages_are_refused(tmp_path):
    for name in ("a.de-en.tsv", "b.eng-deu.tsv"):
        write(tmp_path / "sts" / name, "sentence1\tsentence2\tscore\na\tb\t1\n")
    with pytest.raises(EvaluationError, match=r"^sts deu-eng: both .*a.de-en.tsv and .*b.eng-deu.tsv"):
        MULTILINGUAL["sts"].subsets(tmp_path)


def by_length(texts):
    return np.array([[len(text), text.count(" ") + 1, len(set(text))] for text in texts])


@pytest.mark.data
def test_the_published_tracks_have_250_pairs_and_arabic_on_the_arabic_side():
    if not (SHARED / "sts17-official").is_dir():
        pytest.skip(f"{SHARED} has no sts17-official; set ISOGLOT_DATA to the folder of the data sets")
    scores = MULTILINGUAL["sts17"].run(by_length, SHARED)
    assert {score.subset: score.n for score in scores if not score.over} == dict.fromkeys(TRACK_SUBSETS, 250)
    first, second = shown(scores, "ara-eng")
    assert all(any("\u0600" <= letter <= "\u06ff" for letter in text) for text in first)
    assert all(text.isascii() for text in second)


@pytest.mark.data
def test_the_published_translations_have_1379_pairs():
    folder = SHARED / "stsb-multi-mt"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; set ISOGLOT_DATA to the folder of the data sets")
    scores = MULTILINGUAL["sts-b-multi"].run(by_length, SHARED, languages=["de", "ja"])
    assert {score.subset: score.n for score in scores if not score.over} == {"deu": 1379, "jpn": 1379}
    with lzma.open(folder / "stsb-ja-test.csv.xz", "rt", encoding="utf-8", newline="") as file:
        gold = [float(row[2]) for row in csv.reader(file)]
    (japanese,) = [score for score in scores if (score.subset, score.metric) == ("jpn", "pearson")]
    assert japanese.items[:, 0] == pytest.approx(gold)


def test_translations_of_stsb_are_read_from_the_copy_of_mteb(tmp_path):
    for code in ("de", "zh"):
        export(tmp_path / "stsb_multi_mt" / code, rows(code, 30), field="similarity_score")
        export(tmp_path / "stsb_multi_mt" / code, rows(code, 20), field="similarity_score", split="dev")
    found = {
        name: [
            (score.subset, score.n, score.value)
            for score in MULTILINGUAL[name].run(cosine_of_gold, tmp_path)
            if score.metric == "spearman" and not score.over
        ]
        for name in ("sts-b-multi", "sts-b-multi/dev")
    }
    one = pytest.approx(1)
    assert found["sts-b-multi"] == [("deu", 30, one), ("zho", 30, one)]
    assert found["sts-b-multi/dev"] == [("deu", 20, one), ("zho", 20, one)]
    for revision in ("aa", "bb"):  # of which neither is asked: Japanese, too, is looked for in the one copy
        export(tmp_path / "datasets--mteb--stsb_multi_mt/snapshots" / revision / "ja", rows("ja", 30))
    assert MULTILINGUAL["sts-b-multi"].subsets(tmp_path) == ("deu", "zho")
