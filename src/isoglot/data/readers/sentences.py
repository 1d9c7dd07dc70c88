"""Plain text, one sentence per line, and documents: monolingual data, each line or text a group of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.files import read_lines
from isoglot.data.formats import DOCUMENTS, input_format, read_texts
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical


def read_sentences(
    path: str | Path, *, language: str = UNKNOWN, skip_empty: bool = False, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """A group of one sentence per line, or per text of a document, all in `language`.

    A blank line is an error, or with `skip_empty` left out and counted in `counts["empty"]`.
    """
    languages = (canonical(language, file=path),)
    texts = read_texts(path) if input_format(path) in DOCUMENTS else read_lines(path)
    for number, text in texts:
        if text.strip():
            yield Group((text,), languages)
        elif not skip_empty:
            raise CorpusError("is empty; remove the line, or pass skip_empty=true", file=path, line=number)
        elif counts is not None:
            counts["empty"] += 1
