"""Lists of index pairs: which anchor goes with which candidate. Found by sorting, never by comparing all with all."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor

Pairs: TypeAlias = tuple[Tensor, Tensor]  # (P,) anchors, ascending, and (P,) candidates


def matches(left: Tensor, right: Tensor) -> Pairs:
    """All pairs (i, j) with left[i] == right[j], ordered by i."""
    order = torch.argsort(right, stable=True)
    ordered = right[order]
    first = torch.searchsorted(ordered, left)
    counts = torch.searchsorted(ordered, left, right=True) - first
    i = torch.repeat_interleave(torch.arange(len(left), device=left.device), counts)
    place = torch.arange(len(i), device=i.device) - (counts.cumsum(0) - counts)[i]
    return i, order[first[i] + place]


def where(pairs: Pairs, keep: Tensor) -> Pairs:
    """The pairs for which `keep` (P,) is true."""
    return pairs[0][keep], pairs[1][keep]


def union(*lists: Pairs) -> Pairs:
    """Several lists as one, ordered by anchor; a pair must not be in two of them."""
    i, j = (torch.cat(column) for column in zip(*lists, strict=True))
    order = torch.argsort(i, stable=True)
    return i[order], j[order]


def rows_between(pairs: Pairs, rows: slice) -> Pairs:
    """The pairs whose anchor lies in a block of rows, numbered from the block's beginning."""
    i, j = pairs
    ends = torch.tensor([rows.start, rows.stop], device=i.device)
    first, last = torch.searchsorted(i, ends).tolist()
    return i[first:last] - rows.start, j[first:last]


def same_meaning(group: Tensor, key: Tensor, other_group: Tensor, other_key: Tensor, other_slot: Tensor) -> Pairs:
    """Pairs of equal key and different group, hard negatives left alone: neither positives nor negatives."""
    i, j = matches(key, other_key)
    return where((i, j), (group[i] != other_group[j]) & (other_slot[j] >= 0))


def couples(group: Tensor, slot: Tensor) -> Pairs:
    """Rows of slot 0 and of slot 1 of the groups that have both, in the order of the groups' numbers.

    So what is made of them does not depend on the order of rows, nor on the number of processes.
    """
    zeros, ones = ((slot == place).nonzero()[:, 0] for place in (0, 1))
    i, j = matches(group[zeros], group[ones])
    order = group[zeros[i]].argsort()
    return zeros[i[order]], ones[j[order]]
