"""From sentences to an index: encoded and added in pieces, each of which is there whole or not at all.

Adding is repeatable. A sentence whose id is in the index with the same text and language is passed over, so a run that
was killed is finished by running it again, and adding a file that has grown adds what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from isoglot.data.files import exclusive
from isoglot.encoders.base import Encoder
from isoglot.errors import SearchError
from isoglot.index import table
from isoglot.index.index import Index
from isoglot.index.origin import encode_sentences
from isoglot.index.store import Sentence


@dataclass(frozen=True, slots=True)
class Added:
    """How many sentences are new in the index, and how many were there before."""

    new: int
    known: int


def add_sentences(
    index: Index,
    encoder: Encoder,
    sentences: Iterable[Sentence],
    *,
    kind: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Added:
    """Encode and add what is not there yet, then let the FAISS structure cover it; `kind` changes the structure.

    In memory is one piece of `table.ROWS` sentences. `progress` is called with the number of sentences seen so far.
    Raises `SearchError` for another model than the index's, and for an id that stands for another sentence, and
    `OutputError` if another process is adding.
    """
    index.origin.require(encoder, "this encoder")
    new = known = 0
    with exclusive(index.folder):
        for piece in _pieces(iter(sentences)):
            fresh = _fresh(index, piece)
            if fresh:
                index.add(fresh, encode_sentences(encoder, [one.text for one in fresh]))
            new, known = new + len(fresh), known + len(piece) - len(fresh)
            if progress is not None:
                progress(new + known)
        index.build(kind=kind)
    return Added(new, known)


def _pieces(sentences: Iterator[Sentence]) -> Iterator[list[Sentence]]:
    while piece := list(islice(sentences, table.ROWS)):
        yield piece


def _fresh(index: Index, piece: Sequence[Sentence]) -> list[Sentence]:
    """Those of the sentences that are not in the index."""
    seen = index.store.by_id([one.id for one in piece])
    fresh = []
    for one in piece:
        other = seen.get(one.id)
        if other is None:
            seen[one.id] = one
            fresh.append(one)
        elif other != one:
            raise SearchError(
                f"{index.folder}: the id {one.id!r} is taken by {other.text[:40]!r} ({other.language}), so "
                f"{one.text[:40]!r} ({one.language}) needs another; give ids in a .jsonl file"
            )
    return fresh
