"""Mined pairs as files, in a format that `isoglot.data.formats` writes, or two as Moses reads them; and gold pairs.

Every file appears as a whole. Characters that would break a format become spaces: tabs and line ends in TSV, TMX and
Moses, in TMX also the control characters that XML forbids.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, overload

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import CorpusError, naming_extras, nearest, quote, require
from isoglot.core.numbers import whole
from isoglot.data import formats
from isoglot.data.files import atomic_write, check_outputs, exclusive, read_lines
from isoglot.data.formats import SUFFIXES, one_line, write_table
from isoglot.data.languages import canonical_list
from isoglot.data.readers.aligned import language_in_name, pair_in_name
from isoglot.data.tmx import Unit, write_tmx
from isoglot.mining.sentences import ABSENT, Side, is_file

NEED_LANGUAGES = ("tmx", "moses")
_COLUMNS = ("score", "source", "target", "source_id", "target_id")
_ROWS = 1 << 16  # rows written at a time


class _Pair(NamedTuple):
    score: float
    source: str
    target: str


class MinedPair(_Pair):
    """A named tuple of `score`, `source` and `target`, with the attributes `source_id` and `target_id`.

    An id is that of the sentence; where there are none, its index in a list, or in a file its line number, from 1: of a
    table that of the row, without the header and blank rows.
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
Gold = list[tuple[int, int]]  # known pairs of rows
PairT = TypeVar("PairT", bound=MinedPair)


class PairList(Sequence[PairT]):
    """A sequence of pairs that is shown, saved to a file, and read as a DataFrame."""

    languages: Languages

    def _at(self, place: int) -> PairT:
        raise NotImplementedError

    def _inputs(self) -> Sequence[str]:
        """The files that the pairs are from."""
        raise NotImplementedError

    def _title(self) -> str:
        """What is shown above the pairs."""
        raise NotImplementedError

    @overload
    def __getitem__(self, at: int) -> PairT: ...
    @overload
    def __getitem__(self, at: slice) -> list[PairT]: ...
    def __getitem__(self, at: int | slice) -> PairT | list[PairT]:
        return [*map(self._at, range(*at.indices(len(self))))] if isinstance(at, slice) else self._at(at)

    def __repr__(self) -> str:
        lines = [f"{pair.score:.3f}\t{pair.source}\t{pair.target}" for pair in self[:10]]
        more = [f"… {len(self) - 10:,} more"] if len(self) > 10 else []
        return "\n".join([self._title(), *lines, *more])

    @check_arguments()
    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A DataFrame with the columns score, source, target, source_id and target_id."""
        pairs = [*self]
        columns = {name: [getattr(pair, name) for pair in pairs] for name in _COLUMNS}
        with naming_extras():
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

        format     output format: `FORMATS` or moses; None: by the suffix; a name like x.de-en is a pair of Moses files
        ids        write the ids, or line numbers, of the sentences as well
        languages  for TMX, Moses and JSON lines; None: those of the files, or of the name of a Moses file

        Raises `OutputError` for a file that can't be written, `ValueError` for an unknown format or missing languages.
        """
        target = Path(path)
        pair = check_languages(languages, 2) or self.languages or guess_languages(target, [])
        with open_output(target, format, pair, ids=ids, inputs=self._inputs()) as (write_pairs, _):
            write_pairs(self)
        return target


@contextmanager
def open_output(
    path: Path, form: str | None, languages: Languages, *, ids: bool, inputs: Sequence[Any]
) -> Iterator[tuple[Callable[[Iterable[MinedPair]], None], list[Path]]]:
    """A function that writes pairs to a file, and the files that it writes, checked and locked before the work.

    Raises `ValueError` for an unknown format, and if it needs languages, `OutputError` for one of the inputs,
    `MissingExtraError` for Parquet without pyarrow.
    """
    form = format_of(path) if form is None else form
    check_format(form)
    if form == "parquet":  # before the work
        require("pyarrow")
    if form in NEED_LANGUAGES and languages is None:
        raise ValueError(f"{form} needs the languages of the sides; pass languages, such as 'deu,eng'")
    if form == "moses" and languages is not None and languages[0] == languages[1]:
        raise ValueError("two Moses files of one language would have one name; choose another format")
    files = list_outputs(path, form, languages, ids)
    check_outputs(*files, inputs=inputs)
    with exclusive(path):
        yield partial(write, path, form, languages=languages, ids=ids), files


def check_languages(languages: str | Sequence[str] | None, sides: int) -> Languages:
    """The languages of both sides; one is enough for one side."""
    parts = languages.split(",") if isinstance(languages, str) else languages or ()
    codes = [code.strip() for code in parts if code.strip()]
    if len(codes) not in (0, 2, 1 if sides == 1 else 2):
        raise ValueError(f"languages names {len(codes)} languages for {sides} sides; pass one for each")
    canonical_list(codes)  # raises for an unknown one; files are named with the codes as they were given
    return (codes[0], codes[-1]) if codes else None


def check_format(name: str) -> None:
    """Raise `ValueError` for an unknown format."""
    names = [*dict.fromkeys(SUFFIXES.values()), "moses"]
    if name not in names:
        raise ValueError(f"format is {name!r}: use one of {', '.join(names)}; {nearest(name, names)}")


def format_of(path: Path) -> str:
    """The format for a file name: by its suffix, or `moses` for an ending of two languages (`news.de-en`).

    Raises `OutputError` for any other suffix.
    """
    if pair_in_name(path.name):
        return "moses"
    advice = "a name such as x.de-en is written as Moses; another one needs a format"
    return formats.format_of(path, {**SUFFIXES, ".txt": "tsv", "": "tsv"}, advice=advice)


def guess_languages(output: Path | None, files: Sequence[str]) -> Languages:
    """The languages in the names of the mined files, or else in a Moses name, as written there; None if in neither."""
    codes = [language_in_name(Path(file).name) for file in files]
    if codes and codes[0] and codes[-1]:
        return codes[0], codes[-1]
    return None if output is None else pair_in_name(output.name)


def list_outputs(path: Path, form: str, languages: Languages, ids: bool) -> list[Path]:
    """The files that a format writes."""
    if form != "moses":
        return [path]
    return [path.with_name(f"{path.name}.{name}") for name in (*(languages or ()), "scores", *(["ids"] if ids else []))]


def write(path: Path, form: str, pairs: Iterable[MinedPair], *, languages: Languages, ids: bool) -> None:
    """Write the pairs in a format; with `ids`, the ids or line numbers too.

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
        codes = languages if form == "jsonl" and languages and languages[0] != languages[1] else ()
        # Readers take `id` for ids.
        names = {text: "ind" if code == "id" else code for text, code in zip(texts, codes, strict=False)}
        remaining = iter(pairs)
        blocks = (
            [[getattr(pair, name) for pair in block] for name in order]
            for block in iter(lambda: list(islice(remaining, _ROWS)), [])
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
            numbers = {"source-id": str(pair.source_id), "target-id": str(pair.target_id)} if ids else {}
            yield {"score": f"{pair.score:.6f}", **numbers}, [*zip(languages, (pair.source, pair.target), strict=True)]

    write_tmx(path, units(), source=languages[0])


def _write_moses(path: Path, pairs: Iterable[MinedPair], *, languages: Languages, ids: bool) -> None:
    """`PATH.<source>` and `PATH.<target>`, line by line, and `PATH.scores`; with `ids` also `PATH.ids`."""
    with ExitStack() as stack:
        streams = [stack.enter_context(atomic_write(one)) for one in list_outputs(path, "moses", languages, ids)]
        for pair in pairs:
            cells = [*map(one_line, (pair.source, pair.target)), f"{pair.score:.6f}"]
            cells.append(f"{pair.source_id}\t{pair.target_id}")
            for stream, cell in zip(streams, cells, strict=False):
                stream.write(cell + "\n")


def read_gold(pairs: Any, x: Side, y: Side) -> Gold:
    """Known pairs as rows, from a file, or from pairs of ids, or of indices (of lists) or line numbers (of files).

    A file has two tab-separated ids per line, or line numbers for sides without ids. Its first line is a header if
    neither cell is an id and neither contains a digit. A pair whose sentences were filtered out can't be found, but
    counts: its rows are unique and negative. Raises `CorpusError` with the line, or `ValueError`, for another number of
    cells and unknown ids.
    """
    from_file, rows_of = is_file(pairs), [_rows_by_id(side) for side in (x, y)]
    gold, absent = Gold(), dict[tuple[str, ...], int]()  # numbers of pairs that can't be found
    for at, row in read_lines(pairs) if from_file else enumerate(pairs):
        is_pair = isinstance(row, Iterable) and not isinstance(row, str)
        cells: list[Any] = row.split("\t") if from_file else [*row] if is_pair else []
        if len(cells) != 2:
            raise _wrong_gold(pairs, at, row, "a pair of ids, line numbers (files) or indices (lists)")
        places = [row_of(str(cell)) for row_of, cell in zip(rows_of, cells, strict=True)]
        if from_file and at == 1 and places == [None, None] and not any(map(str.isdigit, row)):
            continue
        for cell, place, side in zip(cells, places, (x, y), strict=True):
            if place is None:
                raise _wrong_gold(pairs, at, cell, _describe_ids(side))
        a, b = (ABSENT if place is None else place for place in places)
        if ABSENT in (a, b):
            names = map(str, cells)
            a = b = absent.setdefault(tuple(sorted(names) if x is y else names), -1 - len(absent))  # (a, b) is (b, a)
        gold.append((a, b))
    return gold


def _wrong_gold(pairs: Any, at: int, value: Any, wanted: str) -> Exception:
    problem = f"{quote(value)} is not {wanted}"
    return CorpusError(problem, file=pairs, line=at) if is_file(pairs) else ValueError(f"gold[{at}]: {problem}")


def _describe_ids(side: Side) -> str:
    kind = "a line number" if side.first else "an index"
    places = f"{kind} from {side.first} to {len(side.rows) - 1 + side.first}" if side.ids is None else "an id"
    return f"{places} of {side.name}"


def _rows_by_id(side: Side) -> Callable[[str], int | None]:
    """A function from an id to the row of its sentence: `ABSENT` if it was filtered out, None for an unknown id."""
    if side.ids is not None:
        return dict(zip(side.ids, side.rows.tolist(), strict=True)).get

    def row_of(cell: str) -> int | None:
        try:
            place = whole(cell) - side.first
        except ValueError:
            return None
        return int(side.rows[place]) if 0 <= place < len(side.rows) else None

    return row_of
