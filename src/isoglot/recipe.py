"""Recipes: one TOML file is one run, checked before anything starts.

A recipe says which encoder is trained, by which stages, and how it is judged meanwhile. A stage has streams (where
groups come from, how they are batched, which objectives read them) and an optimiser. A recipe of one stage writes
`[[streams]]` and `[optimizer]` at the top; a recipe of several writes `[[stages]]`, each with its own.

Settings are frozen. An unknown key or a wrong value is a RecipeError that names the key, the value and the nearest
valid one. The options of readers and objectives are checked by those, since they are theirs.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from isoglot import inherit, toml
from isoglot.errors import RecipeError, shown
from isoglot.inherit import PACKAGED, names
from isoglot.settings import Recipe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["PACKAGED", "Recipe", "find", "load", "names", "parse", "show", "text"]
BOUNDS = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}
KINDS = ("static", "transformer", "twins", "towers")  # of encoders; pydantic names them in the place of an error


def load(name: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, or the packaged one of that name, with `key.path=value` overrides (values as in TOML)."""
    chain = _whole(name)
    data = deepcopy(chain[-1].data)
    for override in overrides:
        _override(data, override)
    inherit.require_shallow(data, str(name))
    return _validate(data, chain)


def show(name: str | Path) -> str:
    """A recipe with everything that it extends as one TOML text, below the first comments of all its files."""
    chain = _whole(name)
    if len(chain) == 1 and not inherit.members(chain[0].file):
        return text(name)
    return toml.dumps(chain[-1].data, chain)


def text(name: str | Path) -> str:
    """What stands in the file of a recipe, given as for `find`."""
    return inherit.read(find(name))


def parse(data: Mapping[str, Any], *, folder: Path = Path(), where: str = "recipe") -> Recipe:
    """Validate settings, which may extend a recipe too; `where` begins the message of an error."""
    inherit.require_shallow(data, where)
    chain = inherit.stack(data, where=where, folder=folder)
    return _validate(chain[-1].data, chain)


def find(name: str | Path) -> Path:
    """The file of a recipe given by path or by packaged name, such as `demo/pairs`."""
    return inherit.locate(name)[0]


def _whole(name: str | Path) -> list[inherit.Layer]:
    """The recipe and its bases, if it is more than a base."""
    chain = inherit.layers(name)
    members = inherit.members(chain[-1].file)
    if members and not chain[-1].variant and "name" not in chain[-1].data:
        raise RecipeError(f"{name}: a base without a name of its own; choose one of {', '.join(members)}")
    return chain


def _validate(data: Mapping[str, Any], chain: Sequence[inherit.Layer]) -> Recipe:
    """Settings, and the layers that they came from, for errors."""
    if "folder" in data:
        raise RecipeError(f"{chain[-1].where}: folder: no such setting; paths are relative to the file of the recipe")
    try:
        return Recipe.model_validate({**data, "folder": chain[-1].file.parent})
    except ValidationError as error:
        found = error.errors()
        # An error inside a list makes the list too short as well; only the inner one helps.
        outer = [item for item in found if any(_inside(other["loc"], item["loc"]) for other in found)]
        inner = [item for item in found if item not in outer][:3]
        raise RecipeError(
            "; ".join(f"{inherit.writer(chain, item['loc'])}: {_explain(item)}" for item in inner)
        ) from error


def _override(data: dict[str, Any], assignment: str) -> None:
    """Set one value in place. The path may step into lists by number: streams.0.batching.size=64."""
    path, equals, word = assignment.partition("=")
    said = f"--set {shown(assignment, quotes=False)}"
    if not equals:
        raise RecipeError(f"{said}: write key=value, for example optimizer.lr=1e-4")
    try:
        found = tomllib.loads(f"value = {word}")
    except tomllib.TOMLDecodeError:
        found = {"value": word}  # a bare word is a string
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{said}: not a value of TOML: {error}") from error
    if [*found] != ["value"]:
        raise RecipeError(f"{said}: holds more than one value; write a --set for each")
    *parents, last = path.strip().split(".")
    place: Any = data
    try:
        if "" in (*parents, last):
            raise ValueError("an empty key")
        for part in parents:
            place = place[_place(part)] if isinstance(place, list) else place.setdefault(part, {})
        place[_place(last) if isinstance(place, list) else last] = found["value"]
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise RecipeError(f"{said}: {shown(path, quotes=False)} leads nowhere in this recipe") from error


def _place(part: str) -> int:
    """A place in a list, counted from 0; no other spelling of a number, and none from the end."""
    if not (part.isascii() and part.isdigit()):
        raise ValueError(part)
    return int(part)


def _explain(error: Any) -> str:
    """One error of pydantic as key, value and what to do."""
    place = [part for part in error["loc"] if part not in KINDS]
    if "stages" in place[:1] and "stages" not in _text(error):  # written at the top, as the only stage
        place = place[2:] if place[1:2] == [0] else place
    place = [place[0], *place[2:]] if place[:2] == ["evaluation", 0] else place  # written as a table, as the only one
    key = ".".join(shown(str(part), quotes=False) for part in place) or "recipe"
    if error["type"] == "extra_forbidden":
        known = _fields(error["loc"][:-1])
        close = difflib.get_close_matches(str(place[-1]), known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        return f"{key}: no such setting (value {shown(error['input'])}); {hint}"
    if error["type"] == "missing":
        return f"{key}: missing; it must be given"
    if error["type"] == "union_tag_invalid":
        context = error["ctx"]
        part = context["discriminator"].strip("'")
        return f"{key}.{part}: {shown(context['tag'])} is none of {context['expected_tags']}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] in BOUNDS:
        (limit,) = error["ctx"].values()
        message = f"must be {BOUNDS[error['type']]} {limit:{',' if isinstance(limit, int) else 'g'}}"
    given = "" if isinstance(error["input"], dict) else f" (value {shown(error['input'])})"
    return f"{key}: {message[0].lower()}{message[1:]}{given}"


def _inside(place: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(place) > len(other) and place[: len(other)] == other


def _text(error: Any) -> str:
    return str(error.get("msg", ""))


def _fields(place: Sequence[Any]) -> list[str]:
    """Names of the settings that are known at a place of the recipe."""
    models: list[type[BaseModel]] = [Recipe]
    for part in place:
        tagged = [model for model in models if _tag(model) == part]
        inner = [
            m for model in models if part in model.model_fields for m in _models(model.model_fields[part].annotation)
        ]
        models = tagged or inner or models
    known = [name for model in models for name in model.model_fields if name != "folder"]
    return known if place else [*known, "extends", "variants"]


def _tag(model: type[BaseModel]) -> str | None:
    return get_args(model.model_fields["kind"].annotation)[0] if "kind" in model.model_fields else None


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]
