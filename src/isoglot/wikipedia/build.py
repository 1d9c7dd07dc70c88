"""Converts Wikipedia dumps to entity-linked sentences, in passes that are each stored on disk.

    heads       language and namespaces of every dump
    redirects   one file a dump                                          parallel over dumps
    entities    lines of Wikidata that have a title in these Wikipedias  parallel over lines
    tables      title -> entity, entity -> types: one SQLite file
    articles    sentences with links, in shards of 2,048 articles        parallel over articles
    choice      cut, hard negatives, sample; the output folder appears whole

An interrupted pass resumes after its last complete shard: shards depend only on the files and limits, and their folder
is named by a digest of these. Builds with other sampling settings use the same shards.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from isoglot.data.files import atomic_write, check_output, content_digest, exclusive, temporary_folder, work_folder
from isoglot.errors import IsoglotError, RecipeError
from isoglot.wikipedia.dump import Dump, Page, open_dump, pages
from isoglot.wikipedia.entities import (
    Entity,
    entity_lines,
    entity_of,
    find,
    make_tables,
    open_tables,
    title_rows,
    type_rows,
    wikidata_lines,
)
from isoglot.wikipedia.sample import REPORT, Choice, Part, write_choice
from isoglot.wikipedia.shards import Map, mapping, read_shards, write_shards
from isoglot.wikipedia.titles import Names, normal
from isoglot.wikipedia.wikitext import MARKUP, Limits, Paragraph, UnreadableError, fault, is_table, read, split

Progress = Callable[[str, int, int], None]  # pass, items done, items in total or 0 if that is not known
Report = Callable[[str], None]

_FORMAT = 1  # format of the files in the work folder
_KNOWN = (  # pattern of their paths
    r"[0-9a-f]{16}/(redirects-\d+\.jsonl|tables\.(sqlite|tmp)|warnings\.txt"
    r"|(entities|articles-\d+)/(\d+\.jsonl|complete))"
)
_PARSERS = ("mwparserfromhell", "sentencex")


@dataclass(frozen=True, slots=True)
class Sources:
    """The files: dumps as `FILE` or `CODE=FILE`, and either a Wikidata dump or a table of titles; types as a table."""

    dumps: tuple[str, ...]
    wikidata: Path | None = None
    titles: Path | None = None
    types: Path | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def files(self) -> list[str | Path | None]:
        """All of them, without codes."""
        dumps = [name if Path(name).exists() else name.partition("=")[2] or name for name in self.dumps]
        return [*dumps, self.wikidata, self.titles, self.types]

    @property
    def digest(self) -> str:
        """Of the files' names and contents, and of the settings on which the passes before sampling depend."""
        facts: list[Any] = [_FORMAT, version("isoglot"), asdict(self.limits), versions(), self.dumps]
        for name in self.files:
            path = Path(os.path.realpath(name)) if name else None  # resolve() raises RuntimeError for a link to itself
            facts.append([str(path), content_digest(path)] if path and path.is_file() else None)
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def build(
    sources: Sources,
    output: Path,
    *,
    choice: Choice | None = None,
    work: Path | None = None,
    workers: int = 1,
    progress: Progress = lambda _pass, _done, _total: None,
    report: Report = lambda _message: None,
) -> dict[str, Any]:
    """Make the folder `output` and return its report.

    work      folder that keeps the passes; None: OUTPUT.work, removed at the end. The same call resumes from it
    workers   processes
    progress  called with (pass, done, total), total 0 if it is not known
    report    called with a message about each truncated file

    Raises `CorpusError` for an invalid input file, `RecipeError` for settings, `IsoglotError` if a library is missing
    or `output` exists.
    """
    whole = Path(os.path.abspath(output))  # "." has no name that could be made longer  # noqa: PTH100
    check_output(output, inputs=sources.files, folder=True, whole=True)
    if output.exists():
        raise IsoglotError(f"{output}: already exists; remove it or choose another folder")
    if not sources.dumps:
        raise RecipeError("no dump; pass at least one")
    if (sources.wikidata is None) == (sources.titles is None):
        raise RecipeError(
            "pass a Wikidata dump (--wikidata) or a table of titles (--titles: language, title, id), one of the two"
        )
    if missing := [name for name, found in versions().items() if not found]:
        raise IsoglotError(f'needs {" and ".join(missing)}: pip install "isoglot[wikipedia]"')
    place, inputs = work or whole.with_name(f"{whole.name}.work"), [*sources.files, output]
    with (
        exclusive(output),
        work_folder(place, "a work folder of wikipedia", _KNOWN, keep=work is not None, inputs=inputs) as folder,
    ):
        return _build(sources, output, folder / sources.digest, choice or Choice(), workers, progress, report)


def versions() -> dict[str, str]:
    """Versions of the libraries that read wikitext and split sentences; empty: not installed."""
    found = dict.fromkeys(_PARSERS, "")
    for name in _PARSERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _build(
    sources: Sources, output: Path, folder: Path, choice: Choice, workers: int, progress: Progress, report: Report
) -> dict[str, Any]:
    dumps = [open_dump(name) for name in sources.dumps]
    with mapping(workers) as spread:
        heads = _redirects(dumps, folder, spread, progress)
        tables = _tables(sources, dumps, folder, spread, progress)
        parts = _articles(dumps, heads, tables, sources.limits, spread, progress)
    kept = folder / "warnings.txt"
    warnings = [line for head in heads for line in head["warnings"]]
    warnings += kept.read_text(encoding="utf-8").rstrip("\n").split("\n") if kept.exists() else []
    for line in warnings:
        report(line)
    settings = json.loads(json.dumps({**asdict(sources), **asdict(choice)}, default=str))
    of_dumps = [
        {"file": dump.path.name, "wiki": dump.names.wiki, "lang": dump.lang, **head["counts"], **_counts(shards)}
        for (dump, shards), head in zip(parts, heads, strict=True)
    ]
    found: dict[str, Any] = {"settings": settings, "parsers": versions(), "warnings": warnings, "dumps": of_dumps}
    with closing(open_tables(tables)) as base, temporary_folder(output) as temporary:
        whole = temporary / "whole"
        whole.mkdir()
        found |= write_choice(parts, base, whole, choice, lambda name: progress(name, 0, 0))
        with atomic_write(whole / REPORT) as file:
            file.write(json.dumps(found, ensure_ascii=False, indent=2) + "\n")
        whole.rename(output.resolve())
    return found


def _redirects(dumps: list[Dump], folder: Path, spread: Map, progress: Progress) -> list[dict[str, Any]]:
    """Write each dump's file of redirects; return the counts and warnings at their ends."""
    paths = [folder / f"redirects-{number:03d}.jsonl" for number in range(len(dumps))]
    todo = [(dump, path) for dump, path in zip(dumps, paths, strict=True) if not path.exists()]
    progress("redirects", len(dumps) - len(todo), len(dumps))
    for done, _ in enumerate(spread(_write_redirects, todo), len(dumps) - len(todo) + 1):
        progress("redirects", done, len(dumps))
    return [json.loads(path.read_text(encoding="utf-8").rpartition("\n")[2]) for path in paths]


def _write_redirects(work: tuple[Dump, Path]) -> None:
    dump, path = work
    counts: Counter[str] = Counter(pages=0, redirects=0, others=0)
    warnings: list[str] = []
    with atomic_write(path) as file:
        for page in pages(dump, warnings.append):
            counts["pages"] += 1
            if page.namespace != 0:
                counts["others"] += 1
            elif page.redirect is not None:
                counts["redirects"] += 1
                titles = [dump.names.wiki, normal(page.title, dump.names), normal(page.redirect, dump.names)]
                file.write(json.dumps(titles, ensure_ascii=False) + "\n")
        file.write(json.dumps({"counts": counts, "warnings": warnings}, ensure_ascii=False))


def _tables(sources: Sources, dumps: list[Dump], folder: Path, spread: Map, progress: Progress) -> Path:
    path = folder / "tables.sqlite"
    if path.exists():
        return path
    wikis = {dump.names.wiki: dump.names for dump in dumps}
    entities: Iterator[Entity]
    if sources.wikidata:
        kept = folder / "entities"
        items = partial(wikidata_lines, sources.wikidata, partial(_keep_warning, folder))
        work = partial(entity_lines, wikis=wikis)
        write_shards(kept, items, work, spread, progress=lambda done: progress("entities", done, 0))
        entities = map(entity_of, read_shards(kept))
    else:
        assert sources.titles is not None  # checked at the beginning
        entities = title_rows(sources.titles, wikis)
    if sources.types:
        entities = chain(entities, type_rows(sources.types))
    progress("tables", 0, 1)
    make_tables(path, entities, _all_redirects(folder))
    return path


def _keep_warning(folder: Path, message: str) -> None:
    with atomic_write(folder / "warnings.txt") as file:
        file.write(message + "\n")


def _all_redirects(folder: Path) -> Iterator[tuple[str, str, str]]:
    for path in sorted(folder.glob("redirects-*.jsonl")):
        with path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                if line.startswith("["):
                    wiki, title, target = json.loads(line)
                    yield wiki, title, target


def _articles(
    dumps: list[Dump], heads: list[dict[str, Any]], tables: Path, limits: Limits, spread: Map, progress: Progress
) -> list[Part]:
    totals = [head["counts"]["pages"] - head["counts"]["redirects"] - head["counts"]["others"] for head in heads]
    parts = []
    for number, dump in enumerate(dumps):
        folder, before = tables.parent / f"articles-{number:03d}", sum(totals[:number])
        work = partial(read_articles, names=dump.names, tables=tables, limits=limits)
        advance = partial(_advance, progress, before, sum(totals))
        write_shards(folder, partial(_only_articles, dump), work, spread, progress=advance)
        parts.append((dump, folder))
    return parts


def _advance(progress: Progress, before: int, total: int, done: int) -> None:
    progress("articles", before + done, total)


def _only_articles(dump: Dump) -> Iterator[Page]:
    return (page for page in pages(dump, lambda _message: None) if page.namespace == 0 and page.redirect is None)


def _counts(folder: Path) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for line in read_shards(folder):
        if line.startswith('{"counts"'):
            counts.update(json.loads(line)["counts"])
    return dict(sorted(counts.items()))


def read_articles(articles: Sequence[Page], names: Names, tables: Path, limits: Limits) -> list[str]:
    """One line of JSON for each article that links an entity, then one with the total `counts`.

    An article has its `page` title and `own` entity, `links` (how often the text links each entity), `linked` (every
    entity linked anywhere in the markup, including tables and templates) and `sentences`, each a text with places
    `[start, end, entity]`.
    """
    counts: Counter[str] = Counter()
    entity = lru_cache(maxsize=None)(partial(find, _opened(tables), names.wiki))
    records = (_read_article(article, names, entity, limits, counts) for article in articles)
    lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n" for one in records if one["links"]]
    return [*lines, json.dumps({"counts": dict(sorted(counts.items()))}) + "\n"]


def _read_article(
    article: Page, names: Names, entity: Callable[[str], str | None], limits: Limits, counts: Counter[str]
) -> dict[str, Any]:
    record: dict[str, Any] = {"page": article.title, "own": entity(normal(article.title, names))}
    counts["articles"] += 1
    try:
        paragraphs, titles = read(article.text, names)
    except UnreadableError:
        counts["articles that cannot be parsed"] += 1
        return record | {"links": {}}
    known = [entity(link.title) for paragraph in paragraphs for link in paragraph.links]
    counts["links in text"] += len(known)
    counts["links to an entity"] += sum(one is not None for one in known)
    record["links"] = dict(Counter(one for one in known if one))
    record["linked"] = sorted({one for title in titles if (one := entity(title))})
    found = (_sentences(one, names.wiki, entity, limits, counts) for one in paragraphs if one.links)
    record["sentences"] = [sentence for sentences in found for sentence in sentences]
    return record


def _sentences(
    paragraph: Paragraph, wiki: str, entity: Callable[[str], str | None], limits: Limits, counts: Counter[str]
) -> list[Any]:
    """Sentences of a paragraph that link an entity and have no fault."""
    kept = []
    for text, links in split(paragraph, wiki):
        places = [[link.start, link.end, one] for link in links if (one := entity(link.title))]
        if not places:
            continue
        problem = MARKUP if is_table(paragraph) else fault(text, links, limits)
        counts[f"sentences {problem}" if problem else "sentences kept"] += 1
        if not problem:
            kept.append([text, places])
    return kept


@lru_cache(maxsize=1)
def _opened(path: Path) -> sqlite3.Connection:
    """The tables, opened once in a process."""
    return open_tables(path)
