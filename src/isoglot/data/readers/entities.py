"""Sentences and the entities they link to, the folder that `isoglot wikipedia` writes.

    sentences.jsonl  {"text": "...", "lang": "deu", "entity": "Q64", "hard": ["Q90", ...], "page": ..., ...} a line
    entities.tsv     id TAB number of links TAB label; an entity's row is its line, counted from 0

The hard entities of an instance are candidates; a few of them are sampled by a hash of seed and line, the same in every
epoch, as EASE does (Nishikawa et al. 2022, section 3.2). Groups refer to entities by their rows in the table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from isoglot.core.errors import CorpusError
from isoglot.data.files import locate, read_lines
from isoglot.data.formats import read_records
from isoglot.data.groups import Group
from isoglot.data.languages import OnUnknown, canonical_or_skip

SENTENCES, TABLE = "sentences.jsonl", "entities.tsv"
NONE = -1  # instead of a hard entity that an instance does not have


def read_entities(
    path: str | Path,
    *,
    hard: int = 1,
    seed: int = 0,
    on_unknown_language: OnUnknown = "error",
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """One group of one sentence per line, with the extras `entity` and `hard_entities` (a tuple of `hard` rows or -1).

    `path` is the folder, in which the sentences may be compressed. With `hard = 0` there is no column of hard entities.
    With `on_unknown_language = "skip"`, sentences in a language that is not known are left out and counted. Kept in
    memory: the ids of the table. Raises `CorpusError` for a file instead of the folder, for a missing table, a
    line that is not such an object, and an id that the table has not.
    """
    if not 0 <= hard <= 1024:
        raise CorpusError(f"hard must be 0 to 1024 hard entities of an instance, not {hard}", file=path)
    if Path(path).is_file():  # the path of the folder makes a run depend on the table too
        raise CorpusError("the reader `entities` needs the folder that contains this file", file=path)
    file = locate(Path(path), SENTENCES) or Path(path) / SENTENCES
    rows: dict[str, int] = {}
    skipped = (Counter() if counts is None else counts) if on_unknown_language == "skip" else None
    for number, item in read_records(file):
        rows = rows or {name: row for row, (name, _, _) in enumerate(read_table(file.parent / TABLE))}
        _check(item, file, number)
        extras: dict[str, float | tuple[float, ...]] = {"entity": _row(item["entity"], rows, file, number)}
        if hard:
            chance = Random(f"{seed} {number}")  # a text, so that it is hashed and the same everywhere
            drawn = chance.sample(item["hard"], min(hard, len(item["hard"])))
            hard_rows = [_row(name, rows, file, number) for name in drawn]
            extras["hard_entities"] = (*hard_rows, *[NONE] * (hard - len(hard_rows)))
        if language := canonical_or_skip(item["lang"], skipped, file=file, line=number):
            yield Group((item["text"],), (language,), extras=extras)


def read_table(path: Path) -> Iterator[tuple[str, int, str]]:
    """Id, number of links and label of each entity, in the order of their rows.

    Raises `CorpusError` for a file that is missing, a line of other cells, or an id that comes twice.
    """
    names: set[str] = set()
    for number, text in read_lines(path):
        cells = text.split("\t")
        if len(cells) != 3 or not cells[0] or not re.fullmatch("[0-9]{1,18}", cells[1]):
            raise CorpusError("a line must be: id, tab, number of links, tab, label", file=path, line=number)
        if cells[0] in names:
            raise CorpusError(f"duplicate entity {cells[0]!r}; remove one of the lines", file=path, line=number)
        names.add(cells[0])
        yield cells[0], int(cells[1]), cells[2]


def _check(item: dict[str, Any], file: Path, number: int) -> None:
    """Check the four names of an instance, of which `hard` may be missing."""
    item.setdefault("hard", [])
    for name in ("text", "lang", "entity"):
        if not isinstance(item.get(name), str) or not item[name].strip():
            problem = f"{name!r} must be a non-blank string, not {item.get(name)!r}"
            raise CorpusError(f"{problem}; is this a file of `isoglot wikipedia`?", file=file, line=number)
    if not isinstance(item["hard"], list) or not all(isinstance(name, str) for name in item["hard"]):
        raise CorpusError(f"'hard' must be a list of ids, not {item['hard']!r}", file=file, line=number)


def _row(name: str, rows: dict[str, int], file: Path, number: int) -> int:
    if name not in rows:
        problem = f"the entity {name!r} is not in {TABLE}; write both files again with `isoglot wikipedia`"
        raise CorpusError(problem, file=file, line=number)
    return rows[name]
