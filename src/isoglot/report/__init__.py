"""Scores for people and programs: files, tables, comparisons, the HTML page, sentence maps."""

from __future__ import annotations

from isoglot.report.scores import Scores, read_results, write_results
from isoglot.report.tables import Grid, by_language, by_suite, side_by_side, to_markdown, to_rich

__all__ = [
    "Grid",
    "Scores",
    "by_language",
    "by_suite",
    "read_results",
    "side_by_side",
    "to_markdown",
    "to_rich",
    "write_results",
]
