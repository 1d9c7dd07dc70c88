"""Options that several verbs have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(help="Folder, packaged name, or hub id in the local cache.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")]
Languages = Annotated[str, typer.Option(help="Codes separated by commas, of any code system; empty: all.")]
Pooling = Annotated[str | None, typer.Option(help="Instead of the model's own pooling.")]
Prompt = Annotated[str | None, typer.Option(help="Put before every text, instead of the model's own.")]


def finite(value: float | None) -> float | None:
    """The callback of every option of type float: NaN and infinity are wrong usage.

    NaN passes every comparison with a bound, and as a threshold it would pass every filter or none.
    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def note_fewer(option: str, asked: int, there: int, what: str) -> None:
    """A note on stderr that fewer are there than an option asks for, so that all of them are taken."""
    if asked > there:
        typer.echo(f"{option} {asked}: only {max(0, there):,} {what} are there; using all of them", err=True)


def split(text: str) -> list[str]:
    """The parts of a text between commas, without blanks and empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


Ray = Annotated[
    str, typer.Option(metavar="ADDRESS", help="In pieces: local (workers here), auto or ray://HOST:PORT (a cluster).")
]
Cores = Annotated[int, typer.Option(min=1, help="With --ray: cores that a piece takes.")]
