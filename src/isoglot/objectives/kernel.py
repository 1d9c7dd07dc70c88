"""The equation that all methods share: log-sum-exp over the candidates, minus the positives.

There are two forms of the target. `outside`: a distribution t over the candidates is outside the logarithm,

    loss_i = LSE_j(s_ij) - sum_j t_ij s_ij                 (cross-entropy: SimCSE eq. 1, soft labels)

`inside`: a set P of positives stands inside it,

    loss_i = LSE_j(s_ij) - LSE_{j in P_i}(s_ij)            (MPCL eq. 2)

With one positive per anchor both are InfoNCE. Positives and dropped pairs are lists of index pairs: a batch has few of
them, so no mask of anchors times candidates is needed. They are computed on the host, where the columns of a batch are,
and sent to the device of the vectors, so that no step waits for the device. Only the matrix of logits is large; anchors
are processed in blocks, and if it is large, each block is recomputed in the backward pass, so memory is bounded by the
block and not by the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from isoglot.data.batch import Batch, send

Pairs: TypeAlias = tuple[Tensor, Tensor]  # (P,) anchors, ascending, and (P,) candidates, on the host
Side: TypeAlias = Literal["outside", "inside"]  # of the logarithm, where the target stands
Rescale: TypeAlias = Literal["off", "row", "matrix"]
Shares: TypeAlias = Callable[[slice], Tensor]  # a block of a anchors -> (a, C), >= 0; a row is scaled to sum to one

BLOCK_CELLS = 1 << 24  # 64 MB of float32: up to it, one block with its graph; above it, blocks computed twice


@dataclass(frozen=True, slots=True)
class Equation:
    """How cosines become logits, and which pairs are dropped or favoured.

    temperature      divides the cosines
    dropped          pairs that are taken out of the equation altogether; no positive may be among them
    private          (A,) owners of the anchors and (C,) those of the candidates: a candidate with an owner, not -1,
                     counts for its owner's anchors only; for more pairs than can be listed in dropped
    favoured         pairs whose logit gets `favour` added, in the denominator only
    rescale          min-max: stretch the cosines of the cells that are left to exactly [-1, 1] before the division, by
                     the extremes of the matrix or of each row (MPCL section 3.3)
    detach_extremes  whether gradient stops at the extremes
    """

    temperature: float
    dropped: Pairs | None = None
    private: tuple[Tensor, Tensor] | None = None
    favoured: Pairs | None = None
    favour: float = 0.0
    rescale: Rescale = "off"
    detach_extremes: bool = True


def contrast(
    anchors: Tensor, candidates: Tensor, positives: Pairs | Shares, equation: Equation, *, target: Side = "outside"
) -> Tensor:
    """Mean loss over the anchors that have a positive; zero, with zero gradient, if none has.

    anchors (A, D) and candidates (C, D) are unit rows. `positives` are pairs (anchor, candidate), which share the
    target equally if it is outside, or a function to the target's rows. Computed in float32 at least.
    """
    with torch.autocast(anchors.device.type, enabled=False):
        anchors, candidates = _wide(anchors), _wide(candidates)
        if not len(anchors) or not len(candidates):
            return (anchors.sum() + candidates.sum()) * 0
        matrix = _Matrix(anchors, candidates, equation)
        if callable(positives):
            total, positive, has = matrix.distribution(positives)
            return _mean(total - positive, has)
        total, _ = matrix.totals(columns=False)
        return loss_from_logits(positives[0], matrix.cells(positives), total, target=target)


def contrast_both_ways(
    anchors: Tensor, candidates: Tensor, positives: Pairs, equation: Equation
) -> tuple[Tensor, Tensor]:
    """`contrast`, and the same with anchors and candidates exchanged, from one product of the two."""
    with torch.autocast(anchors.device.type, enabled=False):
        anchors, candidates = _wide(anchors), _wide(candidates)
        if not len(anchors) or not len(candidates):
            nothing = (anchors.sum() + candidates.sum()) * 0
            return nothing, nothing
        matrix = _Matrix(anchors, candidates, equation)
        of_rows, of_columns = matrix.totals(columns=True)
        cells = matrix.cells(positives)
        forth = loss_from_logits(positives[0], cells, of_rows, target="outside")
        return forth, loss_from_logits(positives[1], cells, of_columns, target="outside")


def log_sum_exp(anchors: Tensor, candidates: Tensor, *, temperature: float, dropped: Pairs | None = None) -> Tensor:
    """Log-sum-exp (A,) of unit anchors (A, D) over unit candidates (C, D) that carry no gradient, such as a queue.

    Its gradient at an anchor is the candidates' mean, weighted by the softmax, over the temperature. Both are summed
    over blocks of candidates in the forward pass, so no block is kept or computed twice. An anchor all of whose cells
    are dropped (pairs of anchor and candidate) has the lowest finite number.
    """
    with torch.autocast(anchors.device.type, enabled=False):
        anchors = _wide(anchors)
        with torch.no_grad():
            total, pull = _stream_blocks(anchors, candidates, temperature, dropped)
        return total + ((anchors - anchors.detach()) * pull).sum(dim=1)  # a zero whose gradient is `pull`


def loss_from_logits(owner: Tensor, cells: Tensor, total: Tensor, *, target: Side) -> Tensor:
    """Mean loss from the logits of the positive cells (P,), their anchors (P,), and the log-sum-exps of all (A,)."""
    count = send(torch.bincount(owner, minlength=len(total)), total.device).to(total.dtype)
    owner = send(owner, total.device)
    nothing = total.new_zeros(len(total))
    if target == "outside":
        positive = nothing.index_add(0, owner, cells) / count.clamp(min=1)
    else:
        top = nothing.scatter_reduce(0, owner, cells.detach(), "amax", include_self=False)
        mass = nothing.index_add(0, owner, (cells - top[owner]).exp())
        positive = mass.clamp(min=torch.finfo(mass.dtype).tiny).log() + top
    return _mean(total - positive, count > 0)


def _mean(losses: Tensor, has: Tensor) -> Tensor:
    """Mean over the anchors that have a positive."""
    return torch.where(has, losses, losses.new_zeros(())).sum() / has.sum().clamp(min=1)


class _Matrix:
    """The logits of A anchors and C candidates, in blocks unless they are few."""

    def __init__(self, anchors: Tensor, candidates: Tensor, equation: Equation) -> None:
        self.anchors, self.candidates, self.equation = anchors, candidates, equation
        size = max(1, BLOCK_CELLS // len(candidates))
        self.blocks = [slice(i, min(i + size, len(anchors))) for i in range(0, len(anchors), size)]
        self.bounds = self._extremes() if equation.rescale != "off" else None

    def totals(self, *, columns: bool) -> tuple[Tensor, Tensor]:
        """Log-sum-exp of each row (A,), and of each column (C,) if requested."""

        def block(rows: slice, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
            logits = self._block(rows, left, right)
            return logits.logsumexp(dim=1), logits.logsumexp(dim=0) if columns else logits.new_zeros(0)

        of_rows, of_columns = zip(*self._each(block), strict=True)
        return torch.cat(of_rows), torch.stack(of_columns).logsumexp(dim=0)

    def distribution(self, shares: Shares) -> tuple[Tensor, Tensor, Tensor]:
        """Log-sum-exp of each row, its mean logit under the target, and whether it has a target; (A,) each."""

        def block(rows: slice, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            logits, weights = self._block(rows, left, right), shares(rows).to(left.dtype)
            mass = weights.sum(dim=1)
            share = weights / mass.clamp(min=torch.finfo(mass.dtype).tiny)[:, None]
            return logits.logsumexp(dim=1), (share * logits).sum(dim=1), mass > 0

        total, positive, has = (torch.cat(parts) for parts in zip(*self._each(block), strict=True))
        return total, positive, has

    def cells(self, pairs: Pairs) -> Tensor:
        """Logits (P,) of single cells, without the matrix."""
        i, j = to_device(pairs, self.anchors.device)
        size = max(1, BLOCK_CELLS // self.anchors.shape[1])

        def block(rows: slice, left: Tensor, right: Tensor) -> Tensor:
            return (take(left, i[rows]) * take(right, j[rows])).sum(dim=1)

        run = block if len(i) <= size else _recompute(block)  # groups of sixty languages have thousands of pairs each
        starts = range(0, max(1, len(i)), size)
        cosines = torch.cat([run(slice(at, at + size), self.anchors, self.candidates) for at in starts])
        return self._scale(cosines[:, None], i)[:, 0]

    def _each(self, block: Callable[..., tuple[Tensor, ...]]) -> list[tuple[Tensor, ...]]:
        run = block if len(self.blocks) == 1 else _recompute(block)
        return [run(rows, self.anchors[rows], self.candidates) for rows in self.blocks]

    def _block(self, rows: slice, left: Tensor, right: Tensor) -> Tensor:
        """Logits (a, C) of a block of anchors."""
        logits = self._scale(left @ right.T, rows)
        equation = self.equation
        if equation.favoured is not None and equation.favour:
            favour = logits.new_full((), equation.favour)
            logits = logits.index_put(self._cells_of(equation.favoured, rows), favour, accumulate=True)
        # Not minus infinity, so that a row with only dropped cells has finite gradients.
        return self._fill_dropped(logits, rows, torch.finfo(logits.dtype).min)

    def _scale(self, cosines: Tensor, rows: slice | Tensor) -> Tensor:
        """Logits of cosines (n, C): stretched between the extremes of their row or of all, over the temperature."""
        if self.bounds is None:
            return cosines / self.equation.temperature
        low, high = (bound if len(bound) == 1 else take(bound, rows) for bound in self.bounds)
        slope = 2 / ((high - low).clamp(min=1e-6) * self.equation.temperature)
        return (cosines - low) * slope - 1 / self.equation.temperature

    def _fill_dropped(self, cells: Tensor, rows: slice, instead: float) -> Tensor:
        if self.equation.private is not None:
            mine, owner = to_device(self.equation.private, cells.device)
            cells = cells.masked_fill((owner >= 0) & (owner != mine[rows, None]), instead)
        if self.equation.dropped is None or not len(self.equation.dropped[0]):
            return cells
        return cells.index_put(self._cells_of(self.equation.dropped, rows), cells.new_full((), instead))

    def _cells_of(self, pairs: Pairs, rows: slice) -> Pairs:
        """The pairs whose anchor lies in a block, as places in it on its device."""
        return to_device(slice_pairs(pairs, rows), self.anchors.device)

    def _extremes(self) -> tuple[Tensor, Tensor]:
        """Least and greatest cosine that is not dropped, of each row, (A, 1) both, or of the matrix, (1, 1) both."""
        lows: list[Tensor] = []
        highs: list[Tensor] = []
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.equation.detach_extremes):
            for rows in self.blocks:
                cosines = self.anchors[rows] @ self.candidates.T
                lows.append(self._fill_dropped(cosines, rows, 2.0).amin(dim=1, keepdim=True))
                highs.append(self._fill_dropped(cosines, rows, -2.0).amax(dim=1, keepdim=True))
            low, high = torch.cat(lows), torch.cat(highs)
            return (low, high) if self.equation.rescale == "row" else (low.amin().view(1, 1), high.amax().view(1, 1))


def _stream_blocks(anchors: Tensor, table: Tensor, temperature: float, dropped: Pairs | None) -> tuple[Tensor, Tensor]:
    """Log-sum-exps (A,) and their gradients (A, D), from blocks of the table's rows."""
    total, mean = anchors.new_full((len(anchors),), -torch.inf), torch.zeros_like(anchors)
    size = max(1, BLOCK_CELLS // max(1, len(anchors)))
    for start in range(0, len(table), size):
        block = table[start : start + size].to(anchors.dtype)
        logits = (anchors @ block.T).div_(temperature)
        if dropped is not None:
            i, j = filter_pairs(dropped, (dropped[1] >= start) & (dropped[1] < start + size))
            logits.index_put_(
                to_device((i, j - start), logits.device), logits.new_full((), torch.finfo(logits.dtype).min)
            )
        grown = torch.logaddexp(total, logits.logsumexp(dim=1))
        share = logits.sub_(grown[:, None]).exp_()
        mean = torch.addmm(mean.mul_((total - grown).exp_()[:, None]), share, block)
        total = grown
    return total, mean.div_(temperature)


def _recompute(block: Callable[..., Any]) -> Callable[..., Any]:
    """A block that does not store its logits and recomputes them in the backward pass."""
    return lambda *arguments: checkpoint(block, *arguments, use_reentrant=False, preserve_rng_state=False)


def unit(vectors: Tensor) -> Tensor:
    """Rows of length one, in float32 at least; a zero row stays zero."""
    return F.normalize(_wide(vectors), dim=1)


def _wide(vectors: Tensor) -> Tensor:
    return vectors if vectors.dtype == torch.float64 else vectors.float()


def pick(vectors: Tensor, rows: Tensor) -> Tensor:
    """The vectors in some rows, which are numbers or a mask on the host."""
    rows = rows.nonzero()[:, 0] if rows.dtype == torch.bool else rows
    return take(vectors, send(rows, vectors.device))


def take(table: Tensor, rows: slice | Tensor) -> Tensor:
    """Rows of a table, on its device.

    Gradients of a row that is taken repeatedly are added up in order: those of an index are not, on several threads.
    """
    return F.embedding(rows, table) if isinstance(rows, Tensor) and table.ndim == 2 else table[rows]


def to_device(pairs: Pairs, device: torch.device) -> Pairs:
    """The pairs on a device."""
    return send(pairs[0], device), send(pairs[1], device)


def matches(left: Tensor, right: Tensor) -> Pairs:
    """All pairs (i, j) with left[i] == right[j], ordered by i."""
    order = torch.argsort(right, stable=True)
    ordered = right[order]
    first = torch.searchsorted(ordered, left)
    counts = torch.searchsorted(ordered, left, right=True) - first
    i = torch.repeat_interleave(torch.arange(len(left)), counts)
    place = torch.arange(len(i)) - (counts.cumsum(0) - counts)[i]
    return i, order[first[i] + place]


def filter_pairs(pairs: Pairs, keep: Tensor) -> Pairs:
    """The pairs for which `keep` (P,) is true."""
    return pairs[0][keep], pairs[1][keep]


def union(*lists: Pairs) -> Pairs:
    """Several lists as one, ordered by anchor; a pair must not be in two of them."""
    i, j = (torch.cat(column) for column in zip(*lists, strict=True))
    order = torch.argsort(i, stable=True)
    return i[order], j[order]


def slice_pairs(pairs: Pairs, rows: slice) -> Pairs:
    """The pairs whose anchor lies in a block of rows, numbered from the block's beginning."""
    i, j = pairs
    ends = torch.tensor([rows.start, rows.stop])
    first, last = torch.searchsorted(i, ends).tolist()
    return i[first:last] - rows.start, j[first:last]


def same_meaning(group: Tensor, key: Tensor, other_group: Tensor, other_key: Tensor, other_slot: Tensor) -> Pairs:
    """Pairs of equal key and different group, without hard negatives: neither positives nor negatives."""
    i, j = matches(key, other_key)
    return filter_pairs((i, j), (group[i] != other_group[j]) & (other_slot[j] >= 0))


def relate(batch: Batch, anchors: Tensor, candidates: Tensor) -> tuple[Pairs, Pairs, Pairs]:
    """Pairs of some rows, the anchors, with others, the candidates: with the sentences of its group, with the hard
    negatives of its group, and with what means the same in another one.
    """
    group, key, slot = batch.group[candidates], batch.key[candidates], batch.slot[candidates]
    in_group = matches(batch.group[anchors], group)
    hard = slot[in_group[1]] < 0
    alike = same_meaning(batch.group[anchors], batch.key[anchors], group, key, slot)
    return filter_pairs(in_group, ~hard), filter_pairs(in_group, hard), alike


def slot_pairs(group: Tensor, slot: Tensor) -> Pairs:
    """Rows of slot 0 and of slot 1 of the groups that have both, in the order of the groups' numbers.

    The order makes results independent of the order of rows and of the number of processes.
    """
    zeros, ones = ((slot == place).nonzero()[:, 0] for place in (0, 1))
    i, j = matches(group[zeros], group[ones])
    order = group[zeros[i]].argsort()
    return zeros[i[order]], ones[j[order]]
