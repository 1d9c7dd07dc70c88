"""Cases of the classification tasks: small sets whose texts end in a word that tells everything."""

import json
from functools import partial

from cases import Case, every_metric
from folders import write

MTOP_LABELS = 11
SIB_LABELS = ("geography", "health", "sports", "travel")
MLDOC_LABELS = ("CCAT", "ECAT", "GCAT", "MCAT")
MLDOC_NAMES = {"deu": "german", "fra": "french", "eng": "english"}
XNLI_LABELS = ("entailment", "neutral", "contradiction")
XNLI_CODES = ("en", "de", "fr", "hi", "tr", "ar", "bg")
LINGUA_CODES = ("de", "en", "fr", "ko")


def put(path, lines):
    write(path, "".join(f"{line}\n" for line in lines))


def mtop_data(folder, codes=("de", "fr"), sizes=None):
    for code in codes:
        for split, each in (sizes or {"train": 12, "test": 20}).items():
            records = [
                {"text": f"{code} {split} {i} topic{label}", "label": label, "label_text": f"topic{label}"}
                for i in range(each)
                for label in range(MTOP_LABELS)
            ]
            put(folder / "mtop_domain" / code / f"{split}.jsonl", map(json.dumps, records))


def sib_data(folder, codes=("deu_Latn", "eng_Latn", "kor_Hang")):
    for code in codes:
        for split, each in (("train", 40), ("dev", 15), ("test", 50)):
            rows = [f"{label}\t{code} {split} {i} {label}" for i in range(each) for label in SIB_LABELS]
            numbered = [f"{number}\t{row}" for number, row in enumerate(rows)]
            put(folder / "annotated" / code / f"{split}.tsv", ["index_id\tcategory\ttext", *numbered])


def mldoc_data(folder, codes=("eng", "deu", "fra")):
    for code in codes:
        for split, each in (("train.1000", 40), ("dev", 15), ("test", 50)):
            rows = [f"{label}\t{code} {split} {i} {label}" for i in range(each) for label in MLDOC_LABELS]
            put(folder / f"{MLDOC_NAMES[code]}.{split}", rows)


def xnli_data(folder, codes=XNLI_CODES, premises=80):
    for code in codes:
        rows = [
            (f"{code} premise %s {i} {code}", f"{code} hypothesis %s {i} {label}", label)
            for i in range(premises)
            for label in XNLI_LABELS
        ]
        put(folder / f"dev-{code}.tsv", ("\t".join(row) % ("dev", "dev") for row in rows))
        put(folder / f"test-{code}.tsv", ("\t".join(row[:2]) % ("test", "test") for row in rows))
    put(folder / "labels.test.txt", (label for _ in range(premises) for label in XNLI_LABELS))


def pawsx_data(folder, codes=("de", "en", "ko"), *, pairs=200, splits=("dev", "test")):
    for code in codes:
        for split in splits:
            rows = [
                f"{code} {split} first {i} same\t{code} {split} second {i} {('other', 'same')[i % 2]}\t{i % 2}"
                for i in range(pairs)
            ]
            put(folder / f"{split}-{code}.tsv", rows)


def lingua_data(folder, codes=LINGUA_CODES, count=200):
    for code in codes:
        put(folder / "lingua-langid" / "sentences" / f"{code}.txt", (f"sentence {i} in {code}" for i in range(count)))


DEV = partial(mtop_data, sizes={"train": 12, "validation": 20})
ROWS = {
    "mtop": (mtop_data, 1 / MTOP_LABELS, 0.06, ("de", "fr"), "de, split train"),
    "mtop/dev": (DEV, 1 / MTOP_LABELS, 0.06, ("de", "fr"), "de, split train"),
    "sib-200": (sib_data, 1 / 4, 0.1, ("deu_Latn", "kor_Hang"), "deu_Latn, split train"),
    "sib-200/zero-shot": (sib_data, 1 / 4, 0.12, ("deu_Latn", "kor_Hang"), "eng_Latn, split train"),
    "mldoc": (mldoc_data, 1 / 4, 0.12, ("deu", "fra"), "eng, split train"),
    "mldoc/raw": (mldoc_data, 1 / 4, 0.12, ("deu", "fra"), "eng, split train"),
    "xnli": (xnli_data, 1 / 3, 0.12, XNLI_CODES, "en, split dev"),
    "paws-x": (pawsx_data, 1 / 2, 0.15, ("de", "ko"), "en, split dev"),
    "language-id": (xnli_data, 1 / 4, 0.15, ("de", "bg"), "en-de-fr-hi, language en"),
    "language-id/lingua": (lingua_data, 1 / 4, 0.2, LINGUA_CODES, "de"),
}
CASES = {
    task: Case(write, every_metric(task, 1.0), every_metric(task, chance), languages=languages, where=where)
    for task, (write, *chance, languages, where) in ROWS.items()
}
