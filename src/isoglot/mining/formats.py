"""Mined pairs as files (TSV, JSON lines, TMX, Parquet, or two parallel files as Moses reads them), and gold pairs.

Every file appears as a whole. Characters that would break a format become spaces: tabs and line ends in TSV, TMX and
Moses, in TMX also the control characters that XML forbids.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import CorpusError, shown
from isoglot.data import formats
from isoglot.data.files import atomic_write, check_outputs, read_lines
from isoglot.data.formats import SUFFIXES, one_line, write_table
from isoglot.data.languages import canonical_list
from isoglot.data.numbers import whole
from isoglot.data.readers.aligned import language_in_name, pair_in_name
from isoglot.data.tmx import Unit, write_tmx
from isoglot.mining.sentences import ABSENT, Side, is_file
from isoglot.search.pairs import check_choice

FORMATS = (*SUFFIXES.values(), "moses")
NEED_LANGUAGES = ("tmx", "moses")
_ROWS = 1 << 16  # rows written at a time


class _Pair(NamedTuple):
    score: float
    source: str
    target: str


class MinedPair(_Pair):
    """A named tuple of `score`, `source` and `target`, with the attributes `source_id` and `target_id`.

    An id is that of the sentence; where there are none, its line number, from 1, in a file, or its index in a list.
    """

    source_id: str | int
    target_id: str | int

    def __new__(
        cls, score: float, source: str, target: str, source_id: str | int = -1, target_id: str | int = -1
    ) -> MinedPair:
        """A pair; ids that are not known are -1."""
        pair = super().__new__(cls, score, source, target)
        pair.source_id, pair.target_id = source_id, target_id
        return pair


Languages = tuple[str, str] | None
PairT = TypeVar("PairT", bound=MinedPair)


class PairList(Sequence[PairT]):
    """A sequence of pairs that is shown, saved to a file, and read as a DataFrame."""

    languages: Languages

    def _inputs(self) -> Sequence[str]:
        """The files that the pairs are from."""
        raise NotImplementedError

    @check_arguments()
    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A DataFrame with the columns score, source, target, source_id and target_id."""
        check_choice("library", library, ("pandas", "polars"))
        pairs = [*self]
        names = ("score", "source", "target", "source_id", "target_id")
        columns = {name: [getattr(pair, name) for pair in pairs] for name in names}
        return importlib.import_module(library).DataFrame(columns)

    @check_arguments()
    def save(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        ids: bool = False,
        languages: str | Sequence[str] | None = None,
    ) -> Path:
        """Write the pairs to a file, as a whole or not at all.

        format     None: by the suffix: .tsv, .csv, .jsonl, .tmx, .parquet; a name like x.de-en is a pair of Moses files
        ids        write the ids, or line numbers, of the sentences as well
        languages  for TMX, Moses and JSON lines; None: those of the files, or of the name of a Moses file

        Raises `OutputError` for a file that can't be written, `ValueError` for an unknown format or missing languages.
        """
        target = Path(path)
        pair = languages_argument(languages, 2) or self.languages or languages_of(target, [])
        form = format_argument(target, format, pair)
        check_outputs(*written(target, form, pair, ids), inputs=self._inputs())
        write(target, form, self, languages=pair, ids=ids)
        return target


def format_argument(path: Path, form: str | None, languages: Languages) -> str:
    """The format given, or that of the name. Raises `ValueError` for an unknown one, and if it needs languages."""
    if form is None:
        form = format_of(path)
    check_choice("format", form, FORMATS)
    if form in NEED_LANGUAGES and languages is None:
        raise ValueError(f"{form} needs the languages of the sides; pass languages, such as 'deu,eng'")
    if form == "moses" and languages is not None and languages[0] == languages[1]:
        raise ValueError("two Moses files of one language would have one name; choose another format")
    return form


def languages_argument(languages: str | Sequence[str] | None, sides: int) -> Languages:
    """The languages of both sides; one is enough for one side."""
    given = [code.strip() for code in languages.split(",")] if isinstance(languages, str) else [*(languages or ())]
    given = [code for code in given if code]
    if len(given) not in (0, 2, 1 if sides == 1 else 2):
        raise ValueError(f"languages names {len(given)} languages for {sides} sides; pass one for each")
    canonical_list(given)  # raises for an unknown one; files are named with the codes as they were given
    return (given[0], given[-1]) if given else None


def format_of(path: Path) -> str:
    """The format for a file name: by its suffix, or `moses` for an ending of two languages (`news.de-en`).

    Raises `OutputError` for any other suffix.
    """
    if pair_in_name(path.name):
        return "moses"
    advice = "A name such as x.de-en is written as Moses; another one needs a format"
    return formats.format_of(path, {**SUFFIXES, ".txt": "tsv", "": "tsv"}, advice=advice)


def languages_of(output: Path | None, files: Sequence[str]) -> Languages:
    """The languages in a Moses name or in the names of the mined files, as written there; None if there are none."""
    if output is not None and (pair := pair_in_name(output.name)):
        return pair
    codes = [language_in_name(Path(file).name) for file in files]
    return (codes[0], codes[-1]) if codes and codes[0] and codes[-1] else None


def written(path: Path, form: str, languages: Languages, ids: bool) -> list[Path]:
    """The files that a format writes."""
    if form != "moses":
        return [path]
    return [path.with_name(f"{path.name}.{name}") for name in (*(languages or ()), "scores", *(["ids"] if ids else []))]


def write(path: Path, form: str, pairs: Iterable[MinedPair], *, languages: Languages, ids: bool) -> None:
    """Write the pairs in one of `FORMATS`; with `ids`, the ids or line numbers too.

    In Parquet the languages are metadata; in JSON lines they are the names of the sentences, where they differ.
    """
    if form == "moses":
        _write_moses(path, pairs, languages=languages, ids=ids)
    elif form == "tmx":
        _write_tmx(path, pairs, languages=languages, ids=ids)
    else:
        texts, numbers = ("source", "target"), ("source_id", "target_id") if ids else ()
        kinds = {"score": "double", **dict.fromkeys((*texts, *numbers), "string")}
        order = {"tsv": ("score", *numbers, *texts), "jsonl": (*texts, "score", *numbers)}.get(form, tuple(kinds))
        has_names = form == "jsonl" and languages is not None and languages[0] != languages[1]
        names = dict(zip(texts, languages, strict=True)) if has_names and languages else {}
        rest = iter(pairs)
        blocks = (
            [[getattr(pair, name) for pair in block] for name in order]
            for block in iter(lambda: list(islice(rest, _ROWS)), [])
        )
        write_table(
            path, form, {names.get(name, name): kinds[name] for name in order}, blocks, header=False,
            metadata={"isoglot.languages": ",".join(languages)} if languages else None,
        )  # fmt: skip


def _write_tmx(path: Path, pairs: Iterable[MinedPair], *, languages: Languages, ids: bool) -> None:
    """TMX 1.4: a unit for each pair, its score and ids as properties."""
    assert languages is not None  # of NEED_LANGUAGES

    def units() -> Iterator[Unit]:
        for pair in pairs:
            given = {"source-id": str(pair.source_id), "target-id": str(pair.target_id)} if ids else {}
            yield {"score": f"{pair.score:.6f}", **given}, [*zip(languages, (pair.source, pair.target), strict=True)]

    write_tmx(path, units(), source=languages[0])


def _write_moses(path: Path, pairs: Iterable[MinedPair], *, languages: Languages, ids: bool) -> None:
    """`PATH.<source>` and `PATH.<target>`, line by line, and `PATH.scores`; with `ids` also `PATH.ids`."""
    with ExitStack() as stack:
        streams = [stack.enter_context(atomic_write(one)) for one in written(path, "moses", languages, ids)]
        for pair in pairs:
            cells = [*map(one_line, (pair.source, pair.target)), f"{pair.score:.6f}"]
            cells.append(f"{pair.source_id}\t{pair.target_id}")
            for stream, cell in zip(streams, cells, strict=False):
                stream.write(cell + "\n")


def read_gold(path: Path, x: Side, y: Side) -> list[tuple[int, int]]:
    """Known pairs as rows, from a file: two ids per line, or two line numbers for sides without ids; tab-separated.

    A first line is a header if neither cell is an id and neither contains a digit. Raises `CorpusError` with the line
    for another number of cells and unknown ids.
    """
    rows_of = [_rows_by_id(side) for side in (x, y)]
    gold: list[tuple[int, int]] = []
    for number, line in read_lines(path):
        cells = line.split("\t")
        if len(cells) != 2:
            raise CorpusError(f"{len(cells)} cells; expected two ids", file=path, line=number)
        rows = [row_of(cell) for row_of, cell in zip(rows_of, cells, strict=True)]
        if number == 1 and rows == [None, None] and not any(map(str.isdigit, line)):
            continue
        for cell, row, side in zip(cells, rows, (x, y), strict=True):
            if row is None:
                raise CorpusError(f"{shown(cell)} is not {_kind_of_id(side)}", file=path, line=number)
        gold.append(_as_gold(rows, len(gold)))
    return gold


def gold_of(pairs: Any, x: Side, y: Side) -> list[tuple[int, int]]:
    """Known pairs as rows, from a file, or from pairs of ids, or of indices (of lists) or line numbers (of files)."""
    if is_file(pairs):
        return read_gold(Path(pairs), x, y)
    rows_of = [_rows_by_id(side) for side in (x, y)]
    gold: list[tuple[int, int]] = []
    for at, pair in enumerate(pairs):
        cells = [] if isinstance(pair, str) or not isinstance(pair, Iterable) else [*pair]
        if len(cells) != 2:
            raise ValueError(f"gold[{at}] is {shown(pair)}; pass pairs of ids, line numbers (files) or indices (lists)")
        rows = [row_of(str(cell)) for row_of, cell in zip(rows_of, cells, strict=True)]
        for cell, row, side in zip(cells, rows, (x, y), strict=True):
            if row is None:
                raise ValueError(f"gold[{at}]: {shown(cell)} is not {_kind_of_id(side)}")
        gold.append(_as_gold(rows, at))
    return gold


def _as_gold(rows: Sequence[int | None], at: int) -> tuple[int, int]:
    """A pair whose sentences were filtered out can't be found, but counts: its rows are unique and negative."""
    a, b = (-1 if row is None else row for row in rows)
    return (a, b) if ABSENT not in (a, b) else (-at - 1, -at - 1)


def _kind_of_id(side: Side) -> str:
    if side.ids is not None:
        return f"an id of {side.name}"
    last = len(side.rows) - 1 + side.first
    return f"{'a line number' if side.first else 'an index'} from {side.first} to {last} of {side.name}"


def _rows_by_id(side: Side) -> Callable[[str], int | None]:
    """A function from an id to the row of its sentence: `ABSENT` if it was filtered out, None for an unknown id."""
    if side.ids is not None:
        rows = dict(zip(side.ids, side.rows.tolist(), strict=True))
        return rows.get
    count = len(side.rows)

    def row_of(cell: str) -> int | None:
        try:
            place = whole(cell) - side.first
        except ValueError:
            return None
        return int(side.rows[place]) if 0 <= place < count else None

    return row_of


def rows(pairs: Iterable[tuple[int, int, float]], x: Side, y: Side) -> Iterator[MinedPair]:
    """Pairs of rows with their sentences and ids."""
    for source, target, score in pairs:
        yield MinedPair(score, x.texts[source], y.texts[target], x.id_of(source), y.id_of(target))
