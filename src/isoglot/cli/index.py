"""`isoglot index` and `isoglot export`: sentences into a searchable folder, and out of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from time import monotonic

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from isoglot.data.files import check_output, exclusive
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.encoders import load
from isoglot.errors import OutputError
from isoglot.index import Index, Origin, SearchError, add_sentences, read_sentences
from isoglot.index import export as export_index
from isoglot.index.approximate import FLAT, check


def run(
    model: str,
    sources: Sequence[str],
    output: Path,
    *,
    language: str = UNKNOWN,
    kind: str | None = None,
    pooling: str | None = None,
    prompt: str | None = None,
    query_prompt: str | None = None,
) -> None:
    """Make an index of files, each `FILE` or `CODE=FILE`, or add them to the one that is there.

    The folder goes to stdout. An index that is there keeps its prompts and its pooling, and refuses others. Raises
    `SearchError`, `CorpusError`, `EncoderError`.
    """
    default = canonical(language)
    files = [part for source in sources for part in (source, source.partition("=")[2]) if part]
    check_output(output, inputs=[model, *files], folder=True)
    with exclusive(output):
        _run(
            model, sources, output, default=default, kind=kind,
            pooling=pooling, prompt=prompt, query_prompt=query_prompt,
        )  # fmt: skip


def _run(
    model: str,
    sources: Sequence[str],
    output: Path,
    *,
    default: str,
    kind: str | None,
    pooling: str | None,
    prompt: str | None,
    query_prompt: str | None,
) -> None:
    there = Index.exists(output)
    if there:
        with Index.open(output) as index:
            before = index.origin
        _require_same(output, {"pooling": pooling, "prompt": prompt, "query-prompt": query_prompt}, before)
        pooling, prompt = before.pooling, before.prompt
    encoder = load(model, pooling=pooling, prompt=prompt)
    check(kind or FLAT, encoder.dim)
    sentences = chain.from_iterable(read_sentences(source, language=default) for source in sources)
    first = list(islice(sentences, 1))  # a file that cannot be read is told before a folder is bound to this model
    if there:
        before.require(encoder, model)
        index = Index.open(output)
    else:
        origin = Origin.of(encoder, model, pooling=pooling, prompt=prompt, query_prompt=query_prompt)
        index = Index.create(output, origin, kind=kind or FLAT)
    with index, _Counter() as counter:
        added = add_sentences(index, encoder, chain(first, sentences), kind=kind, progress=counter)
        known = f", {added.known:,} were there" if added.known else ""
        typer.echo(f"{added.new:,} sentences added{known}; {len(index):,} in the index ({index.kind})", err=True)
    typer.echo(output)


def export(folder: Path, output: Path) -> None:
    """Write an index to a Parquet file, which must lie outside of the index."""
    check_output(output)
    if output.resolve().is_relative_to(folder.resolve()):
        raise OutputError(f"{output}: lies in the index; choose a file outside of it")
    with Index.open(folder) as index:
        rows = export_index(index, output)
    typer.echo(f"{rows:,} sentences: {output}", err=True)


def _require_same(folder: Path, asked: dict[str, str | None], origin: Origin) -> None:
    kept = {"pooling": origin.pooling, "prompt": origin.prompt, "query-prompt": origin.query_prompt}
    for name, value in asked.items():
        if value is not None and value != kept[name]:
            raise SearchError(f"{folder}: was made with --{name} {kept[name]!r}, not {value!r}; leave the option out")


class _Counter:
    """Sentences so far: a live line on a terminal, nothing elsewhere."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self._live = Live(console=self.console, refresh_per_second=4, transient=True)
        self._start = monotonic()

    def __enter__(self) -> _Counter:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    def __call__(self, done: int) -> None:
        rate = done / max(monotonic() - self._start, 1e-9)
        self._live.update(Text(f"{done:,} sentences, {rate:,.0f}/s"))
