"""From the sources of a stream to a table of tokenised groups, once for every content, tokenizer and setting.

    read -> select languages -> remove leaks -> deduplicate -> join -> tokenise

The table is written to a cache folder under a name made of all that it depends on: the digests of the files, the
settings of the stream and the fingerprint of the encoder. Other seeds, other objectives and resumed runs map the same
file. Held in memory while a table is built: what deduplication and joining need (see `corpus`), and one block of
groups; while it is read: what the batches need (see `batching`).
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from isoglot.data import corpus
from isoglot.data.files import atomic_write, digest
from isoglot.data.groups import Group
from isoglot.data.readers import READERS, check, files_of, read
from isoglot.data.table import FORMAT, GroupTable, Tokenize
from isoglot.errors import CorpusError, RecipeError
from isoglot.settings import SourceSettings, StreamSettings


@dataclass
class Sources:
    """The sources of a stream, opened: where their files are and what reading them counted."""

    settings: StreamSettings
    resolve: Callable[[str], Path]
    counts: Counter[str] = field(default_factory=Counter)

    def named(self) -> list[tuple[str, Iterable[Group]]]:
        """Each source's name and its groups, read anew, after all filters; a joined stream is one source."""
        counts = self.counts = Counter()
        if not self.settings.join:
            seen = corpus.Seen()
            return [(name, self._kept(self._filtered(source, seen, counts))) for name, source in self.by_name()]
        read: Counter[str] = Counter()

        def everything() -> Iterator[Group]:
            read.clear()  # joining reads twice
            seen = corpus.Seen()
            yield from chain.from_iterable(self._filtered(s, seen, read) for s in self.settings.sources)
            counts.update(read)

        joined = corpus.join(_Again(everything), largest=self.settings.largest, counts=counts)
        return [("joined", self._kept(joined))]

    def _filtered(self, source: SourceSettings, seen: corpus.Seen, counts: Counter[str]) -> Iterator[Group]:
        """The groups of a source without what must not be trained on."""
        groups = counted(self.read(source, counts), counts, "read")
        if self.settings.languages:
            groups = corpus.select_languages(groups, self.settings.languages, counts=counts)
        if self.settings.leakage:
            groups = corpus.remove_leaks(groups, self.leaks, counts=counts)
        if self.settings.deduplicate:
            groups = corpus.deduplicate(groups, seen=seen, counts=counts)
        return groups

    def _kept(self, groups: Iterable[Group]) -> Iterator[Group]:
        return counted(groups, self.counts, "kept")

    @cached_property
    def leaks(self) -> frozenset[str]:
        """The normalised test sentences."""
        return corpus.test_sentences(self.leak_files())

    def read(self, source: SourceSettings, counts: Counter[str]) -> Iterator[Group]:
        """All groups of all files of a source; what a reader leaves out is counted."""
        check(source.reader, source.options, where=f"streams.{self.settings.name}.sources")
        counting = "counts" in inspect.signature(READERS[source.reader]).parameters
        for path in self.paths(source):
            yield from read(source.reader, path, **self.options(source), **({"counts": counts} if counting else {}))

    def options(self, source: SourceSettings) -> dict[str, Any]:
        """The reader's options, with the second file of a Moses pair found as the first is."""
        other = source.options.get("other")
        if not isinstance(other, str):
            return source.options
        path = self.resolve(other)
        return source.options | {"other": path if path.exists() else self.resolve(source.path).parent / other}

    def texts(self) -> Iterator[str]:
        """Every sentence of every group before any joining, for a tokenizer to be trained on."""
        seen, counts = corpus.Seen(), Counter[str]()
        for source in self.settings.sources:
            for group in self._filtered(source, seen, counts):
                yield from group.texts
                yield from group.hard_negatives

    def by_name(self) -> list[tuple[str, SourceSettings]]:
        """Sources with their names, which must differ."""
        names = [source.name or source.path for source in self.settings.sources]
        if len(set(names)) < len(names):
            raise RecipeError(
                f"streams.{self.settings.name}.sources: two sources are called {max(names, key=names.count)!r}"
            )
        return list(zip(names, self.settings.sources, strict=True))

    def weights(self) -> dict[str, float]:
        """Shares of the sources by name; empty where none is given."""
        given = {name: source.weight for name, source in self.by_name() if source.weight is not None}
        if given and self.settings.join:
            raise RecipeError(f"streams.{self.settings.name}: joined sources are one source; leave out weight or join")
        return given

    def paths(self, source: SourceSettings) -> list[Path]:
        """The files, folders or prefixes that the path of a source stands for, in alphabetical order."""
        path = self.resolve(source.path)
        if not any(mark in source.path for mark in "*?["):
            return [path]
        anchor = Path(path.anchor)
        found = sorted(anchor.glob(str(path.relative_to(anchor))) if path.is_absolute() else Path().glob(str(path)))
        if not found:
            raise CorpusError("no file has a name like this", file=path)
        return found

    def leak_files(self) -> list[Path]:
        """The test files none of whose sentences may be trained on."""
        return [self.resolve(path) for path in self.settings.leakage]

    def digest(self, *more: object) -> str:
        """Changes when a file, a setting of the stream's text or anything in `more` changes."""
        return self._digest(self._settings(), more)

    def text_digest(self, *more: object) -> str:
        """`digest`, of what `texts` gives: joining makes no difference."""
        return self._digest(self._settings("join", "largest"), more)

    def _settings(self, *leave_out: str) -> dict[str, Any]:
        """What the text of the stream depends on."""
        text = self.settings.model_dump(mode="json", exclude={"batching", "objectives", "name", "teacher", *leave_out})
        for source in text["sources"]:
            source.pop("weight")
        return text

    def _digest(self, settings: dict[str, Any], more: Sequence[object]) -> str:
        files = [file for source in self.settings.sources for path in self.paths(source) for file in files_of(path)]
        files += [Path(other) for s in self.settings.sources if (other := self.options(s).get("other"))]
        files += [file for path in self.leak_files() for file in corpus.files_in(path)]
        try:
            contents = [(file.name, digest(file)) for file in files]
        except OSError as error:
            raise CorpusError(f"cannot be read: {error.strerror}; check the name", file=error.filename) from error
        state = [FORMAT, settings, contents, *map(str, more)]
        return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:32]


class _Again:
    """An iterable that is made anew each time it is gone through."""

    def __init__(self, make: Callable[[], Iterator[Group]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Group]:
        return self.make()


def counted(groups: Iterable[Group], counts: Counter[str], name: str) -> Iterator[Group]:
    """The same groups, counted as they pass."""
    for group in groups:
        counts[name] += 1
        yield group


def build_table(
    sources: Sources, tokenize: Tokenize, *, fingerprint: str, cache: Path, watch: Callable[[str], None]
) -> GroupTable:
    """The stream's table, mapped from the cache or built into it; `watch` is told what was counted."""
    folder = cache / sources.digest(fingerprint)
    note = folder.with_suffix(".json")
    counts = _counts(note)
    if counts is None or not folder.exists():
        table = GroupTable.build(sources.named(), tokenize, folder=folder)
        with atomic_write(note) as stream:
            json.dump({"counts": dict(sources.counts), "sentences": table.sentences}, stream)
        counts = dict(sources.counts)
    table = GroupTable.open(folder)
    name, languages = sources.settings.name, len(table.languages)
    watch(f"stream {name}: {describe(counts)}; {table.sentences:,} sentences in {languages} languages")
    if not len(table):
        raise CorpusError(f"stream {name}: nothing is left to train on; {describe(counts)}")
    return table


def _counts(note: Path) -> dict[str, int] | None:
    """What building a table counted; None if it was not built, or the note is damaged."""
    try:
        return dict(json.loads(note.read_text(encoding="utf-8"))["counts"])
    except (OSError, ValueError, KeyError):
        return None


def describe(counts: dict[str, int]) -> str:
    """Counts as a phrase: 12,000 groups read, 3 leaked, 11,997 kept."""
    first = ("read", "leaked", "repeated")
    names = [*first, *(name for name in counts if name not in (*first, "kept")), "kept"]
    told = [f"{counts[name]:,} {name}" for name in names if counts.get(name)]
    return "groups: " + ", ".join(told or ["none"])
