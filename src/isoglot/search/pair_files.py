"""Mined pairs as files: tab-separated, TMX, or two files whose lines belong together (Moses). All appear whole.

Characters that would break a format become blanks: tabs and carriage returns everywhere, in TMX also the control
characters that XML forbids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from langcodes import standardize_tag

from isoglot.data.files import atomic_write, read_lines
from isoglot.data.languages import canonical, is_language
from isoglot.data.numbers import shown, whole
from isoglot.data.readers.aligned import split_name
from isoglot.errors import CorpusError
from isoglot.search.lines import ABSENT, Lines
from isoglot.search.mining import Pairs

_BREAKS = re.compile(r"[\t\r\n]")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
<header creationtool="isoglot" creationtoolversion="1" segtype="sentence" o-tmf="tsv" adminlang="en" \
srclang={source} datatype="plaintext"/>
<body>
"""


class Row(NamedTuple):
    """One pair as it is written."""

    score: float
    ids: tuple[str, str]
    texts: tuple[str, str]


def rows_of(pairs: Pairs, x: Lines, y: Lines) -> Iterator[Row]:
    """The pairs with their sentences and ids, best first."""
    for source, target, score in zip(pairs.source.tolist(), pairs.target.tolist(), pairs.score.tolist(), strict=True):
        texts = _BREAKS.sub(" ", x[source]), _BREAKS.sub(" ", y[target])
        yield Row(score, (x.name(source), y.name(target)), texts)


def format_of(path: Path) -> str:
    """`tmx` for a name that ends so, `moses` for one that ends with two languages (`news.de-en`), else `tsv`."""
    if path.suffix == ".tmx":
        return "tmx"
    parts = path.name.rpartition(".")[2].split("-")
    return "moses" if len(parts) == 2 and all(map(is_language, parts)) else "tsv"


def languages_of(output: Path, form: str, files: Sequence[Path]) -> tuple[str, str] | None:
    """The languages that a Moses name or the names of the files mined tell, as written there; None if they do not."""
    if form == "moses" and format_of(output) == "moses":
        first, _, second = output.name.rpartition(".")[2].partition("-")
        return first, second
    codes = [split_name(file.name)[1] for file in files]
    return (codes[0], codes[-1]) if codes[0] and codes[-1] else None


def write_tsv(
    path: Path,
    rows: Iterator[Row],
    *,
    languages: tuple[str, str] | None,  # noqa: ARG001 - all writers are called alike
    ids: bool,
) -> None:
    """Score, source and target; with `ids`, the two ids come after the score."""
    with atomic_write(path) as stream:
        for row in rows:
            cells = [f"{row.score:.6f}", *(row.ids if ids else ()), *row.texts]
            stream.write("\t".join(cells) + "\n")


def write_tmx(path: Path, rows: Iterator[Row], *, languages: tuple[str, str] | None, ids: bool) -> None:
    """TMX 1.4: a unit for each pair, its score as a property, with `ids` also its ids."""
    tags = [standardize_tag(canonical(code)) for code in languages or ()]
    with atomic_write(path) as stream:
        stream.write(_HEADER.format(source=quoteattr(tags[0])))
        for row in rows:
            stream.write(f'<tu><prop type="score">{row.score:.6f}</prop>')
            for name, value in zip(("source-id", "target-id"), row.ids if ids else (), strict=False):
                stream.write(f'<prop type="{name}">{_xml(value)}</prop>')
            for tag, text in zip(tags, row.texts, strict=True):
                stream.write(f"<tuv xml:lang={quoteattr(tag)}><seg>{_xml(text)}</seg></tuv>")
            stream.write("</tu>\n")
        stream.write("</body>\n</tmx>\n")


def write_moses(path: Path, rows: Iterator[Row], *, languages: tuple[str, str] | None, ids: bool) -> None:
    """`PATH.<source>` and `PATH.<target>`, line by line, and `PATH.scores`; with `ids` also `PATH.ids`."""
    names = [*(languages or ()), "scores", *(["ids"] if ids else [])]
    with ExitStack() as stack:
        streams = [stack.enter_context(atomic_write(path.with_name(f"{path.name}.{name}"))) for name in names]
        for row in rows:
            cells = [*row.texts, f"{row.score:.6f}", "\t".join(row.ids)]
            for stream, cell in zip(streams, cells, strict=False):
                stream.write(cell + "\n")


WRITERS: dict[str, Callable[..., None]] = {"tsv": write_tsv, "tmx": write_tmx, "moses": write_moses}
NEED_LANGUAGES = ("tmx", "moses")


def read_gold(path: Path, x: Lines, y: Lines) -> list[tuple[int, int]]:
    """Known pairs as rows: two ids a line, tab between them, or two line numbers from 1 where the files have no ids.

    A first line is a header if neither cell is an id and neither holds a digit. A pair one of whose sentences takes
    no part cannot be found, and gets rows below zero. Raises `CorpusError` with the line for another number of cells
    and unknown ids.
    """
    places = [_places(side) for side in (x, y)]
    gold: list[tuple[int, int]] = []
    for number, line in read_lines(path):
        cells = line.split("\t")
        if len(cells) != 2:
            raise CorpusError(f"{len(cells)} cells where two ids are expected", file=path, line=number)
        lines = [place(cell) for place, cell in zip(places, cells, strict=True)]
        if number == 1 and lines == [None, None] and not any(map(str.isdigit, line)):
            continue
        for cell, at, side in zip(cells, lines, (x, y), strict=True):
            if at is None:
                what = f"a line number from 1 to {len(side.rows)}" if side.ids is None else "an id"
                raise CorpusError(f"{shown(cell)} is not {what} of {side.path}", file=path, line=number)
        rows = [int(side.rows[at]) for at, side in zip(lines, (x, y), strict=True)]
        gold.append((rows[0], rows[1]) if ABSENT not in rows else (-number, -number))
    return gold


def _places(side: Lines) -> Callable[[str], int | None]:
    """From an id to the place of its line."""
    if side.ids is not None:
        return {name: place for place, name in enumerate(side.ids)}.get
    count = len(side.rows)

    def place(cell: str) -> int | None:
        try:
            number = whole(cell)
        except ValueError:
            return None
        return number - 1 if 0 < number <= count else None

    return place


def _xml(text: str) -> str:
    return escape(_FORBIDDEN.sub(" ", text))
