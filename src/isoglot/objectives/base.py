"""What an objective is, and the weighted sum of several."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor, nn

from isoglot.data.batch import Batch

Losses: TypeAlias = dict[str, Tensor]


class Objective(nn.Module):
    """A loss over sentence vectors. Its parameters are trained and its buffers are checkpointed with the encoder's.

    An objective never calls the trained encoder: it receives the vectors of the whole (global) batch. That is what
    lets one training step serve every objective with gradient caching and on any number of devices. All its state is
    in parameters and buffers; the order of the rows means nothing, the columns of the batch mean everything.
    """

    def annotate(self, batch: Batch) -> None:
        """Before the forward pass, without gradient: add what the loss needs to `batch.extras`, N rows each."""

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """Named scalars, which the step sums, from `vectors` (N, D), not normalised."""
        raise NotImplementedError

    def after_step(self, encoder: nn.Module, batch: Batch) -> None:
        """After the optimiser's step, without gradient: move averages, fill queues."""


class Sum(Objective):
    """Weighted sum of objectives over the same vectors, such as EASE's entity term plus SimCSE's."""

    def __init__(self, *terms: tuple[float, Objective]) -> None:
        super().__init__()
        self.weights = [weight for weight, _ in terms]
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
        """The weighted losses of all terms; the second term of a name is called `name/2`, and so on."""
        losses: Losses = {}
        for weight, term in zip(self.weights, self.members, strict=True):
            for name, loss in term(vectors, batch).items():
                taken = sum(other.split("/")[0] == name for other in losses)
                losses[f"{name}/{taken + 1}" if taken else name] = weight * loss
        return losses

    def after_step(self, encoder: nn.Module, batch: Batch) -> None:
        """Let every term move its state."""
        for term in self.members:
            term.after_step(encoder, batch)
