"""The base class of objectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, TypeAlias

from torch import Tensor, nn

from isoglot.core.arguments import Range as Range
from isoglot.core.arguments import check_fields
from isoglot.core.errors import PluginError, quote
from isoglot.data.batch import Batch

Losses: TypeAlias = dict[str, Tensor]
# Cosines in float32 are right to about 1e-7, so logits over a temperature of 1e-4 to about 1e-3; over less, rounding
# decides which candidate is the nearest.
Temperature: TypeAlias = Annotated[float, Range(1e-4, 1e6)]
Seed: TypeAlias = Annotated[int, Range(0, 2**32 - 1)]


class Objective(nn.Module):
    """A loss over sentence vectors. Its parameters are trained and its buffers are checkpointed with the encoder's.

    An objective never calls the trained encoder: it receives the vectors of the whole (global) batch. So one training
    step works for every objective, with gradient caching and on any number of devices. All state is in parameters and
    buffers. The order of the rows has no meaning; the columns of the batch define all relations.

    Columns of a batch lie on the host and the vectors on the encoder's device. So index pairs are made on the host, and
    `kernel.pick` and `data.batch.send` bring them over. An objective's whole numbers stay on the host too.

    `copies` is how many encoders' vectors stand side by side in a row: 2 for an objective over twins. `follows` is
    whether it reads the encoder's weights, for a moving average of them. `ordered` is whether slot 0 has another role:
    `isoglot.train` keeps the order of its rows, and a recipe needs `anchor = "first"`, or a teacher that it reads.
    `reads` are the labels, teachers' vectors and `hard_negatives` that it uses; others are warned of.
    """

    copies: ClassVar[int] = 1
    follows: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    reads: tuple[str, ...] = ("hard_negatives",)

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "__init__" in vars(cls):
            check_fields(cls)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Objective:
        """Move parameters and buffers of floats, as `to` does; counters and keys stay on the host, with the batch's
        columns.
        """
        numbers = {
            name: value for name, value in self._buffers.items() if value is not None and not value.is_floating_point()
        }
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._buffers.update(numbers)
        return self

    def __call__(self, vectors: Tensor, batch: Batch) -> Losses:
        """The losses of `forward`. Raises `PluginError` unless they are scalars by name."""
        losses: Losses = super().__call__(vectors, batch)
        parts = [*losses.values()] if isinstance(losses, dict) else []
        if not parts or not all(isinstance(part, Tensor) and part.ndim == 0 for part in parts):
            problem = f"{type(self).__name__}.forward returned {quote(losses)}, a {type(losses).__name__}"
            raise PluginError(f"{problem}; return a dict of scalar tensors by name, such as {{'loss': loss}}")
        return losses

    def annotate(self, batch: Batch) -> None:
        """Before the forward pass, without gradient: add what the loss needs to `batch.extras`, N rows each."""

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """Named scalars, which the step sums, from `vectors` (N, D), not normalised."""
        raise NotImplementedError

    def after_step(self, encoder: nn.Module, batches: Sequence[Batch]) -> None:
        """After the optimiser's step, without gradient: update moving averages and queues.

        `batches` are those of the step, several with `optimizer.accumulate`. Each holds the columns and extras of the
        global batch, as `forward` saw them, and no tokens on many ranks.
        """
