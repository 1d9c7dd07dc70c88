"""Plain text, one sentence per line: monolingual data, each line a group of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from isoglot.data.files import read_lines
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.errors import CorpusError


def read_sentences(
    path: str | Path, *, language: str = UNKNOWN, skip_empty: bool = False, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """A group of one sentence per line, all in `language`.

    A blank line is an error, or with `skip_empty` left out and counted in `counts["empty"]`.
    """
    languages = (canonical(language, file=path),)
    for number, text in read_lines(path):
        if text.strip():
            yield Group((text,), languages)
        elif not skip_empty:
            raise CorpusError("is empty; remove the line, or pass skip_empty=true", file=path, line=number)
        elif counts is not None:
            counts["empty"] += 1
