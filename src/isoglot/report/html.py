"""The templates of the page, and tables as HTML; the environment escapes every text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from isoglot.data.languages import is_language
from isoglot.report.tables import Grid

_PARTS = 4  # languages up to which the name of a subset is shown in full


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


def called(subset: str) -> str:
    """A subset's name, shortened when it names many languages."""
    parts = subset.split("-")
    return subset if len(parts) <= _PARTS else f"{len(parts)} languages ({parts[0]} … {parts[-1]})"


ENVIRONMENT = Environment(
    loader=PackageLoader("isoglot.report"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
ENVIRONMENT.globals |= {"row_subset": row_subset, "called": called}
