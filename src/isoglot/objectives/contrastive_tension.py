"""Contrastive Tension: two copies of an encoder must agree on a sentence, and on nothing else (Carlsson et al. 2021).

    loss = -log sigmoid(f1(a) . f2(a))  -  sum over the negatives b of  log(1 - sigmoid(f1(a) . f2(b)))

Binary cross-entropy over the dot product, without any normalisation of the vectors: 1 + K pairs for each anchor.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from isoglot.data.batch import Batch, send
from isoglot.objectives.base import Losses, Objective, Range
from isoglot.objectives.kernel import pick


class ContrastiveTension(Objective):
    """Distinguish a sentence from `negatives` others; vectors of twins are (N, 2D), f1 and f2 concatenated.

    The sentences of a batch, put in order of slot and group, which is a random order of the corpus, are cut into blocks
    of 1 + `negatives`: the first is the anchor, the others are its negatives. With the paper's K = 7 a batch of 16
    sentences has two blocks, that is its 16 pairs. Sentences that fill no block are in no pair.

    Deviation: a negative that means the same as its anchor (of its group, or of equal key) is left out. The loss is
    the mean over the pairs, where the paper sums: RMSprop is invariant to a factor.

    Raises ValueError unless negatives >= 1.
    """

    copies: ClassVar[int] = 2
    reads = ()

    def __init__(self, *, negatives: Annotated[int, Range(1, 65536)] = 7) -> None:
        super().__init__()
        self.negatives = negatives

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The loss, under `contrastive_tension`."""
        # Sentences, not hard negatives, by slot, then by group: independent of the order of rows.
        rows = (batch.slot >= 0).nonzero()[:, 0]
        rows = rows[torch.argsort(batch.group[rows], stable=True)]
        rows = rows[torch.argsort(batch.slot[rows], stable=True)]
        size = 1 + self.negatives
        block = rows[: len(rows) // size * size].view(-1, size)  # (A, 1 + K), the anchor first
        if not len(block):
            return {"contrastive_tension": vectors.sum() * 0}
        f1, f2 = vectors.chunk(2, dim=1)
        label = torch.zeros(block.shape, dtype=vectors.dtype)
        label[:, 0] = 1
        alike = (batch.group[block] == batch.group[block[:, :1]]) | (batch.key[block] == batch.key[block[:, :1]])
        used = (label == 1) | ~alike
        with torch.autocast(vectors.device.type, enabled=False):
            anchors, others = pick(f1, block[:, 0])[:, None], pick(f2, block.flatten()).view(*block.shape, -1)
            scores = pick((anchors * others).sum(dim=2).flatten(), used.flatten())
        label = send(label[used], scores.device)
        return {"contrastive_tension": F.binary_cross_entropy_with_logits(scores, label)}
