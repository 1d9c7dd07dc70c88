"""One training step: any objective, bounded memory, any number of ranks.

Three observations carry it. An objective is a function of the batch's vectors alone, so its gradient can be taken at
the vectors first and pushed into the encoder afterwards, chunk by chunk (gradient caching, Gao et al. 2021, section
3): activations never exceed one chunk, whatever the batch. Rows of like length share a chunk, so padding is what
their lengths differ by, whatever the order of the batch. And if every rank sees the vectors of all ranks, each can
compute the whole loss and keep the gradient of its own rows: the sum over ranks is the gradient of one process.

The price of gradient caching is a second forward pass. A batch of at most `graph_tokens` tokens keeps its graph and
does not pay it; both paths give the same gradient, dropout included.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

import torch
from torch import Tensor
from torch.utils.checkpoint import get_device_states, set_device_states

from isoglot.data.batch import Batch, Tokens
from isoglot.encoders.base import Encoder
from isoglot.encoders.packing import pack
from isoglot.objectives.base import Losses, Objective
from isoglot.training import ranks


@dataclass(frozen=True, slots=True)
class StepLimits:
    """Tokens, padding included, that go through the encoder at once, and most tokens whose graph is kept."""

    chunk_tokens: int = 2048
    graph_tokens: int = 16384
    bf16: bool = False


@dataclass(frozen=True, slots=True)
class StepReport:
    """Losses of the step by name, and what was computed: `padded` tokens held `tokens` real ones, over all ranks."""

    losses: Losses
    rows: int
    groups: int
    tokens: int
    padded: int
    negatives: float


class Replay(AbstractContextManager[None]):
    """The random state at creation, put back inside `with`, so that dropout draws the same masks again."""

    def __init__(self, device: torch.device) -> None:
        self.cpu = torch.get_rng_state()
        self.devices, self.states = get_device_states(torch.empty(0, device=device))

    def __enter__(self) -> None:
        self.fork = torch.random.fork_rng(devices=self.devices)
        self.fork.__enter__()
        torch.set_rng_state(self.cpu)
        set_device_states(self.devices, self.states)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.fork.__exit__(kind, error, trace)


def backward(encoder: Encoder, objective: Objective, batch: Batch, limits: StepLimits) -> StepReport:
    """Add the gradient of the objective over the global batch to the parameters of encoder and objective.

    `batch` holds this rank's rows, on the encoder's device. Afterwards all ranks hold the same gradients: those of
    the encoder are summed here, those of the objective are computed alike on every rank.
    """
    with torch.no_grad():
        objective.annotate(batch)
    chunks = _chunks(encoder, batch.tokens, limits.chunk_tokens)
    pieces = [batch.tokens.select(rows) for rows in chunks]
    padded = sum(int(len(piece) * piece.lengths.max() if encoder.pads else piece.lengths.sum()) for piece in pieces)
    replay = len(pieces) > 1 and padded > limits.graph_tokens

    states, parts = [], []
    with torch.set_grad_enabled(not replay):
        for piece in pieces:
            states.append(Replay(batch.group.device) if replay else None)
            parts.append(_embed(encoder, piece, limits))
    local = (
        _in_order([part.detach() for part in parts], chunks)
        if parts
        else batch.group.new_zeros((0, encoder.dim)).float()
    )
    everyone = ranks.gather_batch(batch)
    vectors = ranks.gather(local).requires_grad_()  # (N of all ranks, D)
    losses = objective(vectors, everyone)
    total = torch.stack(list(losses.values())).sum()
    if total.requires_grad:
        torch.autograd.backward(total)  # fills vectors.grad, and the gradients of the objective's own parameters
    grad = vectors.grad if vectors.grad is not None else torch.zeros_like(vectors)
    first = sum(ranks.row_counts(len(batch), grad.device)[: ranks.rank()])
    grad = grad[first : first + len(batch)]
    for piece, rows, state, part in zip(pieces, chunks, states, parts, strict=True):
        if state is not None:
            with state:
                part = _embed(encoder, piece, limits)
        if part.requires_grad:
            torch.autograd.backward(part, grad[rows])
    ranks.sum_gradients(encoder)
    return StepReport(
        losses={name: loss.detach() for name, loss in losses.items()},
        rows=len(everyone),
        groups=len(torch.unique(everyone.group)),
        tokens=int(batch.tokens.lengths.sum()) * ranks.world(),
        padded=padded * ranks.world(),
        negatives=negatives(everyone),
    )


def negatives(batch: Batch) -> float:
    """Mean number of rows, hard negatives included, that a row with slot 0 is told apart from.

    Rows that share its group or its key do not count. This is what a larger batch or more ranks buy.
    """
    anchors = batch.slot == 0
    if not bool(anchors.any()):
        return 0.0
    texts = batch.slot >= 0
    _, inverse, counts = torch.unique(batch.key[texts], return_inverse=True, return_counts=True)
    alike = torch.zeros(len(batch), dtype=torch.long, device=batch.key.device)
    alike[texts] = counts[inverse]
    return float((len(batch) - alike[anchors]).double().mean())


def _embed(encoder: Encoder, piece: Tokens, limits: StepLimits) -> Tensor:
    with torch.autocast(piece.ids.device.type, dtype=torch.bfloat16, enabled=limits.bf16):
        vectors: Tensor = encoder(piece)
    return vectors if vectors.dtype == torch.float64 else vectors.float()


def _chunks(encoder: Encoder, tokens: Tokens, budget: int) -> list[Tensor]:
    """Row numbers of the chunks: by length where padding costs, else in the order of the batch."""
    lengths, device = tokens.lengths.cpu().numpy(), tokens.ids.device
    if encoder.pads:
        return [torch.from_numpy(rows).to(device) for rows in pack(lengths, budget)]
    owner = (tokens.lengths.cumsum(0) - 1).clamp(min=0) // budget
    sizes = torch.unique_consecutive(owner, return_counts=True)[1].tolist()
    return list(torch.split(torch.arange(len(tokens), device=device), sizes))


def _in_order(parts: Sequence[Tensor], chunks: Sequence[Tensor]) -> Tensor:
    """Rows of the chunks, put back in the order of the batch."""
    rows = torch.cat(list(chunks))
    stacked = torch.cat(list(parts))
    result = torch.empty_like(stacked)
    result[rows] = stacked
    return result
