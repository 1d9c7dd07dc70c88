"""From the sources of a stream to a table of tokenised groups, once for every content, tokenizer and setting.

    read -> select languages -> remove leaks -> deduplicate -> join -> tokenise

The table is written to a cache folder under a name made of all that it depends on: the digests of the files, the
settings of the stream and the fingerprint of the encoder. Other seeds, other objectives and resumed runs map the same
file. Held in memory while a table is built: what deduplication and joining need (see `corpus`), and one block of
groups; while it is read: what the batches need (see `batching`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from isoglot.data import corpus
from isoglot.data.files import atomic_write, digest
from isoglot.data.readers import files_of, read
from isoglot.data.records import Group
from isoglot.data.table import FORMAT, GroupTable, Tokenize
from isoglot.errors import CorpusError, RecipeError
from isoglot.settings import SourceSettings, StreamSettings


@dataclass(slots=True)
class Sources:
    """The sources of a stream, opened: where their files are and what reading them counted."""

    settings: StreamSettings
    resolve: Callable[[str], Path]
    counts: Counter[str] = field(default_factory=Counter)

    def named(self) -> list[tuple[str, Iterator[Group]]]:
        """Each source's name and its groups, read anew, after all filters; a joined stream is one source."""
        counts = self.counts = Counter()
        seen = corpus.Seen()
        leaks = corpus.test_sentences(self.leak_files()) if self.settings.leakage else None

        def filtered(source: SourceSettings) -> Iterator[Group]:
            groups = counted(self.read(source), counts, "read")
            if self.settings.languages:
                groups = corpus.select_languages(groups, self.settings.languages)
            if leaks is not None:
                groups = corpus.remove_leaks(groups, leaks, counts=counts)
            if self.settings.deduplicate:
                groups = corpus.deduplicate(groups, seen=seen, counts=counts)
            return groups

        if not self.settings.join:
            return [(name, counted(filtered(source), counts, "kept")) for name, source in self.by_name()]
        everything = chain.from_iterable(filtered(source) for source in self.settings.sources)
        joined = corpus.join(everything, largest=self.settings.largest, counts=counts)
        return [("joined", counted(joined, counts, "kept"))]

    def read(self, source: SourceSettings) -> Iterator[Group]:
        """All groups of all files of a source."""
        for path in self.paths(source):
            yield from read(source.reader, path, **source.options)

    def texts(self) -> Iterator[str]:
        """Every sentence of every group, for a tokenizer to be trained on."""
        for _, groups in self.named():
            for group in groups:
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
        files = [file for source in self.settings.sources for path in self.paths(source) for file in files_of(path)]
        files += [file for path in self.leak_files() for file in corpus.files_in(path)]
        text = self.settings.model_dump(mode="json", exclude={"batching", "objectives", "name"})
        for source in text["sources"]:
            source.pop("weight")
        state: list[Any] = [FORMAT, text, [(file.name, digest(file)) for file in files], *map(str, more)]
        return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:32]


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
    if not note.exists() or not folder.exists():
        table = GroupTable.build(sources.named(), tokenize, folder=folder)
        with atomic_write(note) as stream:
            json.dump({"counts": dict(sources.counts), "sentences": table.sentences}, stream)
    table = GroupTable.open(folder)
    counts = json.loads(note.read_text(encoding="utf-8"))["counts"]
    watch(
        f"stream {sources.settings.name}: {describe(counts)}; {table.sentences:,} sentences in {len(table.languages)} languages"
    )
    if not len(table):
        raise CorpusError(f"stream {sources.settings.name}: nothing is left to train on; {describe(counts)}")
    return table


def describe(counts: dict[str, int]) -> str:
    """Counts as a phrase."""
    order: Sequence[str] = ("read", "leaked", "repeated", "kept")
    rest = [name for name in counts if name not in order]
    return ", ".join(f"{counts[name]:,} groups {name}" for name in (*order, *rest) if counts.get(name))
