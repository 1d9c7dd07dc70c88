"""Removing test sentences from training text.

*One rule.* A training sentence leaks when it equals a test sentence after Unicode NFKC, casefold, and removal of
everything but letters and numbers (categories L and N; so punctuation, symbols, control and format characters, white
space and combining marks go). Sentences of nothing else, such as "?!", are compared as their NFKC text. The language
is not compared. Dropping marks makes some Indic sentences equal that differ in a vowel sign: a pair too many is lost
rather than one too few. Sentences with a word changed are not found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from unicodedata import normalize

from isoglot.data.files import read_lines, without_compression
from isoglot.data.groups import Group
from isoglot.data.readers.jsonl import read_jsonl
from isoglot.data.readers.tmx import read_tmx
from isoglot.errors import CorpusError

# \W and "_" are together exactly what is not in the categories L and N.
_NEITHER_LETTER_NOR_NUMBER = re.compile(r"[\W_]+")


def normalise(text: str) -> str:
    """The text as the rule above compares it."""
    plain = normalize("NFKC", text)
    return _NEITHER_LETTER_NOR_NUMBER.sub("", normalize("NFKC", plain.casefold())) or plain.strip()


def remove_leaks(
    groups: Iterable[Group], tests: frozenset[str], *, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """The groups none of whose sentences, hard negatives included, is a test sentence by the rule above.

    `tests` holds normalised sentences: what `test_sentences` gives, or `frozenset(map(normalise, sentences))`. Dropped
    groups are counted in `counts["leaked"]`. Held in memory: `tests`.
    """
    counts = Counter() if counts is None else counts
    for group in groups:
        if tests.isdisjoint(map(normalise, group.texts)) and tests.isdisjoint(map(normalise, group.hard_negatives)):
            yield group
        else:
            counts["leaked"] += 1


def test_sentences(paths: str | Path | Iterable[str | Path]) -> frozenset[str]:
    """The normalised sentences of test files, given as names, patterns (`test/*.txt`) or folders with all below them.

    Files are plain text, one sentence a line or several with tabs between them, or JSON lines (`.jsonl`) or TMX
    (`.tmx`) as their readers take them; any may be compressed; blank lines are passed over. Hidden files and folders
    are not read. Raises `CorpusError` for a pattern or folder without files, and for files that cannot be read.
    """
    given = [paths] if isinstance(paths, (str, Path)) else paths
    return frozenset(normalise(text) for path in given for file in files_in(path) for text in _sentences(file))


def files_in(path: str | Path) -> list[Path]:
    """The files a name, a pattern or a folder stands for, sorted. Raises `CorpusError` when there are none.

    A plain name stands for itself, whether or not there is such a file.
    """
    root = Path(path)
    if root.is_dir():
        found = sorted(file for file in root.rglob("*") if file.is_file() and not _hidden(file.relative_to(root)))
    elif not root.exists() and any(mark in str(path) for mark in "*?["):
        found = sorted(file for file in _matching(root) if file.is_file())
    else:
        return [root]
    if not found:
        raise CorpusError("holds no files of test sentences; check the name", file=path)
    return found


def _matching(pattern: Path) -> Iterator[Path]:
    anchor = Path(pattern.anchor)
    yield from anchor.glob(str(pattern.relative_to(anchor)))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _sentences(path: Path) -> Iterator[str]:
    kind = Path(without_compression(path.name)).suffix
    if kind in (".jsonl", ".tmx"):
        for group in read_jsonl(path) if kind == ".jsonl" else read_tmx(path):
            yield from group.texts
        return
    for _, text in read_lines(path):
        yield from (cell for cell in text.split("\t") if cell.strip())
