"""The templates of the pages, their header, and tables as HTML; the environment escapes every text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from isoglot.core import __version__, environment
from isoglot.data.languages import english_name, is_language
from isoglot.report.tables import Grid

_PARTS = 4  # languages up to which the name of a subset is shown in full
_CODED = ("subset", "language", "taken for")  # columns of codes of languages
_LONGEST = 8  # characters of a code of a language, such as zho_Hans


class Tables(NamedTuple):
    """Tables with how they were computed, and lines on what was left out."""

    grids: Sequence[Grid]
    method: str = ""
    left_out: Sequence[str] = ()


def tables_html(tables: Tables) -> str:
    """Tables as a fragment of HTML, long ones folded, below a line on how they were computed."""
    return ENVIRONMENT.get_template("tables.html").render(tables._asdict())


def row_subset(grid: Grid, place: int) -> str | None:
    """The languages of a row for the language filter; none for a mean over all languages, which is always shown."""
    name = grid.rows[place][0]
    average = grid.first_average is not None and place >= grid.first_average
    return None if average and not any(map(is_language, name.split("-"))) else name


def shorten(subset: str) -> str:
    """A subset's name, shortened when it names many languages."""
    parts = subset.split("-")
    return subset if len(parts) <= _PARTS else f"{len(parts)} languages ({parts[0]} … {parts[-1]})"


def languages_in(subset: str) -> str:
    """The English names of the languages that a subset is named by: `German–English`; empty for other names."""
    parts = subset.removeprefix("xx-").split("-")
    names = [english_name(part) if len(part) <= _LONGEST else "" for part in parts[:_PARTS]]
    return "–".join(dict.fromkeys(takewhile(bool, names))) if len(parts) <= _PARTS else ""


def facts(models: Iterable[str], data: str) -> list[tuple[str, list[str]]]:
    """The header of a page: when and with what it was made, the models, the data and, if it is known, the command."""
    made = f"{environment.today()}, isoglot {__version__}"
    rows = {"made": [made], "model": [*models], "data": [data], "command": [environment.command()]}
    return [(label, lines) for label, lines in rows.items() if any(lines)]


ENVIRONMENT = Environment(
    loader=PackageLoader("isoglot.report"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
ENVIRONMENT.globals.update(row_subset=row_subset, called=shorten, languages_in=languages_in, coded_columns=_CODED)
