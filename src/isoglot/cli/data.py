"""`isoglot data list`, `get`, `import` and `check`: the data sets of the catalogue.

Lists and findings go to stdout, progress to stderr.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoglot.cli import console
from isoglot.cli.console import say, wrapped
from isoglot.cli.options import Data, DataIfThere, finite

if TYPE_CHECKING:
    from isoglot.data.sets import DataSet


def list_sets(data: DataIfThere) -> None:
    """List the data sets with use, languages, rows and licence."""
    from isoglot.data.sets import catalogue, present

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


def get(
    names: Annotated[list[str], typer.Argument(help="Names of data sets (`isoglot data list`).")],
    data: Data,
    base_url: Annotated[str, typer.Option(help="Mirror to download from, laid out as <mirror>/<host>/<path>.")] = "",
    timeout: Annotated[float, typer.Option(min=0.1, callback=finite, help="Read timeout in seconds.")] = 30.0,
    attempts: Annotated[int, typer.Option(min=1, help="Maximum attempts per file.")] = 5,
) -> None:
    """Download and verify data sets; resume interrupted downloads."""
    from isoglot.data.sets import Network, find
    from isoglot.data.sets import get as get_set

    console.on_interrupt("run the same command again to resume the download")
    network = Network(mirror=base_url, timeout=timeout, attempts=attempts)
    for one in [find(name) for name in names]:
        say(f"{one.name}: {one.what}; licence: {one.licence}; redistribution: {one.redistribution}")
        with console.Progress("downloading", unit="bytes") as progress:

            def shown(address: str, done: int, total: int | None, progress: console.Progress = progress) -> None:
                progress.what = address.rpartition("/")[2][:40]
                progress(done, total)

            folder = get_set(one.name, data, network=network, progress=shown)
        typer.echo(folder)


def import_(
    name: Annotated[str, typer.Argument(help="Name of the set, such as tatoeba-laser.")],
    folder: Annotated[Path, typer.Argument(help="Folder with the files as they are published.")],
    data: Annotated[Path, typer.Option(help="Folder to write into; the set gets a folder of its name.")],
) -> None:
    """Write a set in the normal form that the tasks read, with checksums of the published files."""
    from isoglot.data.sets.importers import import_folder

    target, rows = import_folder(name, folder, data)
    say(f"{name}: {rows:,} rows")
    typer.echo(target)


def check(
    data: Data,
    names: Annotated[list[str] | None, typer.Argument(help="Names of data sets; default: all that exist.")] = None,
) -> None:
    """Check data sets; exit with 1 if any is absent, incomplete or wrong."""
    from isoglot.data.sets import catalogue, find
    from isoglot.data.sets import check as check_set

    sets = [find(name) for name in names or []] or [one for one in catalogue().values() if (data / one.name).is_dir()]
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
