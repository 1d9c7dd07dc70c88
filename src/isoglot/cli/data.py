"""`isoglot data list|get|import|check`: sets of the catalogue, fetched, in one normal form, and whether they are right.

Lists and findings go to stdout, progress to stderr.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import typer

from isoglot.cli import console
from isoglot.cli.console import say, wrapped
from isoglot.data.sets import DataSet, Network, catalogue, find, present
from isoglot.data.sets import check as check_set
from isoglot.data.sets import get as get_set
from isoglot.data.sets.importers import import_folder


def show_list(data: Path | None = None) -> None:
    """Four lines for each set, the last its address; with a folder, also whether it is there (`check` reads the files).

    A terminal gets them wrapped between words, a pipe whole. An address is never broken.
    """
    for one in catalogue().values():
        there = f" (here: {present(one, data)})" if data else ""
        size = f"{one.rows:,} {one.unit}" if one.rows else "size unknown"
        typer.echo(wrapped(f"{one.name}{there}: {size}; languages: {one.languages}"))
        typer.echo(wrapped(f"{one.use}; {_known(one)}", indent="  "))
        typer.echo(wrapped(f"licence: {one.licence}; redistribution: {one.redistribution}", indent="  "))
        typer.echo(f"  {one.address}")


def _known(one: DataSet) -> str:
    """How a set is downloaded, and what its files are compared with."""
    if one.files:
        return f"{len(one.files):,} files with checksums"
    counts = ", ".join(map(str, one.counts))
    how = "manual download" if one.manual else "no checksums recorded"
    return f"{how}{counts and f', expected: {counts}'}"


def get(names: Sequence[str], data: Path, *, base_url: str = "", timeout: float = 30.0, attempts: int = 5) -> None:
    """Download sets into folders of their names below `data`; the folders go to stdout, one a line.

    Names are looked up before anything is fetched. Raises `CorpusError` as `isoglot.data.sets.get`.
    """
    console.on_interrupt("run the same command again to resume the download")
    network = Network(mirror=base_url, timeout=timeout, attempts=attempts)
    for one in [find(name) for name in names]:
        say(f"{one.name}: {one.what}; licence: {one.licence}; redistribution: {one.redistribution}")
        with console.Progress("downloading", unit="bytes") as progress:

            def watch(address: str, done: int, total: int | None, progress: console.Progress = progress) -> None:
                progress.what = address.rpartition("/")[2][:40]
                progress(done, total)

            folder = get_set(one.name, data, network=network, watch=watch)
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
        say(f"{data}: contains no data set; download one with: {how}")
        raise typer.Exit(1)
    findings = []
    for one in sets:
        findings.append(check_set(one, data))
        typer.echo(findings[-1])
    if any(finding.state not in ("ok", "unknown") for finding in findings):
        raise typer.Exit(1)
