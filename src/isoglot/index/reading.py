"""Files that can be indexed: lines, parallel or plain tables, and JSON lines; compressed or not.

`*.jsonl`  one object per line: `text`, and optionally `id`, `language` and `translation`
`*.tsv`    a header; `text`, and optionally `id`, `language` and `translation`; or language codes, each cell a sentence
others     one sentence per line

The default id is `FILE:LINE`, in a table of several languages `FILE:LINE:CODE`. Blank lines and cells are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from isoglot.data.files import json_object, read_lines, without_compression
from isoglot.data.languages import UNKNOWN, canonical, is_language
from isoglot.errors import CorpusError
from isoglot.index.store import Sentence

_PLAIN = {"id", "text", "language", "translation"}


def read_sentences(source: str, *, language: str = UNKNOWN) -> Iterator[Sentence]:
    """The sentences of `FILE` or `CODE=FILE`; where the file has no language, it is `CODE`, else `language`.

    Raises `CorpusError` naming file and line, and for TMX, whose markup would be indexed as text.
    """
    code, mark, path = source.partition("=")
    if not mark or Path(source).exists():  # a path may hold "=" itself
        code, path = language, source
    elif not is_language(code):
        raise CorpusError(f"{code!r} is not a language; write FILE, or CODE=FILE as in deu={path}", file=source)
    name = without_compression(Path(path).name)
    if name.lower().endswith(".tmx"):
        problem = "TMX files can't be indexed; convert it to a .tsv file with a column for each language"
        raise CorpusError(problem, file=path)
    reader = _json if name.endswith(".jsonl") else _table if name.endswith(".tsv") else _lines
    yield from reader(path, canonical(code, file=path))


def _lines(path: str, language: str) -> Iterator[Sentence]:
    for number, text in read_lines(path):
        if text.strip():
            yield Sentence(f"{path}:{number}", text, language)


def _json(path: str, language: str) -> Iterator[Sentence]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        found = json_object(line, file=path, line=number)
        text, key, code = found.get("text"), found.get("id", f"{path}:{number}"), found.get("language", language)
        if not isinstance(text, str) or not isinstance(code, str) or isinstance(key, bool | float | list | dict):
            raise CorpusError('"text" and "language" must be strings, "id" a string or number', file=path, line=number)
        if text.strip():
            translation = found.get("translation")
            if not isinstance(translation, str | None):
                raise CorpusError('"translation" must be a string', file=path, line=number)
            yield Sentence(str(key), text, canonical(code, file=path, line=number), translation)


def _table(path: str, language: str) -> Iterator[Sentence]:
    header: list[str] = []
    for number, line in read_lines(path):
        cells = line.split("\t")
        if not header:
            header = _header(cells, path)
            continue
        if len(cells) != len(header):
            raise CorpusError(f"{len(cells)} columns where the header has {len(header)}", file=path, line=number)
        row = dict(zip(header, cells, strict=True))
        key = row.get("id") or f"{path}:{number}"
        if "text" in row:
            if row["text"].strip():
                code = row.get("language") or language
                yield Sentence(
                    key, row["text"], canonical(code, file=path, line=number), row.get("translation") or None
                )
            continue
        yield from (Sentence(f"{key}:{c}", text, c) for c, text in row.items() if c != "id" and text.strip())


def _header(cells: list[str], path: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if "text" in names and set(names) <= _PLAIN:
        found = names
    else:
        found = [name if name == "id" else canonical(name, file=path, line=1) for name in names]
    if len(set(found)) != len(found):
        raise CorpusError(f"two columns have the same name: {', '.join(found)}", file=path, line=1)
    return found
