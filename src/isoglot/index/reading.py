"""Files that can be indexed: lines, tables, JSON lines, Parquet, translation memories, and what `isoglot mine` writes.

`*.jsonl`    one object per line: `text`, and optionally `id`, `language`, `translation` and `translation_language`; or
             translations, in a shape that `group_of` knows
`*.parquet`  rows of the same columns
`*.tsv`      a header of the same columns, or language codes, each cell a sentence; without one `score`, sentence and
             translation, as `isoglot mine` writes them, with or without ids
`*.csv`, `*.xlsx`  the same, always with a header
`*.tmx`, `*.po`, `*.xlf`, `*.xliff`  translation memories
`*.docx`, `*.html`, `*.md`, `*.srt`, `*.vtt`  documents, of each paragraph, heading, cell or subtitle
`*.de-en`    two Moses files, unless a file has this name
others       one sentence per line

Sentences of one line or unit are translations and have one id: the first is shown with the second one, all others with
the first. The id is that of the file, of a unit its `tuid`; where there is none, a digest of the content. Blank lines
and cells are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import CorpusError, quote
from isoglot.core.numbers import finite
from isoglot.data import formats
from isoglot.data.groups import group_of, roles_in, unzip
from isoglot.data.languages import UNKNOWN, canonical, canonical_list, check_id, header_languages, is_language
from isoglot.data.readers import read
from isoglot.data.readers.aligned import read_moses
from isoglot.data.readers.tsv import IGNORED, KEY, SCORE
from isoglot.index.store import Sentence
from isoglot.index.units import identify

_PLAIN = {"id", "text", "language", "translation", "translation_language", SCORE}
_MINED = {3: ("source", "target"), 5: ("source_id", "target_id", "source", "target")}  # columns after the score
_IDS = {"id", "source_id", "target_id"}
_Unit = tuple[str | None, list[Sentence]]  # an id, if there is one, and sentences of this id
_ASIDE = {"id", SCORE, KEY, IGNORED}  # columns of a table of languages that are not sentences


@check_arguments()
def read_sentences(
    source: str, *, language: str = UNKNOWN, columns: Mapping[str, str] | None = None, content_ids: bool = False
) -> Iterator[Sentence]:
    """The sentences of `FILE` or `CODE=FILE`; where the file has no language, it is `CODE`, else `language`.

    `CODE` may be two codes, `deu,eng=FILE`, of the two sides of mined pairs or messages. `columns` are the columns of a
    table, or the keys of objects, that are read, with what they are: a language, or one of the names above. With
    `content_ids` ids are digests of the content even where the file has others. Raises `CorpusError` naming file and
    line.
    """
    units = _units(source, language, columns)
    yield from chain.from_iterable(identify(sentences, None if content_ids else key) for key, sentences in units)


def _units(source: str, language: str, columns: Mapping[str, str] | None) -> Iterator[_Unit]:
    path, codes = _source(source, language)
    form = formats.input_format(path)
    if form in formats.PAIRS or ("-" in Path(path).suffix and not Path(path).exists()):
        settings: dict[str, Any] = {"languages": codes} if len(codes) == 2 and form not in ("tmx", "xliff") else {}
        settings |= {"keep_ids": True} if form == "tmx" else {}
        groups = read(form, path, **settings) if form in formats.PAIRS else read_moses(path, **settings)
        yield from ((group.key, _versions(group.texts, group.langs)) for group in groups)
    elif form in formats.TABLES:
        yield from _table(path, codes, columns)
    elif form in ("jsonl", "parquet"):
        if form == "parquet" and (pair := formats.parquet_metadata(path, "isoglot.languages")):
            codes = canonical_list(pair, file=path)
        for line, item in formats.read_records(path, skip_blank=True):
            cells = {role: item.get(name) for name, role in columns.items()} if columns else item
            yield from _of_row({name: cell for name, cell in cells.items() if cell is not None}, path, line, codes)
    else:
        texts = (text for _, text in formats.read_texts(path) if text.strip())
        yield from ((None, [Sentence("", text, _one(codes, path))]) for text in texts)


def _source(source: str, language: str) -> tuple[str, tuple[str, ...]]:
    """The file and the languages of its sentences."""
    code, mark, path = source.partition("=")
    if not mark or Path(source).exists():  # a path may contain "=" itself
        code, path = language, source
    elif not all(map(is_language, code.split(","))):
        raise CorpusError(f"{code!r} is not a language; write FILE, or CODE=FILE as in deu={path}", file=source)
    return path, canonical_list(code, file=path)


def _of_row(row: Mapping[str, Any], path: str, line: int, codes: Sequence[str]) -> Iterator[_Unit]:
    """The sentences of an object: one, or translations of each other."""
    if isinstance(key := row.get("id"), bool | float | list | dict):
        raise CorpusError('"id" must be a string or a whole number', file=path, line=line)
    name = None if key is None else str(key)
    if "text" in row:
        yield name, _plain(row, path, line, codes)
        return
    if isinstance(key, str):
        _check_id([*row], path, line)
    try:
        group = group_of({name: value for name, value in row.items() if name not in _IDS}, codes)
    except CorpusError as error:
        raise CorpusError(str(error), file=path, line=line) from None
    if line == 1:
        _check_numbers(row, group.texts, path, line)
    yield name, _versions(group.texts, group.langs)


def _plain(row: Mapping[str, Any], path: str, line: int, codes: Sequence[str]) -> list[Sentence]:
    text, code = row.get("text"), row.get("language") or _one(codes, path)
    translation, other = row.get("translation") or None, row.get("translation_language") or UNKNOWN
    if not isinstance(text, str) or not isinstance(code, str):
        raise CorpusError('"text" and "language" must be strings', file=path, line=line)
    if not isinstance(translation, str | None) or not isinstance(other, str):
        raise CorpusError('"translation" and "translation_language" must be strings', file=path, line=line)
    if not text.strip():
        return []
    code, other = (canonical(one, file=path, line=line) for one in (code, other))
    return [Sentence("", text, code, translation, other if translation else UNKNOWN)]


def _versions(texts: Sequence[str], languages: Sequence[str]) -> list[Sentence]:
    """Translations of each other."""
    sides = [(text, code) for text, code in zip(texts, languages, strict=True) if text.strip()]
    others = [sides[1], *sides[:1] * (len(sides) - 1)] if len(sides) > 1 else [(None, UNKNOWN)] * len(sides)
    return [Sentence("", *side, *other) for side, other in zip(sides, others, strict=True)]


def _table(path: str, codes: Sequence[str], columns: Mapping[str, str] | None) -> Iterator[_Unit]:
    names, rows = formats.read_table(path, columns, implied=lambda first: None if columns else _match_mined(first))
    if missing := [name for name, role in (columns or {}).items() if role not in names]:
        raise CorpusError(f"has no column {missing[0]!r}; correct --columns", file=path, line=1)
    if not columns:  # which say what `id` is
        _check_id([*map(str.lower, names)], path, 1)
    header, names = names, _header(names, path)
    for place, (number, cells) in enumerate(rows):
        if not place and not columns:
            _check_numbers(dict(zip(header, cells, strict=True)), cells, path, number)
        row = {name: cell for name, cell in zip(names, cells, strict=True) if cell.strip()}
        if "source" in names:
            if "source" in row and "target" in row:
                yield from _of_row(row, path, number, codes)
        elif "text" in names:
            yield from _of_row({"text": "", **row}, path, number, codes)
        else:
            sides = (side for side in zip(cells, names, strict=True) if side[1] not in _ASIDE)
            yield row.get("id"), _versions(*unzip(sides))


def _match_mined(first: list[str]) -> list[str] | None:
    """The columns of what `isoglot mine` writes as TSV, which has no header, and decimals in its scores."""
    try:
        finite(first[0])
    except ValueError:
        return None
    return [SCORE, *_MINED[len(first)]] if len(first) in _MINED and "." in first[0] else None


def _header(names: list[str], path: str) -> list[str]:
    is_plain = ("text" in names and set(names) <= _PLAIN) or {"source", "target"} <= set(names)
    codes = names if is_plain else header_languages(names, _ASIDE)
    columns = [code for code in codes if code is not None]
    if len(columns) < len(names):
        wrong = quote(names[[*codes].index(None)], most=40)
        problem = f"has the columns {quote(', '.join(names), quotes=False)}, and {wrong} is not a language"
        advice = "choose columns with --columns, as in --columns english=en,german=de or --columns name"
        raise CorpusError(f"{problem}; {advice}", file=path, line=1)
    if len(set(names)) != len(names):  # two of one language may differ in the region
        raise CorpusError(f"two columns have the same name: {', '.join(names)}", file=path, line=1)
    return columns


def _check_id(names: Sequence[str], path: str, line: int) -> None:
    """Raise `CorpusError` where `id` may be the code of Indonesian: taken for ids, its sentences would be lost."""
    if "id" in names and any(len(name) == 2 and is_language(name) for name in names if name != "id"):
        problem = '"id" may be ids or Indonesian; call Indonesian ind, or beside ids write languages in three letters'
        raise CorpusError(f"{problem}, such as eng", file=path, line=line)


def _check_numbers(row: Mapping[str, Any], texts: Sequence[str], path: str, line: int) -> None:
    """Raise `CorpusError` where a column such as `No` would be a language and has numbers; `id` are ids here."""
    if not roles_in(row):
        check_id({name: cell for name, cell in row.items() if name.lower() != "id"}, texts, file=path, line=line)


def _one(codes: Sequence[str], path: str) -> str:
    if len(codes) != 1:
        raise CorpusError(f"one language is expected, not {', '.join(codes)}; two are for pairs", file=path)
    return codes[0]
