"""A map into a file, of the kind that its ending says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isoglot.data.files import atomic_write
from isoglot.errors import EvaluationError
from isoglot.report.plot.interactive import document
from isoglot.report.plot.layouts import Plane
from isoglot.report.plot.picture import write_picture
from isoglot.report.plot.sentences import Sentence

ENDINGS = (".png", ".svg", ".html")


def write_map(path: Path, sentences: Sequence[Sentence], places: Plane, *, title: str, note: str = "") -> None:
    """Write a map of the sentences at their places (N, 2), atomically; `note` is the small line below the title.

    The same input gives the same bytes; those of PNG and SVG also depend on the version of matplotlib and, for
    labels in scripts other than the Latin one, on the fonts that are installed. Raises `EvaluationError` for another
    ending than those in `ENDINGS`, and for PNG and SVG when matplotlib is not installed.
    """
    check_ending(path)
    if path.suffix.lower() == ".html":
        content = document(sentences, places, title=title, note=note)
        with atomic_write(path) as stream:
            stream.write(content)
    else:
        write_picture(path, sentences, places, title=title, note=note)


def check_ending(path: Path) -> None:
    """Raise `EvaluationError` unless a map can be written to a file of that name."""
    if path.suffix.lower() not in ENDINGS:
        raise EvaluationError(f"{path}: a map is written as {', '.join(ENDINGS)}; end the name with one of them")
