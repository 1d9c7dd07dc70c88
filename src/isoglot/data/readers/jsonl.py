"""JSON lines: one object a line, in one of the shapes that `group_of` knows, which may differ between lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from isoglot.data.files import json_object, read_lines
from isoglot.data.groups import Group, group_of
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.errors import CorpusError


def read_jsonl(path: str | Path, *, language: str = UNKNOWN) -> Iterator[Group]:
    """One group a line; `language` is that of sentences that come without one.

    Raises `CorpusError` for a line that is blank, no JSON object, of no known shape, names an unknown
    language, or holds a number that is not finite.
    """
    codes = (canonical(language, file=path),)
    for number, text in read_lines(path):
        item = json_object(text, file=path, line=number)
        try:
            yield group_of(item, codes)
        except CorpusError as error:
            raise CorpusError(str(error), file=path, line=number) from None
