"""Read an article: its sentences with linked entities, its link counts, and all entities it links to.

The result is one line of JSON for each article that links an entity: its `page` title and `own` entity, `links` (how
often the text links each entity), `linked` (every entity linked anywhere in the markup, including tables and templates)
and `sentences`, each a text with places `[start, end, entity]`. `counts` reports how many links and sentences were kept
and dropped.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from isoglot.wikipedia.dump import Page
from isoglot.wikipedia.sentences import MARKUP, Limits, fault, is_table, split
from isoglot.wikipedia.tables import find, open_tables
from isoglot.wikipedia.titles import Names, normal
from isoglot.wikipedia.wikitext import Paragraph, UnreadableError, read


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that reading an article depends on, besides the article. `stamp` identifies the table file."""

    names: Names
    tables: Path
    stamp: int
    limits: Limits


def read_articles(articles: Sequence[Page], reading: Reading) -> list[str]:
    """One line for each article that links an entity, then one with the total counts."""
    counts: Counter[str] = Counter()
    lines = []
    for article in articles:
        record = read_article(article, reading, counts)
        if record["links"]:
            lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
    return [*lines, json.dumps({"counts": dict(sorted(counts.items()))}) + "\n"]


def read_article(article: Page, reading: Reading, counts: Counter[str]) -> dict[str, Any]:
    """Read one article and add to `counts`."""
    wiki = reading.names.wiki
    entity = lru_cache(maxsize=None)(partial(find, _tables(reading.tables, reading.stamp), wiki))
    record: dict[str, Any] = {"page": article.title, "own": entity(normal(article.title, reading.names))}
    counts["articles"] += 1
    try:
        paragraphs, titles = read(article.text, reading.names)
    except UnreadableError:
        counts["articles that cannot be parsed"] += 1
        return record | {"links": {}}
    known = [entity(link.title) for paragraph in paragraphs for link in paragraph.links]
    counts["links in text"] += len(known)
    counts["links to an entity"] += sum(one is not None for one in known)
    record["links"] = dict(Counter(one for one in known if one))
    record["linked"] = sorted({one for title in titles if (one := entity(title))})
    found = (_sentences(paragraph, entity, reading, counts) for paragraph in paragraphs if paragraph.links)
    record["sentences"] = [sentence for sentences in found for sentence in sentences]
    return record


def _sentences(paragraph: Paragraph, entity: Any, reading: Reading, counts: Counter[str]) -> list[Any]:
    """Sentences of a paragraph that link an entity and have no fault."""
    kept = []
    for text, links in split(paragraph, reading.names.wiki):
        places = [[link.start, link.end, one] for link in links if (one := entity(link.title))]
        if not places:
            continue
        problem = MARKUP if is_table(paragraph) else fault(text, links, reading.limits)
        counts[f"sentences {problem}" if problem else "sentences kept"] += 1
        if not problem:
            kept.append([text, places])
    return kept


@lru_cache(maxsize=1)
def _tables(path: Path, stamp: int) -> sqlite3.Connection:
    del stamp  # part of the key only
    return open_tables(path)
