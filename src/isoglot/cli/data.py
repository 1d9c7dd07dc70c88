"""`isoglot data`: download, import and check data sets; count the data of a recipe. Results go to stdout, progress to
stderr.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from isoglot.cli import console
from isoglot.cli.console import say, show_columns, wrap
from isoglot.cli.options import Data, DataIfThere, Json, Overrides, Settings
from isoglot.cli.signatures import Of

NetworkOptions = Annotated[
    Settings,
    Of("data.sets.download:Network", "mirror", "timeout", "attempts", mirror=typer.Option("--base-url"),
       timeout=typer.Option(min=0.1), attempts=typer.Option(min=1)),
]  # fmt: skip


def list_sets(data: DataIfThere) -> None:
    """List the data sets with use, languages, rows and licence."""
    from isoglot.data.sets import catalogue, present

    for one in catalogue().values():
        presence = f" (here: {present(one, data)})" if data else ""
        size = f"{one.rows:,} {one.unit}" if one.rows else "size unknown"
        typer.echo(wrap(f"{one.name}{presence}: {size}; languages: {one.languages}"))
        checks = f"{len(one.files):,} files with checksums"
        if not one.files:
            checks = "manual download" if one.manual else "no checksums recorded"
            checks += f", expected: {', '.join(map(str, one.counts))}" if one.counts else ""
        typer.echo(wrap(f"{one.use}; {checks}", indent="  "))
        typer.echo(wrap(f"licence: {one.licence}; redistribution: {one.redistribution}", indent="  "))
        typer.echo(f"  {one.address}")


def get(names: list[str], *, data: Data, network: NetworkOptions) -> None:
    """Download and verify data sets; resume interrupted downloads.

    names   names of data sets (`isoglot data list`)
    mirror  mirror to download from, laid out as <mirror>/<host>/<path>
    """
    from isoglot.data.sets import Network, find
    from isoglot.data.sets import get as get_set

    console.on_interrupt("run the same command again to resume the download")
    for one in [find(name) for name in names]:
        say(f"{one.name}: {one.what}; licence: {one.licence}; redistribution: {one.redistribution}")
        with console.Progress("downloading", unit="bytes") as progress:

            def show(address: str, done: int, total: int | None, progress: console.Progress = progress) -> None:
                progress.work = address.rpartition("/")[2][:40]
                progress(done, total)

            folder = get_set(one.name, data, network=Network(**network), progress=show)
        typer.echo(folder)


def import_(name: str, folder: Path, *, data: Path) -> None:
    """Convert a data set to the normal form that the tasks read, with checksums of the published files.

    name    name of the data set, such as tatoeba-laser
    folder  folder with the published files
    data    output folder; the data set is written to a subfolder of its name
    """
    from isoglot.data.sets.importers import import_folder

    target, rows = import_folder(name, folder, data)
    say(f"{name}: {rows:,} rows")
    typer.echo(target)


def check(names: list[str] | None = None, *, data: Data) -> None:
    """Check data sets; exit with 1 if any is absent, incomplete or wrong.

    names  names of data sets; default: all in the folder
    """
    from isoglot.data.sets import catalogue, find
    from isoglot.data.sets import check as check_set

    sets = [find(name) for name in names or []] or [one for one in catalogue().values() if (data / one.name).is_dir()]
    if not sets:
        command = f"isoglot data get NAME --data {shlex.quote(str(data))}"
        say(f"{data}: contains no data set; download one with: {command}")
        raise typer.Exit(1)
    findings = []
    for one in sets:
        findings.append(check_set(one, data))
        typer.echo(findings[-1])
    if any(finding.state not in ("ok", "unknown") for finding in findings):
        raise typer.Exit(1)


def report(recipe: str, *, overrides: Overrides = None, as_json: Json = False) -> None:
    """Count the training data of a recipe: sentences by language and source, after all filters.

    recipe  TOML file, name of a packaged recipe, or folder of a run
    """
    if (saved_counts := Path(recipe) / "data.json").is_file():
        streams = json.loads(saved_counts.read_text(encoding="utf-8"))
    else:
        from isoglot.training import recipe as recipes
        from isoglot.training.plan import compositions, make_plan

        streams = compositions(make_plan(recipes.load(recipe, overrides or []), recipe), report=say)
    if as_json:
        typer.echo(json.dumps(streams, ensure_ascii=False, indent=1))
        return
    for name, sources in streams.items():
        for source, content in sources.items():
            counts = ", ".join(f"{count:,} {what}" for what, count in content["counts"].items())
            typer.echo(f"{name}, {source}: groups: {counts}")
        show_columns(_by_language(sources))


def _by_language(sources: dict[str, dict[str, Any]]) -> list[list[str]]:
    """One row per language, most frequent first, and one column per source with sentences."""
    columns = {name: content["sentences"] for name, content in sources.items() if content["sentences"]}
    total: Counter[str] = Counter()
    for sentences in columns.values():
        total.update(sentences)
    columns = {"all": total, **columns}
    rows = [["all", *(f"{sum(sentences.values()):,}" for sentences in columns.values())]]
    for code, _ in sorted(total.items(), key=lambda item: (-item[1], item[0])):
        rows.append([code, *(f"{sentences[code]:,}" if sentences.get(code) else "-" for sentences in columns.values())])
    return [["language", *columns], *rows]
