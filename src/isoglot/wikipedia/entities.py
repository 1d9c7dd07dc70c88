"""Entities from a Wikidata JSON dump or from tables, and the SQLite file that finds them by their titles.

Titles are sitelinks, never labels, which are ambiguous. A line of Wikidata that mentions none of the Wikipedias is
skipped before it is parsed, which saves most of the work on a complete dump. Redirects are resolved when the file is
made, so a look-up reads one row, and memory does not grow with the number of titles. The file gets its final name when
it is complete.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoglot.core.errors import CorpusError
from isoglot.data.files import atomic_write, read_lines
from isoglot.wikipedia.dump import until_cut
from isoglot.wikipedia.titles import SECOND, Names, make_key, normal

HOPS = 8  # of redirects to redirects

_SCHEMA = """
CREATE TABLE titles (wiki TEXT, title TEXT, id TEXT, PRIMARY KEY (wiki, title)) WITHOUT ROWID;
CREATE TABLE redirects (wiki TEXT, title TEXT, target TEXT, PRIMARY KEY (wiki, title)) WITHOUT ROWID;
CREATE TABLE entities (id TEXT PRIMARY KEY, label TEXT, english INTEGER, types TEXT) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity: titles by Wikipedia, types, and a label (the English title if there is one)."""

    id: str
    titles: dict[str, str]
    types: tuple[str, ...] = ()
    label: str = ""
    english: bool = False

    def line(self) -> str:
        """As one line of JSON."""
        return json.dumps([self.id, self.titles, self.types, self.label, self.english], ensure_ascii=False) + "\n"


def read_entity(line: str) -> Entity:
    """Parse a line written by `Entity.line`."""
    name, titles, types, label, english = json.loads(line)
    return Entity(name, titles, tuple(types), label, english)


def make_tables(path: Path, entities: Iterable[Entity], redirects: Iterable[tuple[str, str, str]]) -> None:
    """Write the file: entities in order (the first that claims a title has it), redirects as (wiki, title, target)."""
    with atomic_write(path, binary=True) as stream, closing(sqlite3.connect(stream.name)) as base:
        base.execute("PRAGMA journal_mode = OFF")
        base.executescript(_SCHEMA)
        for entity in entities:
            titles = [(wiki, title, entity.id) for wiki, title in entity.titles.items()]
            base.executemany("INSERT OR IGNORE INTO titles VALUES (?, ?, ?)", titles)
            row = base.execute("SELECT label, english, types FROM entities WHERE id = ?", (entity.id,)).fetchone()
            label, english, types = row or ("", 0, "")
            if entity.label and (not label or (entity.english and not english)):
                label, english = entity.label, int(entity.english)
            merged = "\t".join(dict.fromkeys([*filter(None, types.split("\t")), *entity.types]))
            base.execute("INSERT OR REPLACE INTO entities VALUES (?, ?, ?, ?)", (entity.id, label, english, merged))
        base.executemany("INSERT OR IGNORE INTO redirects VALUES (?, ?, ?)", redirects)
        base.executemany("INSERT OR REPLACE INTO titles VALUES (?, ?, ?)", _resolve_redirects(base))
        base.execute("DROP TABLE redirects")
        base.commit()


def open_tables(path: Path) -> sqlite3.Connection:
    """Open the file read-only. The caller closes it."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


def find(base: sqlite3.Connection, wiki: str, title: str) -> str | None:
    """The entity of a title in normal form, redirects followed, or None."""
    row = base.execute("SELECT id FROM titles WHERE wiki = ? AND title = ?", (wiki, title)).fetchone()
    return row[0] if row else None


def find_types(base: sqlite3.Connection, entities: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Types of those entities that have any, in the order of the input."""
    types = {}
    for entity in entities:
        row = base.execute("SELECT types FROM entities WHERE id = ?", (entity,)).fetchone()
        if row and row[0]:
            types[entity] = tuple(row[0].split("\t"))
    return types


def find_labels(base: sqlite3.Connection, entities: Iterable[str]) -> dict[str, str]:
    """A title for each entity, the English one if it is known."""
    rows = (base.execute("SELECT id, label FROM entities WHERE id = ?", (one,)).fetchone() for one in entities)
    return {row[0]: row[1] for row in rows if row}


def has_types(base: sqlite3.Connection) -> bool:
    """Whether any entity has a type."""
    return base.execute("SELECT 1 FROM entities WHERE types <> '' LIMIT 1").fetchone() is not None


def _resolve_redirects(base: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """Titles of redirects with the entity at the end of their chain; chains that go in circles have none."""
    reading = base.cursor()
    for wiki, title, target in reading.execute("SELECT wiki, title, target FROM redirects ORDER BY wiki, title"):
        for _ in range(HOPS):
            row = base.execute("SELECT target FROM redirects WHERE wiki = ? AND title = ?", (wiki, target)).fetchone()
            if row is None:
                break
            target = row[0]
        else:
            continue
        if entity := find(base, wiki, target):
            yield wiki, title, entity


INSTANCE_OF = "P31"


def wikidata_lines(path: Path, report: Callable[[str], None]) -> Iterator[tuple[int, str]]:
    """The lines that contain entities, with their numbers. `report` is called if the dump is truncated.

    Raises `CorpusError` if the first of them is not a JSON object.
    """
    held: tuple[int, str] | None = None  # the last line may be truncated
    has_yielded = False
    for number, text in until_cut(read_lines(path), report):
        text = text.strip().rstrip(",")
        if text in ("", "[", "]"):
            continue
        if held is not None:
            yield held
            has_yielded = True
        elif not text.startswith("{"):
            raise CorpusError(f"not a Wikidata JSON dump: {text[:40]!r}; pass latest-all.json", file=path, line=number)
        held = number, text
    if held is not None and _parse(held[1]) is not None:
        yield held
    elif held is not None and has_yielded:
        report(f"{path}:{held[0]}: ends inside an entity; the complete part was read")
    else:
        raise CorpusError("contains no entity; pass a file such as latest-all.json.bz2", file=path)


def entity_lines(lines: Sequence[tuple[int, str]], path: Path, wikis: Mapping[str, Names]) -> list[str]:
    """Lines of `Entity` for the entities that have a title in one of the Wikipedias.

    Raises `CorpusError` for a line of the dump `path` that is not the JSON of an entity.
    """
    sites = {f"{SECOND.get(wiki, wiki).replace('-', '_')}wiki": names for wiki, names in wikis.items()}
    marks = [f'"{site}"' for site in sites]
    entities = []
    for number, text in lines:
        if not any(mark in text for mark in marks):
            continue
        try:
            if entity := _entity(_parse(text) or {}, sites):
                entities.append(entity.line())
                entities[-1].encode()  # a lone surrogate, which JSON can escape, cannot be written
        except (KeyError, TypeError, AttributeError, UnicodeEncodeError):
            raise CorpusError("not the JSON of an entity; download again", file=path, line=number) from None
    return entities


def title_rows(path: Path, wikis: Mapping[str, Names]) -> Iterator[Entity]:
    """Rows of `language TAB title TAB id`. Rows of other Wikipedias are used for English labels only.

    Raises `CorpusError` for another number of cells, an empty cell, or an unknown language.
    """
    keys = {make_key(wiki): wiki for wiki in wikis}
    for number, text in read_lines(path):
        if not text.strip():
            continue
        cells = [cell.strip() for cell in text.split("\t")]
        if len(cells) != 3 or not all(cells):
            raise CorpusError("a line must be: language, tab, title, tab, id", file=path, line=number)
        code, title, name = cells
        key = make_key(code, file=path, line=number)
        wiki, english = keys.get(key), key == "eng"
        if wiki or english:
            titles = {wiki: normal(title, wikis[wiki])} if wiki else {}
            yield Entity(name, titles, label=title, english=english)


def type_rows(path: Path) -> Iterator[Entity]:
    """Rows of `id TAB type ids`, the types separated by spaces, commas or tabs. Raises `CorpusError`."""
    for number, text in read_lines(path):
        if not text.strip():
            continue
        name, _, listed = text.partition("\t")
        types = tuple(listed.replace(",", " ").split())
        if not name.strip() or not types:
            raise CorpusError("a line must be: id, tab, ids of its types", file=path, line=number)
        yield Entity(name.strip(), {}, types)


def _parse(text: str) -> dict[str, Any] | None:
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


def read_titles(path: Path, language: str) -> Iterator[tuple[str, str]]:
    """Titles of one Wikipedia, in normal form, and the ids of their entities, from a table of titles."""
    for entity in title_rows(path, {language: Names(language, {})}):
        yield from ((title, entity.id) for title in entity.titles.values())
