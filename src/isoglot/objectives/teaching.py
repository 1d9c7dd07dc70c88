"""The teacher's vectors in a batch, and the order of languages in which they are trusted."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from isoglot.core.errors import CorpusError, RecipeError
from isoglot.data.batch import Batch, send
from isoglot.data.languages import canonical
from isoglot.objectives.kernel import unit


def teacher_vectors(batch: Batch, device: torch.device, *, reader: str) -> Tensor:
    """The teacher's vectors (N, D') on a device, of length one and without gradient.

    Raises RecipeError, in the name of the objective that reads them, for a stream that has no teacher.
    """
    if "teacher" not in batch.extras:
        raise RecipeError(f"{reader} needs a teacher: pass teacher=, or write teacher.model into the stream")
    return unit(send(batch.extras["teacher"].detach(), device))


def places(priority: Sequence[str], languages: Sequence[str], *, others: bool = False) -> tuple[int, ...]:
    """The rank of each language in a list of priority; empty without priority.

    `zho` in the list also stands for `zho_Hans`. A language without a place has the one after the last if `others`;
    otherwise it is a ValueError, as a priority among unknown languages is.
    """
    if not priority:
        return ()
    if not languages:
        raise ValueError(
            "priority needs the languages that batch.lang numbers; training passes them to an objective given by name "
            'with its options: {"name": ..., "priority": [...]}'
        )
    try:
        order = [canonical(code) for code in priority]
    except CorpusError as error:
        raise ValueError(f"priority: {error}") from error
    ranks = []
    for code in languages:
        place = next((order.index(name) for name in (code, code.partition("_")[0]) if name in order), None)
        place = len(order) if place is None and others else place
        if place is None:
            raise ValueError(f"priority has no place for {code}, a language of the stream: {', '.join(order)}; add it")
        ranks.append(place)
    return tuple(ranks)
