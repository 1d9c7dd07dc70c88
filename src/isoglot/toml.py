"""Recipes as TOML text: settings written out, below the comments at the heads of the files that they come from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from isoglot.inherit import Layer, called, read

WIDTH = 120


def dumps(data: Mapping[str, Any], chain: Sequence[Layer] = ()) -> str:
    """Settings as TOML: the comments of the files that they come from, the last base's last; values; tables."""
    first: dict[str, Any] = {key: data[key] for key in ("name", "description") if key in data}
    return "\n".join([*_comments(chain), *_table({**first, **data})]) + "\n"


def _comments(chain: Sequence[Layer]) -> Iterator[str]:
    heads = {layer.file: called(layer.file, layer.variant) for layer in reversed(chain)}
    for number, (file, name) in enumerate(heads.items()):
        if number:
            yield f"# {name}:"
        yield from takewhile(lambda line: line.startswith("#"), read(file).strip().splitlines())


def _table(data: Mapping[str, Any], header: str = "") -> Iterator[str]:
    tables = {}
    for key, value in data.items():
        elements = value if isinstance(value, list) else [value]
        headed = not header or key == "streams" or any(len(_value(element)) > WIDTH - 3 for element in elements)
        if headed and elements and all(isinstance(element, dict) for element in elements):
            tables[key] = value
        else:
            yield _statement(key, value)
    for key, value in tables.items():
        dotted = f"{header}.{_key(key)}" if header else _key(key)
        for element in value if isinstance(value, list) else [value]:
            yield ""
            yield f"[[{dotted}]]" if isinstance(value, list) else f"[{dotted}]"
            yield from _table(element, dotted)


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
