"""Wikipedia dumps to entity-linked sentences: the passes in order, each on disk before the next one begins.

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

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from isoglot.data.files import atomic_write, temporary_folder
from isoglot.wikipedia.choose import REPORT, Choice, Part, write_choice
from isoglot.wikipedia.dump import Dump, Page, open_dump, pages
from isoglot.wikipedia.entities import entity_lines, title_rows, type_rows, wikidata_lines
from isoglot.wikipedia.links import Reading, read_articles
from isoglot.wikipedia.shards import Map, mapping, read_shards, write_shards
from isoglot.wikipedia.sources import Sources, check, digest, versions
from isoglot.wikipedia.tables import Entity, entity_of, make_tables, open_tables
from isoglot.wikipedia.titles import normal


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks: `progress(pass, done, total)`, total 0 if it is not known, and `remark(message)`."""

    progress: Callable[[str, int, int], None] = lambda _pass, _done, _total: None
    remark: Callable[[str], None] = lambda _message: None


def build(
    sources: Sources,
    output: Path,
    *,
    work: Path,
    choice: Choice | None = None,
    workers: int = 1,
    listener: Listener | None = None,
) -> dict[str, Any]:
    """Make the folder `output` and return its report. The passes are kept in `work`, which the caller removes.

    Raises `CorpusError` for an invalid input file, `RecipeError` for settings, `IsoglotError` if a library is missing
    or `output` exists.
    """
    choice, listener = choice or Choice(), listener or Listener()
    check(sources, output)
    dumps = [open_dump(name) for name in sources.dumps]
    folder = work / digest(sources)
    with mapping(workers) as spread:
        heads = _redirects(dumps, folder, spread, listener)
        tables = _tables(sources, dumps, folder, spread, listener)
        parts = _articles(dumps, heads, Reading(dumps[0].names, tables, 0, sources.limits), spread, listener)
    remarks = [*(remark for head in heads for remark in head["remarks"]), *_kept_remarks(folder)]
    for remark in remarks:
        listener.remark(remark)
    settings = json.loads(json.dumps({**asdict(sources), **asdict(choice)}, default=str))
    report: dict[str, Any] = {"settings": settings, "parsers": versions(), "remarks": remarks}
    read = [
        {"file": dump.path.name, "wiki": dump.names.wiki, "lang": dump.lang, **head["counts"], **_counts(part)}
        for dump, head, part in zip(dumps, heads, parts, strict=True)
    ]
    with closing(open_tables(tables)) as base:
        return _write(parts, base, output, choice, report | {"dumps": read}, listener)


def _redirects(dumps: list[Dump], folder: Path, spread: Map, listener: Listener) -> list[dict[str, Any]]:
    """Write each dump's file of redirects; return the counts and remarks at their ends."""
    paths = [folder / f"redirects-{number:03d}.jsonl" for number in range(len(dumps))]
    todo = [(dump, path) for dump, path in zip(dumps, paths, strict=True) if not path.exists()]
    listener.progress("redirects", len(dumps) - len(todo), len(dumps))
    for done, _ in enumerate(spread(_write_redirects, todo), len(dumps) - len(todo) + 1):
        listener.progress("redirects", done, len(dumps))
    return [json.loads(path.read_text(encoding="utf-8").rpartition("\n")[2]) for path in paths]


def _write_redirects(work: tuple[Dump, Path]) -> None:
    dump, path = work
    counts: Counter[str] = Counter(pages=0, redirects=0, others=0)
    remarks: list[str] = []
    with atomic_write(path) as file:
        for page in pages(dump, remarks.append):
            counts["pages"] += 1
            if page.namespace != 0:
                counts["others"] += 1
            elif page.redirect is not None:
                counts["redirects"] += 1
                titles = [dump.names.wiki, normal(page.title, dump.names), normal(page.redirect, dump.names)]
                file.write(json.dumps(titles, ensure_ascii=False) + "\n")
        file.write(json.dumps({"counts": counts, "remarks": remarks}, ensure_ascii=False))


def _tables(sources: Sources, dumps: list[Dump], folder: Path, spread: Map, listener: Listener) -> Path:
    path = folder / "tables.sqlite"
    if path.exists():
        return path
    wikis = {dump.names.wiki: dump.names for dump in dumps}
    entities: Iterator[Entity]
    if sources.wikidata:
        kept = folder / "entities"
        items = partial(wikidata_lines, sources.wikidata, partial(_keep_remark, folder))
        progress = partial(_report, listener, "entities", 0, 0)
        write_shards(kept, items, partial(entity_lines, wikis=wikis), spread, progress=progress)
        entities = map(entity_of, read_shards(kept))
    else:
        assert sources.titles is not None  # checked at the beginning
        entities = title_rows(sources.titles, wikis)
    if sources.types:
        entities = chain(entities, type_rows(sources.types))
    listener.progress("tables", 0, 1)
    make_tables(path, entities, _all_redirects(folder))
    return path


def _all_redirects(folder: Path) -> Iterator[tuple[str, str, str]]:
    for path in sorted(folder.glob("redirects-*.jsonl")):
        with path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                if line.startswith("["):
                    wiki, title, target = json.loads(line)
                    yield wiki, title, target


def _articles(
    dumps: list[Dump], heads: list[dict[str, Any]], reading: Reading, spread: Map, listener: Listener
) -> list[Part]:
    totals = [head["counts"]["pages"] - head["counts"]["redirects"] - head["counts"]["others"] for head in heads]
    parts, before, stamp = [], 0, reading.tables.stat().st_mtime_ns
    for number, (dump, total) in enumerate(zip(dumps, totals, strict=True)):
        folder = reading.tables.parent / f"articles-{number:03d}"
        work = partial(read_articles, reading=Reading(dump.names, reading.tables, stamp, reading.limits))
        progress = partial(_report, listener, "articles", sum(totals), before)
        write_shards(folder, partial(_only_articles, dump), work, spread, progress=progress)
        parts.append(Part(dump.names.wiki, dump.lang, folder))
        before += total
    return parts


def _only_articles(dump: Dump) -> Iterator[Page]:
    return (page for page in pages(dump, lambda _message: None) if page.namespace == 0 and page.redirect is None)


def _report(listener: Listener, name: str, total: int, before: int, done: int) -> None:
    listener.progress(name, before + done, total)


def _counts(part: Part) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for line in read_shards(part.folder):
        if line.startswith('{"counts"'):
            counts.update(json.loads(line)["counts"])
    return dict(sorted(counts.items()))


def _keep_remark(folder: Path, message: str) -> None:
    with atomic_write(folder / "remarks.txt") as file:
        file.write(message + "\n")


def _kept_remarks(folder: Path) -> Sequence[str]:
    path = folder / "remarks.txt"
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n") if path.exists() else []


def _write(
    parts: list[Part], base: Any, output: Path, choice: Choice, report: dict[str, Any], listener: Listener
) -> dict[str, Any]:
    """The folder under another name, then under its own."""
    with temporary_folder(output) as temporary:
        whole = temporary / "whole"
        whole.mkdir()
        report |= write_choice(parts, base, whole, choice, lambda name: listener.progress(name, 0, 0))
        with atomic_write(whole / REPORT) as file:
            file.write(json.dumps(report, ensure_ascii=False, indent=2) + "\n")
        whole.rename(output.resolve())
    return report
