"""Entities from a Wikidata JSON dump or from tables, with their titles in the selected Wikipedias.

Titles are sitelinks, never labels, which are ambiguous. A line of Wikidata that mentions none of the Wikipedias is
skipped before it is parsed, which saves most of the work on a complete dump.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoglot.data.files import CutShortError, read_lines
from isoglot.errors import CorpusError
from isoglot.wikipedia.tables import Entity
from isoglot.wikipedia.titles import Names, key_of, normal

INSTANCE_OF = "P31"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the dump; the last one may be truncated."""

    file: Path
    number: int
    text: str
    last: bool


def wikidata_lines(path: Path, remark: Callable[[str], None]) -> Iterator[Line]:
    """The lines that contain entities. `remark` is called if the dump is truncated.

    Raises `CorpusError` if the first of them is not a JSON object.
    """
    held: Line | None = None
    only = True
    for number, text in _lines(path, remark):
        text = text.strip().rstrip(",")
        if text in ("", "[", "]"):
            continue
        if held is None and not text.startswith("{"):
            problem = f"not a Wikidata JSON dump: {text[:40]!r}; pass a file such as latest-all.json.bz2"
            raise CorpusError(problem, file=path, line=number)
        if held:
            yield held
            only = False
        held = Line(path, number, text, last=False)
    if held is None or (only and _parsed(held.text) is None):
        raise CorpusError("contains no entity; pass a file such as latest-all.json.bz2", file=path)
    if _parsed(held.text) is None:
        remark(f"{path}:{held.number}: ends inside an entity; the complete part was read")
    yield Line(held.file, held.number, held.text, last=True)


def entity_lines(lines: list[Line], wikis: Mapping[str, Names]) -> list[str]:
    """Lines of `Entity` for the entities that have a title in one of the Wikipedias.

    Raises `CorpusError` for a line, other than the last, that is not the JSON of an entity.
    """
    sites = {f"{wiki.replace('-', '_')}wiki": names for wiki, names in wikis.items()}
    marks = [f'"{site}"' for site in sites]
    found = []
    for line in lines:
        if not any(mark in line.text for mark in marks):
            continue
        parsed = _parsed(line.text)
        if parsed is None and line.last:
            continue
        try:
            if entity := _entity(parsed or {}, sites):
                found.append(entity.line())
                found[-1].encode()  # a lone surrogate, which JSON can escape, cannot be written
        except (KeyError, TypeError, AttributeError, UnicodeEncodeError):
            problem = "not the JSON of an entity; download the file again"
            raise CorpusError(problem, file=line.file, line=line.number) from None
    return found


def title_rows(path: Path, wikis: Mapping[str, Names]) -> Iterator[Entity]:
    """Rows of `language TAB title TAB id`. Rows of other Wikipedias are used for English labels only.

    Raises `CorpusError` for another number of cells, an empty cell, or an unknown language.
    """
    keys = {key_of(wiki): wiki for wiki in wikis}
    for number, text in read_lines(path):
        if not text.strip():
            continue
        cells = [cell.strip() for cell in text.split("\t")]
        if len(cells) != 3 or not all(cells):
            raise CorpusError("a line must be: language, tab, title, tab, id", file=path, line=number)
        code, title, name = cells
        key = key_of(code, file=path, line=number)
        wiki, english = keys.get(key), key == "eng"
        if wiki or english:
            titles = {wiki: normal(title, wikis[wiki])} if wiki else {}
            yield Entity(name, titles, label=title, english=english)


def type_rows(path: Path) -> Iterator[Entity]:
    """Rows of `id TAB type ids`, the types separated by spaces, commas or tabs. Raises `CorpusError`."""
    for number, text in read_lines(path):
        if not text.strip():
            continue
        name, _, rest = text.partition("\t")
        types = tuple(rest.replace(",", " ").split())
        if not name.strip() or not types:
            raise CorpusError("a line must be: id, tab, ids of its types", file=path, line=number)
        yield Entity(name.strip(), {}, types)


def _lines(path: Path, remark: Callable[[str], None]) -> Iterator[tuple[int, str]]:
    begun = False
    try:
        for number, text in read_lines(path):
            begun = True
            yield number, text
    except CutShortError as error:
        if not begun:
            raise
        remark(str(error).partition(";")[0] + "; the complete part was read")


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _entity(parsed: dict[str, Any], sites: Mapping[str, Names]) -> Entity | None:
    name = parsed["id"] + ""  # a string, like all that is read below; anything else raises
    links = parsed.get("sitelinks") or {}
    titles = {names.wiki: normal(links[site]["title"], names) for site, names in sites.items() if site in links}
    if not titles:
        return None
    claims = (parsed.get("claims") or {}).get(INSTANCE_OF, [])
    values = [claim.get("mainsnak", {}).get("datavalue", {}).get("value", {}).get("id") for claim in claims]
    types = tuple(dict.fromkeys(value for value in values if value))
    english = links.get("enwiki", {}).get("title")
    return Entity(name, titles, types, english or next(iter(titles.values())), english is not None)


def titles_of(path: Path, language: str) -> Iterator[tuple[str, str]]:
    """Titles of one Wikipedia, in normal form, and the ids of their entities, from a table of titles."""
    for entity in title_rows(path, {language: Names(language, {})}):
        yield from ((title, entity.id) for title in entity.titles.values())
