"""Cases of the clustering tasks: texts `<something> <class>`, every class equally often."""

import json

from cases import Case
from folders import write

from isoglot.data.sets.importers import SHORT_TEXTS

CLASSES = 4
TEXTS = 120
LABELS = [number % CLASSES for number in range(TEXTS)]
CODES = ("de", "ko")


def texts(name):
    return [f"{name} {number} class{label}" for number, label in enumerate(LABELS)]


def column(entries):
    return "".join(f"{entry}\n" for entry in entries)


def table(name):
    return column(f"{label}\t{text}" for label, text in zip(LABELS, texts(name), strict=True))


def json_lines(name, fields):
    rows = zip(texts(name), LABELS, strict=True)
    return column(json.dumps(dict(zip(fields, row, strict=True))) for row in rows)


def mewsc_data(folder):
    for code in CODES:
        write(folder / "mewsc16" / f"{code}_sentences.txt", "\n".join(texts(code)))
        write(folder / "mewsc16" / f"{code}_categories.txt", "\n".join(map(str, LABELS)))


def short_text_data(folder):
    for name, file in SHORT_TEXTS.items():
        path = folder / "short-text-clustering" / f"{file}.txt"
        if name == "tweet":
            write(path, json_lines(name, ("text", "cluster")))
        elif name in ("biomedical", "searchsnippets", "stackoverflow"):
            write(path, column(texts(name)))
            write(path.with_name(f"{file}_label.txt"), column(LABELS))
        else:
            write(path, table(name))


def tnews_data(folder):
    write(folder / "tnews" / "dev.json", json_lines("tnews", ("sentence", "label")))


def table_data(folder):
    for code in CODES:
        write(folder / "clustering" / f"news.{code}.tsv", table(code))


def case(write_data, where, languages=()):
    # Of four even classes of 30, a random partition gets a third right; and it says almost nothing (v-measure).
    chance = {
        "accuracy": (0.34, 0.08),
        "purity/micro": (0.35, 0.08),
        "purity/macro": (0.36, 0.1),
        "v-measure": (0.03, 0.05),
    }
    return Case(write_data, dict.fromkeys(chance, 1.0), chance, languages=languages, where=where)


CASES = {
    "mewsc-16": case(mewsc_data, "de", CODES),
    "stc": case(short_text_data, "eng-agnews"),
    "tnews": case(tnews_data, "zho"),
    "clustering": case(table_data, "de-news", CODES),
}
