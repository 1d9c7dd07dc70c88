"""Filters of a corpus: by language, against repetitions and test sentences; and 64-bit hashes of sentences.

Every filter takes an iterable of groups and gives an iterator, so they chain without holding the corpus. Numbers of
dropped and changed groups are added to `counts`, a `Counter` with keys such as "leaked" and "repeated", which is
complete when the iterator is exhausted.

*Leaks.* A training sentence leaks when it equals a test sentence after Unicode NFKC, casefold, and removal of
everything but letters and numbers (categories L and N; so punctuation, symbols, control and format characters, white
space and combining marks go). Sentences without letters and numbers, such as "?!", are compared as their NFKC text. The
language is not compared. Dropping marks makes some Indic sentences equal that differ in a vowel sign: dropping one pair
too many is better than keeping a leak. Near duplicates, such as a sentence with one changed word, are not found.

*Hashes.* Among n sentences the probability of a collision is about n * n / 2**65: one in 3,700 for a hundred million.
Equal sentences have equal hashes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from itertools import compress, islice
from pathlib import Path
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import CorpusError
from isoglot.data.formats import TABLES, input_format, table_cells
from isoglot.data.groups import Group
from isoglot.data.languages import canonical_list, matches
from isoglot.data.readers import match_pattern, read

BLOCK = 4096  # groups compared at a time

# \W and "_" are together exactly what is not in the categories L and N.
_NEITHER_LETTER_NOR_NUMBER = re.compile(r"[\W_]+")


def select_languages(
    groups: Iterable[Group], languages: str | Iterable[str], *, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """The groups with only the sentences in `languages`; a code without a script stands for all its scripts.

    Groups cut to fewer than two sentences are dropped and counted in `counts["of other languages"]`; groups that
    lost a sentence and stay are counted in `counts["shortened"]`. A single sentence stays if its
    language is selected. Kept in memory: nothing. Raises `CorpusError` for an unknown language.
    """
    wanted = frozenset(canonical_list(languages))
    counts = Counter() if counts is None else counts
    is_whole = cache(lambda codes: all(matches(code, wanted) for code in codes))
    whole: tuple[str, ...] = ()  # readers give the groups of a file one tuple, so most need no look-up
    for group in groups:
        if group.langs is whole and not group.hard_langs:
            yield group
            continue
        reduced = group
        if not is_whole(group.langs + group.hard_langs):
            texts, langs = _match(group.texts, group.langs, wanted)
            hard, hard_langs = _match(group.hard_negatives, group.hard_langs, wanted)
            reduced = replace(group, texts=texts, langs=langs, hard_negatives=hard, hard_langs=hard_langs)
        if len(reduced.texts) < min(2, max(1, len(group.texts))):
            counts["of other languages"] += 1
            continue
        if reduced is group and len(group.texts) >= 2:
            whole = group.langs
        counts["shortened"] += len(reduced.texts) < len(group.texts)
        yield reduced


def deduplicate(
    groups: Iterable[Group], *, seen: Seen | None = None, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """The groups without exact repetitions, the first of each kept.

    Groups are repetitions if they have the same sentences in the same languages, in any order, the same hard negatives,
    and no other `entity` or `label`: a sentence with two links is two instances. Dropped ones are counted in
    `counts["repeated"]`. One `seen` for several calls finds repetitions across their sources. Kept in memory: 11 to 22
    bytes for each group kept.
    """
    seen = Seen() if seen is None else seen
    counts = Counter() if counts is None else counts
    groups = iter(groups)
    while block := list(islice(groups, BLOCK)):
        fresh = seen.add(np.fromiter(map(_hash_group, block), np.int64, len(block)).view(np.uint64))
        yield from compress(block, fresh.tolist())
        counts["repeated"] += len(block) - int(fresh.sum())


def _match(
    texts: Sequence[str], codes: Sequence[str], wanted: frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    mask = [matches(code, wanted) for code in codes]
    return tuple(compress(texts, mask)), tuple(compress(codes, mask))


def _hash_group(group: Group) -> int:
    hard = frozenset(zip(group.hard_negatives, group.hard_langs, strict=True)) if group.hard_negatives else None
    targets = group.extras.get("entity"), group.extras.get("label")  # not a score, nor the number of a row
    return hash((frozenset(zip(group.texts, group.langs, strict=True)), hard, targets))


def normalise(text: str) -> str:
    """The text normalised by the rule above."""
    plain = normalize("NFKC", text)
    return _NEITHER_LETTER_NOR_NUMBER.sub("", normalize("NFKC", plain.casefold())) or plain.strip()


def remove_leaks(
    groups: Iterable[Group], tests: frozenset[str], *, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """The groups none of whose sentences, hard negatives included, is a test sentence by the rule above.

    `tests` holds normalised sentences: what `test_sentences` gives, or `frozenset(map(normalise, sentences))`. Dropped
    groups are counted in `counts["leaked"]`. Kept in memory: `tests`.
    """
    counts = Counter() if counts is None else counts
    for group in groups:
        if tests.isdisjoint(map(normalise, group.texts)) and tests.isdisjoint(map(normalise, group.hard_negatives)):
            yield group
        else:
            counts["leaked"] += 1


def test_sentences(paths: str | Path | Iterable[str | Path]) -> frozenset[str]:
    """The normalised sentences of test files, given as names, patterns (`test/*.txt`) or folders with all below them.

    Files are plain text, one sentence per line or several with tabs between them, CSV or workbooks, of which every cell
    counts, or of any other format that has a reader; blank lines are skipped. Hidden files and folders are not read.
    Raises `CorpusError` for a pattern or folder without files, and for files that cannot be read.
    """
    several = [paths] if isinstance(paths, (str, Path)) else paths
    return frozenset(normalise(text) for path in several for file in files_in(path) for text in _sentences(file))


def files_in(path: str | Path) -> list[Path]:
    """The files a name, a pattern or a folder stands for, sorted. Raises `CorpusError` when there are none.

    A plain name stands for itself, whether or not there is such a file.
    """
    root = Path(path)
    paths = match_pattern(root)
    if root.is_dir():
        paths = sorted(file for file in root.rglob("*") if "/." not in f"/{file.relative_to(root).as_posix()}")
    if not (files := [file for file in paths if file.is_file() or paths == [root]]):
        raise CorpusError("contains no files of test sentences; check the name", file=path)
    return files


def _sentences(path: Path) -> Iterator[str]:
    form = input_format(path)
    if form in ("lines", *TABLES):
        for _, cells in table_cells(path):
            yield from filter(str.strip, cells)
    else:
        for group in read(form, path):
            yield from (*group.texts, *group.hard_negatives)


def hash_sentence(text: str, language: str) -> bytes:
    """Eight bytes, equal for the same text in the same language."""
    return blake2b(f"{language}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


class Seen:
    """A set of 64-bit numbers in a flat table: 11 to 22 bytes each, where a `set` takes about 80."""

    def __init__(self) -> None:
        self._table = np.zeros(1024, np.uint64)  # zero: an empty place
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, numbers: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Add the numbers (N,); returns which of them (N,) are new, of equal ones the first."""
        values, first = np.unique(np.where(numbers == 0, np.uint64(1), numbers), return_index=True)
        while 4 * (self._size + len(values)) > 3 * len(self._table):
            met = self._table[self._table != 0]
            self._table = np.zeros(2 * len(self._table), np.uint64)
            self._place(met)
        new = self._place(values)
        self._size += int(new.sum())
        fresh = np.zeros(len(numbers), dtype=bool)
        fresh[first[new]] = True
        return fresh

    def _place(self, values: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Add distinct values, each at the first free place from its own on; returns which are new."""
        table, mask = self._table, np.uint64(len(self._table) - 1)
        new = np.zeros(len(values), dtype=bool)
        unplaced = np.arange(len(values))
        place = (values ^ (values >> np.uint64(32))) & mask
        while len(unplaced):
            wanted, at = values[unplaced], place[unplaced]
            free = table[at] == 0
            table[at[free]] = wanted[free]  # of several values for one place, the last one is stored
            placed = free & (table[at] == wanted)
            new[unplaced[placed]] = True
            unplaced = unplaced[table[at] != wanted]
            place[unplaced] = (place[unplaced] + np.uint64(1)) & mask
        return new
