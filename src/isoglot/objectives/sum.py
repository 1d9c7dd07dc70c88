"""The weighted sum of several objectives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from torch import Tensor, nn

from isoglot.data.batch import Batch
from isoglot.objectives.base import Losses, Objective


class Sum(Objective):
    """Weighted sum of objectives over the same vectors, such as EASE's entity term plus SimCSE's."""

    def __init__(self, *terms: tuple[float, Objective]) -> None:
        super().__init__()
        self.weights = tuple(weight for weight, _ in terms)
        self.terms = nn.ModuleList(term for _, term in terms)

    @property
    def members(self) -> list[Objective]:
        """The objectives, in the order given."""
        return [term for term in self.terms if isinstance(term, Objective)]

    def annotate(self, batch: Batch) -> None:
        """Let every term annotate the batch."""
        for term in self.members:
            term.annotate(batch)

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The weighted losses of all terms; those of a second term of the same name are called `name-2`, and so on."""
        losses: Losses = {}
        for weight, term in zip(self.weights, self.members, strict=True):
            parts = term(vectors, batch)
            number = next(n for n in count(1) if not any(_number_name(name, n) in losses for name in parts))
            losses |= {_number_name(name, number): weight * loss for name, loss in parts.items()}
        return losses

    def after_step(self, encoder: nn.Module, batches: Sequence[Batch]) -> None:
        """Let every term update its state."""
        for term in self.members:
            term.after_step(encoder, batches)


def _number_name(name: str, number: int) -> str:
    """The name of a loss of the n-th term of its kind: `info_nce/back` becomes `info_nce-2/back`."""
    first, slash, rest = name.partition("/")
    return name if number == 1 else f"{first}-{number}{slash}{rest}"
