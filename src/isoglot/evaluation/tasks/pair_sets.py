"""Sets of sentence pairs with a label each, as XTREME and their makers store them: XNLI and PAWS-X.

The same split of a set may lie about with its labels in a third column, in a file beside it, or behind a header; a
test split without any labels is no test split here, and labels of one language are never lent to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from isoglot.errors import EvaluationError
from isoglot.evaluation.files import find, lines, rows

_HEADER = ["id", "sentence1", "sentence2", "label"]
Cells = tuple[str, str, str, str]  # first, second, label, place


@dataclass(frozen=True, slots=True)
class Pairs:
    """N pairs of sentences, the label of each, and where each was read (`file:line`)."""

    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    labels: tuple[str, ...]
    places: tuple[str, ...]


class PairSet(Protocol):
    """Labelled pairs in several languages, English being the one that is learnt from. `averages` are the papers'."""

    @property
    def averages(self) -> Mapping[str, tuple[str, ...]]:
        """Name of each average -> its languages."""
        ...

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels, sorted."""
        ...

    @property
    def needs(self) -> str:
        """Which files are looked for and where they come from."""
        ...

    def languages(self, data: Path, split: str) -> tuple[str, ...]:
        """The codes of the languages that have the split with labels, sorted."""
        ...

    def read(self, data: Path, code: str, *, split: str, where: str) -> Pairs:
        """The pairs of a split, in the order of the file. Raises `EvaluationError` with file and line."""
        ...


@dataclass(frozen=True, slots=True)
class Xnli:
    """XNLI (Conneau et al. 2018) as XTREME stores it, 15 languages whose rows are aligned."""

    averages: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"xtreme-15": tuple(_XNLI.split())})
    classes: tuple[str, ...] = ("contradiction", "entailment", "neutral")

    @property
    def needs(self) -> str:
        """The files of one language."""
        return (
            "files dev-<xx>.tsv and test-<xx>.tsv of XNLI in the layout of XTREME (premise, hypothesis, label), or "
            "without the label and with labels.test.txt beside them"
        )

    def languages(self, data: Path, split: str) -> tuple[str, ...]:
        """The languages with a file of the split and labels for it."""
        found = ((code, self.file(data, code, split)) for code in _XNLI.split())
        return tuple(code for code, path in found if path and (_labelled(path) or self._labels(path, split)))

    def file(self, data: Path, code: str, split: str) -> Path | None:
        """The file of a split, with labels or without."""
        return find(data, ("xtreme-xnli", "xnli", "XNLI", "xtreme/xnli", ""), f"{split}-{code}.tsv")

    def read(self, data: Path, code: str, *, split: str, where: str) -> Pairs:
        """Premises, hypotheses and labels."""
        path = self.file(data, code, split)
        if path is None:
            raise EvaluationError(f"{where}: {data} has no {split}-{code}.tsv of XNLI; add that file")
        beside = self._labels(path, split) if _width(path, where) == 2 else None
        return _pairs(_beside(path, beside, where) if beside else _columns(path, where), self.classes, where=where)

    def _labels(self, path: Path, split: str) -> Path | None:
        return find(path.parent, ("",), f"labels.{split}.txt")


@dataclass(frozen=True, slots=True)
class PawsX:
    """PAWS-X (Yang et al. 2019): paraphrase or not, 7 languages; the layouts of XTREME and of the original."""

    averages: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"xtreme-7": tuple(_PAWSX.split())})
    classes: tuple[str, ...] = ("0", "1")

    @property
    def needs(self) -> str:
        """The files of one language."""
        return (
            "files dev-en.tsv and test-<xx>.tsv of PAWS-X in the layout of XTREME with a label in the third column, or "
            "gold/test.<xx>.tsv, or x-final/<xx>/dev_2k.tsv and test_2k.tsv as in https://github.com/google-research-datasets/paws"
        )

    def languages(self, data: Path, split: str) -> tuple[str, ...]:
        """The languages with a file of the split that has labels."""
        return tuple(code for code in _PAWSX.split() if self._file(data, code, split))

    def read(self, data: Path, code: str, *, split: str, where: str) -> Pairs:
        """Both sentences and the label 0 or 1."""
        path = self._file(data, code, split)
        if path is None:
            raise EvaluationError(f"{where}: {data} has no labelled {split} split of PAWS-X for {code}; add that file")
        return _pairs(_columns(path, where), self.classes, where=where)

    def _file(self, data: Path, code: str, split: str) -> Path | None:
        original = {"train": "train", "dev": "dev_2k", "test": "test_2k"}[split]
        for place in ("pawsx", "xtreme-pawsx", "x-final", "paws-x", "xtreme/pawsx", ""):
            for name in (f"{split}-{code}.tsv", f"gold/{split}.{code}.tsv", f"{code}/{original}.tsv"):
                path = find(data, (place,), name)
                if path is not None and _labelled(path):
                    return path
        return None


_XNLI = "ar bg de el en es fr hi ru sw th tr ur vi zh"
_PAWSX = "de en es fr ja ko zh"


def _labelled(path: Path) -> bool:
    """Whether the first line has room for a label. A file that cannot be read counts: reading it says what is wrong."""
    try:
        return _width(path, "") > 2
    except EvaluationError:
        return True


def _width(path: Path, where: str) -> int:
    """The number of cells of a file's first line."""
    return len(next(lines(path, where=where, carriage_returns=True, blank=True), "").split("\t"))


def _columns(path: Path, where: str) -> Iterator[Cells]:
    """Rows of a file whose label is the third column, or that has the header of PAWS-X."""
    width = _width(path, where)
    for number, cells in enumerate(rows(path, width, where=where), 1):
        if width == 3:
            yield cells[0], cells[1], cells[2], f"{path}:{number}"
        elif number > 1:
            yield cells[1], cells[2], cells[3], f"{path}:{number}"
        elif cells != _HEADER:
            raise EvaluationError(
                f"{where}: {path}:1: expected two sentences and a label, or the header {' '.join(_HEADER)}, got {cells}"
            )


def _beside(path: Path, labels: Path, where: str) -> Iterator[Cells]:
    """Rows of two sentences, their labels in another file."""
    table, beside = list(rows(path, 2, where=where)), list(lines(labels, where=where))
    if len(table) != len(beside):
        raise EvaluationError(
            f"{where}: {path} has {len(table)} lines and {labels} has {len(beside)}, so from line "
            f"{min(len(table), len(beside)) + 1} on they do not belong together; fetch both files again"
        )
    for number, ((first, second), label) in enumerate(zip(table, beside, strict=True), 1):
        yield first, second, label, f"{path}:{number}"


def _pairs(found: Iterator[Cells], classes: tuple[str, ...], *, where: str) -> Pairs:
    table = list(found)
    for first, second, label, place in table:
        if not first.strip() or not second.strip():
            raise EvaluationError(f"{where}: {place}: a sentence is empty; restore it")
        if label not in classes:
            raise EvaluationError(f"{where}: {place}: the label {label!r} is none of {', '.join(classes)}; mend it")
    if not table:
        raise EvaluationError(f"{where}: there is no pair; fetch the file again")
    return Pairs(*zip(*table, strict=True))
