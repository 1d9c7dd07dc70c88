"""The sentences of one side of mining, without duplicates and filtered ones, addressed by row.

Sentences of a list stay in memory; those of a file are copied to a work file, with 32 bytes per line in memory.
Duplicates are found by 64-bit hashes (see `data.filters` for the probability of a collision), so a corpus need not fit
into memory. Filters of sentences work before anything is encoded; filters of pairs work on candidates, before pairs are
chosen, so that the second best replaces what is filtered out.
"""

from __future__ import annotations

import mmap
import os
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, islice
from pathlib import Path
from typing import Any, overload

import numpy as np
from langcodes import Language
from numpy.typing import NDArray

from isoglot.core.errors import CorpusError, quote
from isoglot.data.files import atomic_write, read_lines
from isoglot.data.filters import BLOCK, Seen, hash_sentence
from isoglot.data.formats import TABLES, input_format, read_table, read_texts, text_column
from isoglot.data.languages import canonical
from isoglot.model.engine import check_texts
from isoglot.model.tokenizer import readable
from isoglot.search.best import Ids
from isoglot.search.pairs import Allowed

ABSENT = -1
Source = str | Path | Iterable[str]  # of sentences: a file, or the sentences themselves

# How the Unicode names of a script's letters begin.
SCRIPTS = {
    "Arab": "ARABIC", "Armn": "ARMENIAN", "Beng": "BENGALI", "Cyrl": "CYRILLIC", "Deva": "DEVANAGARI",
    "Ethi": "ETHIOPIC", "Geor": "GEORGIAN", "Grek": "GREEK", "Gujr": "GUJARATI", "Guru": "GURMUKHI",
    "Hans": "CJK", "Hant": "CJK", "Hani": "CJK", "Hebr": "HEBREW", "Jpan": "CJK HIRAGANA KATAKANA",
    "Khmr": "KHMER", "Knda": "KANNADA", "Kore": "HANGUL CJK", "Laoo": "LAO", "Latn": "LATIN", "Mlym": "MALAYALAM",
    "Mong": "MONGOLIAN", "Mymr": "MYANMAR", "Orya": "ORIYA", "Sinh": "SINHALA", "Taml": "TAMIL", "Telu": "TELUGU",
    "Thaa": "THAANA", "Thai": "THAI", "Tibt": "TIBETAN", "Tfng": "TIFINAGH",
}  # fmt: skip


class MappedLines(Sequence[str]):
    """The lines of a UTF-8 file, memory-mapped; line i is from byte `offsets[i]` to the line feed before the next."""

    def __init__(self, path: Path, offsets: Ids) -> None:
        self.path, self.offsets = path, offsets
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[at] for at in range(*row.indices(len(self)))]
        return self._data[int(self.offsets[row]) : int(self.offsets[row + 1]) - 1].decode("utf-8")


@dataclass(frozen=True, slots=True)
class Side:
    """R sentences `texts`, of the L that `name` was given with.

    places (R,)  where each of them was given, the first of its duplicates
    rows (L,)    the row of each sentence given, `ABSENT` if it was filtered out
    hashes (R,)  equal for equal sentences
    sizes (R,)   bytes in UTF-8
    ids (L,)     given names; None: numbers from `first`, which is 1 for lines of a file and 0 for a list
    """

    name: str
    texts: Sequence[str]
    places: Ids
    rows: Ids
    hashes: NDArray[np.uint64]
    sizes: Ids
    ids: Sequence[str] | None
    first: int

    def __len__(self) -> int:
        return len(self.texts)

    def id_of(self, row: int) -> str | int:
        """The id of a row, or the number of its line or place in the list."""
        place = int(self.places[row])
        return place + self.first if self.ids is None else self.ids[place]


def gather(
    source: Path | Sequence[str],
    into: Path | None,
    *,
    name: str,
    ids: bool | Sequence[str] = False,
    columns: Mapping[str, str] | None = None,
    split: Callable[[str], Iterable[str]] | None = None,
    deduplicate: bool = True,
    keep: Callable[[str], bool] | None = None,
    report: Callable[[str], None] = lambda _message: None,
) -> Side:
    """Read a file, one sentence per line (with `ids`: id, tab, sentence) or a table, or a list, whose ids are `ids`.

    Blank sentences, duplicates (unless `deduplicate` is off) and those for which `keep` returns False are left out. Of
    a file the rest is written to the file `into`. `split` divides each text into sentences. Raises `CorpusError` for
    what `read_lines` rejects, a line without an id, a duplicate id, and a side of which nothing is left.
    """
    earlier, texts, sizes = Seen(), list[str](), array("q")
    block_hashes, block_masks = [np.empty(0, np.uint64)], [np.empty(0, np.bool_)]
    names = None if ids is False else list[str]() if ids is True else [*map(str, ids)]
    with ExitStack() as stack:
        stream = stack.enter_context(atomic_write(into, binary=True)) if into else None
        sentences = read_sentences(source, ids=names, columns=columns, split=split)
        while block := list(islice(sentences, BLOCK)):
            hashes = np.frombuffer(b"".join(hash_sentence(text, "") for text in block), np.uint64)
            mask = np.array([bool(text.strip()) and (keep is None or keep(text)) for text in block])
            if deduplicate:
                mask[mask] = earlier.add(hashes[mask])
            block_hashes.append(hashes)
            block_masks.append(mask)
            for text in compress(block, mask.tolist()):
                line = text.encode()
                sizes.append(len(line))
                if stream is None:
                    texts.append(text)
                else:
                    stream.write(line + b"\n")
    all_hashes, is_row = np.concatenate(block_hashes), np.concatenate(block_masks)
    places, count = np.flatnonzero(is_row), len(is_row)
    if not len(places):
        raise CorpusError("no sentence is left to mine: all are blank or filtered out", file=name)
    if names is not None and len(names) != count:
        raise ValueError(f"{name}: {len(names)} ids for {count} sentences; pass one for each")
    if names is not None and len(set(names)) < len(names):
        repeated = Counter(names).most_common(1)[0][0]
        raise CorpusError(f"two sentences have the id {repeated!r}; ids must differ", file=name)
    report(f"{name}: {count:,} sentences, {count - len(places):,} skipped (blank, duplicate, filtered)")
    lengths, hashes = np.array(sizes, np.int64), all_hashes[places]
    # A duplicate has the row of the sentence that it repeats.
    order = np.argsort(hashes, kind="stable")
    at = order[np.minimum(np.searchsorted(hashes[order], all_hashes), len(hashes) - 1)]
    rows = np.where(is_row, np.cumsum(is_row) - 1, np.where(hashes[at] == all_hashes, at, ABSENT))
    lines = texts if into is None else MappedLines(into, np.concatenate([[0], np.cumsum(lengths + 1)]))
    return Side(name, lines, places, rows, hashes, lengths, names, int(isinstance(source, Path)))


def read_sentences(
    source: Path | Iterable[str],
    *,
    ids: list[str] | None = None,
    columns: Mapping[str, str] | None = None,
    split: Callable[[str], Iterable[str]] | None = None,
) -> Iterator[str]:
    """The sentences of a file or a list, also blank ones; `split` divides each text, `ids` gets the ids of lines."""
    texts = _from_file(source, ids, columns) if isinstance(source, Path) else iter(source)
    return texts if split is None else (sentence for text in texts for sentence in split(text))


def _from_file(path: Path, ids: list[str] | None, columns: Mapping[str, str] | None) -> Iterator[str]:
    if ids is None:
        for _, text in read_texts(path, columns):
            yield " ".join(text.splitlines()) if "\n" in text else text  # each is a line again below
        return
    if input_format(path) in TABLES and (columns or input_format(path) != "tsv"):
        names, rows = read_table(path, columns)
        if "id" not in names:
            raise CorpusError(f"no column is called id, only {', '.join(names)}; pass --columns", file=path)
        place, other = names.index("id"), text_column(names, path)
        for _, cells in rows:
            ids.append(cells[place])
            yield " ".join(cells[other].splitlines())
        return
    for number, line in read_lines(path):
        name, tab, text = line.partition("\t")
        if not tab or not name:
            raise CorpusError("is not an id, a tab and a sentence; mine without ids", file=path, line=number)
        ids.append(name)
        yield text


def check_side(name: str, value: Any, example: str) -> Path | list[str]:
    """The file or the sentences of a side, as UTF-8 can represent them. Raises `TypeError` for anything else."""
    if is_file(value):
        return Path(value)
    try:
        texts = list(check_texts(value))
    except TypeError as error:
        raise TypeError(f"{name}: {error}; pass a list of sentences or the name of a file, {example}") from None
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{place}] is {quote(text)}, a {type(text).__name__}; pass a list of sentences")
    return [*map(readable, texts)]


def is_file(source: object) -> bool:
    """Whether an argument names a file: a string or a path, not a list of strings."""
    return isinstance(source, str | os.PathLike)


def allow_pairs(x: Side, y: Side, drop_identical: bool, length_ratio: float | None) -> Allowed | None:
    """A filter of pairs of identical sentences, if they are to be dropped, and of those whose longer sentence has more
    than `length_ratio` times the bytes of the shorter one. None if it would allow all pairs.

    Bytes of UTF-8 rather than characters: a Chinese character has three and carries about as much as three English
    ones.
    """
    if not drop_identical and length_ratio is None:
        return None

    def allow(source: Ids, target: Ids) -> NDArray[np.bool_]:
        passed: Any = np.True_
        if drop_identical:
            passed = x.hashes[source] != y.hashes[target]
        if length_ratio is not None:
            a, b = x.sizes[source], y.sizes[target]
            passed = passed & (np.maximum(a, b) <= float(length_ratio) * np.minimum(a, b))
        return np.asarray(passed)

    return allow


def match_script(language: str) -> Callable[[str], bool]:
    """Whether at least half of the letters of a sentence belong to the script of a language.

    It distinguishes Russian from English, but not German from English. A sentence without letters passes. Raises
    `CorpusError` for an unknown language and one whose script is not among `SCRIPTS`.
    """
    script = Language.get(canonical(language)).maximize().script or ""
    if script not in SCRIPTS:
        raise CorpusError(f"the script of {language!r} is unknown; mine without the language check")
    wanted = set(SCRIPTS[script].split())

    def keep(text: str) -> bool:
        letters = Counter(_letters(character) for character in text if character.isalpha())
        return 2 * sum(letters[name] for name in wanted) >= letters.total()

    return keep


def match_language(language: str, identify: Callable[[str], str | None]) -> Callable[[str], bool]:
    """Whether a function from a sentence to a language code returns this language; scripts are not compared.

    None is another language. Raises `CorpusError` for anything else.
    """
    wanted = canonical(language).partition("_")[0]
    same = lru_cache(maxsize=1024)(lambda code: canonical(code).partition("_")[0] == wanted)

    def keep(text: str) -> bool:
        code = identify(text)
        if not isinstance(code, str | None):
            problem = f"the language check returned {quote(code)} for {quote(text, most=40)}"
            raise CorpusError(f"{problem}; it must return a language code such as {language!r}, or None")
        return code is not None and same(code)

    return keep


@lru_cache(maxsize=1 << 16)
def _letters(character: str) -> str:
    return unicodedata.name(character, "").split(" ")[0].split("-")[0]
