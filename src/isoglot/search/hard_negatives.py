"""Hard negatives for translation ranking (mUSE, Yang et al. 2019): the nearest targets that are no translation.

Exact, like every search here: the nearest are found by `neighbours`, a few more than asked for, so that enough are left
when the translations are taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.search.neighbours import BUDGET, neighbours
from isoglot.search.top import Ids

_ROWS = 1 << 16  # sources looked at together


def hard_negatives(
    x: NDArray[Any],
    y: NDArray[Any],
    gold: tuple[Sequence[int] | Ids, Sequence[int] | Ids],
    count: int,
    *,
    budget: int = BUDGET,
    progress: Callable[[int, int], None] | None = None,
) -> Ids:
    """The `count` rows of `y` (M, D) nearest by cosine to each row of `x` (N, D) and no translation of it, (N, count).

    `gold` are pairs (rows of x, rows of y), (P,) both, of all known translations; a row of `x` may have several. Best
    first, of equal cosines the lowest row first; -1 where there are no more. `budget` and `progress`: see
    `neighbours`; beside that, N times `count` plus the most translations of a row are held. Raises ValueError for a
    count below 1, pairs outside of the tables, and what `neighbours` refuses.
    """
    source, target = (np.asarray(column, np.int64) for column in gold)
    if count < 1:
        raise ValueError(f"count is {count}; at least one hard negative must be asked for")
    if len(source) and (min(source.min(), target.min()) < 0 or source.max() >= len(x) or target.max() >= len(y)):
        raise ValueError(f"a pair of gold lies outside of the tables of {len(x)} and {len(y)} rows")
    known = np.unique(source * len(y) + target)
    most = int(np.bincount(known // max(len(y), 1), minlength=1).max())
    found = neighbours(x, y, count + most, metric="cosine", budget=budget, progress=progress).forward_ids
    out = np.full((len(x), count), -1, np.int64)
    for start in range(0, len(x), _ROWS):
        ids = found[start : start + _ROWS]
        cells = np.arange(start, start + len(ids))[:, None] * len(y) + ids
        translation = np.isin(cells, known)
        order = np.argsort(translation, axis=1, kind="stable")[:, :count]
        kept = np.take_along_axis(np.where(translation, -1, ids), order, axis=1)
        out[start : start + len(ids), : kept.shape[1]] = kept
    return out
