"""Line-aligned files: line i of every file has the same meaning. Shared by the readers `moses` and `folder`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.files import read_lines, without_compression
from isoglot.data.formats import DOCUMENTS, input_format
from isoglot.data.groups import Group
from isoglot.data.languages import is_language

# File extensions that are also language codes, but not meant as such.
_ENDINGS = {"csv", "html", "ids", "json", "jsonl", "log", "md", "py", "srt", "tmx", "tsv", "txt", "xml", "zip"}


def split_name(name: str) -> tuple[str, str | None]:
    """`news.deu.txt.xz` -> ("news", "deu"), `deu.txt` -> ("", "deu"); the code as written, None if there is none."""
    stem, _, code = without_compression(name).removesuffix(".txt").rpartition(".")
    named = code.lower() not in _ENDINGS and is_language(code)
    return (stem, code) if named else (name, None)


def language_in_name(name: str) -> str | None:
    """The code in the name of a text, which may be a document, such as `report.deu.docx`; as `split_name`."""
    return split_name(without_compression(name).rpartition(".")[0] if input_format(name) in DOCUMENTS else name)[1]


def pair_in_name(name: str) -> tuple[str, str] | None:
    """The two languages at the end of `news.de-en`, as written; None if there are none."""
    parts = name.rpartition(".")[2].split("-")
    return (parts[0], parts[1]) if len(parts) == 2 and all(map(is_language, parts)) else None


def read_aligned(
    files: Sequence[tuple[Path, str]], *, skip_empty: bool = False, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """One group per line, from (file, language code) pairs, with the sentences in that order.

    A blank line is an error. With `skip_empty` it is skipped: rows that keep two sentences or more are counted in
    `counts["shortened"]`, the others are dropped and counted in `counts["empty"]`. Raises `CorpusError` if the files
    have unequal numbers of lines.
    """
    languages = tuple(language for _, language in files)
    streams = [read_lines(path) for path, _ in files]
    counts = Counter() if counts is None else counts
    for row in zip_longest(*streams):
        if None in row:
            ended = row.index(None)
            longer, (number, _) = next((place, cell) for place, cell in enumerate(row) if cell is not None)
            total = number + sum(1 for _ in streams[longer])
            problem = f"has {number - 1} lines, but {files[longer][0]} has {total}, so from line {number} on they are "
            problem += "not translations; aligned files need equal numbers of lines"
            raise CorpusError(problem, file=files[ended][0])
        texts = tuple(text for _, text in row)
        if all(map(str.strip, texts)):
            yield Group(texts, languages)
            continue
        if not skip_empty:
            (number, _), (path, _) = next(pair for pair in zip(row, files, strict=True) if not pair[0][1].strip())
            problem = "is empty; remove the line from all aligned files, or pass skip_empty=true"
            raise CorpusError(problem, file=path, line=number)
        kept = [(text, language) for text, language in zip(texts, languages, strict=True) if text.strip()]
        counts["shortened" if len(kept) >= 2 else "empty"] += 1
        if len(kept) >= 2:
            yield Group(tuple(text for text, _ in kept), tuple(language for _, language in kept))
