"""Cases of the similarity tasks: small sets in their layouts, whose second sentences carry the gold score."""

import json
import math
from functools import partial
from itertools import chain

import numpy as np
from cases import Case
from folders import write

PAIRS = 200
STS17 = ("ar-ar", "en-ar", "es-es", "es-en", "en-en", "en-tr", "en-de", "fr-en", "it-en", "nl-en", "ko-ko")
STS22 = (
    *("en", "de", "es", "pl", "tr", "ar", "ru", "zh", "fr", "it"),
    *("de-en", "es-en", "pl-en", "zh-en", "es-it", "de-fr", "de-pl", "fr-pl"),
)
CORPORA = {
    "sts12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "sts13": ("FNWN", "headlines", "OnWN"),
    "sts14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "sts15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "sts16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}


def rows(name, count=PAIRS, scale=(0, 5)):
    """`(sentence 1, sentence 2, gold)`, no two of the same gold."""
    gold = np.linspace(*scale, count).round(4)
    return [(f"{name} left {i}", f"{name} right {i} {value}", float(value)) for i, value in enumerate(gold)]


def cosine_of_gold(texts):
    """Vectors with which the cosine of a pair is a fifth of its gold score."""
    cosines = np.array([float(text.split()[-1]) / 5 if "right" in text else 1 for text in texts])
    return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)


def semeval(folder, table, stem, folders=("", ""), more=()):
    """The two files of SemEval from `(sentence 1, sentence 2, gold)`, gold None being blank; `more` pairs have none."""
    pairs, gold = [*(row[:2] for row in table), *more], ("" if row[2] is None else row[2] for row in table)
    write(folder / folders[0] / f"STS.input.{stem}.txt", "".join(f"{a}\t{b}\n" for a, b in pairs))
    write(folder / folders[1] / f"STS.gs.{stem}.txt", "".join(f"{score}\n" for score in gold))


def english(task, count=PAIRS):
    def fill(folder):
        for corpus in CORPORA[task]:
            semeval(folder / f"STS/STS{task[3:]}-en-test", rows(corpus, count // len(CORPORA[task])), corpus)

    return fill


def stsb(split, table=()):
    def fill(folder):
        lines = [f"genre\tfile\tyear\t{i}\t{gold}\t{a}\t{b}\n" for i, (a, b, gold) in enumerate(table or rows("b"))]
        write(folder / f"STS/STSBenchmark/sts-{split}.csv", "".join(lines))

    return fill


def sick(folder, count=PAIRS, split="test_annotated"):
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"
    lines = [f"{i}\t{a}\t{b}\t{gold}\tNEUTRAL\r\n" for i, (a, b, gold) in enumerate(rows("sick", count, (1, 5)))]
    write(folder / f"SICK/SICK_{split}.txt", header + "".join(lines))


def export(folder, table, field="score", split="test"):
    """One subset as MTEB stores it."""
    records = [json.dumps({"sentence1": a, "sentence2": b, field: gold}) for a, b, gold in table]
    write(folder / f"{split}.jsonl", "".join(f"{record}\n" for record in records))


def sts17(folder, names=STS17, count=PAIRS):
    for name in names:
        export(folder / "sts17-crosslingual-sts" / name, rows(name, count))


def sts22(folder, name="sts22-crosslingual-sts", empty=None, names=STS22):
    """Revision 2, or with one text that is `empty` (blanks, if any) revision 1."""
    for subset in names:
        table = rows(subset, PAIRS, (1, 4))
        if empty is not None and subset == "es":
            table[3] = (empty, *table[3][1:])
        export(folder / name / subset, table)


def stsb_multi(split):
    def fill(folder):
        for code in ("de", "zh"):
            lines = [f'"{a}","a ""quoted"", {b}",{gold}\r\n' for a, b, gold in rows(code)]
            write(folder / f"stsb-multi-mt/stsb-{code}-{split}.csv.xz", "".join(lines))

    return fill


def related(folder):
    """Scores in one language, labels that are numbers in the other."""
    for name, field in (("fin-turku", "label"), ("kor-klue-sts", "score")):
        records = [
            json.dumps({"texts": [a, b], "split": "test", field: gold}) for a, b, gold in rows(name, 120, (0, 4))
        ]
        write(folder / f"similarity/{name}.jsonl.xz", "".join(f"{record}\n" for record in records))


def tsv(folder):
    for code in ("deu", "de-ko"):
        lines = [f"{gold}\t{b}\tnote\t{a}\n" for a, b, gold in rows(code)]
        write(folder / f"sts/mine.{code}.tsv", "score\tsentence2\tremark\tsentence1\n" + "".join(lines))


def _case(fill, metrics=("spearman", "pearson"), corpora=1, **others):
    """A correlation of n unrelated pairs deviates by 1 / sqrt(n - 1); a mean over corpora loses one pair in each."""
    pairs = {name: PAIRS // corpora * corpora - (1 if name.endswith("/all") else corpora) for name in metrics}
    return Case(
        fill,
        perfect=dict.fromkeys(metrics, 1.0),
        chance={name: (0.0, 4 / math.sqrt(count)) for name, count in pairs.items()},
        oracle=cosine_of_gold,
        **others,
    )


WAYS = tuple(chain.from_iterable((f"{kind}/all", f"{kind}/wmean", f"{kind}/mean") for kind in ("spearman", "pearson")))
CASES = {
    **{
        task: _case(
            english(task), WAYS, len(CORPORA[task]), where=f"eng, corpus {CORPORA[task][0]}, sentence 1, language eng"
        )
        for task in CORPORA
    },
    **{
        task: _case(fill, WAYS, where="eng, sentence 1, language eng")
        for task, fill in {
            "sts-b": stsb("test"),
            "sts-b/dev": stsb("dev"),
            "sts-b/mteb": lambda folder: export(folder / "stsbenchmark-sts", rows("b")),
            "sick-r/mteb": lambda folder: export(folder / "sickr-sts", rows("sick", scale=(1, 5))),
            "sick-r": sick,
            "sick-r/dev": partial(sick, split="trial"),
        }.items()
    },
    "sts17": _case(sts17, languages=("ar", "ko"), where="ara-ara, sentence 1, language ara"),
    "sts22": _case(sts22, languages=("de", "zh"), where="eng, sentence 1, language eng"),
    "sts22/v1": _case(
        lambda folder: sts22(folder, empty=""), languages=("de", "zh"), where="eng, sentence 1, language eng"
    ),
    "sts-b-multi": _case(stsb_multi("test"), languages=("deu", "zho"), where="deu, sentence 1, language deu"),
    "sts-b-multi/dev": _case(stsb_multi("dev"), languages=("deu", "zho"), where="deu, sentence 1, language deu"),
    "sts-more": _case(related, languages=("fin", "kor"), where="fin, sentence 1, language fin"),
    "sts": _case(tsv, languages=("kor", "deu"), where="deu, sentence 1, language deu"),
}
