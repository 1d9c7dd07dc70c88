"""MPCL: contrast with all translations of a sentence at once as positives (Zhao et al. 2024, eq. 2).

    loss_i = -log  sum_{k in positives of i} exp(s_ik / T)  /  sum_{j in batch, j != i} exp(s_ij / T)

The sum over the positives is inside the logarithm; the positives are also in the denominator, so the loss is
never negative. Similarities are stretched by min-max before the division (section 3.3).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from isoglot.data.batch import Batch
from isoglot.objectives.base import Losses, Objective, Temperature
from isoglot.objectives.kernel import Equation, Rescale, contrast, filter_pairs, pick, relate, union, unit


class MultiPositive(Objective):
    """One row of each group is an anchor, every other row of the batch a candidate, its own group the positives.

    anchors        `first`: slot 0 of each group, in a language sampled uniformly by the batching; `every`: each row
    candidates     `batch`: every row but the anchor itself; `non-anchors`: the rows of slot other than 0, which with
                   pairs is InfoNCE
    rescale        `matrix`, `row` or `off`: the scope of min-max; the paper does not specify it, nor whether its
                   extremes carry gradient (`extremes`: `detached` or `live`)
    hard_negatives `shared`: hard negatives of all groups are candidates, as in SimCSE; `own`: only the anchor's

    Deviation: rows of another group with the same key (such as the same premise twice) are left out, where the paper
    would count them as negatives.

    Raises ValueError for a temperature out of range (see `Temperature`) and an unknown switch.
    """

    def __init__(
        self,
        *,
        temperature: Temperature = 0.05,
        rescale: Rescale = "matrix",
        anchors: Literal["first", "every"] = "first",
        candidates: Literal["batch", "non-anchors"] = "batch",
        hard_negatives: Literal["shared", "own"] = "shared",
        extremes: Literal["detached", "live"] = "detached",
    ) -> None:
        super().__init__()
        self.temperature, self.extremes = temperature, extremes
        self.rescale: Rescale = rescale
        self.anchors, self.candidates, self.hard_negatives = anchors, candidates, hard_negatives

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The loss, under `multi_positive`."""
        z = unit(vectors)
        rows = torch.arange(len(z))
        anchor = rows[batch.slot == 0 if self.anchors == "first" else batch.slot >= 0]
        candidate = rows if self.candidates == "batch" else rows[batch.slot != 0]
        in_group, _, alike = relate(batch, anchor, candidate)
        itself = anchor[in_group[0]] == candidate[in_group[1]]
        owners = torch.where(batch.slot < 0, batch.group, -1)[candidate]
        equation = Equation(
            temperature=self.temperature,
            dropped=union(filter_pairs(in_group, itself), alike),
            private=(batch.group[anchor], owners) if self.hard_negatives == "own" else None,
            rescale=self.rescale,
            detach_extremes=self.extremes == "detached",
        )
        positives = filter_pairs(in_group, ~itself)
        loss = contrast(pick(z, anchor), pick(z, candidate), positives, equation, target="inside")
        return {"multi_positive": loss}
