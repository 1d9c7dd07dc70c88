"""`isoglot data list|get|import|check`: sets of the catalogue, fetched, in one normal form, and whether they are right.

Lists and findings go to stdout, progress to stderr.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from isoglot.cli.shown import wrapped
from isoglot.data.sets import DataSet, Network, catalogue, find, present
from isoglot.data.sets import check as check_set
from isoglot.data.sets import get as get_set
from isoglot.data.sets.importers import import_folder

EVERY = 5.0  # seconds between plain lines where there is no terminal


def show_list(data: Path | None = None) -> None:
    """Four lines for each set, the last its address; with a folder, also whether it is there (`check` reads the files).

    A terminal gets them wrapped between words, a pipe whole. An address is never broken.
    """
    for one in catalogue().values():
        there = f" (here: {present(one, data)})" if data else ""
        size = f"{one.rows:,} {one.unit}" if one.rows else "not counted"
        typer.echo(wrapped(f"{one.name}{there}: {size}; languages: {one.languages}"))
        typer.echo(wrapped(f"{one.use}; {_known(one)}", indent="  "))
        typer.echo(wrapped(f"licence: {one.licence}; redistribution: {one.redistribution}", indent="  "))
        typer.echo(f"  {one.address}")


def _known(one: DataSet) -> str:
    """How a set is got, and what its files are compared with."""
    if one.files:
        return f"{len(one.files):,} files with checksums"
    counts = ", ".join(map(str, one.counts))
    how = "got by hand" if one.manual else "no checksums recorded"
    return f"{how}{counts and f', expected: {counts}'}"


def get(names: Sequence[str], data: Path, *, base_url: str = "", timeout: float = 30.0, attempts: int = 5) -> None:
    """Download sets into folders of their names below `data`; the folders go to stdout, one a line.

    Names are looked up before anything is fetched. Raises `CorpusError` as `isoglot.data.sets.get`.
    """
    network = Network(mirror=base_url, timeout=timeout, attempts=attempts)
    for one in [find(name) for name in names]:
        typer.echo(f"{one.name}: {one.what}; licence: {one.licence}; redistribution: {one.redistribution}", err=True)
        with _Watcher() as watcher:
            folder = get_set(one.name, data, network=network, watch=watcher)
        typer.echo(folder)


def import_(name: str, folder: Path, data: Path) -> None:
    """Write the set `name`, whose published files are in `folder`, in its normal form into a folder of `data`."""
    target, rows = import_folder(name, folder, data)
    typer.echo(f"{name}: {rows:,} rows", err=True)
    typer.echo(target)


def check(names: Sequence[str], data: Path) -> None:
    """One line for each set: those named, or all that are there. Exit code 1 if any is absent or wrong."""
    sets = [find(name) for name in names] or [one for one in catalogue().values() if (data / one.name).is_dir()]
    if not sets:
        how = f"isoglot data get NAME --data {shlex.quote(str(data))}"
        typer.echo(f"{data}: none of the sets is there; get one with: {how}", err=True)
        raise typer.Exit(1)
    findings = []
    for one in sets:
        findings.append(check_set(one, data))
        typer.echo(findings[-1])
    if any(finding.state not in ("ok", "unknown") for finding in findings):
        raise typer.Exit(1)


class _Watcher:
    """Shows transfers: a bar on a terminal, a plain line now and then elsewhere."""

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self.bars = Progress(*columns, console=console, transient=True) if console.is_terminal else None
        self.row: TaskID | None = None
        self.told = time.monotonic()

    def __enter__(self) -> _Watcher:
        if self.bars:
            self.bars.start()
            self.row = self.bars.add_task("", total=None)
        return self

    def __exit__(self, *_error: object) -> None:
        if self.bars:
            self.bars.stop()

    def __call__(self, address: str, done: int, total: int | None) -> None:
        name = address.rpartition("/")[2][:40]
        if self.bars and self.row is not None:
            self.bars.update(self.row, description=name, completed=done, total=total)
        elif time.monotonic() - self.told > EVERY:
            self.told = time.monotonic()
            typer.echo(f"{name}: {done / 1e6:.1f} MB" + (f" of {total / 1e6:.1f}" if total else ""), err=True)
