"""Reading test sets: finding files in the layouts people have, with errors that name task, language and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from isoglot.data.files import COMPRESSED, read_blocks, read_lines
from isoglot.errors import CorpusError, EvaluationError


def find(data: Path, places: Sequence[str], name: str) -> Path | None:
    """The file (or folder) `name`, plain or compressed, in the first of the `places` below `data` that has it.

    A place is a relative folder, `""` being `data` itself.
    """
    paths = (data / place / f"{name}{ending}" for place in places for ending in ("", *COMPRESSED))
    return next((path for path in paths if path.exists()), None)


def lines(path: Path, *, where: str, carriage_returns: bool = False, blank: bool = False) -> Iterator[str]:
    """The lines of a text file. `where` (task, subset, language) opens the message of what is wrong.

    Raises `EvaluationError` for a file that cannot be read, a blank line unless `blank`, and a carriage return unless
    `carriage_returns`: another copy of the data may then differ in more than its line ends.
    """
    try:
        if not carriage_returns:
            _refuse_carriage_returns(path, where)
        for number, text in read_lines(path):
            if not blank and not text.strip():
                raise EvaluationError(f"{where}: {path}:{number}: the line is empty; restore it")
            yield text
    except CorpusError as error:
        raise EvaluationError(f"{where}: {error}") from error


def rows(
    path: Path, columns: int, *, where: str, carriage_returns: bool = False, at_least: bool = False
) -> Iterator[list[str]]:
    """The lines of a file cut at tabs, no quoting. Raises `EvaluationError` for another number of cells, see `lines`.

    With `at_least` further cells may follow.
    """
    for number, line in enumerate(lines(path, where=where, carriage_returns=carriage_returns, blank=True), 1):
        cells = line.split("\t")
        if len(cells) < columns or (len(cells) > columns and not at_least):
            raise EvaluationError(
                f"{where}: {path}:{number}: {len(cells)} cells between tabs where {columns} are expected; mend the line"
            )
        yield cells


def _refuse_carriage_returns(path: Path, where: str) -> None:
    number = 0
    for block in read_blocks(path):
        if (at := block.find(b"\r")) >= 0:
            line = number + block.count(b"\n", 0, at) + 1
            raise EvaluationError(f"{where}: {path}:{line}: holds a carriage return; convert the file with dos2unix")
        number += block.count(b"\n")
