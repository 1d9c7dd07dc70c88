"""`isoglot entities`: read or train vectors for the entities in the output folder of `isoglot wikipedia`. The path of
the table goes to stdout, messages to stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import say
from isoglot.cli.options import Device, open_encoder


def entities(
    folder: Annotated[Path, typer.Argument(help="Output folder of `isoglot wikipedia`, with entities.tsv.")],
    vectors: Annotated[
        Path | None,
        typer.Option(help="Vectors of Wikipedia2Vec: text format, plain or compressed, or a saved model."),
    ] = None,
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle", help="Allow --vectors to be a pickled model, which can run code; only for trusted files."
        ),
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="Encode the entities' names with this model, instead of --vectors.")
    ] = None,
    train: Annotated[bool, typer.Option("--train", help="Train vectors on the dumps, instead of --vectors.")] = False,
    dump: Annotated[
        list[str] | None, typer.Option(help="MediaWiki XML dump to train on, FILE or CODE=FILE; repeatable.")
    ] = None,
    titles: Annotated[
        Path | None, typer.Option(help="TSV file of language, title, id; default: use the entities' labels as titles.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language of the titles in --vectors; default: en, or that of the dumps.")
    ] = None,
    dim: Annotated[int, typer.Option(min=1, help="Dimensions of the trained vectors.")] = 768,
    iterations: Annotated[int, typer.Option(min=1, help="Number of training epochs.")] = 5,
    min_count: Annotated[int, typer.Option(min=1, help="Minimum count of a word or an entity in training.")] = 5,
    workers: Annotated[int, typer.Option(min=1, help="Number of training processes.")] = 1,
    device: Device = "auto",
) -> None:
    """Write initial entity vectors from Wikipedia2Vec or from a model, one row per entity of the folder."""
    if train + (vectors is not None) + (model is not None) != 1 or train != bool(dump):
        raise typer.BadParameter("pass one of --vectors, --model, or --train and --dump")
    from isoglot.data.entity_vectors import VECTORS, align, write_vectors
    from isoglot.data.files import check_output, check_outputs, exclusive
    from isoglot.data.readers.entities import TABLE, read_table
    from isoglot.wikipedia import entity_training
    from isoglot.wikipedia.entities import titles_of
    from isoglot.wikipedia.names import encode_names

    next(read_table(folder / TABLE))  # before hours of training, not after
    table = folder / VECTORS
    dumps = [name for word in dump or [] for name in (word, word.partition("=")[2]) if name]
    check_outputs(table, table.with_suffix(".json"), inputs=[folder / TABLE, vectors, titles, model, *dumps])
    with exclusive(table):
        if train:
            settings = entity_training.Training(dim=dim, iterations=iterations, min_count=min_count, workers=workers)
            vectors = _beside(folder, entity_training.MODEL)  # not inside, where every training run would read it
            check_output(vectors, inputs=[titles, *dumps])
            wiki = entity_training.train(dump or [], vectors, settings, report=say, progress=sys.stderr.isatty())
            say(f"the model: {vectors}")
            language = language or wiki
        if model is not None:
            aligned = encode_names(open_encoder(model, device=device), folder)
            path = write_vectors(aligned, folder, source=Path(model))
        else:
            assert vectors is not None
            pairs = titles_of(titles, language or "en") if titles else None
            aligned = align(vectors, folder, titles=pairs, allow_pickle=allow_pickle or train)
            path = write_vectors(aligned, folder, source=vectors)
    count, missing = len(aligned.ids), len(aligned.missing)
    say(f"{count - missing:,} of {count:,} entities have a vector of {aligned.vectors.shape[1]} dimensions")
    if missing:
        say(f"{missing:,} have none and are initialized at random: {path.with_suffix('.json')} lists them")
    typer.echo(path)


def _beside(folder: Path, ending: str) -> Path:
    whole = folder.resolve()
    return whole.with_name(f"{whole.name}.{ending}")
