"""Files that can be indexed: lines, tables, JSON lines, Parquet, translation memories, and what `isoglot mine` writes.

`*.jsonl`    one object per line: `text`, and optionally `id`, `language`, `translation` and `translation_language`; or
             translations, in a shape that `group_of` knows
`*.parquet`  rows of the same columns
`*.tsv`      a header of the same columns, or language codes, each cell a sentence; without one `score`, sentence and
             translation, as `isoglot mine` writes them, with or without ids
`*.tmx`      a translation memory
`*.de-en`    two Moses files, unless a file has this name
others       one sentence per line

Sentences of one line or unit are translations: the first is shown with the second one, all others with the first. The
default id is `FILE:LINE`, of translations `FILE:LINE:CODE`. Blank lines and cells are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from isoglot.arguments import check_arguments
from isoglot.data.files import json_object, read_lines, without_compression
from isoglot.data.groups import group_of
from isoglot.data.languages import UNKNOWN, canonical, canonical_list, is_language
from isoglot.data.numbers import finite
from isoglot.data.readers.moses import read_moses
from isoglot.data.readers.tmx import read_tmx
from isoglot.data.readers.tsv import IGNORED, SCORE
from isoglot.errors import CorpusError
from isoglot.index.store import Sentence

_PLAIN = {"id", "text", "language", "translation", "translation_language", SCORE}
_MINED = {3: ("source", "target"), 5: ("source_id", "target_id", "source", "target")}  # columns after the score
_IDS = {"id", "source_id", "target_id"}
_ASIDE = {"id", SCORE, IGNORED}  # columns of a table of languages that are not sentences
_ROWS = 4096  # rows of Parquet read at a time


@check_arguments()
def read_sentences(source: str, *, language: str = UNKNOWN) -> Iterator[Sentence]:
    """The sentences of `FILE` or `CODE=FILE`; where the file has no language, it is `CODE`, else `language`.

    `CODE` may be two codes, `deu,eng=FILE`, of the two sides of mined pairs. Raises `CorpusError` naming file and line.
    """
    path, codes = _source(source, language)
    name = without_compression(Path(path).name).lower()
    if name.endswith(".tmx"):
        for unit, group in enumerate(read_tmx(path), 1):
            yield from _versions(f"{path}:{unit}", group.texts, group.langs)
    elif "-" in Path(path).suffix and not Path(path).exists():
        for line, group in enumerate(read_moses(path, languages=codes if len(codes) == 2 else None), 1):
            yield from _versions(f"{path}:{line}", group.texts, group.langs)
    elif name.endswith(".jsonl"):
        lines = ((line, text) for line, text in read_lines(path) if text.strip())
        rows = ((line, json_object(text, file=path, line=line)) for line, text in lines)
        yield from chain.from_iterable(_of_row(row, path, line, codes) for line, row in rows)
    elif name.endswith(".parquet"):
        yield from _parquet(path, codes)
    elif name.endswith(".tsv"):
        yield from _table(path, codes)
    else:
        for line, text in read_lines(path):
            if text.strip():
                yield Sentence(f"{path}:{line}", text, _one(codes, path))


def _source(source: str, language: str) -> tuple[str, tuple[str, ...]]:
    """The file and the languages of its sentences."""
    code, mark, path = source.partition("=")
    if not mark or Path(source).exists():  # a path may contain "=" itself
        code, path = language, source
    elif not all(map(is_language, code.split(","))):
        raise CorpusError(f"{code!r} is not a language; write FILE, or CODE=FILE as in deu={path}", file=source)
    return path, canonical_list(code, file=path)


def _of_row(row: Mapping[str, Any], path: str, line: int, codes: Sequence[str]) -> Iterator[Sentence]:
    """The sentences of an object: one, or translations of each other."""
    if "text" in row:
        yield from _plain(row, path, line, codes)
        return
    try:
        group = group_of({name: value for name, value in row.items() if name not in _IDS}, codes)
    except CorpusError as error:
        raise CorpusError(str(error), file=path, line=line) from None
    yield from _versions(f"{path}:{line}", group.texts, group.langs)


def _plain(row: Mapping[str, Any], path: str, line: int, codes: Sequence[str]) -> Iterator[Sentence]:
    text, key = row.get("text"), row.get("id", f"{path}:{line}")
    code = row.get("language") or _one(codes, path)
    translation, other = row.get("translation") or None, row.get("translation_language") or UNKNOWN
    if not isinstance(text, str) or not isinstance(code, str) or isinstance(key, bool | float | list | dict):
        raise CorpusError('"text" and "language" must be strings, "id" a string or number', file=path, line=line)
    if not isinstance(translation, str | None) or not isinstance(other, str):
        raise CorpusError('"translation" and "translation_language" must be strings', file=path, line=line)
    if text.strip():
        code, other = (canonical(one, file=path, line=line) for one in (code, other))
        yield Sentence(str(key), text, code, translation, other if translation else UNKNOWN)


def _versions(key: str, texts: Sequence[str], languages: Sequence[str]) -> Iterator[Sentence]:
    """Translations of each other; of a second sentence in the same language the id has its place too."""
    kept = [(text, code) for text, code in zip(texts, languages, strict=True) if text.strip()]
    seen: list[str] = []
    for place, (text, code) in enumerate(kept):
        name = f"{key}:{code}" if code not in seen else f"{key}:{code}:{place + 1}"
        seen.append(code)
        other = kept[0 if place else 1] if len(kept) > 1 else (None, UNKNOWN)
        yield Sentence(name, text, code, *other)


def _table(path: str, codes: Sequence[str]) -> Iterator[Sentence]:
    header: list[str] = []
    for number, line in read_lines(path):
        cells = line.split("\t")
        if not header:
            if len(cells) in _MINED and _is_number(cells[0]):
                header = [SCORE, *_MINED[len(cells)]]
            else:
                header = _header(cells, path)
                continue
        if len(cells) != len(header):
            raise CorpusError(f"{len(cells)} columns where the header has {len(header)}", file=path, line=number)
        row = {name: cell for name, cell in zip(header, cells, strict=True) if cell.strip()}
        if "source" in header:
            if "source" in row and "target" in row:
                yield from _of_row(row, path, number, codes)
        elif "text" in header:
            yield from _plain({"text": "", **row}, path, number, codes)
        else:
            texts = {name: text for name, text in row.items() if name not in _ASIDE}
            yield from _versions(row.get("id") or f"{path}:{number}", [*texts.values()], [*texts])


def _header(cells: list[str], path: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if ("text" in names and set(names) <= _PLAIN) or {"source", "target"} <= set(names):
        found = names
    else:
        found = [name if name in _ASIDE else canonical(name, file=path, line=1) for name in names]
    if len(set(found)) != len(found):
        raise CorpusError(f"two columns have the same name: {', '.join(found)}", file=path, line=1)
    return found


def _parquet(path: str, codes: Sequence[str]) -> Iterator[Sentence]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise CorpusError('Parquet requires pyarrow: pip install "isoglot[parquet]"', file=path) from error
    if not Path(path).is_file():
        raise CorpusError("no such file; check the name", file=path)
    try:
        with parquet.ParquetFile(path) as file:
            known = (file.schema_arrow.metadata or {}).get(b"isoglot.languages", b"").decode()
            codes = canonical_list(known, file=path) if known else codes
            names = [name for name in file.schema_arrow.names if name != "vector"]
            line = 0
            for batch in file.iter_batches(_ROWS, columns=names):
                for row in batch.to_pylist():
                    line += 1
                    given = {name: value for name, value in row.items() if value is not None}
                    yield from _of_row(given, path, line, codes)
    except ArrowException as error:
        raise CorpusError(f"can't be read as Parquet: {error}", file=path) from error


def _one(codes: Sequence[str], path: str) -> str:
    if len(codes) != 1:
        raise CorpusError(f"one language is expected, not {', '.join(codes)}; two are for pairs", file=path)
    return codes[0]


def _is_number(cell: str) -> bool:
    try:
        finite(cell)
    except ValueError:
        return False
    return True
