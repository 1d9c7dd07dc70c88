"""`isoglot wikipedia`: extract entity-linked sentences from dumps."""

from __future__ import annotations

from typing import Annotated

import typer

from isoglot.cli.console import Progress, on_interrupt, say
from isoglot.cli.options import Output, Settings
from isoglot.cli.signatures import Of


def wikipedia(
    dumps: Annotated[list[str], typer.Argument(metavar="DUMP...")],
    *,
    output: Output,
    files: Annotated[Settings, Of("wikipedia.build:Sources")],
    choice: Annotated[
        Settings, Of("wikipedia.sample:Choice", share=typer.Option("--per-entity"), size=typer.Option("--sample"))
    ],
    limits: Annotated[
        Settings, Of("wikipedia.wikitext:Limits", least=typer.Option("--min-length"), most=typer.Option("--max-length"))
    ],
    settings: Annotated[Settings, Of("wikipedia.build:build")],
) -> None:
    """Extract sentences with linked entities from Wikipedia dumps; the same command resumes.

    dumps   mediaWiki XML dumps, plain or compressed; CODE=FILE sets the language
    output  output folder
    """
    from isoglot.wikipedia import Choice, Limits, Sources, build

    on_interrupt("run the same command again to resume")
    sources = Sources(tuple(dumps), **files, limits=Limits(**limits))
    with Progress("", unit="") as progress:
        report = build(sources, output, choice=Choice(**choice), progress=progress.part, report=say, **settings)
        for lang, counts in report["instances"].items():
            named = [f"{count:,} {why}" for why, count in counts.items() if why not in ("eligible", "written")]
            found = f"{counts['written']:,} sentences with an entity of {counts.get('eligible', 0):,}"
            say(f"{lang}: {found}; skipped: {', '.join(named) or 'none'}")
        say(f"{report['entities written']:,} entities")
