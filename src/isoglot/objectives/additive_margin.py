"""Additive margin softmax, both ways: LaBSE (Feng et al. 2020, eq. 1 and 2; Yang et al. 2019).

    loss_i = -log  exp((cos(s_i, t_i) - m)/T) / [ exp((cos(s_i, t_i) - m)/T) + sum_{j != i} exp(cos(s_i, t_j)/T) ]

and the same with s and t exchanged. The margin is subtracted from the positive only, so a translation must be nearer
than every other candidate by m.
"""

from __future__ import annotations

from typing import Annotated

from torch import Tensor

from isoglot.data.batch import Batch
from isoglot.objectives.base import Losses, Objective, Range, Temperature
from isoglot.objectives.kernel import Equation, contrast_both_ways, pick, relate, unit


class AdditiveMargin(Objective):
    """Slot 0 of each group against all other slots, and back, with `margin` taken off the cosines of the positives.

    Hard negatives are candidates of the first direction; rows of equal key and other group are left out. With margin
    0 it is `info_nce` in two directions.

    Raises ValueError for a temperature out of range (see `Temperature`) and a margin below 0 or above 2,
    which is the most that two cosines differ by.
    """

    def __init__(self, *, margin: Annotated[float, Range(0, 2)] = 0.3, temperature: Temperature = 0.1) -> None:
        super().__init__()
        self.margin, self.temperature = margin, temperature

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The loss, under `additive_margin`, and that of the other direction, under `additive_margin/back`."""
        z, anchors, candidates = unit(vectors), batch.slot == 0, batch.slot != 0
        positives, _, alike = relate(batch, anchors, candidates)
        margin = self.margin / self.temperature
        equation = Equation(temperature=self.temperature, dropped=alike, favoured=positives, favour=-margin)
        forth, back = contrast_both_ways(pick(z, anchors), pick(z, candidates), positives, equation)
        # `favour` is in the denominators only; in the numerators the margin is the same for every anchor.
        rest = margin if len(positives[0]) else 0.0
        return {"additive_margin": forth + rest, "additive_margin/back": back + rest}
