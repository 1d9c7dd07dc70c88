"""The files of XNLI as rows in all languages, which the reader `xnli` turns into groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from isoglot.data.files import COMPRESSED, read_lines
from isoglot.data.languages import canonical, canonical_list, is_language
from isoglot.data.readers.labelled import label_of, table_rows
from isoglot.errors import CorpusError

ENGLISH = "eng"


@dataclass(frozen=True, slots=True)
class Row:
    """A row in all languages of the pool, with its English premise and hypothesis."""

    premises: tuple[str, ...]
    hypotheses: tuple[str, ...]
    label: int
    premise: str
    hypothesis: str


class _Line(NamedTuple):
    number: int
    premise: str
    hypothesis: str
    label: int


def find_files(root: Path, split: str, pool: str | Iterable[str] | None) -> tuple[tuple[str, ...], list[Path]]:
    """The languages of the pool, sorted, their files, and last the file whose text identifies a row."""
    if not root.is_dir():
        raise CorpusError("not a folder; pass the folder with one file per language", file=root)
    name = re.compile(rf"(?:.*\.)?{re.escape(split)}[-.]([A-Za-z]{{2,3}})\.tsv(?:\.(?:gz|xz|bz2))?")
    found: dict[str, Path] = {}
    for file in sorted(root.rglob("*.tsv*")):
        if not (match := name.fullmatch(file.name)) or not is_language(match[1]):
            continue
        if (code := canonical(match[1])) in found:
            raise CorpusError(f"and {found[code].name} are both {code}; remove one of them", file=file)
        found[code] = file
    wanted = tuple(sorted(set(found if pool is None else canonical_list(pool, file=root))))
    if lacking := [code for code in wanted if code not in found] or ([] if wanted else ["any language"]):
        known = f"; there are: {', '.join(found)}" if found else ""
        raise CorpusError(f"no file {split}-<xx>.tsv or *.{split}.<xx>.tsv of {lacking[0]}{known}", file=root)
    return wanted, [found[code] for code in (*wanted, ENGLISH if ENGLISH in found else min(found))]


def read_rows(
    files: Sequence[Path],
    languages: int,
    *,
    labels: Path | None = None,
    clean: bool,
    skip_empty: bool,
    counts: Counter[str],
) -> Iterator[Row]:
    """The rows of line-aligned files: the first `languages` files are the pool, the text of the last identifies a row.

    `labels` has a label a line, for files of two columns. `clean` replaces commas by spaces and removes double quotes,
    as mSimCSE's code does. Blank rows as in `read_xnli`.
    """
    for lines in zip_longest(*(_lines(file, labels) for file in files)):
        if None in lines:
            short = files[lines.index(None)]
            raise CorpusError("has fewer rows than the files of other languages; they must be aligned", file=short)
        content = lines[-1]
        for line, path in zip(lines, files, strict=True):
            if line.label != content.label:
                where = f"{files[-1].name}:{content.number}"
                what = f"the label differs from that of {where}; the files are not aligned"
                raise CorpusError(what, file=path, line=line.number)
        if any(not (line.premise.strip() and line.hypothesis.strip()) for line in lines):
            if not skip_empty:
                raise _blank(lines, files)
            counts["empty"] += 1
            continue
        premises = tuple(_cleaned(line.premise) if clean else line.premise for line in lines)
        hypotheses = tuple(_cleaned(line.hypothesis) if clean else line.hypothesis for line in lines)
        yield Row(premises[:languages], hypotheses[:languages], content.label, premises[-1], hypotheses[-1])


def _blank(lines: Sequence[_Line], files: Sequence[Path]) -> CorpusError:
    for line, path in zip(lines, files, strict=True):
        for name, text in (("premise", line.premise), ("hypothesis", line.hypothesis)):
            if not text.strip():
                what = f"the {name} is empty; pass skip_empty=true to leave the row out in all languages"
                return CorpusError(what, file=path, line=line.number)
    raise AssertionError("called for a row without a blank")


def labels_of(root: Path, split: str) -> Path | None:
    """The file `labels.<split>.txt` in a folder, in which XTREME's test labels are kept apart from the pairs."""
    names = [f"labels.{split}.txt{ending}" for ending in ("", *COMPRESSED)]
    return next((root / name for name in names if (root / name).is_file()), None)


def _lines(path: Path, labels: Path | None) -> Iterator[_Line]:
    with_labels = labels is not None and len(next(read_lines(path))[1].split("\t")) == 2
    for number, row in table_rows(path, labels=read_lines(labels) if with_labels and labels else None):
        label = label_of(row["label"])
        if label is None:
            raise CorpusError(f"unknown label {row['label']!r}; correct it", file=path, line=number)
        yield _Line(number, row["premise"], row["hypothesis"], label)


def _cleaned(text: str) -> str:
    return text.replace(",", " ").replace('"', "")
