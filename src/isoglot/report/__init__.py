"""Scores for people: tables, the HTML page, sentence maps."""

from __future__ import annotations

from isoglot.report.tables import Grid, by_language, side_by_side, to_markdown, to_rich

__all__ = ["Grid", "by_language", "side_by_side", "to_markdown", "to_rich"]
