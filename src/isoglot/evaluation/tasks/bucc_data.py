"""The comparable corpora of BUCC 2018 on disk: two languages of sentences with ids, and the pairs of ids that are gold.

What is special here: XTREME renamed the splits of BUCC (Zweigenbaum, Sharoff and Rapp 2018, "Overview of the Third BUCC
Shared Task"), `sample` to `dev` and `training` to `test`, and publishes no gold of `test`. Here the names of BUCC are
used for both. What is there is told by the gold files, since text without gold cannot be scored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isoglot.errors import EvaluationError
from isoglot.evaluation.codes import among
from isoglot.evaluation.files import find, rows

SAMPLE, TRAINING = "sample", "training"

_SPLITS = {"sample": SAMPLE, "dev": SAMPLE, "training": TRAINING, "test": TRAINING}
_PLACES = ("bucc2018", "xtreme-bucc2018", "", "bucc", "data/bucc2018", "download/bucc2018")
_GOLD = re.compile(rf"(?P<pair>(?P<code>[^-.]+)-en)\.(?P<split>{'|'.join(_SPLITS)})\.gold(?:\.(?:gz|xz|bz2))?")


@dataclass(frozen=True, slots=True)
class Side:
    """The sentences of one language: `ids[i]` and `texts[i]` stand in line i + 1 of `path`."""

    language: str
    path: Path
    ids: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """One split of a pair of languages. `gold` are rows (source, target), each pair once, in the order of its file.

    `name` is the split's name in the files; `where` (task, subset) opens the messages of what is wrong.
    """

    name: str
    where: str
    source: Side
    target: Side
    gold: tuple[tuple[int, int], ...]


def golds(data: Path, splits: Sequence[str], *, languages: Sequence[str] = ()) -> dict[str, dict[str, Path]]:
    """The gold files of the pairs (`zh-en`) that have one for each of the splits: pair -> split -> path, in order."""
    found: dict[str, dict[str, Path]] = {}
    for place in _PLACES:
        for path in sorted([*(data / place).glob("*-en.*.gold*"), *(data / place).glob("*-en/*-en.*.gold*")]):
            name = _GOLD.fullmatch(path.name)
            if name and among(name["code"], languages):
                # The first place that has it wins, and there the plain file, which sorts before a compressed one.
                found.setdefault(name["pair"], {}).setdefault(_SPLITS[name["split"]], path)
    return {pair: paths for pair, paths in sorted(found.items()) if set(splits) <= set(paths)}


def load(gold: Path, *, task: str) -> Split:
    """The split that a gold file belongs to; its sentences lie beside it.

    Raises `EvaluationError` naming task, pair, file and line: a missing file, another number of cells than two, an id
    that stands twice, an empty sentence, a carriage return, an id in gold that no sentence has.
    """
    name = _GOLD.fullmatch(gold.name)
    assert name is not None  # `golds` gives no others
    where, stem = f"{task} {name['pair']}", f"{name['pair']}.{name['split']}"
    sides = []
    for language in (name["code"], "en"):
        path = find(gold.parent, ("",), f"{stem}.{language}")
        if path is None:
            raise EvaluationError(f"{where}: {gold} has no partner {stem}.{language}; add that file")
        sides.append(_side(path, language, f"{where}, language {language}"))
    return Split(name["split"], where, sides[0], sides[1], _pairs(gold, sides, where))


def _side(path: Path, language: str, where: str) -> Side:
    lines: dict[str, int] = {}
    texts = []
    for number, (key, text) in enumerate(rows(path, 2, where=where), 1):
        if not key.strip() or not text.strip():
            raise EvaluationError(f"{where}: {path}:{number}: the id or the sentence is empty; restore it")
        if lines.setdefault(key, number) != number:
            raise EvaluationError(
                f"{where}: {path}:{number}: the id {key!r} stands in line {lines[key]} already; make ids unique"
            )
        texts.append(text)
    return Side(language, path, tuple(lines), tuple(texts))


def _pairs(gold: Path, sides: Sequence[Side], where: str) -> tuple[tuple[int, int], ...]:
    places = [{key: row for row, key in enumerate(side.ids)} for side in sides]
    pairs: dict[tuple[int, int], None] = {}
    for number, keys in enumerate(rows(gold, 2, where=where), 1):
        for key, side, place in zip(keys, sides, places, strict=True):
            if key not in place:
                raise EvaluationError(
                    f"{where}: {gold}:{number}: the id {key!r} is not in {side.path}; use files of one release"
                )
        pairs[places[0][keys[0]], places[1][keys[1]]] = None
    return tuple(pairs)
