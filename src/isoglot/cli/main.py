"""The command line. Each verb imports what it needs when it runs, so that help is fast.

Results go to files or to stdout, messages to stderr. An error is one line and exit code 1; `--debug` adds the
traceback. Wrong usage of the command line itself is exit code 2, Ctrl-C 130 and SIGTERM 143.
"""

from __future__ import annotations

import errno
import functools
import inspect
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from isoglot.cli import console, data, encode, evaluation, index, models, options, pairs, training, wikipedia
from isoglot.cli.signatures import ROOT, expand_options
from isoglot.core import environment
from isoglot.core.errors import IsoglotError, OutputError, naming_extras, nearest
from isoglot.core.plugins import import_module
from isoglot.data.files import atomic_write

VERBS = (
    training.demo, training.train, training.sweep, training.freeze, evaluation.evaluate, evaluation.compare,
    evaluation.report, evaluation.tasks, encode.encode, pairs.mine, pairs.align, index.index, index.search, index.serve,
    index.export, evaluation.plot, models.trim, models.fit, models.average, models.convert, pairs.negatives,
    pairs.filter, wikipedia.wikipedia, wikipedia.entities,
)  # fmt: skip
GROUPS = {
    "recipe": (
        "List, show and check recipes: one TOML file is one training run.",
        {"list": training.list_recipes, "show": training.show, "check": training.check},
    ),
    "data": (
        "List, download and check test and training sets; count what a recipe trains on.",
        {"list": data.list_sets, "get": data.get, "import": data.import_, "check": data.check, "report": data.report},
    ),
    "models": (
        "List and unpack models that are distributed as Python packages.",
        {"list": models.list_models, "get": models.get},
    ),
}
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
    """A verb that also accepts `--quiet` and `--log-level`, so that they can precede or follow the verb; its parameters
    are completed by the shell.
    """

    @functools.wraps(verb)
    def run(*, quiet: bool, log_level: str | None, **values: Any) -> None:
        options.set_level(log_level, quiet=quiet)
        verb(**values)

    signature = inspect.signature(verb, eval_str=True)
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()]
    for one in parameters:
        if listed := COMPLETED.get(one.name):
            for info in one.annotation.__metadata__:
                info.autocompletion = make_completion(listed)
    for name, kind, default in (("quiet", Quiet, False), ("log_level", Level, None)):
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default))
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


# Parameters whose values the shell completes, and the names that these are.
COMPLETED = {"recipe": "recipe", "tasks": "task", "model": "model", "subject": "model", "words": "model"}


def make_completion(kind: str) -> Callable[[str], list[str]]:
    """A function to the names of a kind that begin with what is typed; of a list, with what follows its last comma."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if kind == "task" else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in _read_names()[kind] if name.startswith(last)]

    return complete


def _read_names() -> dict[str, list[str]]:
    """The names by kind. Importing what lists them takes seconds, so they are kept in the cache folder until a file of
    isoglot changes.
    """
    newest = max(path.stat().st_mtime for path in ROOT.rglob("*") if path.suffix in (".py", ".toml"))
    cache = environment.cache_folder() / "names.json"
    with suppress(OSError, ValueError):
        if cache.stat().st_mtime > newest:
            names: dict[str, list[str]] = json.loads(cache.read_text(encoding="utf-8"))
            return names
    from isoglot.evaluation import TASKS
    from isoglot.evaluation.suites import SUITES
    from isoglot.model import packaged
    from isoglot.training import recipe

    names = {"recipe": list(recipe.names()), "task": [*TASKS, *SUITES], "model": packaged.names()}
    with suppress(OSError, OutputError), atomic_write(cache) as stream:
        json.dump(names, stream)
    return names


def _make_group(summary: str, verbs: Mapping[str, Any]) -> typer.Typer:
    """A group of verbs, which accept the options of every verb."""
    group = typer.Typer(
        no_args_is_help=True, pretty_exceptions_enable=False, help=summary,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    for name, verb in verbs.items():
        group.command(name)(_with_levels(expand_options(verb)))
    return group


app = _make_group("Train, evaluate and use multilingual sentence embeddings.", {verb.__name__: verb for verb in VERBS})
for name, (summary, commands) in GROUPS.items():
    app.add_typer(_make_group(summary, commands), name=name)


def _show_version(value: bool) -> None:
    if not value:
        return
    import platform
    from importlib.metadata import distributions

    from isoglot.core import __version__

    # Importing torch takes a second, so its version is read from the package metadata.
    torch = next((one.version for one in distributions(name="torch")), "not installed")
    typer.echo(f"isoglot {__version__}\nPython {platform.python_version()}\ntorch {torch}")
    raise typer.Exit


@app.callback()
def whole(
    version: Annotated[  # noqa: ARG001 (its callback does the work)
        bool,
        typer.Option(
            "--version", help="Show the versions of isoglot, Python and torch.", is_eager=True, callback=_show_version
        ),
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
    options.set_level(log_level or environment.log_level(), quiet=quiet)
    if (form := environment.log_format()) not in console.FORMATS:
        raise typer.BadParameter(f"ISOGLOT_LOG_FORMAT is {form!r}; {nearest(form, console.FORMATS)}")
    for name in environment.list_unknown():
        console.LOG.warning("warning: unknown environment variable %s; %s", name, nearest(name, environment.VARIABLES))
    for module in modules or []:
        import_module(module)


def _require_text(words: list[str]) -> None:
    """Reject file names that are not UTF-8 now, not after hours of work: results and tables contain them as UTF-8."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise IsoglotError(f"the argument {word!r} is not UTF-8; rename the file, or convert the text") from None
        if "\0" in word:
            raise IsoglotError(f"the argument {word[:60]!r} contains a NUL byte; remove it")


class Interrupted(SystemExit):
    """Ctrl-C or SIGTERM. Not an `Exception`, so that no handler catches it as an error."""


@contextmanager
def _interruptible() -> Iterator[None]:
    """Make Ctrl-C and SIGTERM raise `Interrupted`, so that open files are closed; ignored signals stay ignored."""

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
    console.LOG.error("%s", f"isoglot: {message}")
    sys.exit(1)


def _open_streams() -> None:
    """Open the null device for streams that the caller has closed, since the next file would take the number of one;
    write UTF-8 to a file or a pipe, as into every other file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w"))
    if isinstance(sys.stdout, TextIOWrapper) and not sys.stdout.isatty():  # a terminal has an encoding of its own
        sys.stdout.reconfigure(encoding="utf-8")


def main() -> NoReturn:
    """Run the command line; the entry point of the console script."""
    # Threads that wait for each other sleep instead of spinning. On a busy machine that is four to six times as fast.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _open_streams()
    console.CALL = console.Call()
    try:
        with _interruptible():
            try:
                _require_text(sys.argv[1:])
                with naming_extras():
                    app(prog_name="isoglot")
            finally:
                sys.stdout.flush()
    except Interrupted as end:
        note = f"; {console.CALL.resume}" if console.CALL.resume else ""
        console.LOG.error("%s", f"isoglot: interrupted{note}")
        sys.exit(end.code)
    except IsoglotError as error:
        if console.CALL.debug:
            raise
        _fail(str(error))
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ValueError as error:  # Python itself rejects a path with NUL, before the operating system does
        if "embedded null" not in str(error) or console.CALL.debug:
            raise
        _fail("the name of a file contains a NUL character; remove it")
    except OSError as error:  # errors of files that no part of the library has named
        if console.CALL.debug:
            raise
        where = f"{error.filename}: " if error.filename else ""
        if not where and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            where = "standard output: "  # whoever writes a file names it in the error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # drop its unwritten buffer
        _fail(f"{where}{error.strerror or error}")
    sys.exit(0)
