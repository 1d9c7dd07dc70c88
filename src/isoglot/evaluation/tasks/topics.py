"""Sets of texts with a topic each, in the layouts people have: MTOP, SIB-200 and MLDoc.

A set knows where its files are and what a row means, and nothing about protocols: `few_shot.py` and `zero_shot.py` use
them. Splits are called `train`, `dev` and `test` in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from isoglot.errors import EvaluationError
from isoglot.evaluation.exports import export, numbered_records, subsets
from isoglot.evaluation.files import find, rows
from isoglot.evaluation.tasks import sib
from isoglot.evaluation.tasks.classification import Examples, Label

Row = tuple[str, Label, str]  # text, label, place


class TopicSet(Protocol):
    """Labelled texts in several languages, one of them (`pivot`) being the one that others are trained on.

    `averages` are means that the papers report, with the languages they are over.
    """

    @property
    def pivot(self) -> str:
        """The code of English in the set."""
        ...

    @property
    def averages(self) -> Mapping[str, tuple[str, ...]]:
        """Name of each average -> its languages."""
        ...

    @property
    def needs(self) -> str:
        """Which files are looked for and where they come from."""
        ...

    def languages(self, data: Path, split: str) -> tuple[str, ...]:
        """The codes of the languages that have the split, sorted."""
        ...

    def read(self, data: Path, code: str, *, split: str, where: str) -> Examples:
        """The examples of a split, in the order of the files. Raises `EvaluationError` with file and line."""
        ...


@dataclass(frozen=True, slots=True)
class Mtop:
    """The domains of MTOP (Li et al. 2021) as MTEB has them: 11 labels, six languages, JSON lines or Parquet."""

    pivot: str = "en"
    averages: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"mtop-6": ("de", "en", "es", "fr", "hi", "th")}
    )

    @property
    def needs(self) -> str:
        """The export of one language."""
        return (
            "a folder mtop_domain with <language>/train.jsonl and <language>/test.jsonl (or .jsonl.gz, .parquet), as "
            "in the set mteb/mtop_domain of the Hugging Face hub"
        )

    def languages(self, data: Path, split: str) -> tuple[str, ...]:
        """The languages of the set that have the split."""
        return tuple(code for code in self.averages["mtop-6"] if self._files(data, code, split))

    def read(self, data: Path, code: str, *, split: str, where: str) -> Examples:
        """Fields `text` and `label`, a number; `label_text`, where it is there, is the label's name."""
        found: list[Row] = []
        names: dict[Label, str] = {}
        for path in self._files(data, code, split):
            for number, record in numbered_records(path, ("text", "label"), where=where):
                text, label, place = record["text"], record["label"], f"{path}:{number}"
                if not isinstance(label, int) or not isinstance(text, str):
                    raise EvaluationError(
                        f"{where}: {place}: text {text!r} with label {label!r} is no text with a number; mend it"
                    )
                found.append((text, label, place))
                names.setdefault(record["label"], str(record.get("label_text", record["label"])))
        return _examples(found, where=where, missing=f"{data} has no {split} split for {code}", names=names)

    def _files(self, data: Path, code: str, split: str) -> list[Path]:
        return _exported(data, ("MTOPDomainClassification", "mtop_domain", "mtop"), split=split, code=code)


@dataclass(frozen=True, slots=True)
class Sib200:
    """SIB-200 (Adelani et al. 2024): 7 topics of FLORES-200 sentences, tab-separated with CSV quotes and a header.

    Or MTEB's copy of it, JSON lines or Parquet.
    """

    pivot: str = "eng_Latn"
    averages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def needs(self) -> str:
        """The files of one language."""
        return (
            "files <xxx_Xxxx>/train.tsv, dev.tsv and test.tsv (plain, .gz or .xz), as in data/annotated of "
            "https://github.com/dadelani/sib-200, or https://huggingface.co/datasets/mteb/sib200 in a folder sib200"
        )

    def languages(self, data: Path, split: str) -> tuple[str, ...]:
        """The folders with the split, in the first layout that has any."""
        for place in sib.PLACES:
            folders = {path.parent.name for path in (data / place).glob(f"*_*/{split}.tsv*")}
            if codes := sorted(folder for folder in folders if re.fullmatch(_SIB_CODE, folder)):
                return tuple(codes)
        named = (subsets(data, _SIB_EXPORT, split=name, pattern=_SIB_CODE) for name in _names(split))
        return next(filter(None, named), ())

    def read(self, data: Path, code: str, *, split: str, where: str) -> Examples:
        """Columns `category` and `text`."""
        path = find(data, [f"{place}/{code}".strip("/") for place in sib.PLACES], f"{split}.tsv")
        if path is None:
            found = self._records(data, code, split, where)
        else:
            found = ((row.text, row.category, f"{path}:{row.line}") for row in sib.read_table(path, where=where))
        return _examples(found, where=where, missing=f"{data} has no {split} split for {code}")

    def _records(self, data: Path, code: str, split: str, where: str) -> Iterator[Row]:
        for path in _exported(data, _SIB_EXPORT, split=split, code=code):
            for number, record in numbered_records(path, ("text", "category"), where=where):
                text, label, place = record["text"], record["category"], f"{path}:{number}"
                if not isinstance(label, str) or not isinstance(text, str):
                    raise EvaluationError(f"{where}: {place}: text {text!r} has the category {label!r}; mend it")
                yield text, label, place


@dataclass(frozen=True, slots=True)
class Mldoc:
    """MLDoc (Schwenk and Li 2018): news in four classes, eight languages, lines `label TAB text`."""

    pivot: str = "eng"
    averages: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"mldoc-7": ("deu", "fra", "ita", "jpn", "rus", "spa", "zho")}
    )

    @property
    def needs(self) -> str:
        """The files of one language."""
        return (
            "files english.train.1000, english.dev and <language>.test of MLDoc, made with "
            "https://github.com/facebookresearch/MLDoc from the RCV1 and RCV2 news of NIST"
        )

    def languages(self, data: Path, split: str) -> tuple[str, ...]:
        """The languages of the set that have the split, as codes of ISO 639-3."""
        return tuple(code for code in _MLDOC if self._file(data, code, split))

    def read(self, data: Path, code: str, *, split: str, where: str) -> Examples:
        """Lines of one of the labels CCAT, ECAT, GCAT, MCAT, a tab and the text."""
        path = self._file(data, code, split)
        found: list[Row] = []
        for number, (label, text) in enumerate(rows(path, 2, where=where) if path else (), 1):
            if label not in ("CCAT", "ECAT", "GCAT", "MCAT"):
                raise EvaluationError(
                    f"{where}: {path}:{number}: {label!r} is none of CCAT, ECAT, GCAT, MCAT; mend the label"
                )
            found.append((text, label, f"{path}:{number}"))
        return _examples(found, where=where, missing=f"{data} has no {_MLDOC[code]} {split} file")

    def _file(self, data: Path, code: str, split: str) -> Path | None:
        name = f"{_MLDOC[code]}.{'train.1000' if split == 'train' else split}"
        return find(data, ("mldoc", "", "MLDoc", "data"), name)


_SIB_CODE = "[a-z]{3}_[A-Z][a-z]{3}"
_SIB_EXPORT = ("sib200", "SIB200Classification")
_MLDOC = {
    **{"deu": "german", "eng": "english", "fra": "french", "ita": "italian"},
    **{"jpn": "japanese", "rus": "russian", "spa": "spanish", "zho": "chinese"},
}


def _exported(data: Path, folders: Sequence[str], *, split: str, code: str) -> list[Path]:
    return next((files for name in _names(split) if (files := export(data, folders, split=name, subset=code))), [])


def _names(split: str) -> tuple[str, ...]:
    """What a split is called in exports."""
    return ("validation", "dev") if split == "dev" else (split,)


def _examples(found: Iterable[Row], *, where: str, missing: str, names: Mapping[Label, str] | None = None) -> Examples:
    table = list(found)
    if not table:
        raise EvaluationError(f"{where}: {missing}; add that file")
    for text, label, place in table:
        if not text.strip() or label == "":
            raise EvaluationError(f"{where}: {place}: the {'label' if text.strip() else 'text'} is empty; restore it")
    texts, labels, places = zip(*table, strict=True)
    return Examples(texts, labels, places, names or {})
