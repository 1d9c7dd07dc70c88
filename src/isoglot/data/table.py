"""Tokenised groups as a few long arrays, in memory or memory-mapped: the source of all batches.

A sentence is tokenised once; all epochs, seeds and objectives read the same ids. On disk a table is a folder
of raw arrays and one `table.json`; opening it reads only that file, so a corpus may be larger than memory.
Building streams over the groups, one block in memory at a time. An array `ends` has the end of each item in the next:

    groups  group_ends (G,), key (G,), source (G,), extras.<name> (G, ...)
    rows    ends (S,), lang (S,), slot (S,)          one row per sentence, a group's rows side by side
    tokens  ids (sum of lengths,)
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import CorpusError, quote
from isoglot.data.groups import Group
from isoglot.data.tokens import Tokens

Tokenize: TypeAlias = Callable[[Sequence[str]], Tokens]
Array: TypeAlias = NDArray[Any]

BLOCK = 8192  # groups tokenised at a time
FORMAT = 2
TYPES = {"ids": "uint32", "ends": "int64", "lang": "int16", "slot": "int16"}
TYPES |= {"group_ends": "int64", "key": "int64", "source": "int16"}


class GroupTable:
    """G groups of S sentences. `languages[lang]` is a sentence's code, `sources[source]` names a group's origin."""

    def __init__(self, columns: dict[str, Array], languages: list[str], sources: list[str]) -> None:
        self.ids, self.ends = columns["ids"], columns["ends"]
        self.lang, self.slot = columns["lang"], columns["slot"]
        self.group_ends, self.key, self.source = columns["group_ends"], columns["key"], columns["source"]
        self.extras = {name[7:]: column for name, column in columns.items() if name.startswith("extras.")}
        self.languages = languages
        self.sources = sources

    def __len__(self) -> int:
        return len(self.group_ends)

    @property
    def sentences(self) -> int:
        """Number S of sentences."""
        return len(self.ends)

    def content(self) -> dict[str, tuple[int, dict[str, int]]]:
        """Of each source, the number of groups, and of sentences by language."""
        content = {}
        source = np.repeat(self.source, np.diff(self.group_ends, prepend=0))  # of each sentence
        counts = np.bincount(
            source.astype(np.int64) * len(self.languages) + self.lang, minlength=len(self.sources) * len(self.languages)
        ).reshape(len(self.sources), -1)
        groups = np.bincount(self.source, minlength=len(self.sources))
        for number, name in enumerate(self.sources):
            by_language = {code: int(n) for code, n in zip(self.languages, counts[number], strict=True) if n}
            content[name] = int(groups[number]), dict(sorted(by_language.items()))
        return content

    @classmethod
    def build(
        cls, sources: Iterable[tuple[str, Iterable[Group]]], tokenize: Tokenize, *, folder: Path | None = None
    ) -> GroupTable:
        """Tokenise the groups of all named sources into memory or into a `folder`."""
        if folder is None:
            writer = _Writer(lambda _: io.BytesIO())
            writer.write(sources, tokenize)
            columns = {name: column.read() for name, column in writer.columns.items()}
            return cls(columns, list(writer.languages), writer.sources)
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as files:
            writer = _Writer(lambda name: files.enter_context((folder / f"{name}.bin").open("w+b")))
            writer.write(sources, tokenize)
        shapes = {name: (column.dtype, (column.count, *column.item)) for name, column in writer.columns.items()}
        names = {"languages": list(writer.languages), "sources": writer.sources}
        header = {"format": FORMAT, "columns": shapes, **names}
        (folder / "table.json").write_text(json.dumps(header), encoding="utf-8")
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> GroupTable:
        """Memory-map a table that `build` wrote; CorpusError if a file is missing or cut short."""
        try:
            header = json.loads((folder / "table.json").read_text(encoding="utf-8"))
            columns = {
                name: np.memmap(folder / f"{name}.bin", dtype=kind, mode="r", shape=tuple(shape))
                if np.prod(shape)
                else np.zeros(shape, dtype=kind)
                for name, (kind, shape) in header["columns"].items()
            }
        except (OSError, ValueError, KeyError) as error:
            problem = f"the token cache is damaged ({error}); delete this folder and run again"
            raise CorpusError(problem, file=folder) from error
        return cls(columns, header["languages"], header["sources"])

    def row_bounds(self, groups: Array) -> tuple[Array, Array]:
        """First row and one past the last row of each group, (n,) both."""
        stops = self.group_ends[groups]
        starts = np.where(groups > 0, self.group_ends[np.maximum(groups, 1) - 1], 0)
        return starts, stops

    def lengths(self, rows: Array) -> Array:
        """(n,) numbers of tokens of the given rows."""
        return np.asarray(self.ends[rows] - np.where(rows > 0, self.ends[np.maximum(rows, 1) - 1], 0))

    def tokens(self, rows: Array) -> tuple[Array, Array]:
        """Token ids of the given rows end to end, and their lengths, both int64."""
        lengths = self.lengths(rows)
        return self.ids[join_ranges(self.ends[rows] - lengths, lengths)].astype(np.int64), lengths.astype(np.int64)


def join_ranges(starts: Array, lengths: Array) -> Array:
    """The ranges [start, start + length) end to end; starts 5, 0 with lengths 2, 3 give 5, 6, 0, 1, 2."""
    ends = np.cumsum(lengths)
    return np.asarray(np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths))


def meaning(key: str) -> int:
    """A group key as a 63-bit number, the same in every process."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little") >> 1


def _width(value: float | tuple[float, ...]) -> int:
    """Numbers in a list, -1 for one number."""
    return len(value) if isinstance(value, tuple) else -1


@lru_cache(1024)
def _slots(shape: tuple[int, int]) -> tuple[int, ...]:
    """The slots of the given numbers of texts and hard negatives."""
    return (*range(shape[0]), *range(-1, -1 - shape[1], -1))


class _Column:
    """An array that grows at the end of a stream. `item` is the shape of one of its `count` values."""

    def __init__(self, stream: BinaryIO, dtype: str, item: tuple[int, ...] = ()) -> None:
        self.stream, self.dtype, self.item, self.count = stream, dtype, item, 0

    def append(self, values: Array) -> None:
        if values.dtype.kind == "f" and self.dtype == "int64":  # the first fraction in a column of whole numbers
            numbers = self.read().astype("float32")
            self.stream.seek(0)
            self.stream.truncate()
            self.stream.write(numbers.tobytes())
            self.dtype = "float32"
        self.stream.write(np.ascontiguousarray(values, dtype=self.dtype).tobytes())
        self.count += len(values)

    def read(self) -> Array:
        self.stream.seek(0)
        return np.frombuffer(self.stream.read(), dtype=self.dtype).reshape(-1, *self.item)


class _Writer:
    """Appends blocks of groups to the columns of a table, each in a stream of its own."""

    def __init__(self, open_stream: Callable[[str], BinaryIO]) -> None:
        self.open_stream = open_stream
        self.columns = {name: _Column(open_stream(name), dtype) for name, dtype in TYPES.items()}
        self.languages: dict[str, int] = {}
        self.language_ids: dict[tuple[str, ...], tuple[int, ...]] = {}
        self.sources: list[str] = []
        self.widths: dict[str, int] = {}  # of the extras, by `_width`

    def write(self, sources: Iterable[tuple[str, Iterable[Group]]], tokenize: Tokenize) -> None:
        """Write all groups: while one block is tokenised by a thread, the next is read."""
        with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as thread:
            waiting: tuple[list[Group], int, Future[Tokens]] | None = None
            for number, (name, groups) in enumerate(sources):
                self.sources.append(name)
                iterator: Iterator[Group] = iter(groups)
                while block := list(islice(iterator, BLOCK)):
                    texts = [text for group in block for text in (*group.texts, *group.hard_negatives)]
                    tokens = thread.submit(tokenize, texts)
                    if waiting is not None:
                        self._write_block(*waiting)
                    waiting = (block, number, tokens)
            if waiting is not None:
                self._write_block(*waiting)

    def _write_block(self, groups: list[Group], source: int, future: Future[Tokens]) -> None:
        tokens = future.result()
        first_group, first_row, first_token = (self.columns[name].count for name in ("key", "ends", "ids"))
        shapes = [(len(group.texts), len(group.hard_negatives)) for group in groups]
        langs = [number for group in groups for number in self._number_languages(group)]
        # An empty key means "like no other": such groups get the negative of their number, which no hash has.
        keys = [meaning(group.key) if group.key else -1 - number for number, group in enumerate(groups, first_group)]
        values = {
            "ids": tokens.ids,
            "ends": first_token + np.cumsum(tokens.lengths),
            "lang": np.array(langs),
            "slot": np.fromiter(chain.from_iterable(map(_slots, shapes)), dtype=np.int16),
            "group_ends": first_row + np.cumsum(np.array(shapes).sum(axis=1)),
            "key": np.array(keys),
            "source": np.full(len(groups), source),
        }
        if not first_group:
            self.widths = {name: _width(groups[0].extras[name]) for name in sorted(groups[0].extras)}
        self._check_extras(groups, self.sources[source])
        for name in self.widths:
            extras = values[f"extras.{name}"] = np.array([group.extras[name] for group in groups])
            if not first_group:
                dtype = "int64" if extras.dtype.kind in "iub" else "float32"
                self.columns[f"extras.{name}"] = _Column(self.open_stream(f"extras.{name}"), dtype, extras.shape[1:])
        for name, column in self.columns.items():
            column.append(values[name])

    def _number_languages(self, group: Group) -> tuple[int, ...]:
        """The numbers of a group's languages, in the order in which the table first met them.

        Most groups have the languages of one before, so their numbers are looked up together.
        """
        langs = group.langs + group.hard_langs if group.hard_langs else group.langs
        if langs not in self.language_ids:
            self.language_ids[langs] = tuple(self.languages.setdefault(lang, len(self.languages)) for lang in langs)
        return self.language_ids[langs]

    def _check_extras(self, groups: list[Group], source: str) -> None:
        """Every group of a table needs the same numbers; a missing value would silently shift the column."""
        for group in groups:
            widths = {name: _width(value) for name, value in group.extras.items()}
            if widths == self.widths:
                continue
            if widths.keys() != self.widths.keys():
                problem = f"{quote(group.texts[0])} has the numbers {sorted(widths)} where others have {[*self.widths]}"
                advice = "all groups of a stream need the same (a column named _ is left out)"
                raise CorpusError(f"source {source}: {problem}; {advice}")
            name = next(name for name, width in widths.items() if width != self.widths[name])
            problem = f"the extra {name!r} is one number in some groups and a list in others, or lists differ in length"
            raise CorpusError(f"source {source}: {problem}; write it the same way everywhere")
