"""The table from titles to entities: one SQLite file, made from rows of entities and from redirects.

Redirects are resolved when the file is made, so a look-up reads one row, and memory does not grow with the number of
titles. The file gets its final name when it is complete.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

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


def entity_of(line: str) -> Entity:
    """Parse a line written by `Entity.line`."""
    name, titles, types, label, english = json.loads(line)
    return Entity(name, titles, tuple(types), label, english)


def make_tables(path: Path, entities: Iterable[Entity], redirects: Iterable[tuple[str, str, str]]) -> None:
    """Write the file: entities in order (the first that claims a title has it), redirects as (wiki, title, target)."""
    temporary = path.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    with closing(sqlite3.connect(temporary)) as base:
        base.execute("PRAGMA journal_mode = OFF")
        base.executescript(_SCHEMA)
        for entity in entities:
            _insert(base, entity)
        base.executemany("INSERT OR IGNORE INTO redirects VALUES (?, ?, ?)", redirects)
        base.executemany("INSERT OR REPLACE INTO titles VALUES (?, ?, ?)", _resolved(base))
        base.execute("DROP TABLE redirects")
        base.commit()
    temporary.replace(path)


def open_tables(path: Path) -> sqlite3.Connection:
    """Open the file read-only. The caller closes it."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


def find(base: sqlite3.Connection, wiki: str, title: str) -> str | None:
    """The entity of a title in normal form, redirects followed, or None."""
    row = base.execute("SELECT id FROM titles WHERE wiki = ? AND title = ?", (wiki, title)).fetchone()
    return row[0] if row else None


def types_of(base: sqlite3.Connection, entities: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Types of those entities that have any, in the order of the input."""
    found = {}
    for entity in entities:
        row = base.execute("SELECT types FROM entities WHERE id = ?", (entity,)).fetchone()
        if row and row[0]:
            found[entity] = tuple(row[0].split("\t"))
    return found


def labels_of(base: sqlite3.Connection, entities: Iterable[str]) -> dict[str, str]:
    """A title for each entity, the English one if it is known."""
    rows = (base.execute("SELECT id, label FROM entities WHERE id = ?", (one,)).fetchone() for one in entities)
    return {row[0]: row[1] for row in rows if row}


def has_types(base: sqlite3.Connection) -> bool:
    """Whether any entity has a type."""
    return base.execute("SELECT 1 FROM entities WHERE types <> '' LIMIT 1").fetchone() is not None


def _insert(base: sqlite3.Connection, entity: Entity) -> None:
    rows = [(wiki, title, entity.id) for wiki, title in entity.titles.items()]
    base.executemany("INSERT OR IGNORE INTO titles VALUES (?, ?, ?)", rows)
    known = base.execute("SELECT label, english, types FROM entities WHERE id = ?", (entity.id,)).fetchone()
    label, english, types = known or ("", 0, "")
    if entity.label and (not label or (entity.english and not english)):
        label, english = entity.label, int(entity.english)
    merged = "\t".join(dict.fromkeys([*filter(None, types.split("\t")), *entity.types]))
    base.execute("INSERT OR REPLACE INTO entities VALUES (?, ?, ?, ?)", (entity.id, label, english, merged))


def _resolved(base: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
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
        found = base.execute("SELECT id FROM titles WHERE wiki = ? AND title = ?", (wiki, target)).fetchone()
        if found:
            yield wiki, title, found[0]
