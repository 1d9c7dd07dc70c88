"""Several ranks compute the vectors that one of them asks for: of dev tasks and of teachers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from isoglot.data.tokens import Tokens
from isoglot.evaluation.base import Encode
from isoglot.model import Model, engine
from isoglot.model.backend import Rows
from isoglot.training import ranks

T = TypeVar("T")


def encode_together(model: Model, work: Callable[[Encode], T], **settings: Any) -> T | None:
    """What `work` returns on rank 0, None on the others; all ranks compute the vectors that it asks for.

    `work` gets a function from texts to vectors (N, D), and `settings` are those of `engine.plan`. Each of W ranks
    computes every W-th chunk; chunks, and so vectors, are those of a single rank.
    """

    def encode(texts: Sequence[str]) -> Rows:
        return engine.encode(model, texts, engine.plan(model, **settings), share=_share_chunks)

    if ranks.rank() > 0:
        while (texts := ranks.from_first(None)) is not None:
            encode(texts)
        return None
    result = work(lambda texts: encode(ranks.from_first(texts)))
    ranks.from_first(None)  # not after an error, in the middle of an encoding: it ends this rank, and so the others
    return result


def _share_chunks(apply: engine.Apply) -> engine.Apply:
    def share(pieces: Iterable[Tokens]) -> Iterator[Rows]:
        every = list(pieces)
        vectors = ranks.collect([*apply(every[ranks.rank() :: ranks.world()])])
        return (vectors[place % ranks.world()][place // ranks.world()] for place in range(len(every)))

    return share
