"""`isoglot wikipedia`: extract entity-linked sentences from dumps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from isoglot.cli.console import Progress, on_interrupt, say


def wikipedia(
    dumps: Annotated[
        list[str],
        typer.Argument(
            metavar="DUMP...", help="MediaWiki XML dumps, plain or compressed; CODE=FILE sets the language."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    wikidata: Annotated[Path | None, typer.Option(help="Wikidata JSON dump, for titles and types of entities.")] = None,
    titles: Annotated[
        Path | None, typer.Option(help="TSV file of titles (language, title, id), instead of --wikidata.")
    ] = None,
    types: Annotated[
        Path | None, typer.Option(help="TSV file of types (id, ids of its types), instead of --wikidata.")
    ] = None,
    min_links: Annotated[int, typer.Option(min=0, help="Minimum number of links per entity, exclusive.")] = 10,
    count_language: Annotated[
        str | None, typer.Option(help="Count links only in this Wikipedia, such as en; default: all.")
    ] = None,
    all_pages: Annotated[bool, typer.Option("--all-pages", help="Include pages of removed entities.")] = False,
    keep_lonely: Annotated[bool, typer.Option("--keep-lonely", help="Keep sentences without hard negatives.")] = False,
    candidates: Annotated[
        int, typer.Option(min=1, help="Number of hard negative entities per sentence, of the same type.")
    ] = 10,
    per_entity: Annotated[int, typer.Option(min=1, help="Maximum sentences per entity and language.")] = 10_000,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum sentences per language; default: 1,000,000 for one language, 50,000 for several."
        ),
    ] = None,
    min_length: Annotated[
        int, typer.Option(min=1, help="Minimum width of a sentence in columns; wide characters count two.")
    ] = 20,
    max_length: Annotated[int, typer.Option(min=1, help="Maximum width of a sentence in columns.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for hard negatives and samples.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 1,
    work: Annotated[
        Path | None, typer.Option(help="Folder for intermediate files, kept; default: OUTPUT.work, removed at the end.")
    ] = None,
) -> None:
    """Extract sentences with linked entities from Wikipedia dumps; the same command resumes."""
    from isoglot.wikipedia import Choice, Limits, Sources, build

    on_interrupt("run the same command again to resume")
    sources = Sources(tuple(dumps), wikidata, titles, types, Limits(min_length, max_length))
    choice = Choice(
        min_links=min_links, count_language=count_language, all_pages=all_pages, keep_lonely=keep_lonely,
        candidates=candidates, share=per_entity, size=sample, seed=seed,
    )  # fmt: skip
    with Progress("", unit="") as progress:
        report = build(sources, output, choice=choice, work=work, workers=workers, progress=progress.part, report=say)
        for line in _lines(report):
            say(line)


def _lines(report: dict[str, Any]) -> Iterator[str]:
    for lang, counts in report["instances"].items():
        left_out = ", ".join(f"{count:,} {why}" for why, count in counts.items() if why not in ("eligible", "written"))
        yield f"{lang}: {counts['written']:,} sentences with an entity of {counts.get('eligible', 0):,}; skipped: " + (
            left_out or "none"
        )
    yield f"{report['entities written']:,} entities"
