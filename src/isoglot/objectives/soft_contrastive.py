"""Soft contrastive alignment, IMASCL (Park et al. 2024, eq. 2 to 7): the label is a teacher's similarity.

    L_cross = - 1/N  sum_i sum_j w(i, j) [ log softmax_j cos(s_i, t_j)/T  +  log softmax_j cos(t_i, s_j)/T ]
    L_mono  = - 1/N  sum_i sum_j w(i, j) [ log softmax_j cos(s_i, s_j)/T  +  log softmax_j cos(t_i, t_j)/T ]
    w(i, j) = softmax_j a_i . a_j / T_g

where row a_i of the labels is the teacher's vector of pair i. Each form of the label is a table of unit rows, so the
teacher's similarities are symmetric, and one function computes the targets of rows and of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from torch import Tensor

from isoglot.data.batch import Batch
from isoglot.objectives.base import Losses, Objective, Range, Temperature
from isoglot.objectives.kernel import Equation, Pairs, Shares, contrast, pick, same_meaning, slot_pairs, unit
from isoglot.objectives.teaching import places, teacher_vectors

WEIGHTS = {"off": (1.0, 0.0), "code": (1.0, 2.0)}  # of weights of L_cross and L_mono; `paper` uses tcm_lambda and 1


class SoftContrastive(Objective):
    """Make the pairs of a batch (slots 0 and 1 of each group) as similar, across languages, as the teacher's vectors.

    labels       `priority`: a_i is the teacher's vector of the sentence whose language stands first in `priority`
                 (eq. 4; of two equal ones, slot 0), chosen for each pair separately; `average`: similarities are the
                 mean of both sides' (eq. 5); `hard`: w is the identity (eq. 3), which needs no teacher
    priority     languages, the most trusted first; empty: in the order in which the stream's sources first name them
    tcm          `paper`: tcm_lambda L_cross + L_mono (eq. 7); `code`: L_cross + 2 L_mono, as the released code adds
                 rows and columns of both matrices; `off`: L_cross
    value        `kl`: the target's entropy, a constant, is taken off, so that the least loss is 0; gradients are equal

    Other slots, hard negatives and groups of one are ignored. Rows of equal key stay in, since their label is close to
    1; only hard labels leave them out, as `info_nce` does. For L_mono to be within a language, as in the paper, let
    slots be languages (`anchor = "first"`, and `one_pair` for several pairs); drawn at random, they are mixed.

    Deviation: the paper reuses the row-normalised w for the columns, which then do not sum to one; here every column
    has its own softmax, as in the released code.

    Raises ValueError for a temperature or lambda out of its range, an unknown switch, and a language of the stream
    that a given `priority` has no place for.
    """

    reads: tuple[str, ...] = ("teacher",)

    def __init__(
        self,
        *,
        labels: Literal["priority", "average", "hard"] = "priority",
        priority: Sequence[str] = (),
        temperature: Temperature = 0.1,
        teacher_temperature: Temperature = 0.1,
        tcm: Literal["off", "paper", "code"] = "off",
        tcm_lambda: Annotated[float, Range(1e-9, 1e6)] = 0.1,
        value: Literal["cross-entropy", "kl"] = "cross-entropy",
        languages: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.labels, self.value = labels, value
        self.reads = () if labels == "hard" else self.reads
        self.temperature, self.teacher_temperature = temperature, teacher_temperature
        self.weights = WEIGHTS.get(tcm, (tcm_lambda, 1.0))
        self.places = places(priority, languages) if labels == "priority" else ()

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The loss across languages, under `soft_contrastive`, and within them, under `soft_contrastive/mono`."""
        z = unit(vectors)
        first, second = slot_pairs(batch.group, batch.slot)
        s, t, floor = pick(z, first), pick(z, second), z.new_zeros(())
        row, group, key = torch.arange(len(first)), batch.group[first], batch.key[first]
        target: Pairs | Shares = row, row
        dropped: Pairs | None = same_meaning(group, key, group, key, batch.slot[first])
        if self.labels != "hard":
            labels = self._teacher(batch, first, second, z.device)
            target, dropped = self._softmax(labels), None
            if self.value == "kl":  # the cross-entropy of the teacher with itself is the entropy of the target
                floor = contrast(labels, labels, target, Equation(temperature=self.teacher_temperature))
        equation = Equation(temperature=self.temperature, dropped=dropped)

        def both(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
            return contrast(a, b, target, equation) + contrast(c, d, target, equation) - 2 * floor

        cross, mono = self.weights
        losses = {"soft_contrastive": cross * both(s, t, t, s)}
        return losses | ({"soft_contrastive/mono": mono * both(s, s, t, t)} if mono else {})

    def _teacher(self, batch: Batch, first: Tensor, second: Tensor, device: torch.device) -> Tensor:
        """Unit rows a_i of the n pairs."""
        g = teacher_vectors(batch, device, reader="soft_contrastive")
        if self.labels == "average":
            return torch.cat([pick(g, first), pick(g, second)], dim=1) / 2**0.5  # products are the means of both sides'
        rank = torch.tensor(self.places)[batch.lang] if self.places else batch.lang
        return pick(g, torch.where(rank[first] <= rank[second], first, second))

    def _softmax(self, labels: Tensor) -> Shares:
        """w, whose rows are also its columns."""
        return lambda rows: (labels[rows] @ labels.T / self.teacher_temperature).softmax(dim=1)
