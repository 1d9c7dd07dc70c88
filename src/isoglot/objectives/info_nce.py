"""InfoNCE with in-batch and hard negatives: SimCSE (Gao et al. 2021, eq. 1 and 5), mSimCSE (Wang et al. 2022, eq. 1).

    loss_i = -log  exp(cos(h_i, h_i+)/T) / sum_j [exp(cos(h_i, h_j+)/T) + exp(cos(h_i, h_j-)/T)]

The strategies of mSimCSE differ in their data alone, so they are recipes: dropout views repeat each sentence, hard
negatives are rows of negative slot, translations are groups of two.
"""

from __future__ import annotations

from typing import Annotated, Literal

from torch import Tensor

from isoglot.data.batch import Batch
from isoglot.objectives.base import Losses, Objective, Range, Temperature
from isoglot.objectives.kernel import Equation, contrast, contrast_both_ways, pick, relate, unit


class InfoNCE(Objective):
    """Pull slot 0 of each group to its other slots, away from those of other groups and from all hard negatives.

    `two-way` adds the same in the other direction, anchors being the other slots and candidates the slots 0 (as CLIP
    and the dual encoders have it, summed); hard negatives are candidates of the first direction only. A group of one
    has no positive and gives only candidates. `hard_negative_weight` is added to the logit of the group's own hard
    negatives: 0 counts them once (SimCSE's alpha in log space).

    Raises ValueError for a number out of its range and for an unknown direction.
    """

    def __init__(
        self,
        *,
        temperature: Temperature = 0.05,
        direction: Literal["one-way", "two-way"] = "one-way",
        hard_negative_weight: Annotated[float, Range(-1e4, 1e4)] = 0.0,
    ) -> None:
        super().__init__()
        self.temperature, self.direction, self.hard_negative_weight = temperature, direction, hard_negative_weight

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The loss, under `info_nce`, and that of the other direction, under `info_nce/back`."""
        z, anchors, candidates = unit(vectors), batch.slot == 0, batch.slot != 0
        positives, hard, alike = relate(batch, anchors, candidates)
        weight = self.hard_negative_weight
        equation = Equation(temperature=self.temperature, dropped=alike, favoured=hard, favour=weight)
        if self.direction == "one-way":
            return {"info_nce": contrast(pick(z, anchors), pick(z, candidates), positives, equation)}
        forth, back = contrast_both_ways(pick(z, anchors), pick(z, candidates), positives, equation)
        return {"info_nce": forth, "info_nce/back": back}
