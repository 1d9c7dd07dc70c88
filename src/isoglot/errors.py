"""What can go wrong for a user, as a tree with one class to catch.

IsoglotError
├── RecipeError      a setting is unknown or wrong; names the key and the value
├── CorpusError      training or input text cannot be read; names file and line
├── EncoderError     a model cannot be found, loaded, saved or converted
├── OutputError      an output is in use, holds something else, or cannot be written
├── CheckpointError  a checkpoint cannot be written or read
└── EvaluationError  a task's data or an encoder's vectors are not what they must be

Every message says where, what is wrong with which value, and what to do. Wrong arguments of Python calls are plain
`ValueError`s, raised at construction.
"""

from __future__ import annotations

from pathlib import Path


class IsoglotError(Exception):
    """Something the user can mend. The message is one line, meant to be shown without a traceback."""


class RecipeError(IsoglotError):
    """A recipe holds an unknown key or a value that cannot be used."""


class CorpusError(IsoglotError):
    """Text cannot be read. The message begins with `file:line:` as far as they are known."""

    def __init__(self, message: str, *, file: str | Path | None = None, line: int | None = None) -> None:
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message)


class EncoderError(IsoglotError):
    """A model cannot be found, loaded, saved or converted."""


class OutputError(IsoglotError):
    """An output is being written by another process, holds something that must not be replaced, or can't be written."""


class CheckpointError(IsoglotError):
    """A checkpoint cannot be written or read."""


class EvaluationError(IsoglotError):
    """A task lacks its data, or the vectors it was given are unusable."""
