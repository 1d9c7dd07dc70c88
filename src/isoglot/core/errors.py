"""The exceptions of isoglot, a tree with one base class to catch.

IsoglotError
├── RecipeError      a setting is unknown or wrong; names the key and the value
├── CorpusError      text or vectors cannot be read; names file and line, or row
├── EncoderError     a model cannot be found, loaded, saved or converted
├── OutputError      an output is in use, contains something else, or cannot be written
├── CheckpointError  a checkpoint cannot be written or read
├── PluginError      a plug-in cannot be imported or is invalid; names its package
├── SearchError      an index cannot be made, read, extended or searched; names the folder
├── MissingExtraError  a package is not installed; names what installs it
└── EvaluationError  a task's data or an encoder's vectors are missing or invalid

Every message names the place, the invalid value and the fix. Wrong arguments of Python calls are plain
`ValueError`s, raised at construction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

EXTRAS = {
    "sklearn": "evaluate", "scipy": "evaluate", "matplotlib": "evaluate", "plotly": "plot", "umap": "umap",
    "onnx": "torch",
    "openpyxl": "xlsx", "pyarrow": "parquet", "datasets": "datasets",
    "mwparserfromhell": "wikipedia",
    "lxml": "documents", "polib": "documents", "sentencex": "documents",
    "torch": "torch", "transformers": "torch", "faiss": "faiss", "ray": "ray", "mteb": "interop",
    **dict.fromkeys(("starlette", "uvicorn", "httptools", "orjson", "prometheus_client"), "serve"),
    "pandas": "", "polars": "",  # of no extra: only who has them wants a data frame
}  # fmt: skip
_CONTROLS = re.compile(r"\s*[\r\n]+\s*|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class IsoglotError(Exception):
    """Something the user can fix. The message is one line, meant to be shown without a traceback.

    Names of files and values from data may contain anything, so line ends become spaces and control characters, which a
    terminal would act on, their escapes.
    """

    def __str__(self) -> str:
        return _CONTROLS.sub(lambda match: repr(match[0])[1:-1] if match[0].strip(" \r\n") else " ", super().__str__())


class RecipeError(IsoglotError):
    """A recipe contains an unknown key or an invalid value."""


class CorpusError(IsoglotError):
    """Text or vectors cannot be read. The message begins with `file:line:` if they are known."""

    def __init__(self, message: str, *, file: str | Path | None = None, line: int | None = None) -> None:
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message)


class EncoderError(IsoglotError):
    """A model cannot be found, loaded, saved or converted."""


class OutputError(IsoglotError):
    """An output is being written by another process, contains foreign files, or can't be written."""


class CheckpointError(IsoglotError):
    """A checkpoint cannot be written or read."""


class PluginError(IsoglotError):
    """A plug-in cannot be imported or is invalid."""


class SearchError(IsoglotError):
    """An index cannot be made, read, extended or searched."""


class MissingExtraError(IsoglotError):
    """An optional package is not installed."""


class EvaluationError(IsoglotError):
    """A task's data or an encoder's vectors are missing or invalid."""


@contextmanager
def naming_extras() -> Iterator[None]:
    """Raise `MissingExtraError` instead of the error of importing a package of one of the `EXTRAS`.

    A context manager or decorator for code that imports such packages when it needs them.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingExtraError(_advise_install(package)) from error


def require(*packages: str) -> None:
    """Raise `MissingExtraError`, which names all of these packages of the `EXTRAS` that are not installed."""
    if missing := [package for package in packages if find_spec(package) is None]:
        raise MissingExtraError(_advise_install(*missing))


def _advise_install(*packages: str) -> str:
    extras = ",".join(sorted({EXTRAS[package] for package in packages} - {""}))
    install = f'"isoglot[{extras}]"' if extras else " ".join(packages)
    are, them = ("are", "them") if len(packages) > 1 else ("is", "it")
    return f"{' and '.join(packages)} {are} not installed, and this needs {them}: pip install {install}"


def nearest(word: object, choices: Iterable[str], *, most: int = 12, otherwise: str = "") -> str:
    """The end of a message about an unknown name: the known name with the most similar spelling, ignoring case.

    If none is similar: `otherwise`, or a list of at most `most` known names.
    """
    names = [*choices]
    folded = {name.casefold(): name for name in reversed(names)}
    if close := get_close_matches(str(word).casefold(), folded, n=1, cutoff=0.55):
        return f"did you mean {folded[close[0]]!r}?"
    if otherwise:
        return otherwise
    return f"known: {', '.join(names[:most])}{', …' if len(names) > most else ''}"


def quote(value: object, *, quotes: bool = True, most: int = 80) -> str:
    """A value for a message: its `repr`, or a string without quotes; on one line, truncated if long."""
    try:
        text = repr(value) if isinstance(value, str) else " ".join(repr(value).split())
    except ValueError:  # an integer of thousands of digits
        text = "a number of thousands of digits"
    if isinstance(value, str) and not quotes:
        text = text[1:-1] if any(not letter.isprintable() for letter in value) else value
    return text if len(text) <= most else f"{text[: most - 1]}…"
