"""Recipes as TOML text: settings written out, with the comments of the files that they come from."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isoglot.inherit import Layer, called, position, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Place = tuple[str, ...]  # keys, and names of elements, or their numbers
WIDTH = 120
STRING = r"""(?:"(?:\\.|[^"\\])*"|'[^']*')"""
CODE = re.compile(rf"""(?:{STRING}|[^"'#])*""")


@dataclass(frozen=True, slots=True)
class Comments:
    """Comments of a recipe: at its head, above the line of a key or a table, and at the end of that line."""

    head: list[str] = field(default_factory=list)
    above: dict[Place, list[str]] = field(default_factory=dict)
    after: dict[Place, str] = field(default_factory=dict)


def dumps(data: Mapping[str, Any], comments: Comments) -> str:
    """Settings as TOML: values first, then tables, each with its comments."""
    first = {key: data[key] for key in ("name", "description") if key in data}
    return "\n".join([*comments.head, *_table({**first, **data}, (), "", comments)]) + "\n"


def gather(chain: Sequence[Layer]) -> Comments:
    """The comments of a recipe and of its bases, without those on values that were replaced."""
    kept = Comments()
    for number, layer in enumerate(chain):
        if number:
            for place in {*kept.above, *kept.after}:
                now = _get(layer.data, place)
                if now is not _get(chain[number - 1].data, place) and not isinstance(now, dict):
                    kept.above.pop(place, None)
                    kept.after.pop(place, None)
        own = _read(layer)
        first = (
            [f"# {called(layer.file, layer.variant)}:", *own.head] if own.head and layer is not chain[-1] else own.head
        )
        between = ["#"] if first and kept.head else []
        kept = Comments([*first, *between, *kept.head], kept.above | own.above, kept.after | own.after)
    return kept


def _read(layer: Layer) -> Comments:
    """The comments of one file, or of one variant in it."""
    found, pending, own = Comments(), list[str](), ("variants", layer.variant) if layer.variant else ()
    table, place, begun, brackets = Place(), Place(), False, 0
    counts: dict[Place, int] = {}
    for line in read(layer.file).splitlines():
        code = re.match(CODE, line)[0]  # type: ignore[index]
        comment, code = line[len(code) :].strip(), code.strip()
        if code and not brackets:
            keys = _keys(code.strip("[]") if code[0] == "[" else code.partition("=")[0])
            if code[0] == "[":
                place = table = _number(keys, counts, array=code.startswith("[["))
            else:
                place = (*table, *keys)
            inside = place[: len(own)] == own and (bool(own) or place[0] != "variants")
            to = _canonical(layer.data, place[len(own) :]) if inside else None
            if to == ():
                found.head.extend([*pending, *filter(None, [comment])])
            elif to is not None:
                found.above.setdefault(to, []).extend(pending)
                found.after.update({to: comment} if comment else {})
            pending, begun = [], True
        elif comment:
            (pending if begun or own else found.head).append(comment)
        brackets += _brackets(code)
    return found


def _keys(text: str) -> Place:
    """The parts of a dotted key."""
    try:
        data: Any = tomllib.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError:
        return ("",)  # a line of a string over several lines
    keys: list[str] = []
    while isinstance(data, dict):
        keys += data
        data = data[keys[-1]]
    return tuple(keys)


def _number(keys: Place, counts: dict[Place, int], *, array: bool) -> Place:
    """A table's place, with the numbers of the `[[tables]]` it is in."""
    place = Place()
    for key in keys[:-1]:
        place += (key,)
        place += (str(counts[place]),) if place in counts else ()
    place += keys[-1:]
    if array:
        counts[place] = counts.get(place, -1) + 1
        place += (str(counts[place]),)
    return place


def _brackets(code: str) -> int:
    plain = re.sub(STRING, "", code)
    return plain.count("[") - plain.count("]")


def _canonical(data: Any, place: Place) -> Place:
    """A place with names for numbers of elements, where they have names."""
    found = Place()
    for key in place:
        if isinstance(data, list):
            at = position(data, key, found[-1])
            key = key if at is None else _label(data, at, found[-1])
            data = None if at is None else data[at]
        else:
            data = data.get(key) if isinstance(data, dict) else None
        found += (key,)
    return found


def _label(elements: list[Any], at: int, table: str) -> str:
    name = elements[at].get("name") if isinstance(elements[at], dict) else None
    return name if isinstance(name, str) and position(elements, name, table) == at else str(at)


def _get(data: Any, place: Place) -> Any:
    for number, key in enumerate(place):
        if isinstance(data, list):
            at = position(data, key, place[number - 1])
            data = None if at is None else data[at]
        else:
            data = data.get(key) if isinstance(data, dict) else None
    return data


def _table(data: Mapping[str, Any], place: Place, header: str, comments: Comments) -> Iterator[str]:
    tables = {}
    for key, value in data.items():
        elements = value if isinstance(value, list) else [value]
        headed = not place or key == "streams" or any(len(_value(element)) > WIDTH - 3 for element in elements)
        if headed and elements and all(isinstance(element, dict) for element in elements):
            tables[key] = value
        else:
            yield from _with_comments(_statement(key, value), (*place, key), comments)
    for key, value in tables.items():
        dotted = f"{header}.{_key(key)}" if header else _key(key)
        for at, element in enumerate(value if isinstance(value, list) else [value]):
            inner = (*place, key, _label(value, at, key)) if isinstance(value, list) else (*place, key)
            yield ""
            yield from _with_comments(f"[[{dotted}]]" if isinstance(value, list) else f"[{dotted}]", inner, comments)
            yield from _table(element, inner, dotted, comments)


def _with_comments(line: str, place: Place, comments: Comments) -> Iterator[str]:
    yield from comments.above.get(place, [])
    yield f"{line} {comments.after[place]}" if place in comments.after else line


def _statement(key: str, value: Any) -> str:
    line = f"{_key(key)} = {_value(value)}"
    if len(line) <= WIDTH or not isinstance(value, list):
        return line
    return "\n".join([f"{_key(key)} = [", *(f"  {_value(element)}," for element in value), "]"])


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
