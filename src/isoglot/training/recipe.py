"""Recipes: one TOML file is one run, checked before anything starts.

A recipe describes the encoder, the stages of training and the evaluation. A stage has streams (the sources of groups,
their batching, and the objectives) and an optimiser. A recipe of one stage writes `[[streams]]` and `[optimizer]` at
the top; a recipe of several writes `[[stages]]`, each with its own.

Settings are frozen (`settings.py`). An unknown key or a wrong value is a RecipeError that names the key, the value and
the nearest valid one. Readers and objectives check their own options.

`extends` names a base: another file, relative to the one that names it, or a packaged recipe. `[variants.NAME]` in
FILE.toml is one more recipe, FILE-NAME: by default it extends its own file. A file without `name` is a base only.

The settings of a recipe are merged over its base:

- tables are merged key by key; a table with another `kind` replaces the base's;
- any other value, lists included, replaces the base's value;
- a table instead of a list changes elements of it, each addressed by its `name` or its number; the number after the
  last one adds an element;
- `false` removes a value of the base that is not itself true or false.

Relative paths stay relative to the file that wrote them. The exception are packaged recipes, which have no files beside
them: their relative paths stand for files of the recipe that extends them.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from isoglot.core.errors import RecipeError, nearest, quote
from isoglot.core.toml import tomllib

if TYPE_CHECKING:  # pydantic and the settings, which load torch, are only needed to validate a recipe, not to list it
    from pydantic import BaseModel

    from isoglot.training.settings import Recipe

PACKAGED = Path(__file__).parents[1] / "recipes"
DEEPEST = 16  # maximum files and variants between a recipe and its last base
MOST_BYTES = 1 << 20  # maximum bytes of a recipe; the largest packaged one has 4 kB
MOST_LEVELS = 16  # maximum nesting of tables and lists
WIDTH = 120  # width of a line of TOML
BOUNDS = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}
KINDS = ("static", "transformer", "twins", "towers")  # of encoders; pydantic has them in the location of an error
_LENGTHS = {"steps": "epochs", "epochs": "steps"}
UNNAMED = {"streams": "train", "stages": "main"}  # default names of elements, as in settings.py
PATHS = re.compile(
    r"(?:^|\.)(?:sources\.[^.]+\.path|evaluation(?:\.[^.]+)?\.data|encoder\.tokenizer)$"
    r"|(?:^|\.)(?P<perhaps>(?P<test>leakage(?:\.\d+)?)|sources\.[^.]+\.other"  # otherwise a name
    r"|(?:encoder|teacher|towers\.[^.]+)\.model"
    r"|objectives\.[^.]+\.(?!name$)[^.]+)$"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one file or variant, and the recipe merged up to it."""

    where: str
    file: Path
    variant: str
    data: dict[str, Any]


def load(name: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, or the packaged one of that name, with `key.path=value` overrides (values as in TOML)."""
    chain = _read_chain(name)
    data = deepcopy(chain[-1].data)
    for override in overrides:
        _override(data, override)
    _require_shallow(data, str(name))
    return _validate(data, chain)


def parse(data: Mapping[str, Any], *, folder: Path = Path()) -> Recipe:
    """Validate settings, which may extend a recipe too; relative paths are below `folder`."""
    _require_shallow(data, "recipe")
    chain = _layers(data, "recipe", folder / "recipe", home=folder)
    return _validate(chain[-1].data, chain)


def show(name: str | Path) -> str:
    """A recipe merged with everything it extends as one TOML text, below the header comments of all its files."""
    chain = _read_chain(name)
    if len(chain) == 1 and not _variants(chain[0].file):
        return text(name)
    return dumps(chain[-1].data, chain)


def describe(name: str | Path) -> str:
    """The description of a recipe, which is not validated."""
    return str(_read_chain(name)[-1].data.get("description", ""))


def text(name: str | Path) -> str:
    """The content of the file of a recipe given by path or by packaged name, such as `demo/pairs`."""
    return _read(_locate(name)[0])


def names() -> Iterator[str]:
    """Names of the packaged recipes."""
    for file in sorted(PACKAGED.rglob("*.toml")):
        yield from _list_recipes(file)


def _read_chain(name: str | Path) -> list[Layer]:
    """The bases of a recipe, the last one first, and the recipe itself. Raises RecipeError for a file that is only a
    base.
    """
    file, variant = _locate(name)
    chain = _layers(*_read_settings(file, variant), file, variant, home=file.parent)
    if not variant and "name" not in chain[-1].data and _variants(file):
        choices = ", ".join(_list_recipes(file))
        raise RecipeError(f"{name}: a base without a name of its own; choose one of {choices}")
    return chain


# Files, variants and bases


def _locate(name: str | Path, folder: Path = Path()) -> tuple[Path, str]:
    """The file of a recipe, and its variant or "".

    `name` is a path relative to a folder, or the name of a packaged recipe, such as `demo/pairs`; anything else is a
    RecipeError.
    """
    for path in (folder / name, PACKAGED / f"{name}.toml"):
        try:
            if path.is_file():
                return path, ""
        except (OSError, ValueError):  # a name too long for the file system, or with a NUL
            continue
        parts = path.stem.split("-") if path.suffix == ".toml" else []
        for cut in range(len(parts) - 1, 0, -1):
            family = path.with_name("-".join(parts[:cut]) + ".toml")
            if family.is_file() and "-".join(parts[cut:]) in _variants(family):
                return family, "-".join(parts[cut:])
    beside = sorted((folder / name).parent.glob("*.toml")) if Path(name).suffix == ".toml" else []
    names_beside = [Path(recipe).name for file in beside for recipe in _list_recipes(file)]
    otherwise = "`isoglot recipe list` shows the packaged ones"
    hint = nearest(Path(name).name, names_beside) if names_beside else nearest(str(name), names(), otherwise=otherwise)
    raise RecipeError(f"{quote(str(name), quotes=False)}: neither a file nor a packaged recipe; {hint}")


def _name_file(file: Path, variant: str = "") -> str:
    """The name by which `_locate` finds a file or a variant in it."""
    stem = file.with_name(f"{file.stem}-{variant}" if variant else file.stem)
    return stem.relative_to(PACKAGED).as_posix() if file.is_relative_to(PACKAGED) else f"{stem}{file.suffix}"


def _list_recipes(file: Path) -> list[str]:
    """Names of all recipes of a file; of a file that cannot be read, its own."""
    try:
        variants = [_name_file(file, variant) for variant in _variants(file)]
        is_base = variants and "name" not in read_toml(file)
    except RecipeError:
        return [_name_file(file)]
    return variants if is_base else [_name_file(file), *variants]


def _variants(file: Path) -> dict[str, dict[str, Any]]:
    variants = read_toml(file).get("variants", {})
    if not isinstance(variants, dict) or not all(isinstance(value, dict) for value in variants.values()):
        raise RecipeError(f"{_place_of(file)}: variants: write one table for each, [variants.NAME]")
    return variants


def _read_settings(file: Path, variant: str) -> tuple[dict[str, Any], str]:
    """The settings in a file or in a variant in it, and their place."""
    if variant:
        return _variants(file)[variant], _place_of(file, variant)
    return {key: value for key, value in read_toml(file).items() if key != "variants"}, _place_of(file)


def _place_of(file: Path, variant: str = "") -> str:
    """How messages call a file, or a variant in it: a packaged recipe by its name."""
    if file.is_relative_to(PACKAGED):
        return _name_file(file, variant)
    return f"{file}: variants.{variant}" if variant else str(file)


def read_toml(file: Path) -> dict[str, Any]:
    """The content of a file, which must not be modified. Raises RecipeError."""
    return _parse(_read(file), _place_of(file))


@lru_cache(64)
def _parse(content: str, where: str) -> dict[str, Any]:
    """Cached, since a family's file is read for each of its recipes."""
    try:
        data: dict[str, Any] = tomllib.loads(content)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise RecipeError(f"{where}: not valid TOML: {error}") from error
    _require_shallow(data, where)
    return data


def _read(file: Path) -> str:
    try:
        if (size := file.stat().st_size) > MOST_BYTES:
            raise RecipeError(
                f"{file}: has {size:,} bytes, more than the maximum of a recipe, {MOST_BYTES:,}; is it a corpus?"
            )
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{file}: cannot be read as UTF-8 text: {error}") from error


def _require_shallow(data: Mapping[str, Any], where: str) -> None:
    """Raise RecipeError for tables and lists nested deeper than any setting is; counted without recursion."""
    level: list[Any] = [data]
    depth = 0
    while level:
        if depth > MOST_LEVELS:
            raise RecipeError(f"{where}: tables and lists are nested more than {MOST_LEVELS} deep; no setting is")
        inner = [value for part in level for value in (part.values() if isinstance(part, Mapping) else part)]
        level, depth = [value for value in inner if isinstance(value, Mapping | list | tuple)], depth + 1


def _layers(
    settings: Mapping[str, Any], where: str, file: Path, variant: str = "", *, home: Path, trail: tuple[str, ...] = ()
) -> list[Layer]:
    """The layers of settings that are written in a file: those of their base, then their own."""
    if where in trail:
        raise RecipeError(f"{where}: extends itself: {' -> '.join((*trail, where))}")
    if len(trail) == DEEPEST:
        raise RecipeError(f"{trail[0]}: more than {DEEPEST} bases: {' -> '.join((*trail, where))}")
    bases: list[Layer] = []
    base = (file, "") if variant else None
    if "extends" in settings:
        if not isinstance(settings["extends"], str):
            raise RecipeError(f"{where}: extends: must be one file or packaged recipe (value {settings['extends']!r})")
        try:
            base_file, base_variant = _locate(settings["extends"], file.parent)
        except RecipeError as error:
            raise RecipeError(f"{where}: extends: {error}") from error
        base = Path(os.path.normpath(base_file)), base_variant
    if base is not None:
        bases = _layers(*_read_settings(*base), *base, home=home, trail=(*trail, where))
    own_settings: dict[str, Any] = {key: value for key, value in settings.items() if key != "extends"}
    folder = Path(os.path.abspath(file.parent))  # noqa: PTH100 - links are kept
    if folder != Path(os.path.abspath(home)) and not folder.is_relative_to(PACKAGED):  # noqa: PTH100
        own_settings = _rebase(own_settings, folder, "")
    return [*bases, Layer(where, file, variant, merge(bases[-1].data, own_settings, where) if bases else own_settings)]


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
    unnamed = UNNAMED.get(key.rpartition(".")[2])
    element_names = [element.get("name", unnamed) if isinstance(element, dict) else None for element in base]
    changed, removed = list(base), set[int]()
    for name, value in new.items():
        place = int(name) if name.isdecimal() else element_names.index(name) if element_names.count(name) == 1 else -1
        if 0 <= place < len(base):
            changed[place] = merge(base[place], value, where, f"{key}.{name}")
            removed |= {place} if value is False else set()
        elif name == str(len(changed)):
            changed.append(value)
        else:
            elements = ", ".join([*filter(None, element_names), *map(str, range(len(base)))])
            raise RecipeError(
                f"{where}: {key}.{name}: {key} is a list in the base; change one ({elements}) or write a whole list"
            )
    return [value for place, value in enumerate(changed) if place not in removed]


def _rebase(value: Any, folder: Path, key: str) -> Any:
    """Settings with the relative paths in them made absolute."""
    if isinstance(value, dict):
        return {name: _rebase(inner, folder, f"{key}.{name}" if key else name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rebase(inner, folder, f"{key}.{number}") for number, inner in enumerate(value)]
    match = PATHS.search(key) if isinstance(value, str) and value else None
    if not match or value.startswith(("bundled:", "data:", "~")):
        return value
    path = folder / value
    named = match["perhaps"] and not (match["test"] and path.suffix)  # no task has a suffix, and a file may be missing
    return value if named and not path.exists() else str(path)


# Overrides, validation and its messages


def read_word(word: str) -> dict[str, Any]:
    """A value of the command line, in TOML or as a bare word, which is a string, under `value`."""
    try:
        return dict(tomllib.loads(f"value = {word}"))
    except tomllib.TOMLDecodeError:
        return {"value": word}


def _override(data: dict[str, Any], assignment: str) -> None:
    """Set one value in place. The path may step into lists by number: streams.0.batching.size=64.

    `streams.0.` may be left out where there is one stream: batching.size=64.
    """
    from isoglot.training.settings import Recipe, StreamSettings

    path, equals, word = assignment.partition("=")
    where = f"--set {quote(assignment, quotes=False)}"
    if not equals:
        raise RecipeError(f"{where}: write key=value, for example optimizer.lr=1e-4")
    try:
        parsed = read_word(word)
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{where}: not a value of TOML: {error}") from error
    if [*parsed] != ["value"]:
        raise RecipeError(f"{where}: contains more than one value; write a --set for each")
    *parents, last = path.strip().split(".")
    if parents and parents[0] not in Recipe.model_fields and parents[0] in StreamSettings.model_fields:
        parents = [*_only_stream(data, where), *parents]
    place: Any = data
    try:
        if "" in (*parents, last):
            raise ValueError("an empty key")
        for part in parents:
            place = place[_place(part)] if isinstance(place, list) else place.setdefault(part, {})
        place[_place(last) if isinstance(place, list) else last] = parsed["value"]
        if last in _LENGTHS and isinstance(place, dict):  # a recipe has one of them
            place.pop(_LENGTHS[last], None)
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise RecipeError(f"{where}: {quote(path, quotes=False)} does not exist in this recipe") from error


def _only_stream(data: Mapping[str, Any], where: str) -> list[str]:
    """The path of the only stream."""
    stages = data.get("stages")
    if isinstance(stages, list):
        outer, owner = ["stages", "0"], stages[0] if len(stages) == 1 else {}
    else:
        outer, owner = [], data
    streams = owner.get("streams") if isinstance(owner, Mapping) else None
    if not isinstance(streams, list) or len(streams) != 1:
        raise RecipeError(f"{where}: the recipe has several streams; choose one, such as streams.0.batching.size=64")
    return [*outer, "streams", "0"]


def _place(part: str) -> int:
    """An index of a list, from 0, in plain digits; negative ones are not accepted."""
    if not (part.isascii() and part.isdigit()):
        raise ValueError(part)
    return int(part)


def _validate(data: Mapping[str, Any], chain: Sequence[Layer]) -> Recipe:
    """Validate settings; `layers` are their origins, for errors."""
    from pydantic import ValidationError

    from isoglot.training.settings import Recipe

    if "folder" in data:
        raise RecipeError(f"{chain[-1].where}: folder: no such setting; paths are relative to the file of the recipe")
    try:
        return Recipe.model_validate({**data, "folder": chain[-1].file.parent})
    except ValidationError as error:
        errors = error.errors()
        # An error inside a list also makes the list too short; report only the inner one.
        outer = [item["loc"] for item in errors]
        inner = [item for item in errors if not any(loc[: len(item["loc"])] == item["loc"] != loc for loc in outer)]
        problems = [f"{_writer(chain, item['loc'])}: {explain(item, Recipe)}" for item in inner[:3]]
        raise RecipeError("; ".join(problems)) from error


def _writer(chain: Sequence[Layer], place: Sequence[Any]) -> str:
    """The origin of a value: the last layer that changed it.

    Parts of the location that are not in the file are skipped: pydantic adds tags, and the
    stage of a recipe that has only one.
    """
    writer = chain[0]
    for base, layer in pairwise(chain):
        if _at(base.data, place) is not _at(layer.data, place):
            writer = layer
    return writer.where


def _at(data: Any, place: Sequence[Any]) -> Any:
    for part in place:
        inside = part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))
        data = data[part] if inside else data
    return data


def explain(error: Any, model: type[BaseModel]) -> str:
    """One error of pydantic about a model as key, value and what to do."""
    place = [part for part in error["loc"] if part not in KINDS]
    if "stages" in place[:1] and "stages" not in error["msg"]:  # written at the top, as the only stage
        place = place[2:] if place[1:2] == [0] else place
    place = [place[0], *place[2:]] if place[:2] == ["evaluation", 0] else place  # written as a table, as the only one
    key = ".".join(quote(str(part), quotes=False) for part in place) or model.__name__.lower()
    if error["type"] == "extra_forbidden":
        hint = nearest(str(place[-1]), _fields(model, error["loc"][:-1]), most=99)
        return f"{key}: no such setting (value {quote(error['input'])}); {hint}"
    if error["type"] == "missing":
        return f"{'streams' if key == 'stages' else key}: missing required key"
    if error["type"] == "union_tag_not_found":
        return f"{key}.kind: missing required key"
    if error["type"] == "union_tag_invalid":
        kind = str(error["ctx"]["tag"])
        return f"{key}.kind: unknown kind {quote(kind)}; {nearest(kind, KINDS)}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "tuple_type":
        message = f"must be a list{f'; write [[{key}]]' if isinstance(error['input'], dict) else ', in brackets'}"
    if error["type"] in BOUNDS:
        (limit,) = error["ctx"].values()
        message = f"must be {BOUNDS[error['type']]} {limit:{',' if isinstance(limit, int) else 'g'}}"
    shown_value = "" if isinstance(error["input"], dict) else f" (value {quote(error['input'])})"
    return f"{key}: {message[0].lower()}{message[1:]}{shown_value}"


def _fields(model: type[BaseModel], place: Sequence[Any]) -> list[str]:
    """Names of the settings that are known at a place of the model."""
    from isoglot.training.settings import Recipe, StageSettings

    models = [model]
    for part in place:
        tagged = [model for model in models if _tag(model) == part]
        inner = [
            m for model in models if part in model.model_fields for m in _models(model.model_fields[part].annotation)
        ]
        models = tagged or inner or models
    names = [name for model in models for name in model.model_fields if name != "folder"]
    return [*names, *StageSettings.model_fields, "extends", "variants"] if models == [Recipe] else names


def _tag(model: type[BaseModel]) -> str | None:
    return get_args(model.model_fields["kind"].annotation)[0] if "kind" in model.model_fields else None


def _models(annotation: Any) -> list[type[BaseModel]]:
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


# Settings as TOML


def dumps(data: Mapping[str, Any], chain: Sequence[Layer] = ()) -> str:
    """Settings as TOML: the header comments of their files, the last base's last; values; tables."""
    first: dict[str, Any] = {key: data[key] for key in ("name", "description") if key in data}
    heads = {layer.file: _name_file(layer.file, layer.variant) for layer in reversed(chain)}
    lines = []
    for number, (file, name) in enumerate(heads.items()):
        lines += [f"# {name}:"] if number else []
        lines += takewhile(lambda line: line.startswith("#"), _read(file).strip().splitlines())
    return "\n".join([*lines, *_table({**first, **data})]) + "\n"


def _table(data: Mapping[str, Any], header: str = "") -> Iterator[str]:
    tables = {}
    for key, value in data.items():
        elements = value if isinstance(value, list) else [value]
        headed = not header or key == "streams" or any(len(_value(element)) > WIDTH - 3 for element in elements)
        if headed and elements and all(isinstance(element, dict) for element in elements):
            tables[key] = value
            continue
        line = f"{_key(key)} = {_value(value)}"
        if len(line) > WIDTH and isinstance(value, list):
            line = "\n".join([f"{_key(key)} = [", *(f"  {_value(element)}," for element in value), "]"])
        yield line
    for key, value in tables.items():
        dotted = f"{header}.{_key(key)}" if header else _key(key)
        for element in value if isinstance(value, list) else [value]:
            yield ""
            yield f"[[{dotted}]]" if isinstance(value, list) else f"[{dotted}]"
            yield from _table(element, dotted)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).replace("e-0", "e-") if math.isfinite(value) else str(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
