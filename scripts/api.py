"""Write docs/api.md from the docstrings of the public names. `python scripts/api.py`; `--check` only compares."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import torch

import isoglot
from isoglot.data.formats import SUFFIXES
from isoglot.encoders.pooling import POOLINGS
from isoglot.mining import Alignments, Computation, Filters, Output

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
HEAD = """# API

Everything that `dir(isoglot)` lists, `encode`, which is `model.encode` as a function and is not listed, and the options
of `mine`. The page is made from the docstrings by `python scripts/api.py`. Importing `isoglot` imports nothing heavy;
each name is fetched when it is first used. Errors are subclasses of `IsoglotError`; wrong arguments are `TypeError` or
`ValueError`.
"""
# Shown first to last: what most people need comes first.
ORDER = (
    "load",
    "Model",
    "encode",
    "train",
    "evaluate",
    "compare",
    "mine",
    "align",
    "Index",
    "plot",
    "Group",
    "Score",
    "Objective",
)
GROUPS = (Filters, Computation, Output)  # arguments of mine


def page() -> str:
    """The whole page."""
    names = [*ORDER, *(name for name in isoglot.__all__ if name not in ORDER and not name.startswith("_"))]
    sections = {name: section(name, getattr(isoglot, name)) for name in names}
    sections["mine"] += "".join(section(f"mining.{kind.__name__}", kind) for kind in GROUPS)
    sections["align"] += section("mining.Alignments", Alignments)
    return HEAD + "".join(sections.values())


def section(name: str, thing: Any) -> str:
    """One name: its signature, its docstring, and of a class its own public members."""
    text = f"\n## {name}\n\n{signature(f'isoglot.{name}', thing)}{docs(thing)}"
    if inspect.isclass(thing):
        for member, value in members(thing):
            if isinstance(value, property):
                text += f"\n### {name}.{member}\n\n{docs(value)}"
            else:
                text += f"\n### {name}.{member}\n\n{signature(f'{name}.{member}', value)}{docs(value)}"
    return text


def members(kind: type) -> list[tuple[str, Any]]:
    """Public methods and properties that a class of this package defines, in the order of the source."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("isoglot"):
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    functions = (staticmethod, classmethod, property)
    return [
        (name, value.__func__ if isinstance(value, staticmethod | classmethod) else value)
        for name, value in found.items()
        if (inspect.isfunction(value) or isinstance(value, functions)) and inspect.getdoc(value)
    ]


def signature(name: str, thing: Any) -> str:
    """A fenced block with the call, one argument a line when it is long."""
    if inspect.isclass(thing) and (issubclass(thing, Exception) or thing.__init__ is torch.nn.Module.__init__):
        return ""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    keep = [parameter for parameter in found.parameters.values() if parameter.name not in ("self", "cls")]
    found = found.replace(parameters=keep)
    line = f"{name}{found}"
    line = re.sub(r"""(: |-> )(['"])(.*?)\2(?= =|,|\)|$)""", r"\1\3", line)  # annotations are strings
    line = re.sub(r"<class '?([\w.]+)'?>", r"\1", line)
    if len(line) > 110:
        inner = ",\n".join(f"    {parameter}" for parameter in split(line))
        line = f"{name}(\n{inner},\n){line[line.rindex(')') + 1 :]}"
    return f"```text\n{line}\n```\n\n"


def split(line: str) -> list[str]:
    """The arguments of a call, cut at commas outside of brackets."""
    inside, parts, depth = line[line.index("(") + 1 : line.rindex(")")], [""], 0
    for letter in inside:
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def docs(thing: Any) -> str:
    """A docstring, with its aligned lists kept as they are."""
    docstring, lines, fenced = inspect.getdoc(thing) or "", [], False
    for table, names in {"FORMATS": SUFFIXES.values(), "POOLINGS": POOLINGS}.items():
        docstring = docstring.replace(f"`{table}`", ", ".join(dict.fromkeys(names)))
    for line in docstring.split("\n"):
        aligned = bool(re.match(r"\S+(?:, \S+)*  +\S|    ", line)) or (fenced and bool(line))
        if aligned != fenced:
            lines.append("```text" if aligned else "```")
            fenced = aligned
        lines.append(line)
    return "\n".join([*lines, *(["```"] if fenced else [])]).strip() + "\n"


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="Fail if the page differs from the docstrings.")
    text = page()
    if parser.parse_args().check:
        if PAGE.read_text(encoding="utf-8") != text:
            sys.exit("docs/api.md differs from the docstrings; run: python scripts/api.py")
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
