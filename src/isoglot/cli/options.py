"""Options that several verbs have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(help="Folder, packaged name, or hub id in the local cache.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")]
Languages = Annotated[str, typer.Option(help="Codes separated by commas, of any code system; empty: all.")]
Pooling = Annotated[str | None, typer.Option(help="Instead of the model's own pooling.")]
Prompt = Annotated[str | None, typer.Option(help="Put before every text, instead of the model's own.")]


def split(text: str) -> list[str]:
    """The parts of a text between commas, without blanks and empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


Ray = Annotated[
    str, typer.Option(metavar="ADDRESS", help="In pieces: local (workers here), auto or ray://HOST:PORT (a cluster).")
]
Cores = Annotated[int, typer.Option(min=1, help="With --ray: cores that a piece takes.")]
