"""A teacher's vectors beside the batches of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isoglot.data.streams import Sources
from isoglot.data.table import Array, GroupTable
from isoglot.settings import Recipe


def teacher_columns(
    recipe: Recipe, sources: Sources, table: GroupTable, *, watch: Callable[[str], None]
) -> Mapping[str, Callable[[Array], Array]]:
    """The columns that a stream's teacher adds to its batches; none without a teacher."""
    return {}
