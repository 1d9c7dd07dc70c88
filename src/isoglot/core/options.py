"""Checks the options that a recipe passes to a reader or an objective against their signature.

Types are checked here; the object itself checks ranges. Numbers are finite and of a size that every
library below accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from isoglot.core.errors import RecipeError, nearest, quote

LARGEST = 2**32 - 1  # of integers: seeds have 32 bits


def check_values(function: Callable[..., Any], options: Mapping[str, Any], *, where: str) -> None:
    """Raise RecipeError for the first option whose value the keyword argument of that name does not take."""
    hints = get_type_hints(function)
    for name, value in options.items():
        if problem := _problem(value, hints[name]):
            raise RecipeError(f"{where}.{name}: {quote(value)} {problem.format(name=name)}")


def _problem(value: Any, hint: Any) -> str:
    """The message for a TOML value that is not of the type `hint`; empty if it is."""
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        words = ", ".join(map(str, arguments))
        return "" if value in arguments else f"is not one of {words}; {nearest(str(value), map(str, arguments))}"
    if kind in (Union, UnionType):
        problems = [_problem(value, choice) for choice in arguments if choice is not type(None)]
        return "" if "" in problems else problems[-1]
    takes, problem = next(entry for taken, entry in _KINDS.items() if issubclass(kind, taken))
    if not takes(value):
        return problem
    huge = kind in (int, float) and not abs(value) <= LARGEST  # also false for NaN
    return f"is not finite, or beyond {LARGEST:,}" if huge else ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _are_texts(value: Any) -> bool:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        return False
    return not isinstance(value, Sequence | Set) or all(map(_is_text, value))  # an iterator is passed through


# Expected type -> test of a value, and the message for a value that fails it.
_KINDS: dict[type, tuple[Callable[[Any], bool], str]] = {
    bool: (lambda value: isinstance(value, bool), "is not true or false; write {name} = true or {name} = false"),
    int: (
        lambda value: isinstance(value, int) and not isinstance(value, bool),
        "is not a whole number; write for example {name} = 3",
    ),
    float: (
        lambda value: isinstance(value, int | float) and not isinstance(value, bool),
        "is not a number; write for example {name} = 0.05",
    ),
    str: (_is_text, "is not a text; put it between quotes"),
    Path: (lambda value: _is_text(value) or isinstance(value, Path), "is not a text; put it between quotes"),
    Mapping: (
        lambda value: isinstance(value, Mapping) and all(map(_is_text, value.values())),
        'is not a table of texts; write for example {name} = {{ eng = "english" }}',
    ),
    Iterable: (_are_texts, 'is not a list of texts; write for example {name} = ["eng"]'),
}
