"""Commands of the command line, run in this process."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread

import typer
from typer.testing import CliRunner

from isoglot.cli.signatures import expand_options
from isoglot.data.files import exclusive

# One step of a static model in the folder `m`, on p.tsv.
RECIPE = """
name = "own"
steps = 1
encoder = { kind = "static", model = "m" }
optimizer = { lr = 0.1 }
[[streams]]
sources = [{ reader = "tsv", path = "p.tsv" }]
batching = { size = 4 }
objectives = [{ name = "info_nce" }]
"""


@contextmanager
def locked_elsewhere(path: str | Path) -> Iterator[None]:
    """An output that another thread holds, as another process would."""
    held, end = Event(), Event()

    def hold() -> None:
        with exclusive(path):
            held.set()
            end.wait()

    thread = Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield
    finally:
        end.set()
        thread.join()


def as_function(verb: Callable[..., object]) -> Callable[..., None]:
    """A verb as a function of all its options: by place in the order of its help, or by name."""
    expanded = expand_options(verb)
    parameters = inspect.signature(expanded).parameters
    defaults = {name: one.default for name, one in parameters.items() if one.default is not one.empty}
    return lambda *places, **given: expanded(**defaults | dict(zip(parameters, places, strict=False)) | given)


def runner(**commands: Callable[..., object]) -> Callable[..., str]:
    """`invoke` of a command; of several, the first word names one."""
    app = typer.Typer()
    for name, command in commands.items():
        app.command(name)(expand_options(command))
    return partial(invoke, app)


def invoke(app: typer.Typer, *words: object) -> str:
    """What an application says on stderr. Errors of users are raised, as `main` catches them."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.stderr
    return done.stderr
