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
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.core.errors import IsoglotError, RecipeError
from isoglot.core.progress import Report
from isoglot.data.files import atomic_folder, atomic_write, check_output, content_digest, exclusive, work_folder
from isoglot.wikipedia import entities, wikitext
from isoglot.wikipedia.dump import Dump, Page, open_dump, pages
from isoglot.wikipedia.sample import REPORT, Choice, Part, write_choice
from isoglot.wikipedia.shards import Map, mapping, read_shards, write_shards
from isoglot.wikipedia.titles import Names, normal
from isoglot.wikipedia.wikitext import Limits

Progress = Callable[[str, int, int], None]  # pass, items done, items in total or 0 if that is not known
Find = Callable[[str], str | None]  # the entity of a title

_FORMAT = 1  # format of the files in the work folder
_SKIPPED = ("articles ", "paragraphs ")  # counts that are reported
_PARSERS = ("mwparserfromhell", "sentencex")


@dataclass(frozen=True, slots=True)
class Sources:
    """The files: dumps as `FILE` or `CODE=FILE`, and either a Wikidata dump or a table of titles.

    wikidata  Wikidata JSON dump, for titles and types of entities
    titles    TSV file of titles (language, title, id), instead of `wikidata`
    types     TSV file of types (id, ids of its types), added to those of `wikidata`
    """

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


@check_arguments()
def build(
    sources: Sources,
    output: Path,
    *,
    choice: Choice | None = None,
    work: Path | None = None,
    workers: PositiveInt = 1,
    progress: Progress = lambda _pass, _done, _total: None,
    report: Report = lambda _message: None,
) -> dict[str, Any]:
    """Make the folder `output` and return its report.

    work      folder for intermediate files, kept; None: OUTPUT.work, removed at the end. The same call resumes from it
    workers   number of processes
    progress  called with (pass, done, total), total 0 if it is not known
    report    called with a message about each truncated file, and about skipped articles and paragraphs of each dump

    Raises `CorpusError` for an invalid input file, `RecipeError` for settings, `IsoglotError` if a library is missing
    or `output` exists.
    """
    target = Path(os.path.abspath(output))  # "." has no name that could be made longer  # noqa: PTH100
    check_output(output, inputs=sources.files, folder=True, whole=True)
    if output.exists():
        raise IsoglotError(f"{output}: already exists; remove it or choose another folder")
    if not sources.dumps:
        raise RecipeError("no dump; pass at least one")
    if (sources.wikidata is None) == (sources.titles is None):
        raise RecipeError("pass one of a Wikidata dump (--wikidata) and a table of titles (--titles)")
    if missing := [name for name, number in versions().items() if not number]:
        raise IsoglotError(f'needs {" and ".join(missing)}: pip install "isoglot[wikipedia]"')
    place, inputs = work or target.with_name(f"{target.name}.work"), [*sources.files, output]
    with (
        exclusive(output),
        work_folder(place, "a work folder of wikipedia", keep=work is not None, inputs=inputs) as folder,
    ):
        return _build(sources, output, folder / sources.digest, choice or Choice(), workers, progress, report)


def versions() -> dict[str, str]:
    """Versions of the libraries that read wikitext and split sentences; empty: not installed."""
    installed = dict.fromkeys(_PARSERS, "")
    for name in _PARSERS:
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def _build(
    sources: Sources, output: Path, folder: Path, choice: Choice, workers: int, progress: Progress, report: Report
) -> dict[str, Any]:
    dumps = [open_dump(name) for name in sources.dumps]
    with mapping(workers) as spread:
        heads = _read_redirects(dumps, folder, spread, progress)
        tables = _make_tables(sources, dumps, folder, spread, progress)
        parts = _parse_articles(dumps, heads, tables, sources.limits, spread, progress)
    warnings = [line for head in heads for line in head["warnings"]]
    if (folder / "warnings.txt").exists():
        warnings += (folder / "warnings.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    of_dumps = []
    for (dump, shards), head in zip(parts, heads, strict=True):
        counts: Counter[str] = Counter()
        for line in read_shards(shards):
            if line.startswith('{"counts"'):
                counts.update(json.loads(line)["counts"])
        facts = {"file": dump.path.name, "wiki": dump.names.wiki, "lang": dump.lang}
        of_dumps.append({**facts, **head["counts"], **dict(sorted(counts.items()))})
        skipped = [kind for kind in sorted(counts) if kind.startswith(_SKIPPED)]
        warnings += [f"{dump.path}: {counts[kind]:,} {kind} skipped" for kind in skipped]
    for line in warnings:
        report(line)
    settings = json.loads(json.dumps({**asdict(sources), **asdict(choice)}, default=str))
    result: dict[str, Any] = {"settings": settings, "parsers": versions(), "warnings": warnings, "dumps": of_dumps}
    with closing(entities.open_tables(tables)) as base, atomic_folder(output) as unfinished:
        result |= write_choice(parts, base, unfinished, choice, lambda name: progress(name, 0, 0))
        with atomic_write(unfinished / REPORT) as file:
            file.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
    return result


def _read_redirects(dumps: list[Dump], folder: Path, spread: Map, progress: Progress) -> list[dict[str, Any]]:
    """Write each dump's file of redirects; return the counts and warnings at their ends."""
    paths = [folder / f"redirects-{number:03d}.jsonl" for number in range(len(dumps))]
    missing = [(dump, path) for dump, path in zip(dumps, paths, strict=True) if not path.exists()]
    progress("redirects", len(dumps) - len(missing), len(dumps))
    for done, _ in enumerate(spread(_write_redirects, missing), len(dumps) - len(missing) + 1):
        progress("redirects", done, len(dumps))
    return [json.loads(path.read_text(encoding="utf-8").rpartition("\n")[2]) for path in paths]


def _write_redirects(dump_and_path: tuple[Dump, Path]) -> None:
    dump, path = dump_and_path
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


def _make_tables(sources: Sources, dumps: list[Dump], folder: Path, spread: Map, progress: Progress) -> Path:
    path = folder / "tables.sqlite"
    if path.exists():
        return path
    wikis = {dump.names.wiki: dump.names for dump in dumps}

    def write_warning(message: str) -> None:  # for a resumed call, which does not read the dump again
        with atomic_write(folder / "warnings.txt") as file:
            file.write(message + "\n")

    if sources.wikidata:
        shards = folder / "entities"
        items = partial(entities.wikidata_lines, sources.wikidata, write_warning)
        work = partial(entities.entity_lines, path=sources.wikidata, wikis=wikis)
        write_shards(shards, items, work, spread, progress=lambda done: progress("entities", done, 0))
        titled: Iterator[entities.Entity] = map(entities.read_entity, read_shards(shards))
    else:
        assert sources.titles is not None  # checked at the beginning
        titled = entities.title_rows(sources.titles, wikis)
    progress("tables", 0, 1)
    redirects = (json.loads(line) for line in read_shards(folder, "redirects-*.jsonl") if line.startswith("["))
    types = entities.type_rows(sources.types) if sources.types else ()
    entities.make_tables(path, chain(titled, types), redirects)
    return path


def _parse_articles(
    dumps: list[Dump], heads: list[dict[str, Any]], tables: Path, limits: Limits, spread: Map, progress: Progress
) -> list[Part]:
    totals = [head["counts"]["pages"] - head["counts"]["redirects"] - head["counts"]["others"] for head in heads]
    parts = []
    for number, dump in enumerate(dumps):
        folder = tables.parent / f"articles-{number:03d}"
        work = partial(read_articles, names=dump.names, tables=tables, limits=limits)
        advance = partial(_add_progress, progress, sum(totals[:number]), sum(totals))
        write_shards(folder, partial(_articles, dump), work, spread, progress=advance)
        parts.append((dump, folder))
    return parts


def _articles(dump: Dump) -> Iterator[Page]:
    # The pass over redirects has reported that the dump is truncated.
    return (page for page in pages(dump, lambda _message: None) if page.namespace == 0 and page.redirect is None)


def _add_progress(progress: Progress, before: int, total: int, done: int) -> None:
    progress("articles", before + done, total)


def read_articles(articles: Sequence[Page], names: Names, tables: Path, limits: Limits) -> list[str]:
    """One line of JSON for each article that links an entity, then one with the total `counts`.

    An article has its `page` title and `own` entity, `links` (how often the text links each entity), `linked` (every
    entity linked anywhere in the markup, including tables and templates) and `sentences`, each a text with places
    `[start, end, entity]`.
    """
    counts: Counter[str] = Counter(articles=len(articles))
    find_entity = cache(partial(entities.find, _open_once(tables), names.wiki))
    lines = []
    for article in articles:
        try:
            paragraphs, titles = wikitext.read(article.text, names)
        except wikitext.UnreadableError as error:
            counts[f"articles {error}"] += 1
            continue
        linked = [find_entity(link.title) for paragraph in paragraphs for link in paragraph.links]
        counts["links in text"] += len(linked)
        counts["links to an entity"] += sum(entity is not None for entity in linked)
        record = {
            "page": article.title,
            "own": find_entity(normal(article.title, names)),
            "links": dict(Counter(entity for entity in linked if entity)),
            "linked": sorted({entity for title in titles if (entity := find_entity(title))}),
            "sentences": list(_read_sentences(paragraphs, names.wiki, find_entity, limits, counts)),
        }
        if record["links"]:
            lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
    return [*lines, json.dumps({"counts": dict(sorted(counts.items()))}) + "\n"]


def _read_sentences(
    paragraphs: list[wikitext.Paragraph], wiki: str, find_entity: Find, limits: Limits, counts: Counter[str]
) -> Iterator[Any]:
    """Sentences that link an entity and have no fault."""
    for paragraph in paragraphs:
        if not paragraph.links:
            continue
        if len(paragraph.text) > wikitext.LONGEST_PARAGRAPH:
            counts["paragraphs too long"] += 1
        for text, links in wikitext.split(paragraph, wiki):
            places = [[link.start, link.end, entity] for link in links if (entity := find_entity(link.title))]
            if not places:
                continue
            problem = wikitext.MARKUP if wikitext.is_table(paragraph) else wikitext.fault(text, links, limits)
            counts[f"sentences {problem}" if problem else "sentences kept"] += 1
            if not problem:
                yield [text, places]


@lru_cache(maxsize=1)
def _open_once(path: Path) -> sqlite3.Connection:
    """The tables, opened once in a process."""
    return entities.open_tables(path)
