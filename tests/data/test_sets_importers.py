"""Importers: every layout is found where copies have it, rows and places are right, and broken files are rejected."""

import json

import pytest
from folders import write

from isoglot.core.errors import CorpusError
from isoglot.data.sets.importers import IMPORTERS, find_parts

SIB = "index_id\tcategory\ttext\n"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment\n"
EN = {"zh-en.dev.gold": "z\te\n", "zh-en.dev.en": "e\tb\n"}
STS = "sentence1\tsentence2\tscore\n"


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


PARAGRAPH = {"fra.paragraphs.jsonl": lines({"id": "p", "text": "a"})}
QUESTION = {
    "questions/deu/corpus.jsonl": lines({"_id": "p", "text": "a"}),
    "questions/deu/queries.jsonl": lines({"_id": "q", "text": "a"}),
}


def rows(name, folder):
    """(split, subset) -> rows, of all parts."""
    return {key: list(part.rows()) for key, part in find_parts(name, folder).items()}


# Set, its places, files below each of them, what comes of them: (split, subset) -> texts and label of the first row.
LAYOUTS = [
    ("tatoeba-laser", ["", "v1", "tatoeba", "tatoeba/v1", "tatoeba-laser/v1", "data/tatoeba/v1"],
     {"tatoeba.kor-eng.kor": "a\u2028b\n", "tatoeba.kor-eng.eng": "c\x85d\n"},
     {("test", "kor-eng"): (("a\u2028b", "c\x85d"), None)}),
    ("tatoeba-laser", ["tatoeba-bitext-mining", "mteb/Tatoeba"],
     {"test/kor-eng.jsonl": lines({"sentence1": "a\n", "sentence2": "b\n"})},
     {("test", "kor-eng"): (("a", "b"), None)}),
    ("ntrex-128", ["", "NTREX-128"], {"newstest2019-ref.zh-CN.txt": "a\r\n"}, {("test", "zh_CN"): (("a",), None)}),
    ("bucc2018", ["", "bucc2018", "xtreme-bucc2018", "data/bucc2018", "zh-en", "bucc2018/zh-en"],
     {"zh-en.dev.zh": "z\ta\n", "zh-en.dev.en": "e\tb\n", "zh-en.dev.gold": "z\te\n"},
     {("dev", "zh-en.zh"): (("a",), None), ("dev", "zh-en.en"): (("b",), None),
      ("dev", "zh-en.gold"): (("z", "e"), None)}),
    ("qa-retrieval", ["", "qa-retrieval"],
     {"fra.questions.jsonl": lines({"id": "q", "text": "a", "gold": ["p", "r"]}),
      "fra.paragraphs.jsonl": lines({"id": "p", "text": "b"}),
      "bem-eng.questions.jsonl": lines({"id": "q", "text": "c", "gold": ["p"]}),
      "bem-eng.paragraphs.jsonl": lines({"id": "p", "text": "d"}),
      "zho_Hans.questions.jsonl": lines({"id": "q", "text": "e", "gold": ["p"]}),
      "zho_Hans.paragraphs.jsonl": lines({"id": "p", "text": "f"})},
     {("dev", "fra.questions"): (("a",), None), ("dev", "fra.paragraphs"): (("b",), None),
      ("dev", "fra.gold"): (("q", "p"), 1.0), ("test", "bem-eng.questions"): (("c",), None),
      ("test", "bem-eng.paragraphs"): (("d",), None), ("test", "bem-eng.gold"): (("q", "p"), 1.0),
      ("test", "zho_Hans.questions"): (("e",), None), ("test", "zho_Hans.paragraphs"): (("f",), None),
      ("test", "zho_Hans.gold"): (("q", "p"), 1.0)}),
    ("similarity", ["", "similarity"],
     {"kor-klue-sts.jsonl": lines({"texts": ["a", "b"], "split": "dev", "score": 2.5}),
      "fin-turku.jsonl": lines({"texts": ["c", "d"], "split": "dev", "label": "1"},
          {"texts": ["e", "f"], "split": "test", "label": "4<i"}),
      "hye-arpa.jsonl": lines({"texts": ["g", "h"], "split": "test", "label": -1})},
     {("test", "fin"): (("e", "f"), 4.0), ("test", "hye"): (("g", "h"), -1.0), ("test", "kor"): (("a", "b"), 2.5)}),
    ("own/questions", [""],
     {"questions/de/corpus-00000-of-00001.jsonl": lines({"_id": 7, "title": "t", "text": "b"}),
      "questions/de/queries/queries.jsonl": lines({"_id": "q", "text": "a"}),
      "questions/de/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\t7\t2\n",
      "questions/sw-en/corpus.jsonl": lines({"_id": "p", "title": "", "text": "d"}),
      "questions/sw-en/queries.jsonl": lines({"_id": "q", "text": "c"}),
      "questions/sw-en/qrels.jsonl": lines({"query-id": "q", "corpus-id": "p", "score": 1})},
     {("test", "deu.questions"): (("a",), None), ("test", "deu.paragraphs"): (("t b",), None),
      ("test", "deu.gold"): (("q", "7"), 2.0), ("test", "swa-eng.questions"): (("c",), None),
      ("test", "swa-eng.paragraphs"): (("d",), None), ("test", "swa-eng.gold"): (("q", "p"), 1.0)}),
    ("senteval-en", ["", "senteval-en", "downstream", "SentEval/data/downstream"],
     {"SICK/SICK_trial.txt": SICK.replace("\n", "\r\n") + "1\ta\tb\t\tX\r\n2\tc\td\t4.5\tX\r\n",
      "STS/STSBenchmark/sts-test.csv": "g\tf\ty\t1\t2.5\te\tf\tmore\n"},
     {("sts-b-test", "eng"): (("e", "f"), 2.5), ("sick-r-dev", "eng"): (("c", "d"), 4.5)}),
    ("sib-200", ["", "annotated", "data/annotated", "sib-200/annotated", "sib-200"],
     {"kor_Hang/dev.tsv": SIB + '1\ttravel\t"He said ""no"" twice"\n', "my_corpus/dev.tsv": "a\tb\n"},
     {("dev", "kor_Hang"): (('He said "no" twice',), "travel")}),
    ("MTOPDomainClassification", ["mtop_domain", "mteb/mtop_domain", "MTOPDomainClassification"],
     {"de/validation.jsonl": lines({"text": "a", "label": 3, "label_text": "news"})}, {("dev", "de"): (("a",), 3)}),
    ("mewsc16", ["", "mewsc16", "data/mewsc16", "downstreams/text-clustering/data/mewsc16"],
     {"de_sentences.txt": " \nb \n", "de_categories.txt": "1\n2\n"}, {("test", "de"): (("b",), "2")}),
    ("short-text-clustering", ["", "short-text-clustering", "monolingual_benchmark"],
     {"agnews.txt": "1\ta\tb\n", "searchsnippets.txt": b"\xef\xbb\xbfone\tx\n", "searchsnippets_label.txt": "2\n",
      "tweet.txt": lines({"text": " c ", "cluster": 4})},
     {("test", "eng-agnews"): (("a\tb",), "1"), ("test", "eng-searchsnippets"): (("one\tx",), "2"),
      ("test", "eng-tweet"): (("c",), "4")}),
    ("short-text-clustering", [""], {"t.txt": "1\ta\n"}, {}),  # may be any file
    ("tnews", [""], {"dev.json": lines({"sentence": "a", "label": "1"})}, {}),
    ("tnews", ["", "tnews", "CLUE/tnews"], {"dev.json": lines({"sentence": "a", "label": "1"}), "labels.json": "{}\n"},
     {("test", "zho"): (("a",), "1")}),
    ("stsb-multi-mt", ["", "stsb-multi-mt", "data"], {"stsb-de-dev.csv": '"a, ""b""",c,1.5\r\n'},
     {("dev", "deu"): (('a, "b"', "c"), 1.5)}),
    ("xtreme-xnli", ["", "xnli"], {"test-sw.tsv": "a\tb\n"}, {("test", "sw"): (("a", "b"), None)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "place", "files", "expected", "ending"),
    [
        *((name, place, *rest, "") for name, places, *rest in LAYOUTS for place in places),
        *((name, places[-1], *rest, ".xz") for name, places, *rest in LAYOUTS),
    ],
)
def test_layouts_are_found_and_read(tmp_path, name, place, files, expected, ending):
    for file, text in files.items():
        write(tmp_path / place / f"{file}{ending}", text)
    found = rows(name, tmp_path)
    assert {key: (part[0].texts, part[0].label) for key, part in found.items()} == expected
    for part in found.values():
        assert all(str(tmp_path / place) in where for row in part for where in row.places)


def test_the_plain_file_of_two_is_read(tmp_path):
    for ending, text in ((".xz", "packed\n"), ("", "plain\n")):
        write(tmp_path / "xsim" / f"deu.txt{ending}", text)
    assert [row.texts for row in rows("own/aligned", tmp_path)["test", "deu"]] == [("plain",)]


def test_places_count_the_rows_that_are_left_out(tmp_path):
    write(tmp_path / "de_sentences.txt", "a\n\nb")
    write(tmp_path / "de_categories.txt", "1\n1\n2")
    places = [row.places for row in rows("mewsc16", tmp_path)["test", "de"]]
    assert places == [(f"{tmp_path / 'de_sentences.txt'}:1",), (f"{tmp_path / 'de_sentences.txt'}:3",)]


# Set, files, what the message says after the folder.
BROKEN = [
    ("tatoeba-laser", {"tatoeba.deu-eng.deu": "a\nb\n", "tatoeba.deu-eng.eng": "A\n"}, "deu has 2 .* from line 2 on"),
    ("tatoeba-laser", {"tatoeba.deu-eng.deu": "a\n", "tatoeba.deu-eng.eng": " \n"}, "eng:1: .*empty"),
    ("tatoeba-laser", {"tatoeba.deu-eng.deu": "a\nb\r\n", "tatoeba.deu-eng.eng": "A\n"}, "deu:2: .*carriage return"),
    ("tatoeba-laser", {"tatoeba.deu-eng.deu": "a\n"}, "deu: has no partner tatoeba.deu-eng.eng"),
    ("tatoeba-laser", {"Tatoeba/test/kor-eng.jsonl": lines({"sentence1": "\n", "sentence2": "a"})}, ":1: sentence1"),
    ("own/aligned", {"xsim/dev.deu": "a\n", "xsim/test.eng": "a\n"}, "more than one set"),
    ("sib-200", {"deu_Latn/dev.tsv": "id\tcategory\ttext\n1\ta\tb\n"}, "dev.tsv:1: the header lacks index_id"),
    ("sib-200", {"deu_Latn/dev.tsv": SIB + "1\ta\tb\n\ta\tc\n"}, "dev.tsv:3: index_id is empty"),
    ("sib-200", {"deu_Latn/dev.tsv": SIB + "1\ta\tb\n1\ta\tc\n"}, "dev.tsv:3: the id '1' is in .*dev.tsv:2 already"),
    ("sib-200", {"deu_Latn/dev.tsv": SIB + '1\ta\t"b" c\n'}, "dev.tsv:2: is not quoted as CSV"),
    ("sib200", {"sib200/test/deu_Latn.jsonl": lines({"text": "a", "category": 3})}, ":1: category 3 is"),
    ("bucc2018", {"zh-en.dev.gold": "z e\n"}, "gold: has no partner"),
    ("bucc2018", {**EN, "zh-en.dev.zh": "z\ta\nz\tb\n"}, "zh:2: the id 'z' is in .*zh:1 already"),
    *(
        ("BUCC", {"BUCC/zh-en/test.jsonl": lines({"sentence1": ["a"], "sentence2": ["b"], "gold": gold})}, message)
        for gold, message in [
            ([[1, 0]], r"gold has \[1, 0\] for 1 and 1 sentences, numbered from 1"),
            ([["1", "1"]], r"gold has \['1', '1'\]"),
        ]
    ),
    ("BUCC", {"BUCC/zh-en/test.jsonl": lines({"sentence1": "a", "sentence2": [], "gold": []})}, "a single record of"),
    ("BUCC", {"BUCC/zh-en/test.jsonl": lines({"sentence1": [None], "sentence2": [], "gold": []})}, "number 1 of"),
    ("BUCC.v2", {"BUCC.v2/test/zh-en.jsonl": lines({"sentence1": "a", "sentence2": " "})}, ":1: sentence2 ' ' is"),
    ("senteval-en", {"sts-test.csv": "g\tf\ty\t1\t2.0\ta\n"}, "sts-test.csv:1: 6 cells"),
    ("senteval-en", {"SICK_trial.txt": SICK + "1\ta\tb\t0.5\tX\n"}, ":2: the score '0.5' is not a number from 1 to 5"),
    *(
        ("sts17-official", {f"STS2017.{n}.track1.ar-ar.txt": t for n, t in zip(KINDS, texts, strict=False)}, message)
        for KINDS in [("eval.v1.1/STS.input", "gs/STS.gs")]
        for *texts, message in [
            ("a\tb\nc\td\n", "1\n", "has 2 lines and .*gs.track1.* has 1; .*from line 2 on"),
            ("a\tb\n", "5.1\n", "txt:1: the score '5.1' is not a number"),
            ("a\tb\n", "high\n", "STS.gs.track1.ar-ar.txt:1: the score 'high' is not a number from 0 to 5"),
            ("a\t \n", "1\n", "STS.input.track1.ar-ar.txt:1: sentence2 ' ' is empty or not text; restore it"),
            ("a\tb\n", "STS.gs.track1.ar-ar.txt: no such file"),
        ]
    ),
    ("STS22", {"STS22/de/test.jsonl": lines({"sentence1": "a", "sentence2": "b", "score": 1})}, "not revision 1"),
    ("qa-retrieval", {"fra.questions.jsonl": lines({"id": "q", "text": "a", "gold": "p"})}, "has no partner fra.par"),
    ("qa-retrieval", {**PARAGRAPH, "fra.questions.jsonl": lines({"id": "q", "text": " ", "gold": []})}, ":1: text ' '"),
    ("qa-retrieval", {**PARAGRAPH, "fra.questions.jsonl": lines({"id": "q", "text": "a", "gold": "p"})}, "not a list"),
    (
        "qa-retrieval",
        {**PARAGRAPH, "fra.questions.jsonl": lines(*[{"id": "q", "text": "a", "gold": ["p"]}] * 2)},
        "jsonl:2: the id 'q' is in .*jsonl:1 already",
    ),
    ("own/questions", {"questions/deu/corpus.jsonl": lines({"_id": "p", "text": "a"})}, "deu: has no queries.jsonl"),
    ("own/questions", {"questions/nothing/corpus.jsonl": ""}, "'nothing'"),
    (
        "own/questions",
        {**QUESTION, "questions/deu/qrels.tsv": "query-id\tcorpus-id\tscore\nq\tp\tx\n"},
        "tsv:2: the score 'x'",
    ),
    ("similarity", {"fin-turku.jsonl": lines({"texts": ["a"], "label": "1"})}, "jsonl:1: texts are not two"),
    ("own/sts", {"sts/a.deu.tsv": "sentence1\tscore\tother\n"}, "a.deu.tsv:1: the header lacks sentence2"),
    ("own/sts", {"sts/a.deu.tsv": STS + "a\tb\tinf\n"}, ":2: the score 'inf' is not a finite number"),
    ("own/sts", {"sts/a.chapter.tsv": ""}, "a.chapter.tsv: 'chapter' is not a language"),
    ("own/sts", {"sts/a.de-en-fr.tsv": ""}, "'de-en-fr' is not a language"),
    ("own/sts", {"sts/a.de-en.tsv": STS, "sts/b.eng-deu.tsv": STS}, "both .*a.de-en.tsv and .*b.eng-deu.tsv"),
    ("MTOPDomainClassification", {"mtop/de/test.jsonl": lines({"text": "a"})}, "test.jsonl:1: lacks label"),
    ("MTOPDomainClassification", {"mtop/de/test.jsonl": lines({"text": "a", "label": "x"})}, ":1: label 'x' is"),
    ("mldoc", {"german.test": "SPORT\tgoal\n"}, "german.test:1: .*'SPORT'"),
    ("mewsc16", {"de_sentences.txt": "a\nb", "de_categories.txt": "1\n\n"}, "categories.txt:2: label '' is empty"),
    ("short-text-clustering", {"agnews.txt": "1\ta\nb\n"}, "agnews.txt:2: 1 cells"),
    ("short-text-clustering", {"agnews.txt": "1\ta\n", "tweet.txt": lines({"text": 7, "cluster": 2})}, ":1: text 7"),
    ("pawsx", {"test-de.tsv": "a\tb\t2\n"}, "test-de.tsv:1: the label '2'"),
    ("pawsx", {"test-de.tsv": "a\tb\t1\na\tb\n"}, "test-de.tsv:2: 2 cells"),
    ("pawsx", {"test-de.tsv": "n\ta\tb\t1\n"}, "test-de.tsv:1: the header lacks sentence1, sentence2, label"),
    ("xtreme-xnli", {"test-de.tsv": "a\tb\nc\td\n", "labels.test.txt": "neutral\n"}, "labels.test.txt has 1"),
    ("xtreme-xnli", {"test-de.tsv": "a\tb\n", "labels.test.txt": "maybe\n"}, "labels.test.txt:1: the label 'maybe'"),
]


@pytest.mark.parametrize(("name", "files", "message"), BROKEN)
def test_broken_files_are_refused_with_file_and_line(tmp_path, name, files, message):
    for file, text in files.items():
        write(tmp_path / file, text)
    with pytest.raises(CorpusError, match=message) as caught:
        rows(name, tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_folder_without_the_set_has_no_part(tmp_path, name):
    assert find_parts(name, tmp_path) == {}
    assert find_parts(name, tmp_path / "nowhere") == {}
    assert IMPORTERS[name].needs
