"""Distillation by squared error (Reimers and Gurevych 2020, eq. 1): a sentence and its translations, each at the place
where the teacher puts the sentence.

    loss = mean over pairs of  1/2 [ |f(s) - g(s)|^2 + |f(t) - g(s)|^2 ]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import torch
from torch import Tensor

from isoglot.data.batch import Batch
from isoglot.errors import RecipeError
from isoglot.objectives.base import Losses, Objective
from isoglot.objectives.kernel import matches, unit, where
from isoglot.objectives.teaching import teacher_vectors


class Trained(Protocol):
    """What is asked of the trained encoder: the width of its vectors."""

    dim: int


class Distillation(Objective):
    """Pull every sentence of a group to the teacher's vector of its slot 0: the source, with anchor = "first".

    student   `raw`: the student's vectors as they are; `unit`: scaled to length one, so that the loss is 2 - 2 cos

    The mean is over all sentences of groups of two or more. Hard negatives and groups of one are left alone.

    Deviation: the teacher's vectors are of length one, where the paper takes them as the teacher gives them; and the
    squares of a vector are summed, where its code averages them, which only scales the loss.

    Raises ValueError for an unknown switch and, if both dimensions are known, for a teacher of another dimension than
    the student; otherwise this is a RecipeError at the first batch, as is a stream without a teacher.
    """

    def __init__(
        self,
        *,
        encoder: Trained | None = None,
        sizes: Mapping[str, int] | None = None,
        student: Literal["raw", "unit"] = "raw",
    ) -> None:
        super().__init__()
        if student not in ("raw", "unit"):
            raise ValueError(f"student must be one of raw, unit, got {student!r}")
        if encoder is not None and sizes and "teacher" in sizes and sizes["teacher"] != encoder.dim:
            raise ValueError(_unequal(sizes["teacher"], encoder.dim))  # before the teacher has read the corpus
        self.student = student

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The loss, under `distillation`."""
        g = teacher_vectors(batch, reader="distillation")
        if g.shape[1] != vectors.shape[1]:
            raise RecipeError(f"distillation: {_unequal(g.shape[1], vectors.shape[1])}")
        f = unit(vectors) if self.student == "unit" else vectors
        rows, anchors = (kept.nonzero()[:, 0] for kept in (batch.slot >= 0, batch.slot == 0))
        own = matches(batch.group[rows], batch.group[anchors])
        _, inverse, counts = torch.unique(batch.group[rows], return_inverse=True, return_counts=True)
        i, j = where(own, counts[inverse][own[0]] > 1)
        squares = (f[rows[i]] - g[anchors[j]].to(f.dtype)).square().sum(dim=1)
        return {"distillation": squares.sum() / max(1, len(squares))}


def _unequal(teacher: int, student: int) -> str:
    return (
        f"the teacher has {teacher} dimensions and the student {student}; they must be equal, so take another teacher, "
        "or soft_contrastive, which compares similarities only"
    )
