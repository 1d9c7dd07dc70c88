"""Tatoeba: find the English translation of a sentence among 100 to 1000 others, and back, in 112 languages.

The test of LASER (Artetxe and Schwenk 2019, "Massively Multilingual Sentence Embeddings for Zero-Shot Cross-Lingual
Transfer and Beyond"), in the protocol of XTREME: plain cosine, one nearest neighbour, no margin, told by line number.
Published numbers differ in direction, so all three are always given: foreign to English (`accuracy/xx-en`, as MTEB
does), English to foreign (`accuracy/en-xx`, as XTREME's script does) and their mean (as EASE and mSimCSE do). Each
language is divided by its own number of pairs, which is below 1000 for 40 of them. The worst mistakes of a direction
are the detail of its score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode, Metric, Score, averages
from isoglot.evaluation.codes import among
from isoglot.evaluation.exports import export, numbered_records, subsets
from isoglot.evaluation.files import lines
from isoglot.evaluation.tasks.retrieval import Place, accuracies, nearest, tell_repeated


def _codes(text: str) -> tuple[str, ...]:
    return tuple(text.split())


XTREME_14 = _codes("ara bul cmn deu ell fra hin rus spa swh tha tur urd vie")
XTREME_36 = _codes(
    "afr ara ben bul cmn deu ell est eus fin fra heb hin hun ind ita jav jpn kat kaz kor mal mar nld pes por rus spa "
    "swh tam tel tgl tha tur urd vie"
)
LASER_112 = _codes(
    "afr amh ang ara arq arz ast awa aze bel ben ber bos bre bul cat cbk ceb ces cha cmn cor csb cym dan deu dsb dtp "
    "ell epo est eus fao fin fra fry gla gle glg gsw heb hin hrv hsb hun hye ido ile ina ind isl ita jav jpn kab kat "
    "kaz khm kor kur kzj lat lfn lit lvs mal mar max mhr mkd mon nds nld nno nob nov oci orv pam pes pms pol por ron "
    "rus slk slv spa sqi srp swe swg swh tam tat tel tgl tha tuk tur tzl uig ukr urd uzb vie war wuu xho yid yue "
    "zsm"
)
AVERAGES = {"xtreme-14": XTREME_14, "xtreme-36": XTREME_36, "laser-112": LASER_112}

# Reads a language: the two sides of its pairs, foreign first, and where each row of them stands.
Read = Callable[[], tuple[tuple[list[str], list[str]], tuple[Place, Place]]]

_LAYOUTS = ("tatoeba-laser/v1", "tatoeba-laser", "", "v1", "tatoeba", "tatoeba/v1", "data/tatoeba/v1")
_EXPORT = ("tatoeba-bitext-mining", "Tatoeba")
_NAME = re.compile(r"tatoeba\.(?P<code>[^.]+)-eng\.(?P<side>[^.]+)(?:\.(?:gz|xz|bz2))?")


@dataclass(frozen=True, slots=True)
class Tatoeba:
    """The task `tatoeba`. Subsets are named by the codes of the files: `kor-eng`, `cmn-eng`."""

    metrics: ClassVar[tuple[Metric, ...]] = (*accuracies("xx", "en"), Metric("f1/xx-en"))
    name: str = "tatoeba"

    @property
    def needs(self) -> str:
        """The files of one language, and where they are published."""
        return (
            "files tatoeba.<xxx>-eng.<xxx> and tatoeba.<xxx>-eng.eng (plain, .gz or .xz), as in data/tatoeba/v1 of "
            "https://github.com/facebookresearch/LASER, or https://huggingface.co/datasets/mteb/tatoeba-bitext-mining "
            "in a folder tatoeba-bitext-mining"
        )

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages found in the folder, or in a folder below it that LASER's layouts name, or else MTEB's."""
        return tuple(f"{code}-eng" for code in find(data, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Three accuracies of each language, then the averages all of whose languages are there, and the `mean`."""
        scores: list[Score] = []
        for code, read in find(data, languages).items():
            sides, places = read()
            pair = code, "eng"
            for side, language, place in zip(sides, pair, places, strict=True):
                tell_repeated(side, where=f"{self.name} {code}-eng, language {language}", place=place)
            scores += nearest(encode, sides, task=self.name, languages=pair, names=("xx", "en"), places=places, f1=True)
        means = [averages(scores, name, over=[f"{code}-eng" for code in codes]) for name, codes in AVERAGES.items()]
        return [*scores, *(score for mean in means for score in mean), *averages(scores, "mean")]


def find(data: Path, languages: Sequence[str]) -> dict[str, Read]:
    """How to read each of the wanted languages, in the order of their codes."""
    found: dict[str, Read] = {code: partial(_read_files, code, files) for code, files in _files(data).items()}
    for subset in () if found else subsets(data, _EXPORT, split="test", pattern="[a-z]{3}-eng"):
        found[subset[:3]] = partial(_read_export, subset, export(data, _EXPORT, split="test", subset=subset))
    return {code: found[code] for code in sorted(found) if among(code, languages)}


def _files(data: Path) -> dict[str, dict[str, Path]]:
    """LASER's files: code -> side -> path."""
    for layout in _LAYOUTS:
        found: dict[str, dict[str, Path]] = {}
        # Reversed, so that of one text stored both ways the plain file, which sorts first, is the one kept.
        for path in sorted((data / layout).glob("tatoeba.*"), reverse=True):
            if name := _NAME.fullmatch(path.name):
                found.setdefault(name["code"], {})[name["side"]] = path
        if found:
            return found
    return {}


def _place(path: Path) -> Place:
    return lambda row: f"{path}:{row + 1}"


def _read_files(code: str, files: dict[str, Path]) -> tuple[tuple[list[str], list[str]], tuple[Place, Place]]:
    subset = f"{code}-eng"
    for side in (code, "eng"):
        if side not in files:
            there = next(iter(files.values()))
            raise EvaluationError(f"tatoeba {subset}: {there} has no partner tatoeba.{subset}.{side}; add that file")
    foreign, english = ([*lines(files[side], where=f"tatoeba {subset}, language {side}")] for side in (code, "eng"))
    if len(foreign) != len(english):
        raise EvaluationError(
            f"tatoeba {subset}: {files[code]} has {len(foreign)} lines and {files['eng']} has {len(english)}, so from "
            f"line {min(len(foreign), len(english)) + 1} on they are no pairs; fetch both files again"
        )
    return (foreign, english), (_place(files[code]), _place(files["eng"]))


def _read_export(subset: str, paths: Sequence[Path]) -> tuple[tuple[list[str], list[str]], tuple[Place, Place]]:
    """MTEB's copy, whose sentences end in a line feed each."""
    sides: tuple[list[str], list[str]] = ([], [])
    places: list[str] = []
    for path in paths:
        fields = ("sentence1", "sentence2")
        for number, record in numbered_records(path, fields, where=f"tatoeba {subset}"):
            places.append(f"{path}:{number}")
            for side, field in zip(sides, fields, strict=True):
                if not isinstance(record[field], str) or not record[field].strip():
                    raise EvaluationError(f"tatoeba {subset}: {places[-1]}: {field} is empty; export the set again")
                side.append(record[field].rstrip("\r\n"))
    if not places:
        raise EvaluationError(f"tatoeba {subset}: {paths[0]}: has no pair; export the set again")
    return sides, (places.__getitem__, places.__getitem__)
