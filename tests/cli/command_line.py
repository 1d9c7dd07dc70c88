"""Commands of the command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import typer
from typer.testing import CliRunner

from isoglot.data.files import exclusive


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


def runner(**commands: Callable[..., object]) -> Callable[..., str]:
    """A function from the words of a command to what it says on stderr; of several, the first word names one.

    Errors of users are raised, as `main` catches them; another exit than 0 is a failure.
    """
    app = typer.Typer()
    for name, command in commands.items():
        app.command(name)(command)

    def run(*words: object) -> str:
        done = CliRunner().invoke(app, [str(word) for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.stderr
        return done.stderr

    return run
