"""`isoglot wikipedia` and `entities`: entity-linked sentences from dumps, and vectors of their entities."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, on_interrupt, say
from isoglot.cli.options import Device, Output, Settings, open_encoder
from isoglot.cli.signatures import Of
from isoglot.data.files import check_output, check_outputs, exclusive


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
            written = f"{counts['written']:,} sentences with an entity of {counts.get('eligible', 0):,}"
            say(f"{lang}: {written}; skipped: {', '.join(named) or 'none'}")
        say(f"{report['entities written']:,} entities")


def entities(
    folder: Path,
    *,
    vectors: Path | None = None,
    allow_pickle: bool = False,
    model: str | None = None,
    train: bool = False,
    dump: list[str] | None = None,
    titles: Path | None = None,
    language: str | None = None,
    settings: Annotated[
        Settings, Of("wikipedia.entity_training:Training", "dim", "iterations", "min_count", "workers")
    ],
    device: Device = "auto",
) -> None:
    """Write initial entity vectors from Wikipedia2Vec or from a model, one row per entity of the folder.

    folder        output folder of `isoglot wikipedia`, with entities.tsv
    vectors       vectors of Wikipedia2Vec: text format, plain or compressed, or a saved model
    allow_pickle  allow --vectors to be a pickled model, which can run code; only for trusted files
    model         encode the entities' names with this model, instead of --vectors
    train         train vectors on the dumps, instead of --vectors
    dump          MediaWiki XML dump to train on, FILE or CODE=FILE; repeatable
    titles        TSV file of language, title, id; default: use the entities' labels as titles
    language      language of the titles in --vectors; default: en, or that of the dumps
    """
    if train + (vectors is not None) + (model is not None) != 1 or train != bool(dump):
        raise typer.BadParameter("pass one of --vectors, --model, or --train and --dump")
    from isoglot.data.entity_vectors import VECTORS, align, write_vectors
    from isoglot.data.readers.entities import TABLE, read_table
    from isoglot.wikipedia import entity_training
    from isoglot.wikipedia.entities import read_titles

    next(read_table(folder / TABLE))  # before hours of training, not after
    table = folder / VECTORS
    dumps = [name for word in dump or [] for name in (word, word.partition("=")[2]) if name]
    check_outputs(table, table.with_suffix(".json"), inputs=[folder / TABLE, vectors, titles, model, *dumps])
    with exclusive(table):
        if train:
            whole = folder.resolve()  # the model is not inside, where every training run would read it
            vectors = whole.with_name(f"{whole.name}.{entity_training.MODEL}")
            check_output(vectors, inputs=[titles, *dumps])
            training = entity_training.Training(**settings)
            wiki = entity_training.train(dump or [], vectors, training, report=say, progress=sys.stderr.isatty())
            say(f"the model: {vectors}")
            language = language or wiki
        if model is not None:
            aligned = entity_training.encode_names(open_encoder(model, device=device).encode, folder)
            path = write_vectors(aligned, folder, source=Path(model))
        else:
            assert vectors is not None
            pairs = read_titles(titles, language or "en") if titles else None
            aligned = align(vectors, folder, titles=pairs, allow_pickle=allow_pickle or train)
            path = write_vectors(aligned, folder, source=vectors)
    count, missing = len(aligned.ids), len(aligned.missing)
    say(f"{count - missing:,} of {count:,} entities have a vector of {aligned.vectors.shape[1]} dimensions")
    if missing:
        say(f"{missing:,} have none and are initialized at random: {path.with_suffix('.json')} lists them")
    typer.echo(path)
