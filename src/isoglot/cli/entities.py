"""`isoglot entities`: vectors for the entities of a folder that `isoglot wikipedia` wrote, read or trained.

The path of the table goes to stdout, words to stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[Path, typer.Argument(help="What `isoglot wikipedia` wrote; it holds entities.tsv.")],
    vectors: Annotated[
        Path | None, typer.Option(help="Vectors of Wikipedia2Vec: its text (also compressed) or a saved model.")
    ] = None,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Read --vectors even if they are a saved model, which can run code.")
    ] = False,
    train: Annotated[bool, typer.Option("--train", help="Train them instead, on the dumps.")] = False,
    dump: Annotated[
        list[str] | None, typer.Option(help="With --train: a MediaWiki XML dump, FILE or CODE=FILE; repeatable.")
    ] = None,
    titles: Annotated[
        Path | None, typer.Option(help="Lines of language, tab, title, tab, id; default: labels are titles.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Of the titles of the vectors; default: en, or that of the dumps.")
    ] = None,
    dim: Annotated[int, typer.Option(min=1, help="With --train: width of the vectors.")] = 768,
    iterations: Annotated[int, typer.Option(min=1, help="With --train: times the pages are read.")] = 5,
    min_count: Annotated[int, typer.Option(min=1, help="With --train: least occurrences of words, entities.")] = 5,
    workers: Annotated[int, typer.Option(min=1, help="With --train: processes.")] = 1,
) -> None:
    """Entity vectors to begin with: Wikipedia2Vec's, in the order of a folder's entities."""
    if train == (vectors is not None) or train != bool(dump):
        raise typer.BadParameter("give either --vectors, or --train and --dump")
    from isoglot.data.entity_vectors import VECTORS, align, write_vectors
    from isoglot.data.files import check_output, exclusive
    from isoglot.data.readers.entities import TABLE, read_table
    from isoglot.wikipedia import entity_training
    from isoglot.wikipedia.entities import titles_of

    next(read_table(folder / TABLE))  # before hours of training, not after
    table = folder / VECTORS
    for file in (table, table.with_suffix(".json")):
        check_output(file, inputs=[folder / TABLE, vectors, titles])
    with exclusive(table):
        if train:
            settings = entity_training.Training(dim=dim, iterations=iterations, min_count=min_count, workers=workers)
            vectors = _beside(folder, entity_training.MODEL)  # not inside, where every training run would read it
            dumps = [name for word in dump or [] for name in (word, word.partition("=")[2]) if name]
            check_output(vectors, inputs=[titles, *dumps])
            wiki = entity_training.train(dump or [], vectors, settings, tell=_tell, progress=sys.stderr.isatty())
            _tell(f"the model: {vectors}")
            language = language or wiki
        assert vectors is not None
        pairs = titles_of(titles, language or "en") if titles else None
        aligned = align(vectors, folder, titles=pairs, allow_pickle=allow_pickle or train)
        path = write_vectors(aligned, folder, source=vectors)
    count, missing = len(aligned.ids), len(aligned.missing)
    _tell(f"{count - missing:,} of {count:,} entities have a vector of {aligned.vectors.shape[1]} dimensions")
    if missing:
        _tell(f"{missing:,} have none and begin at random: {path.with_suffix('.json')} lists them")
    typer.echo(path)


def _beside(folder: Path, ending: str) -> Path:
    whole = folder.resolve()
    return whole.with_name(f"{whole.name}.{ending}")


def _tell(words: str) -> None:
    typer.echo(words, err=True)
