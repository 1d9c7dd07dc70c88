"""Recipes that extend others.

`extends` names a base: another file, relative to the one that names it, or a packaged recipe. `[variants.NAME]` in
FILE.toml is one more recipe, FILE-NAME: by default it extends its own file. A file without `name` is a base only.

What a recipe writes is merged over its base:

- tables are merged key by key; a table with another `kind` replaces the base's;
- everything else, lists included, replaces the base's value;
- a table in place of a list changes elements of it, each addressed by its `name` or its number; the number after the
  last one adds an element;
- `false` removes what the base wrote, unless that is true or false.

Relative paths stay relative to the file that wrote them. The exception are packaged recipes, which have no files beside
them: their relative paths stand for files of the recipe that extends them.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from isoglot.errors import RecipeError, shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGED = Path(__file__).parent / "recipes"
DEEPEST = 16  # most files and variants between a recipe and its last base
MOST_BYTES = 1 << 20  # of a recipe; the largest packaged one has 4 kB
MOST_LEVELS = 16  # of tables and lists in one another
UNNAMED = {"streams": "train", "stages": "main"}  # names of elements that write none, as in settings.py
PATHS = re.compile(
    r"(?:^|\.)(?:leakage\.\d+|sources\.[^.]+\.path|evaluation(?:\.[^.]+)?\.data|encoder\.tokenizer)$"
    r"|(?:^|\.)(?P<perhaps>sources\.[^.]+\.other|(?:encoder|teacher|towers\.[^.]+)\.model"  # else a name
    r"|objectives\.[^.]+\.(?!name$)[^.]+)$"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """What one file or variant writes, and all of the recipe up to it."""

    where: str
    file: Path
    variant: str
    data: dict[str, Any]


def layers(name: str | Path) -> list[Layer]:
    """The bases of a recipe, the last one first, and the recipe itself; given as for `locate`."""
    file, variant = locate(name)
    return _layers(file, variant, home=file.parent, above=())


def stack(own: Mapping[str, Any], *, where: str, folder: Path) -> list[Layer]:
    """The same for settings that are in no file."""
    return _stack(own, where=where, file=folder / "recipe", variant="", home=folder, above=(where,))


def locate(name: str | Path, folder: Path = Path()) -> tuple[Path, str]:
    """The file of a recipe, and its variant or "".

    `name` is a path relative to a folder, or the name of a packaged recipe, such as `demo/pairs`; anything else is a
    RecipeError.
    """
    for path in (folder / name, PACKAGED / f"{name}.toml"):
        try:
            if path.is_file():
                return path, ""
        except (OSError, ValueError):  # too long for the file system, or with a NUL
            continue
        parts = path.stem.split("-") if path.suffix == ".toml" else []
        for cut in range(len(parts) - 1, 0, -1):
            family = path.with_name("-".join(parts[:cut]) + ".toml")
            if family.is_file() and "-".join(parts[cut:]) in _variants(family):
                return family, "-".join(parts[cut:])
    if Path(name).suffix == ".toml":
        beside = [one for file in sorted((folder / name).parent.glob("*.toml")) for one in _in(file)]
        close = difflib.get_close_matches(Path(name).stem, beside, n=1)
        close = [str(Path(name).with_name(f"{one}.toml")) for one in close]
    else:
        close = difflib.get_close_matches(str(name), list(names()), n=1, cutoff=0.4)
    hint = f"did you mean {close[0]!r}?" if close else "`isoglot recipe list` shows the packaged ones"
    raise RecipeError(f"{shown(str(name), quotes=False)}: neither a file nor a packaged recipe; {hint}")


def names() -> Iterator[str]:
    """Names of the packaged recipes."""
    for file in sorted(PACKAGED.rglob("*.toml")):
        for name in _in(file):
            yield file.relative_to(PACKAGED).with_name(name).as_posix()


def called(file: Path, variant: str) -> str:
    """What `locate` finds a file, or a variant in it, by."""
    stem = file.with_name(f"{file.stem}-{variant}" if variant else file.stem)
    return stem.relative_to(PACKAGED).as_posix() if file.is_relative_to(PACKAGED) else f"{stem}{file.suffix}"


def members(file: Path) -> list[str]:
    """Names of the recipes that are variants of a file."""
    return [called(file, variant) for variant in _variants(file)]


def read(file: Path) -> str:
    """The text of a file. Raises RecipeError where it cannot be read."""
    try:
        if (size := file.stat().st_size) > MOST_BYTES:
            raise RecipeError(f"{file}: has {size:,} bytes, and a recipe at most {MOST_BYTES:,}; is it a corpus?")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{file}: cannot be read as UTF-8 text: {error}") from error


def require_shallow(data: Mapping[str, Any], where: str) -> None:
    """Raise RecipeError for tables and lists nested deeper than any setting is; counted without recursion."""
    level: list[Any] = [data]
    depth = 0
    while level:
        if depth > MOST_LEVELS:
            raise RecipeError(f"{where}: tables and lists are nested more than {MOST_LEVELS} deep; no setting is")
        inner = [value for part in level for value in (part.values() if isinstance(part, Mapping) else part)]
        level, depth = [value for value in inner if isinstance(value, Mapping | list | tuple)], depth + 1


def writer(chain: Sequence[Layer], place: Sequence[Any]) -> str:
    """Who wrote what is at a place of the recipe: the last layer that changed it.

    Parts of the place that lead nowhere are passed over: pydantic names tags, and stages that are written at the top.
    """
    found = chain[0]
    for below, layer in pairwise(chain):
        if _at(below.data, place) is not _at(layer.data, place):
            found = layer
    return found.where


def position(elements: Sequence[Any], name: str, table: str) -> int | None:
    """The number of the element of a list that a name or a number addresses, if there is exactly one."""
    if name.isdecimal():
        return int(name) if int(name) < len(elements) else None
    called = [element.get("name", UNNAMED.get(table)) for element in elements if isinstance(element, dict)]
    return called.index(name) if called.count(name) == 1 and len(called) == len(elements) else None


def _layers(file: Path, variant: str, *, home: Path, above: tuple[str, ...]) -> list[Layer]:
    where = f"{file}: variants.{variant}" if variant else str(file)
    whole = _parse(file)
    own = _variants(file)[variant] if variant else {key: value for key, value in whole.items() if key != "variants"}
    if where in above:
        raise RecipeError(f"{where}: extends itself: {' -> '.join((*above, where))}")
    if len(above) == DEEPEST:
        raise RecipeError(f"{above[0]}: more than {DEEPEST} bases: {' -> '.join((*above, where))}")
    return _stack(own, where=where, file=file, variant=variant, home=home, above=(*above, where))


def _stack(
    own: Mapping[str, Any], *, where: str, file: Path, variant: str, home: Path, above: tuple[str, ...]
) -> list[Layer]:
    given: dict[str, Any] = {key: value for key, value in own.items() if key != "extends"}
    base, below = own.get("extends"), list[Layer]()
    if "extends" in own:
        if not isinstance(base, str):
            raise RecipeError(f"{where}: extends: name one file or packaged recipe (value {base!r})")
        try:
            found = locate(base, file.parent)
        except RecipeError as error:
            raise RecipeError(f"{where}: extends: {error}") from error
        below = _layers(Path(os.path.normpath(found[0])), found[1], home=home, above=above)
    elif variant:
        below = _layers(file, "", home=home, above=above)
    folder = Path(os.path.abspath(file.parent))  # noqa: PTH100 - links are kept
    if folder != Path(os.path.abspath(home)) and not folder.is_relative_to(PACKAGED):  # noqa: PTH100
        given = _rebase(given, folder, "")
    data = merge(below[-1].data, given, where) if below else given
    return [*below, Layer(where, file, variant, data)]


def merge(base: Any, new: Any, where: str, key: str = "") -> Any:
    """`new` over `base`, by the rules above; neither is changed. `where` and `key` are for errors."""
    if not isinstance(new, dict):
        return new
    if isinstance(base, list):
        return _change(base, new, where, key)
    if not isinstance(base, dict) or ("kind" in base and new.get("kind", base["kind"]) != base["kind"]):
        return new
    merged = dict(base)
    for name, value in new.items():
        if value is False and not isinstance(base.get(name, False), bool):
            del merged[name]
        else:
            merged[name] = merge(base.get(name), value, where, f"{key}.{name}" if key else name)
    return merged


def _change(base: list[Any], new: dict[str, Any], where: str, key: str) -> list[Any]:
    """A list with some of its elements changed."""
    table = key.rpartition(".")[2]
    changed, gone = list(base), set[int]()
    for name, value in new.items():
        at = position(base, name, table)
        if at is not None:
            changed[at] = merge(base[at], value, where, f"{key}.{name}")
            gone |= {at} if value is False else set()
        elif name == str(len(changed)):
            changed.append(value)
        else:
            called = [element.get("name", UNNAMED.get(table)) for element in base if isinstance(element, dict)]
            known = ", ".join([*filter(None, called), *map(str, range(len(base)))])
            raise RecipeError(
                f"{where}: {key}.{name}: {key} is a list in the base; change an element ({known}) or write a whole list"
            )
    return [value for at, value in enumerate(changed) if at not in gone]


def _rebase(value: Any, folder: Path, key: str) -> Any:
    """Settings with the relative paths in them made absolute."""
    if isinstance(value, dict):
        return {name: _rebase(inner, folder, f"{key}.{name}" if key else name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rebase(inner, folder, f"{key}.{number}") for number, inner in enumerate(value)]
    found = PATHS.search(key) if isinstance(value, str) and value else None
    if not found or value.startswith(("bundled:", "data:", "~")):
        return value
    path = folder / value
    return value if found["perhaps"] and not path.exists() else str(path)


def _in(file: Path) -> list[str]:
    """Names of all recipes of a file, without its folder; of a file that cannot be read, its own."""
    try:
        variants = [f"{file.stem}-{variant}" for variant in _variants(file)]
        return variants if variants and "name" not in _parse(file) else [file.stem, *variants]
    except RecipeError:
        return [file.stem]


def _variants(file: Path) -> dict[str, dict[str, Any]]:
    found = _parse(file).get("variants", {})
    if not isinstance(found, dict) or not all(isinstance(value, dict) for value in found.values()):
        raise RecipeError(f"{file}: variants: write one table for each, [variants.NAME]")
    return found


def _parse(file: Path) -> dict[str, Any]:
    text = read(file)
    try:
        data = _parsed(text)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise RecipeError(f"{file}: not valid TOML: {error}") from error
    require_shallow(data, str(file))
    return data


@lru_cache(64)
def _parsed(text: str) -> dict[str, Any]:
    """Kept, since a family is read once for each of its recipes; nobody changes it."""
    data: dict[str, Any] = tomllib.loads(text)
    return data


def _at(data: Any, place: Sequence[Any]) -> Any:
    for part in place:
        inside = part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))
        data = data[part] if inside else data
    return data
