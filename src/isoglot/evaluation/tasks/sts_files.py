"""Pairs with gold scores in the files that similarity sets come in, each with a reader that says where it stumbles.

Special here: what is blank and what is wrong are told apart. A blank gold score means that nobody judged the pair, as
with most pairs of STS 2015 and 2016, and the pair is left out. Anything else that is no number of the set's scale, an
empty sentence, or a file that is longer than its partner is an error with file and line.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from isoglot.errors import EvaluationError
from isoglot.evaluation.exports import numbered_records
from isoglot.evaluation.files import lines, rows
from isoglot.evaluation.tasks.sts import Pairs

STS_SCALE = (0.0, 5.0)
SICK_SCALE = (1.0, 5.0)
ANY_SCALE = (-math.inf, math.inf)

Row = tuple[str, Any, Any, Any]  # place (file and line), sentence 1, sentence 2, gold score


def labelled(
    table: Iterable[Row],
    *,
    where: str,
    scale: tuple[float, float] = STS_SCALE,
    swap: bool = False,
    empty: bool = False,
    advice: str = "restore it",
) -> Pairs:
    """The pairs that have a gold score. `swap` puts the second sentence first; `empty` lets empty sentences pass.

    Raises `EvaluationError` for a score outside `scale` and for an empty sentence, the latter ending in `advice`.
    """
    kept: list[tuple[str, str, float, str]] = []
    for place, one, other, cell in table:
        gold = _gold(cell, f"{where}: {place}", scale)
        if gold is None:
            continue
        for number, text in enumerate((one, other), 1):
            if not isinstance(text, str) or not (empty or text.strip()):
                raise EvaluationError(f"{where}: {place}: sentence {number} is empty; {advice}")
        kept.append((other, one, gold, place) if swap else (one, other, gold, place))
    first, second, scores, places = zip(*kept, strict=True) if kept else ((), (), (), ())
    return Pairs((first, second), scores, places)


def read_two_files(
    sentences: Path, gold: Path, *, where: str, swap: bool = False, unlabelled_tail: bool = False
) -> Pairs:
    """SemEval and SentEval: pairs between tabs in one file, gold scores on the same lines of another.

    With `unlabelled_tail` the gold file may be the shorter one: its line i still belongs to line i.
    """
    pairs = list(rows(sentences, 2, where=where))
    scores = list(lines(gold, where=where, blank=True))
    if len(scores) > len(pairs) or (len(scores) < len(pairs) and not unlabelled_tail):
        raise EvaluationError(
            f"{where}: {sentences} has {len(pairs)} lines and {gold} has {len(scores)}, so from line "
            f"{min(len(pairs), len(scores)) + 1} on they do not belong together; fetch both files again"
        )
    table = [
        (f"{sentences}:{number}", one, other, _gold(score, f"{where}: {gold}:{number}", STS_SCALE))
        for number, ((one, other), score) in enumerate(zip(pairs, scores, strict=False), 1)
    ]
    return labelled(table, where=where, swap=swap)


def read_stsb(path: Path, *, where: str) -> Pairs:
    """STS benchmark as published: genre, file, year, id, score, sentence 1, sentence 2, then perhaps sources."""
    table = enumerate(rows(path, 7, where=where, at_least=True), 1)
    return labelled(((f"{path}:{number}", row[5], row[6], row[4]) for number, row in table), where=where)


def read_sick(path: Path, *, where: str) -> Pairs:
    """SICK as published for SemEval 2014: a header, and CR LF at the ends of lines."""
    table = rows(path, 5, where=where, carriage_returns=True, at_least=True)
    fields = ("sentence_A", "sentence_B", "relatedness_score")
    return labelled(_under_header(table, fields, path=path, where=where), where=where, scale=SICK_SCALE)


def read_tsv(path: Path, *, where: str, swap: bool = False) -> Pairs:
    """A table with the columns `sentence1`, `sentence2`, `score` (any finite numbers), others beside them allowed."""
    table = rows(path, 3, where=where, at_least=True)
    fields = ("sentence1", "sentence2", "score")
    return labelled(_under_header(table, fields, path=path, where=where), where=where, scale=ANY_SCALE, swap=swap)


def read_quoted(path: Path, *, where: str) -> Pairs:
    """The multilingual STS benchmark: sentence 1, sentence 2, score as quoted CSV without a header, CR LF or LF."""
    return labelled(_quoted(path, where), where=where)


def read_export(
    paths: Sequence[Path],
    *,
    where: str,
    scale: tuple[float, float] = STS_SCALE,
    swap: bool = False,
    empty: bool = False,
    advice: str = "restore it",
    gold: str = "score",
) -> Pairs:
    """Records with `sentence1`, `sentence2` and `gold`, as MTEB stores them. `empty` and `advice`: see `labelled`."""
    records = exported(paths, where=where, gold=gold)
    return labelled(records, where=where, scale=scale, swap=swap, empty=empty, advice=advice)


def exported(paths: Sequence[Path], *, where: str, gold: str = "score") -> Iterator[Row]:
    """The records of an export, unchecked but for their fields."""
    for path in paths:
        for number, record in numbered_records(path, ("sentence1", "sentence2", gold), where=where):
            yield f"{path}:{number}", record["sentence1"], record["sentence2"], record[gold]


def _under_header(table: Iterator[list[str]], fields: Sequence[str], *, path: Path, where: str) -> Iterator[Row]:
    header = [cell.strip() for cell in next(iter(islice(table, 1)), [])]
    missing = [name for name in fields if name not in header]
    if missing:
        raise EvaluationError(f"{where}: {path}:1: the header lacks {', '.join(missing)}; name the columns so")
    one, other, gold = (header.index(name) for name in fields)
    for number, cells in enumerate(table, 2):
        if len(cells) != len(header):
            raise EvaluationError(
                f"{where}: {path}:{number}: {len(cells)} cells between tabs where the header has {len(header)}; "
                "mend the line"
            )
        yield f"{path}:{number}", cells[one], cells[other], cells[gold]


def _quoted(path: Path, where: str) -> Iterator[Row]:
    reader = csv.reader(
        (f"{line}\n" for line in lines(path, where=where, carriage_returns=True, blank=True)), strict=True
    )
    try:
        for cells in reader:
            place = f"{path}:{reader.line_num}"
            if len(cells) != 3:
                raise EvaluationError(f"{where}: {place}: {len(cells)} cells where 3 are expected; mend the line")
            yield place, cells[0], cells[1], cells[2]
    except csv.Error as error:
        raise EvaluationError(f"{where}: {path}:{reader.line_num}: is no CSV ({error}); mend the line") from error


def _gold(cell: Any, place: str, scale: tuple[float, float]) -> float | None:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        gold = float(cell)
    except (TypeError, ValueError):
        gold = math.nan
    if not math.isfinite(gold) or not scale[0] <= gold <= scale[1]:
        kind = "finite number" if scale == ANY_SCALE else f"number from {scale[0]:g} to {scale[1]:g}"
        raise EvaluationError(f"{place}: the score {cell!r} is no {kind}; mend it, or leave it blank")
    return gold
