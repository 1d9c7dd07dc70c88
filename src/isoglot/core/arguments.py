"""Arguments of public functions: checked by their annotations, with columns of PyArrow as lists.

`check_arguments` decorates every public function, so that what is passed is checked once, where it enters. Annotations
say what is taken. Arrays and classes of this package are kinds too, except beside strings (`str | Encoder`): such
arguments, and those with classes of other packages, are left to the function, which knows what is mistaken for what.
"""

from __future__ import annotations

import builtins
import errno
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import cache, wraps
from inspect import Parameter, signature, unwrap
from math import inf
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from isoglot.core.errors import IsoglotError, RecipeError, nearest, quote


class Range(NamedTuple):
    """The least and the greatest value of a number, for `Annotated`."""

    least: float
    greatest: float = inf

    def __str__(self) -> str:
        return f"at least {self.least:g}" + (f" and at most {self.greatest:g}" if self.greatest < inf else "")


PositiveInt = Annotated[int, Range(1)]
NonNegativeInt = Annotated[int, Range(0)]

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Class = TypeVar("_Class", bound=type)

_LISTS = (Sequence, Collection, Iterable)
_CONTAINERS = {list: Sequence, tuple: Sequence, set: Collection, frozenset: Collection, dict: Mapping}
LARGEST = 2**32 - 1  # of numbers in a recipe's options: seeds have 32 bits, and every library below accepts it


def check_arguments(**instead: str) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """A decorator that checks arguments before a function sees them.

    An unknown keyword argument and a value of another kind than the annotation are TypeErrors; NaN for a number, one
    outside its `Range`, a word that is not in its `Literal`, masked values, and a whole number that turns out to be too
    large are ValueErrors. Columns and values of PyArrow, also in lists and dicts, become Python's, and tensors
    arrays. A name that the file system does not take is an `IsoglotError`.

    instead   what to do about an argument: for names that other libraries use, instead of the most similar name; for
              the function's own, where a value of another kind is passed
    """

    def decorate(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        parameters = signature(function).parameters
        names = [name for name in parameters if name not in ("self", "cls")]
        is_open = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
        by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        places = [name for name, one in parameters.items() if one.kind in by_place]
        variadic = [name for name, one in parameters.items() if one.kind is Parameter.VAR_POSITIONAL]
        hints = cache(lambda: _hints(function))  # at the first call: modules import each other

        def take(name: str, value: Any) -> Any:
            value, hint = as_python(value, name), hints().get(name, Any)
            is_numbers = "array" in map(_kind, parts_of(hint))
            value = as_array(value) if is_numbers and hasattr(value, "detach") else value
            if not _fits(value, hint):
                wrong = f"{function.__name__}: {name}: must be {_in_words(hint)}"
                kind = "" if value is None else f"{type(value).__name__} "
                table = "table.to_numpy()" if is_numbers else "one of its columns, such as table['text']"
                advice = f"pass {table}" if _is_table(value) else instead.get(name, "")
                raise TypeError(f"{wrong}, got {kind}{quote(value)}{advice and '; '}{advice}")
            _check_value(function.__name__, name, value, hint)
            return value

        @wraps(function)
        def call(*args: _Given.args, **named: _Given.kwargs) -> _Result:
            if unknown := [name for name in named if name not in parameters and (name in instead or not is_open)]:
                hint = instead.get(unknown[0]) or nearest(unknown[0], names)
                raise TypeError(f"{function.__name__} has no argument {unknown[0]!r}; {hint}")
            order = [*places, *variadic * (len(args) - len(places))][: len(args)]
            if len(order) < len(args):
                by_order = ", ".join(name for name in places if name in names) or "no argument"
                raise TypeError(f"{function.__name__} takes {by_order} without a name; pass others by name")
            with _name_culprit({**dict(zip(order, args, strict=True)), **named}):
                values = {name: take(name, value) for name, value in named.items()}
                return function(*map(take, order, args), **values)

        return call

    return decorate


def _check_value(function: str, name: str, value: Any, hint: Any) -> None:
    """Raise ValueError for a value of the right kind that the annotation excludes."""
    if isinstance(value, float) and value != value and hint is not Any:
        raise ValueError(f"{function}: {name}: is NaN; pass a number")
    if words := _list_words(value, hint):
        advice = nearest(value, words, otherwise=f"use one of {', '.join(words)}")
        raise ValueError(f"{name} is {quote(value)}; {advice}")
    for extent in ranges_of(hint) if isinstance(value, Real) else ():
        if not extent.least <= value <= extent.greatest:
            raise ValueError(f"{name} is {value}; it must be {extent}")


def check_fields(kind: _Class) -> _Class:
    """A decorator that checks the fields of a dataclass as `check_arguments` checks the arguments of a function."""
    make: Any = kind.__init__  # type: ignore[misc]
    make.__name__ = kind.__name__
    kind.__init__ = check_arguments()(make)  # type: ignore[misc]
    return kind


def check_options(function: Callable[..., Any], options: Mapping[str, Any], *, where: str) -> None:
    """Raise RecipeError for the first value of a recipe that the keyword argument of that name does not take.

    A path is a string there, lists and tables contain strings, and numbers are at most `LARGEST`.
    """
    hints = _hints(function)
    for name, value in options.items():
        hint, place = hints.get(name, Any), f"{where}.{name}: {quote(value)}"
        written = Path() if isinstance(value, str) and Path in parts_of(hint) else value
        if words := _list_words(written, hint):
            raise RecipeError(f"{place} is not one of {', '.join(words)}; {nearest(str(value), words)}")
        if not _fits(written, hint) or not _has_texts(value):
            raise RecipeError(f"{place} is not {_in_words(hint)}")
        if isinstance(value, int | float) and not abs(value) <= LARGEST:  # also NaN
            raise RecipeError(f"{place} is not finite, or beyond {LARGEST:,}")
        for extent in ranges_of(hint) if isinstance(value, Real) else ():
            if not extent.least <= value <= extent.greatest:
                raise RecipeError(f"{place} is out of range; it must be {extent}")


def _has_texts(value: Any) -> bool:
    """Whether all strings of a value are ones that files can have, and nothing else is in a list or a table."""
    if isinstance(value, str):
        return "\0" not in value
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, Sequence | Set) else ()
    return all(isinstance(item, str) and "\0" not in item for item in items)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function, localns=_Names(unwrap(function).__globals__), include_extras=True)


class _Names(dict[str, Any]):
    """The names of a module; one that is imported for types alone is a class that is not known here."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Any)


def as_python(value: Any, name: str, *, depth: int = 3) -> Any:
    """The value, with columns and single values of PyArrow, also in lists and dicts, as Python's.

    Raises ValueError for masked arrays, also in lists, whose mask others would drop. Lists are looked through if their
    first item is one of these, or a list: long lists of strings or numbers cost nothing.
    """
    if type(value).__module__.startswith("pyarrow.") and not _is_table(value):
        read = getattr(value, "to_pylist", None) or getattr(value, "as_py", None)
        return value if read is None else read()
    if (numpy := sys.modules.get("numpy")) is not None and isinstance(value, numpy.ma.MaskedArray):
        if numpy.ma.is_masked(value):
            raise ValueError(f"{name} has masked values; fill them (array.filled(0)), or leave these rows out")
        return value.data
    if numpy is not None and getattr(value, "ndim", None) == 0 and isinstance(value, numpy.ndarray | numpy.generic):
        return value.item()  # numbers of NumPy overflow, where Python's do not
    if type(value) is dict and depth:
        read = {key: as_python(one, f"{name}[{key!r}]", depth=depth - 1) for key, one in value.items()}
        return read if any(read[key] is not one for key, one in value.items()) else value  # which may be for results
    first = type(value[0]) if type(value) in (list, tuple) and value and depth else str
    if first in (list, tuple, dict) or first.__module__.partition(".")[0] in ("pyarrow", "numpy"):
        items = [as_python(one, f"{name}[{at}]", depth=depth - 1) for at, one in enumerate(value)]
        return type(value)(items)
    return value


def as_array(values: Any) -> Any:
    """`np.asarray`, also of a tensor of torch that needs a gradient, is on a device, is sparse, or is of bfloat16."""
    import numpy as np

    if hasattr(values, "detach"):
        values = values.detach().cpu().to_dense()
        values = values.float() if values.is_floating_point() and values.dtype.itemsize < 4 else values
    return np.asarray(values)


def parts_of(hint: Any) -> list[Any]:
    """The parts of a union, or the annotation itself, without what `Annotated` adds."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]
    return [part.__origin__ if get_origin(part) is Annotated else part for part in parts]


def ranges_of(hint: Any) -> list[Range]:
    """The ranges of a number, as its annotation has them."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]
    return [one for part in parts for one in getattr(part, "__metadata__", ()) if isinstance(one, Range)]


def _list_words(value: Any, hint: Any) -> list[str]:
    """The words that an argument may be, if the value is not one of them and may not be anything else."""
    words = [str(word) for part in parts_of(hint) if get_origin(part) is Literal for word in get_args(part)]
    others = [part for part in parts_of(hint) if get_origin(part) is not Literal]
    return words if words and str(value) not in words and not any(_fits(value, part) for part in others) else []


def _kind(part: Any) -> Any:
    """The class of a part of an annotation; for arrays a name, since NumPy is not imported here."""
    origin = get_origin(part) or part
    return "array" if getattr(origin, "__name__", "") == "ndarray" else _CONTAINERS.get(origin, origin)


def _fits(value: Any, hint: Any) -> bool:
    parts = parts_of(hint)
    return not all(_is_kind(part, parts) for part in parts) or any(_fits_part(value, part) for part in parts)


def _is_kind(part: Any, parts: Sequence[Any]) -> bool:
    """Whether a part of an annotation is checked here."""
    origin = _kind(part)
    is_ours = isinstance(origin, type) and origin.__module__.startswith("isoglot.")
    if is_ours or origin == "array":
        return str not in parts and not getattr(origin, "_is_protocol", False)  # which only describes others
    return origin is Literal or origin in _KINDS


def _fits_part(value: Any, part: Any) -> bool:
    origin = _kind(part)
    if origin is Literal:
        return type(value) in map(type, get_args(part))
    if origin not in _KINDS:
        return isinstance(value, origin)
    if not _KINDS[origin][1](value):
        return False
    items = [one for one in get_args(part) if one is not ...]  # several of a tuple, whose length the function checks
    if origin not in (Sequence, Collection) or len(items) != 1 or isinstance(value, Iterator):
        return True
    is_row = any(get_origin(one) for one in parts_of(items[0]))  # rows are data, which the function reads
    return items[0] is Any or is_row or all(_fits(one, items[0]) for one in value)


def _is_several(value: Any) -> bool:
    is_iterable = hasattr(value, "__iter__") or hasattr(value, "__getitem__")
    is_single = isinstance(value, str | bytes | bytearray | Mapping | type) or getattr(value, "ndim", 1) == 0
    return is_iterable and not is_single and not _is_table(value)


def _is_array(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "f")  # tensors have no kind
    return kind in "biuf" and hasattr(value, "shape") and _is_several(value)


def _is_table(value: Any) -> bool:
    return hasattr(value, "columns") or hasattr(value, "column_names")


# What an annotation takes, in words and as a test. NumPy's numbers are numbers too, and a bool is not.
_KINDS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    NoneType: ("None", lambda value: value is None),
    bool: ("True or False", lambda value: type(value).__name__ in ("bool", "bool_")),
    int: ("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    float: ("a number", lambda value: isinstance(value, Real) and not isinstance(value, bool)),
    str: ("a string", lambda value: isinstance(value, str)),
    Path: ("a path", lambda value: isinstance(value, Path)),
    Mapping: ("a dict", lambda value: isinstance(value, Mapping)),
    Callable: ("a function", callable),
    "array": ("an array of numbers", _is_array),
    **dict.fromkeys(_LISTS, ("a list", _is_several)),
}


def _in_words(hint: Any) -> str:
    words: list[str] = []
    for part in parts_of(hint):
        origin = _kind(part)
        items = get_args(part)[:1] if origin in _LISTS and get_args(part)[1:] in ((), (...,)) else ()
        if origin is Literal:
            words += map(repr, get_args(part))
        elif items and all(_is_kind(one, parts_of(items[0])) for one in parts_of(items[0])):
            words.append("a list, each item " + _in_words(items[0]))
        else:
            words.append(_KINDS[origin][0] if origin in _KINDS else f"{origin.__name__}")
    return " or ".join(sorted(dict.fromkeys(words), key=lambda one: ", each item" in one))  # what follows is an item's


@contextmanager
def _name_culprit(arguments: Mapping[str, Any]) -> Iterator[None]:
    """Name the file whose name the file system rejects, and the whole number that is too large to compute with."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise IsoglotError(f"{quote(error.filename)}: is too long for the name of a file; choose another") from error
    except (OverflowError, ValueError, RuntimeError) as error:
        large = [name for name, value in arguments.items() if isinstance(value, Integral) and abs(int(value)) >> 31]
        if large and (isinstance(error, OverflowError) or str(error).startswith(("Overflow", "Maximum"))):
            raise ValueError(f"{large[0]} is {quote(arguments[large[0]])}, which is too large") from error
        surrogates = isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason
        if not surrogates and "embedded null" not in str(error):
            raise
        raise IsoglotError("a name or text has a character that files can't have: NUL, or half of a pair") from error
