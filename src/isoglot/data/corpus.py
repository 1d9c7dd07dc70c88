"""A corpus: sources of groups, the filters applied to them, and the table of tokenised groups built from them.

    read -> select languages -> remove leaks -> sample -> deduplicate -> join -> tokenise

A table is built once for every content, tokenizer and setting: it is written to a cache folder whose name is a digest
of everything it depends on: the files or the groups in memory, the settings of the corpus and the fingerprint of the
encoder. Other seeds, other objectives and resumed runs map the same file. Kept in memory while a table is built: what
deduplication and joining need (see `filters`, `join`), and one block of groups. Text that is needed again, because a
tokenizer is trained on it or groups are joined, is kept after its filters in a temporary file of the cache folder.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import chain, compress, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from isoglot.core.environment import cache_folder
from isoglot.core.errors import CorpusError, RecipeError
from isoglot.core.plugins import source_of, text_of
from isoglot.core.progress import Bar, Report
from isoglot.data import filters
from isoglot.data.batching import WHOLE, Mixing
from isoglot.data.files import Again, atomic_folder, content_digest, count_bytes, exclusive, first_bytes, meter
from isoglot.data.groups import Group, Languages, groups_of
from isoglot.data.join import join
from isoglot.data.languages import canonical_list
from isoglot.data.readers import READERS, files_of, match_pattern, read
from isoglot.data.readers.entities import TABLE
from isoglot.data.table import FORMAT, GroupTable, Tokenize
from isoglot.data.tokens import Tokens

Counts = dict[str, Counter[str]]  # counts of dropped and kept groups, by the name of a source
Leak = Path | Collection[str] | Callable[[], Collection[str]]  # a file or folder; sentences, or what reads them
JOINED = "joined"  # name of all sources as one
_COUNTS = "counts.json"  # in the folder of a table: what was counted while it was built
_SPOOLED = 4096  # groups that a temporary file has in one piece


def digest_of(groups: Iterable[Group]) -> str:
    """Changes when any group does."""
    checksum = blake2b(digest_size=16)
    for group in groups:
        sides = (group.texts, group.langs, group.key, group.hard_negatives, group.hard_langs)
        checksum.update(repr((*sides, sorted(group.extras.items()))).encode("utf-8", "surrogatepass"))
    return checksum.hexdigest()


class Source(ABC):
    """Groups that can be read again and again, with a name and how they are mixed with those of other sources."""

    name: str
    mixing: Mixing
    licence: str = ""

    @abstractmethod
    def groups(self, counts: Counter[str]) -> Iterator[Group]:
        """All groups, read again on each call; dropped ones are counted."""

    def check(self, first: int) -> None:
        """Raise an `IsoglotError` for mistakes in the `first` groups, or those of each file."""
        deque(islice(self.groups(Counter()), first), maxlen=0)

    def size(self) -> int:
        """Bytes on disk that are read for the groups."""
        return 0

    @abstractmethod
    def digest(self) -> object:
        """A value that changes with the groups."""


@dataclass
class MemorySource(Source):
    """Data in memory, of any kind that `groups_of` takes; of an iterator, the groups are kept."""

    data: Any
    languages: Languages = None
    name: str = "data"
    mixing: Mixing = WHOLE

    def __post_init__(self) -> None:
        if isinstance(self.data, Iterator):
            self.data = list(groups_of(self.data, self.languages))

    def groups(self, counts: Counter[str]) -> Iterator[Group]:  # noqa: ARG002
        """Read the groups."""
        return groups_of(self.data, self.languages)

    def digest(self) -> object:
        """Digest of what is read."""
        return digest_of(groups_of(self.data, self.languages))


@dataclass(frozen=True)
class FileSource(Source):
    """Files in one format, and the options of their reader. `path` is a file, a folder, a pattern, or a beginning.

    `where` is the place in a recipe, for errors; a recipe is checked before its sources are read.
    """

    reader: str
    path: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    mixing: Mixing = WHOLE
    where: str = ""
    licence: str = ""

    def groups(self, counts: Counter[str]) -> Iterator[Group]:
        """Read the groups."""
        return chain.from_iterable(self._read(path, counts) for path in match_pattern(self.path))

    def check(self, first: int) -> None:
        """Read the first groups."""
        for path in match_pattern(self.path):
            deque(islice(self._read(path, Counter()), first), maxlen=0)

    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.files() if file.exists())

    def digest(self) -> object:
        """Digest of what is read."""
        code, text = source_of(READERS[self.reader]), text_of(READERS[self.reader])  # of a plug-in
        content = contents([*self.files(), *([code] if code else [])])
        return [self.reader, dict(self.options), content, *([text] if text and not code else [])]

    def files(self) -> list[Path]:
        """All files that are read."""
        files = [file for path in match_pattern(self.path) for file in files_of(path)]
        return [*files, *([Path(self.options["other"])] if self.options.get("other") else [])]

    def _read(self, path: Path, counts: Counter[str]) -> Iterator[Group]:
        counting = "counts" in inspect.signature(READERS[self.reader]).parameters
        return read(self.reader, path, **self.options, **({"counts": counts} if counting else {}))


class Spool:
    """Groups, in a file without a name that is gone when the spool is closed or the process ends.

    `complete` says that `write` has come to its end, and `counts` are those of the groups' source at that time.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
        self.counts: Counter[str] = Counter()
        self.complete = False

    def write(self, groups: Iterable[Group], counts: Counter[str]) -> Iterator[Group]:
        """The same groups, written as they pass."""
        groups = iter(groups)
        while block := list(islice(groups, _SPOOLED)):
            rows = [(one.texts, one.langs, one.key, one.hard_negatives, one.hard_langs, one.extras) for one in block]
            pickle.dump(rows, self._file, pickle.HIGHEST_PROTOCOL)
            yield from block
        self.counts = counts.copy()
        self.complete = True

    def read(self, passed: Callable[[float], None] = lambda _: None) -> Iterator[Group]:
        """The groups that were written. `passed` is called with the share of them that each block is."""
        end, place = self._file.seek(0, 2), 0
        while place < end:
            self._file.seek(place)
            rows = pickle.load(self._file)
            passed((self._file.tell() - place) / end)
            place = self._file.tell()
            yield from (Group(*row) for row in rows)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
        self.complete = False


@dataclass
class Corpus:
    """Sources, and the filters applied to their groups before they are tokenised.

    languages    keep only sentences in these; empty: all
    join         merge groups that share a sentence, up to `largest` sentences
    deduplicate  drop exact repetitions of a group
    leakage      test files or folders, or the sentences themselves or what reads them, none of which may stay
    """

    sources: Sequence[Source]
    name: str = "train"
    languages: Sequence[str] = ()
    join: bool = False
    largest: int = 16
    deduplicate: bool = True
    leakage: Sequence[Leak] = ()
    counts: Counts = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [source.name for source in self.sources]
        if len(set(names)) < len(names):
            raise RecipeError(f"streams.{self.name}.sources: two sources are called {max(names, key=names.count)!r}")
        self._samples: dict[str, Any] = {}
        self._spools: dict[str, Spool] = {}  # of sources, by name
        mixed = [one for one in self.sources if (one.mixing.weight, one.mixing.cap, one.mixing.most) != (None, 0, 0)]
        if self.join and mixed:
            problem = "joined sources are one source; leave out weight, cap and most, or join"
            raise RecipeError(f"streams.{self.name}: {problem}")

    def mixing(self) -> dict[str, Mixing]:
        """How the sources are mixed, by name."""
        return {source.name: source.mixing for source in self.sources}

    def check(self, first: int = 100) -> None:
        """Raise an `IsoglotError` for mistakes that can be found in seconds: in options, languages and the first groups
        of files.
        """
        for source in self.sources:
            source.check(first)
        linked = [one for one in self.sources if isinstance(one, FileSource) and one.reader == "entities"]
        tables = (path / TABLE for one in linked for path in match_pattern(one.path))
        if len({digest for _, digest in contents(tables)}) > 1:
            problem = f"entities are numbered by one {TABLE}, and its folders have several"
            raise RecipeError(f"streams.{self.name}: {problem}; pass all dumps to one `isoglot wikipedia`")
        try:
            canonical_list(self.languages)
        except CorpusError as error:
            raise RecipeError(f"streams.{self.name}.languages: {error}") from None
        for file in self._leak_files():
            first_bytes(file)
        _ = self._named_leaks  # of tasks, whose data may be missing

    def source_groups(self) -> list[tuple[str, Iterable[Group]]]:
        """Each source's name and its filtered groups, read again on each call; a joined corpus is one source."""
        counts = self.counts = {source.name: Counter() for source in self.sources}
        if not self.join:
            return [(name, count_groups(groups, counts[name], "kept")) for name, groups in self._filter(counts)]
        read = {name: Counter[str]() for name in counts}

        def read_all() -> Iterator[Group]:
            for source_counts in read.values():
                source_counts.clear()  # joining reads twice
            for _, groups in self._filter(read, keep=True):
                yield from groups
            counts.update(read)

        joined = self.counts[JOINED] = Counter()
        groups = join(Again(read_all), largest=self.largest, counts=joined)
        return [(JOINED, count_groups(groups, joined, "kept"))]

    @contextmanager
    def reading(self, what: str, report: Report, *, once: bool = False) -> Iterator[None]:
        """Report a line every few seconds while files are read in the block.

        `once`: for `texts`, which does not join; joining reads twice.
        """
        times = 2 if self.join and not once else 1
        unsampled = [source for source in self.sources if source.mixing.sample and source.name not in self._samples]
        size = sum(source.size() for source in [*self.sources] * times + unsampled)
        with meter(Bar(f"stream {self.name}: {what}", unit="bytes", write=report), size or None):
            yield

    def texts(self) -> Iterator[str]:
        """Every sentence of every group before any joining, for a tokenizer to be trained on."""
        for _, groups in self._filter({source.name: Counter() for source in self.sources}, keep=True):
            for group in groups:
                yield from group.texts
                yield from group.hard_negatives

    def release(self) -> None:
        """Delete the temporary files; the next reading is of the sources again."""
        for spool in self._spools.values():
            spool.close()
        self._spools.clear()

    def digest(self, *more: object) -> str:
        """A digest that changes when a source, a setting of the corpus or anything in `more` changes."""
        return self.text_digest(self.join, self.largest, *more)

    def text_digest(self, *more: object) -> str:
        """The `digest` of `texts`, which does not depend on joining."""
        settings: list[object] = [list(self.languages), self.deduplicate, contents(self._leak_files())]
        if self._named_leaks:
            settings.append(hashlib.sha256("\n".join(sorted(self._named_leaks)).encode()).hexdigest())
        sources = [
            [one.name, one.digest(), *([one.mixing.sample, one.mixing.seed] if one.mixing.sample else [])]
            for one in self.sources
        ]
        state = [FORMAT, sources, settings, *map(str, more)]
        return hashlib.sha256(json.dumps(state, sort_keys=True, default=str).encode()).hexdigest()[:32]

    def _filter(self, counts: Counts, *, keep: bool = False) -> Iterator[tuple[str, Iterator[Group]]]:
        """Each source's name and its groups after all filters; with `keep` they are kept for the next reading."""
        if len(self._spools) == len(self.sources) and all(spool.complete for spool in self._spools.values()):
            for source in self.sources:
                yield source.name, self._reread(source, counts[source.name])
            return
        self.release()
        seen = filters.Seen()
        for source in self.sources:
            groups = self._select(source, counts[source.name])
            if source.mixing.sample:
                groups = self._sample(groups, source, counts[source.name])
            if self.deduplicate:
                groups = filters.deduplicate(groups, seen=seen, counts=counts[source.name])
            if keep:
                spool = self._spools[source.name] = Spool(cache_folder() / "text")
                groups = spool.write(groups, counts[source.name])
            yield source.name, groups

    def _reread(self, source: Source, counts: Counter[str]) -> Iterator[Group]:
        spool, size = self._spools[source.name], source.size()
        yield from spool.read(lambda share: count_bytes(round(share * size)))
        counts.update(spool.counts)

    def _select(self, source: Source, counts: Counter[str]) -> Iterator[Group]:
        groups = count_groups(source.groups(counts), counts, "read")
        if self.languages:
            groups = filters.select_languages(groups, self.languages, counts=counts)
        if self.leakage:
            groups = filters.remove_leaks(groups, self._leaks, counts=counts)
        return groups

    def _sample(self, groups: Iterator[Group], source: Source, counts: Counter[str]) -> Iterator[Group]:
        """The groups of the sample, in their order. They are counted once for it; a byte for each is kept."""
        if source.name not in self._samples:
            total = sum(1 for _ in self._select(source, Counter()))
            mask = np.zeros(total, dtype=bool)
            mask[np.random.default_rng(source.mixing.seed).permutation(total)[: source.mixing.sample]] = True
            self._samples[source.name] = mask
        mask = self._samples[source.name]
        yield from compress(groups, mask)
        counts["not sampled"] += len(mask) - int(mask.sum())

    @cached_property
    def _leaks(self) -> frozenset[str]:
        return filters.test_sentences(self._leak_files()) | self._named_leaks

    @cached_property
    def _named_leaks(self) -> frozenset[str]:
        """Sentences that are not read from files."""
        others = [entry() if callable(entry) else entry for entry in self.leakage if not isinstance(entry, Path)]
        return frozenset(filters.normalise(text) for sentences in others for text in sentences)

    def files(self) -> list[Path]:
        """All files that are read, also those that are only filtered by."""
        sources = [one for one in self.sources if isinstance(one, FileSource)]
        return [*(file for one in sources for file in one.files()), *self._leak_files()]

    def _leak_files(self) -> list[Path]:
        return [file for path in self.leakage if isinstance(path, Path) for file in filters.files_in(path)]


def contents(files: Iterable[Path]) -> list[tuple[str, str]]:
    """Names and digests of files. Raises `CorpusError` for one that cannot be read."""
    try:
        return [(file.name, content_digest(file)) for file in files]
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}; check the name", file=error.filename) from error


def count_groups(groups: Iterable[Group], counts: Counter[str], name: str) -> Iterator[Group]:
    """The same groups, counted as they pass."""
    number = 0
    try:
        for group in groups:
            number += 1
            yield group
    finally:
        counts[name] += number


def build_table(corpus: Corpus, tokenize: Tokenize, *, fingerprint: str, cache: Path, report: Report) -> GroupTable:
    """The table of a corpus, mapped from the cache or built into it.

    `report` gets a line every few seconds, and one of what was counted.
    """
    folder = cache / corpus.digest(fingerprint)
    counts = _counts(folder)
    if counts is None:
        with exclusive(folder, wait=-1):
            counts = _counts(folder)  # another run may have built it meanwhile
            if counts is None:
                with atomic_folder(folder, replace=True) as new:
                    with corpus.reading("reading and tokenising", report):
                        GroupTable.build(corpus.source_groups(), tokenize, folder=new)
                    (new / _COUNTS).write_text(json.dumps(corpus.counts), encoding="utf-8")
                counts = corpus.counts
    corpus.counts = counts
    table = GroupTable.open(folder)
    name, languages = corpus.name, len(table.languages)
    report(f"stream {name}: {describe(counts)}; {table.sentences:,} sentences in {languages} languages")
    if not len(table):
        raise CorpusError(f"stream {name}: nothing is left to train on; {describe(counts)}")
    return table


def composition(corpus: Corpus, table: GroupTable) -> dict[str, dict[str, Any]]:
    """The contents of a corpus by source, counted while its `table` was built.

    `groups` is their number, `sentences` by language, and `counts` of groups that were read, left out and kept.
    """
    content, parts = table.content(), {}
    for name, counts in corpus.counts.items():
        groups, sentences = content.get(name, (0, {}))
        nonzero = {what: count for what, count in counts.items() if count}
        parts[name] = {"groups": groups, "sentences": sentences, "counts": nonzero}
    return parts


def text_table(corpus: Corpus, *, report: Report) -> GroupTable:
    """The table of a corpus in memory, without tokens: some 30 bytes for each sentence."""
    with corpus.reading("reading", report):
        return GroupTable.build(corpus.source_groups(), lambda texts: Tokens.empty(len(texts)))


def _counts(folder: Path) -> Counts | None:
    """What building a table counted; None if it was not built."""
    try:
        counts = json.loads((folder / _COUNTS).read_text(encoding="utf-8"))
        return {name: Counter(source_counts) for name, source_counts in counts.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def describe(counts_by_source: Counts) -> str:
    """Counts over all sources as a phrase: 12,000 groups read, 3 leaked, 11,997 kept."""
    counts = sum(counts_by_source.values(), Counter[str]())
    first = ("read", "leaked", "repeated")
    names = [*first, *(name for name in counts if name not in (*first, "kept")), "kept"]
    return "groups: " + ", ".join([f"{counts[name]:,} {name}" for name in names if counts.get(name)] or ["none"])
