"""The labelled texts of the clustering tasks: MewsC-16, the eight short-text sets, TNEWS, and one's own files.

What their copies have of their own: MewsC-16 has sentences that are empty, left out as its makers do, and no line end
after the last; of the short-text sets one begins with a byte order mark, one has a tab within a text, and one is JSON
lines. Texts lose the blanks at their ends, as with EASE. A text that stands twice counts twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from isoglot.data.files import without_compression
from isoglot.errors import EvaluationError
from isoglot.evaluation.codes import among
from isoglot.evaluation.exports import numbered_records
from isoglot.evaluation.files import find, lines, rows
from isoglot.evaluation.tasks.clustering import Clustering, Labelled

Sets = dict[str, Callable[[], Labelled]]
Row = tuple[str, str, str]  # text, label, place

MEWSC_LANGUAGES = ("ar", "ca", "cs", "de", "en", "eo", "es", "fa", "fr", "ja", "ko", "pl", "pt", "ru", "sv", "tr")
# The name of a set -> the name of its file.
SHORT_TEXTS = {
    "agnews": "agnews",
    "biomedical": "biomedical",
    "googlenews_s": "s",
    "googlenews_t": "t",
    "googlenews_ts": "ts",
    "searchsnippets": "searchsnippets",
    "stackoverflow": "stackoverflow",
    "tweet": "tweet",
}

_EASE = "downstreams/text-clustering/data"
_MEWSC_PLACES = ("mewsc16", "", "mewsc-16", "data/mewsc16", f"{_EASE}/mewsc16")
_SHORT_PLACES = ("short-text-clustering", "", "monolingual_benchmark", f"{_EASE}/monolingual_benchmark")
_TNEWS_PLACES = ("tnews", "tnews_public", "data/tnews", "clue/tnews", "CLUE/tnews")


def mewsc_sets(data: Path, languages: Sequence[str]) -> Sets:
    """MewsC-16: `<xx>_sentences.txt` and `<xx>_categories.txt`, line by line."""
    for place in _MEWSC_PLACES:
        # Reversed, so that of one file stored both ways the plain one, which sorts first, is the one kept.
        paths = sorted((data / place).glob("*_sentences.txt*"), reverse=True)
        files = {without_compression(path.name).removesuffix("_sentences.txt"): path for path in paths}
        if files := {code: path for code, path in files.items() if re.fullmatch("[a-z]{2,3}", code)}:
            return {code: partial(_mewsc, files[code], code) for code in sorted(files) if among(code, languages)}
    return {}


def short_text_sets(data: Path, languages: Sequence[str]) -> Sets:
    """The eight short-text sets, all English. A folder not named for them needs agnews: `t.txt` alone may be any."""
    if not among("eng", languages):
        return {}
    for place in _SHORT_PLACES:
        files = {name: find(data, (place,), f"{file}.txt") for name, file in SHORT_TEXTS.items()}
        there = {name: path for name, path in files.items() if path is not None}
        if "agnews" in there or (place and there):
            return {f"eng-{name}": partial(_short_text, path, name) for name, path in there.items()}
    return {}


def tnews_sets(data: Path, languages: Sequence[str]) -> Sets:
    """TNEWS: JSON lines `dev.json`; in a folder of another name only beside `labels.json`."""
    places = (*_TNEWS_PLACES, "") if find(data, ("",), "labels.json") else _TNEWS_PLACES
    path = find(data, places, "dev.json")
    if path is None or not among("zho", languages):
        return {}
    return {"zho": partial(_records, path, ("sentence", "label"), "tnews zho")}


def table_sets(data: Path, languages: Sequence[str]) -> Sets:
    """One's own: `<name>.<language>.tsv` of label and text, in `clustering/`. The subset is `<language>-<name>`."""
    found: Sets = {}
    folder = data if data.name == "clustering" else data / "clustering"
    for path in sorted(folder.glob("*.tsv*"), reverse=True):
        name = re.fullmatch(r"(?P<set>[^.]+)\.(?P<code>[^.]+)\.tsv", without_compression(path.name))
        if name and among(name["code"], languages):
            subset = f"{name['code']}-{name['set']}"
            found[subset] = partial(_table, path, f"clustering {subset}")
    return dict(sorted(found.items()))


MEWSC_16 = Clustering(
    "mewsc-16",
    "files <xx>_sentences.txt and <xx>_categories.txt (plain, .gz or .xz), as in "
    f"{_EASE}/mewsc16 of https://github.com/studio-ousia/ease",
    mewsc_sets,
    ("ease-16", MEWSC_LANGUAGES),
)
STC = Clustering(
    "stc",
    "files agnews.txt, biomedical.txt, biomedical_label.txt and so on (plain, .gz or .xz), as in "
    f"{_EASE}/monolingual_benchmark of https://github.com/studio-ousia/ease",
    short_text_sets,
    ("ease-8", tuple(f"eng-{name}" for name in SHORT_TEXTS)),
)
TNEWS = Clustering("tnews", "a folder tnews with dev.json (JSON lines: sentence, label), as CLUE has it", tnews_sets)
TABLES = Clustering(
    "clustering", "files clustering/<name>.<language>.tsv (plain, .gz or .xz) of label TAB text", table_sets
)


def _mewsc(path: Path, code: str) -> Labelled:
    where = f"mewsc-16 {code}"
    labels = find(path.parent, ("",), f"{code}_categories.txt")
    if labels is None:
        raise EvaluationError(f"{where}: {path} has no partner {code}_categories.txt; add that file")
    return _aligned(path, labels, where, skip_empty=True)


def _short_text(path: Path, name: str) -> Labelled:
    where, file = f"stc eng-{name}", SHORT_TEXTS[name]
    if name == "tweet":
        return _records(path, ("text", "cluster"), where)
    if name not in ("biomedical", "searchsnippets", "stackoverflow"):
        return _table(path, where)
    labels = find(path.parent, ("",), f"{file}_label.txt")
    if labels is None:
        raise EvaluationError(f"{where}: {path} has no partner {file}_label.txt; add that file")
    return _aligned(path, labels, where)


def _aligned(path: Path, labels: Path, where: str, *, skip_empty: bool = False) -> Labelled:
    texts, classes = [*lines(path, where=where, blank=skip_empty)], [*lines(labels, where=where)]
    if len(texts) != len(classes):
        raise EvaluationError(
            f"{where}: {path} has {len(texts)} lines and {labels} has {len(classes)}, so from line "
            f"{min(len(texts), len(classes)) + 1} on texts lack their labels; fetch both files again"
        )
    table = enumerate(zip(texts, classes, strict=True), 1)
    return _labelled((text, label, f"{path}:{number}") for number, (text, label) in table if text.strip())


def _table(path: Path, where: str) -> Labelled:
    found: list[Row] = []
    for number, (label, *text) in enumerate(rows(path, 2, where=where, at_least=True), 1):
        found.append(("\t".join(text), label, f"{path}:{number}"))
        if not all(part.strip() for part in found[-1]):
            raise EvaluationError(f"{where}: {path}:{number}: the label or the text is empty; restore it")
    return _labelled(found)


def _records(path: Path, fields: tuple[str, str], where: str) -> Labelled:
    found: list[Row] = []
    for number, record in numbered_records(path, fields, where=where):
        text, label = (record[field] for field in fields)
        if not isinstance(text, str) or not text.strip() or not isinstance(label, str | int) or not str(label).strip():
            raise EvaluationError(
                f"{where}: {path}:{number}: {fields[0]} {text!r} with {fields[1]} {label!r} is no text with a "
                "label; mend it"
            )
        found.append((text, str(label), f"{path}:{number}"))
    return _labelled(found)


def _labelled(found: Iterable[Row]) -> Labelled:
    table = list(found)
    texts, labels = (tuple(row[column].strip() for row in table) for column in (0, 1))
    return Labelled(texts, labels, tuple(place for *_, place in table))
