"""Distillation by squared error (Reimers and Gurevych 2020, eq. 1): a sentence and its translations, each at the place
where the teacher puts the sentence.

    loss = mean over pairs of  1/2 [ |f(s) - g(s)|^2 + |f(t) - g(s)|^2 ]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from isoglot.core.errors import RecipeError
from isoglot.data.batch import Batch
from isoglot.objectives.base import Losses, Objective
from isoglot.objectives.kernel import pick, unit
from isoglot.objectives.teaching import places, teacher_vectors


class Distillation(Objective):
    """Pull every sentence of a group to the teacher's vector of one of them, the source.

    student   `raw`: the student's vectors as they are; `unit`: scaled to length one, so that the loss is 2 - 2 cos
    priority  languages, the most trusted first, others after them: the source is the sentence of a group whose language
              comes first; empty: slot 0, the first sentence with anchor = "first"
    singles   `skipped`: groups of one are left alone; `taught`: they are pulled to the teacher's own vectors of them,
              which keeps a student that began as the teacher where it was

    The mean is over all sentences that are taught. Hard negatives are left alone.

    Deviation: the teacher's vectors are of length one, where the paper takes them as the teacher gives them; and the
    squares of a vector are summed, where its code averages them, which only scales the loss.

    Raises ValueError for an unknown switch and, if both dimensions are known, for a teacher of another dimension than
    the student; otherwise this is a RecipeError at the first batch, as is a stream without a teacher.
    """

    ordered, reads = True, ("teacher",)

    def __init__(
        self,
        *,
        encoder: nn.Module | None = None,
        sizes: Mapping[str, int] | None = None,
        languages: Sequence[str] = (),
        student: Literal["raw", "unit"] = "raw",
        priority: Sequence[str] = (),
        singles: Literal["skipped", "taught"] = "skipped",
    ) -> None:
        super().__init__()
        teacher = (sizes or {}).get("teacher")  # known before the teacher has encoded the corpus
        if encoder is not None and teacher is not None and teacher != encoder.dim:
            raise ValueError(_unequal(teacher, cast("int", encoder.dim)))
        self.student, self.smallest = student, 1 if singles == "taught" else 2
        self.places = places(priority, languages, others=True)

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The loss, under `distillation`."""
        g = teacher_vectors(batch, vectors.device, reader="distillation")
        if g.shape[1] != vectors.shape[1]:
            raise RecipeError(f"distillation: {_unequal(g.shape[1], vectors.shape[1])}")
        f = unit(vectors) if self.student == "unit" else vectors
        rows = (batch.slot >= 0).nonzero()[:, 0]
        _, group, counts = torch.unique(batch.group[rows], return_inverse=True, return_counts=True)
        rank = batch.slot[rows]
        if self.places:
            rank = rank + (rank.max() + 1) * torch.tensor(self.places)[batch.lang[rows]]
        first_rank = rank.new_zeros(len(counts)).scatter_reduce(0, group, rank, "amin", include_self=False)
        first = rank == first_rank[group]
        source = rows[first][group[first].argsort()][group]  # of each row
        taught = counts[group] >= self.smallest
        squares = (pick(f, rows[taught]) - pick(g, source[taught]).to(f.dtype)).square().sum(dim=1)
        return {"distillation": squares.sum() / max(1, len(squares))}


def _unequal(teacher: int, student: int) -> str:
    return (
        f"the teacher has {teacher} dimensions and the student {student}; they must be equal: use another teacher, or "
        "soft_contrastive, which compares similarities only"
    )
