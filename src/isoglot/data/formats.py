"""The formats of files of text in one table: their suffixes, and how their rows are read and written.

A format is an entry of `FORMATS`. All verbs and readers that choose a format by suffix look there. A new one that is
written as lines is an entry there and nothing else.

Tables have a header. TSV is cut at tabs and never quoted, so every character stands for itself. CSV is quoted as in
RFC 4180; its separator is the comma, semicolon or tab that is most frequent in the first line outside of quotes; rows
without any text are skipped. Of an XLSX workbook the first visible sheet is read: numbers and dates as text, formulas
as stored values.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from isoglot.core.errors import CorpusError, OutputError, naming_extras, nearest
from isoglot.data.documents import read_docx, read_html, read_markdown, read_subtitles
from isoglot.data.files import LONGEST_LINE, atomic_write, first_bytes, json_object, json_string, read_lines, suffix_of
from isoglot.data.vectors import write_parquet

_BREAKS = re.compile(r"[\t\r\n\0]")
_CARRIAGE_RETURN = re.compile("_x000D_\n?")  # as workbooks write it, and openpyxl leaves it
_LARGEST_WORKBOOK = 1 << 30  # bytes when unpacked
_BLOCK = 4096  # rows of Parquet read at a time
csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))  # a cell may be as long as a line
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", "।", "؟", "።")
_ASIDE = ("id", "score")  # columns that are not sentences

Cells = Iterator[tuple[int, list[str]]]
Records = Iterator[tuple[int, dict[str, Any]]]


# Reading


def input_format(path: str | Path, default: str = "lines") -> str:
    """The format of a file that is read, by the suffix of its name, compressed or not; the default for any other."""
    return SUFFIXES_READ.get(suffix_of(path), default)


def columns_of(text: str) -> dict[str, str]:
    """What `english=en,german=de` says: names of columns, with what they are. A name alone is the column `text`."""
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): role.strip() or "text" for name, _, role in pairs}


def read_table(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    implied: Callable[[list[str]], Sequence[str] | None] = lambda _: None,
) -> tuple[list[str], Cells]:
    """The names of the columns of a table, and its rows, each with its line or row number and a cell for each name.

    columns  names of columns, with what to call them; others are left out
    implied  the names of the columns, if the first row is not a header

    Raises `CorpusError` for a table without a header and a row below it, and for a row of another width.
    """
    rows = table_cells(path)
    line, first = next(rows, (0, []))
    if not line:
        raise CorpusError("contains no text; pass a table with a header and a row below it", file=path)
    header = [cell.strip() for cell in first]
    if (names := implied(first)) is not None:
        return [*names], _fit_rows(path, [*names], [*range(len(names))], chain([(line, first)], rows))
    places = [place for place, name in enumerate(header) if not columns or name in columns]
    if not places:
        wanted = ", ".join(columns or ())
        raise CorpusError(f"has the columns {', '.join(header)}, and none is called {wanted}", file=path, line=line)
    names = [columns[header[place]] if columns else header[place] for place in places]
    return names, _fit_rows(path, header, places, rows)


def _fit_rows(path: str | Path, names: list[str], places: list[int], rows: Cells) -> Cells:
    line = 0
    for line, cells in rows:
        if len(cells) != len(names):
            kind = "a column is missing" if len(cells) < len(names) else "a cell too many"
            problem = f"{kind}: {len(cells)} columns where {len(names)} are expected ({', '.join(names)})"
            raise CorpusError("is empty; remove the line" if cells == [""] else problem, file=path, line=line)
        yield line, cells if len(places) == len(names) else [cells[place] for place in places]
    if not line:
        raise CorpusError("contains a header and no text below it", file=path)


def read_records(path: str | Path, *, skip_blank: bool = False) -> Records:
    """The objects of JSON lines, or the rows of a file named `.parquet` without its vectors, with their numbers from 1.

    A blank line is an error unless `skip_blank`.
    """
    if input_format(path) == "parquet":
        with open_parquet(path) as file:
            names = [name for name in file.schema_arrow.names if name != "vector"]
            batches = file.iter_batches(_BLOCK, columns=names)
            yield from enumerate((row for batch in batches for row in batch.to_pylist()), 1)
        return
    for number, line in read_lines(path):
        if line.strip() or not skip_blank:
            yield number, json_object(line, file=path, line=number)


def read_texts(path: str | Path, columns: Mapping[str, str] | None = None) -> Iterator[tuple[int, str]]:
    """The texts of a file with their lines: one column of a table, JSON strings in a file called `.jsonl`, else lines;
    of a document its texts, with their numbers from 1.

    Of a table that is the column `text`, or the only one besides `id` and `score`; `columns` as in `read_table`. A line
    of JSON that is blank is an empty text. Raises `CorpusError` as `read_lines` does, for a line of JSON that contains
    anything but one string, and for files with markup, whose lines are not sentences.
    """
    form = input_format(path)
    row = FORMATS.get(form, Format(()))
    if row.cells:
        names, rows = read_table(path, columns)
        place = text_column(names, path)
        yield from ((line, cells[place]) for line, cells in rows)
        return
    if row.texts:
        number = 0
        for number, text in enumerate(row.texts(path), 1):
            yield number, text
        if not number:
            raise CorpusError("contains no text", file=path)
        return
    for number, line in read_lines(path):
        if number == 1 and (suffix_of(path) == ".xml" or form not in ("lines", "jsonl") or line.startswith("<?xml ")):
            kind = "pairs of translations" if form in PAIRS else f"the format {form}" if form in FORMATS else "markup"
            problem = f"has {kind}, and plain text is read here; save its sentences as a .txt file, one per line"
            raise CorpusError(problem, file=path)
        yield number, line if form != "jsonl" else json_string(line, file=path, line=number)


def text_column(names: Sequence[str], path: str | Path) -> int:
    """The place of the column with the sentences. Raises `CorpusError`, which lists the columns, if it is not clear."""
    texts = [place for place, name in enumerate(names) if name == "text"]
    places = texts or [place for place, name in enumerate(names) if name not in _ASIDE]
    if len(places) != 1:
        problem = f"has the columns {', '.join(names)}, and {len(texts) or 'none'} of them are text"
        advice = "choose one, as in" if texts else "call one text, or choose one where there is the option"
        name = names[places[0]] if places and not texts else "NAME"
        raise CorpusError(f"{problem}; {advice} --columns {name}", file=path)
    if (name := names[places[0]].rstrip()).endswith(_SENTENCE_ENDS):  # else this sentence would be lost
        raise CorpusError(f"has the sentence {name!r} as the name of its column; add a header: text", file=path)
    return places[0]


def table_cells(path: str | Path) -> Cells:
    """The rows of a table, with their lines or numbers; TSV, unless the suffix is that of another format."""
    return (FORMATS.get(input_format(path), Format(())).cells or _tab_cells)(path)


def _tab_cells(path: str | Path) -> Cells:
    return ((number, line.split("\t")) for number, line in read_lines(path))


def csv_cells(path: str | Path, *, skip_blank: bool = True, carriage_returns: bool = True) -> Cells:
    """The rows of quoted CSV with the number of their first line; those without text only if they are not skipped.

    Raises `CorpusError` for wrong quotes, and as `read_lines` does.
    """
    lines = (text for _, text in read_lines(path, carriage_returns=carriage_returns))
    first = next(lines, "")
    separator = max(",;\t", key=re.sub(r'"[^"]*"?', "", first).count)
    # The reader is given line ends, as a quoted cell may contain one, and counts the lines itself.
    rows = csv.reader((f"{text}\n" for part in ([first], lines) for text in part), delimiter=separator, strict=True)
    line = 1
    try:
        for cells in rows:
            if not skip_blank or any(map(str.strip, cells)):
                yield line, cells
            line = rows.line_num + 1
    except csv.Error as error:
        reason = str(error).replace("\t", "a tab")  # the delimiter stands in the message as it is
        problem = f"is not quoted as CSV ({reason}); correct the quotes of this row or get the file again"
        raise CorpusError(problem, file=path, line=line) from None


def _xlsx_cells(path: str | Path) -> Cells:
    from zipfile import BadZipFile, ZipFile

    with naming_extras():
        from openpyxl import load_workbook
    first_bytes(path)  # raises for a missing file, a folder or a pipe
    try:
        with ZipFile(path) as archive:
            if (size := sum(member.file_size for member in archive.infolist())) > _LARGEST_WORKBOOK:
                problem = f"has {size >> 20:,} MiB when unpacked, more than {_LARGEST_WORKBOOK >> 20:,}"
                raise CorpusError(f"{problem}; save the sheet as CSV", file=path)
        book = load_workbook(path, read_only=True, data_only=True)
        try:
            sheet = next((one for one in book.worksheets if one.sheet_state == "visible"), book.worksheets[0])
            sheet.reset_dimensions()  # what the file says of its size may be wrong
            width = 0
            for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
                whole = (int(one) if isinstance(one, float) and one.is_integer() else one for one in row)
                cells = ["" if cell is None else _CARRIAGE_RETURN.sub("\n", str(cell)) for cell in whole]
                while len(cells) > width and not cells[-1].strip():
                    del cells[-1]
                if cells and any(map(str.strip, cells)):
                    width = width or len(cells)
                    yield number, cells + [""] * (width - len(cells))
        finally:
            book.close()
    except (BadZipFile, KeyError, ValueError, TypeError, IndexError, AttributeError, SyntaxError, EOFError) as error:
        # zipfile, openpyxl and the XML parser raise these for damaged files
        raise CorpusError(f"cannot be read as an XLSX workbook ({error}); save it again", file=path) from error


def parquet_metadata(path: str | Path, name: str) -> str:
    """A value in the metadata of a Parquet file; "" if there is none."""
    with open_parquet(path) as file:
        return str((file.schema_arrow.metadata or {}).get(name.encode(), b"").decode())


@contextmanager
def open_parquet(path: str | Path) -> Iterator[Any]:
    """A Parquet file of pyarrow. Raises `CorpusError` for a file that is missing or damaged."""
    first_bytes(path)  # raises for a missing file, a folder or a pipe
    with naming_extras():
        from pyarrow import ArrowException, parquet
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (ArrowException, OSError) as error:
        raise CorpusError(f"cannot be read as Parquet ({error}); write or export it again", file=path) from error


# Writing


def one_line(text: str) -> str:
    """The text with spaces for tabs, line ends and NUL, with which a file could not be read."""
    return _BREAKS.sub(" ", text)


def _texts(cells: Iterable[Any]) -> list[str]:
    return [f"{cell:.6f}" if isinstance(cell, float) else "" if cell is None else str(cell) for cell in cells]


def _csv_line(row: Mapping[str, Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(_texts(row.values()))  # cells with a part of it are quoted
    return line.getvalue()[:-2].replace("\0", " ")


def _json_line(row: Mapping[str, Any]) -> str:
    cells = {name: round(cell, 6) if isinstance(cell, float) else cell for name, cell in row.items()}
    return json.dumps({name: cell for name, cell in cells.items() if cell is not None}, ensure_ascii=False)


def write_table(
    path: Path,
    form: str,
    columns: Mapping[str, str | int],
    blocks: Iterable[Sequence[Any]],
    *,
    header: bool = True,
    metadata: Mapping[str, str] | None = None,
) -> int:
    """Write a table in Parquet or a format with lines, as a whole or not at all. Returns the number of rows.

    columns, blocks  as `write_parquet` takes them
    header           of TSV: the first line has the names; that of CSV always has
    metadata         of Parquet

    Text has six decimals of a float. None is an empty cell, and left out in JSON lines. Raises `OutputError`.
    """
    if form == "parquet":
        with atomic_write(path, binary=True) as stream:
            return write_parquet(stream, columns, blocks, metadata=metadata)
    line = FORMATS[form].line
    assert line is not None
    rows = (dict(zip(columns, cells, strict=True)) for block in blocks for cells in zip(*block, strict=True))
    count = 0
    with atomic_write(path) as lines:
        if FORMATS[form].cells and (header or form == "csv"):
            lines.write(line(dict(zip(columns, columns, strict=True))) + "\n")
        for count, row in enumerate(rows, 1):  # noqa: B007 - it is returned
            lines.write(line(row) + "\n")
    return count


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files.

    suffixes  of names
    cells     reads the rows of a table, header included
    line      writes a row as a line; of a table also the header
    texts     reads the texts of a document
    written   whether pairs and sentences can be written in it
    unit      what contains a pair, if it is of translations
    """

    suffixes: tuple[str, ...]
    cells: Callable[[str | Path], Cells] | None = None
    line: Callable[[Mapping[str, Any]], str] | None = None
    texts: Callable[[str | Path], Iterator[str]] | None = None
    written: bool = False
    unit: str = ""


FORMATS = {
    "tsv": Format((".tsv",), _tab_cells, lambda row: "\t".join(map(one_line, _texts(row.values()))), written=True),
    "jsonl": Format((".jsonl",), line=_json_line, written=True),
    "tmx": Format((".tmx",), written=True, unit="unit"),
    "parquet": Format((".parquet",), written=True),
    "csv": Format((".csv",), csv_cells, _csv_line, written=True),
    "xlsx": Format((".xlsx",), _xlsx_cells),
    "po": Format((".po",), unit="translation"),
    "xliff": Format((".xlf", ".xliff"), unit="unit"),
    "docx": Format((".docx",), texts=read_docx),
    "html": Format((".html", ".htm"), texts=read_html),
    "md": Format((".md",), texts=read_markdown),
    "srt": Format((".srt", ".vtt"), texts=read_subtitles),
}
SUFFIXES_READ = {suffix: name for name, form in FORMATS.items() for suffix in form.suffixes}
SUFFIXES = {suffix: name for suffix, name in SUFFIXES_READ.items() if FORMATS[name].written}
TABLES = tuple(name for name, form in FORMATS.items() if form.cells)
DOCUMENTS = tuple(name for name, form in FORMATS.items() if form.texts)
PAIRS = tuple(name for name, form in FORMATS.items() if form.unit)


def format_of(path: Path, suffixes: Mapping[str, str] = SUFFIXES, *, given: str | None = None, advice: str = "") -> str:
    """The format given, or that of a file name, by its suffix. Raises `OutputError` for any other, with the advice."""
    if given is not None and given not in suffixes.values():
        raise OutputError(f"unknown format {given!r}; {nearest(given, suffixes.values())}")
    if given is not None:
        return given
    if (suffix := path.suffix.lower()) not in suffixes:
        problem = f"{path}: can't infer a format from {path.suffix!r}; {nearest(suffix, filter(None, suffixes))}"
        raise OutputError(f"{problem}{advice and '; '}{advice}")
    return suffixes[suffix]
