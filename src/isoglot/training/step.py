"""One training step: any objective, bounded memory, any number of ranks.

It is based on three observations. An objective is a function of the batch's vectors alone, so its gradient can be taken
at the vectors first and pushed into the encoder afterwards, chunk by chunk (gradient caching, Gao et al. 2021, section
3): activations never exceed those of one chunk, for any batch size. Rows of similar length share a chunk, so there is
little padding for any order of the batch. And if every rank sees the vectors of all ranks, each can compute the whole
loss and keep the gradient of its own rows: the sum over ranks is the gradient of one process.

The price of gradient caching is a second forward pass. The first chunks of a batch, as many as hold `graph_tokens`
tokens, keep their graph and do not pay it; with any number of them the gradient is the same, dropout included.

Read from the end: `train_step` updates the weights, with the gradients that `backward` adds for each batch of a stream.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from isoglot.core.errors import CheckpointError
from isoglot.data.batch import Batch, send
from isoglot.data.batching import Batches, Position
from isoglot.data.tokens import Tokens, pack, padding_on
from isoglot.encoders import device as devices
from isoglot.encoders.base import Encoder
from isoglot.objectives.base import Losses, Objective


@dataclass(frozen=True, slots=True)
class StepLimits:
    """How a step computes: its precision, and numbers of tokens, padding included.

    chunk_tokens  those of a chunk, which go through the encoder together
    graph_tokens  maximum of the chunks whose graph is kept; an only chunk always keeps it
    padding       those of a batch for each token, beyond which chunks are cut further
    rounds_once   in bfloat16 a weight is rounded once for all chunks of a pass, and not by each of them
    """

    chunk_tokens: int = 512
    graph_tokens: int = 3072
    precision: str = "float32"
    padding: float = math.inf
    rounds_once: bool = True

    @classmethod
    def on(cls, device: torch.device, *, chunk: int | None, graph: int | None, precision: str) -> StepLimits:
        """The limits given, and those of the device for None: small for a core's cache, large for an accelerator."""
        usual = (512, 3072) if device.type == "cpu" else (16_384, 32_768)
        chunk, graph = usual[0] if chunk is None else chunk, usual[1] if graph is None else graph
        return cls(chunk, graph, precision, padding_on(device))

    def autocast(self, encoder: Encoder) -> AbstractContextManager[object]:
        """The context to compute in. It is entered once for all chunks of a pass, so that each weight is rounded once.

        Not once for all passes of a step: weights rounded without gradients would be used by a pass that needs them. In
        the first pass the chunks with gradients come first.
        """
        computing = devices.autocast(self.precision, encoder.device, keeps_weights=self.rounds_once)
        return devices.one_pass(computing) if self.rounds_once else computing


@dataclass(frozen=True, slots=True)
class StepReport:
    """Losses of the step by name, and what was computed, over all ranks.

    batch      the columns of the global batch
    groups     how many groups it has
    tokens     real tokens; `padded` counts the padding too
    negatives  rows of another meaning for an anchor, on average
    """

    losses: Losses
    batch: Batch
    groups: int
    tokens: int
    padded: int
    negatives: float


@dataclass(frozen=True, slots=True)
class Chunks:
    """The sentences of a batch in chunks of similar length: what the host prepares for the encoder.

    rows    numbers of the rows of each chunk
    pieces  their tokens
    sizes   how many are computed, padding included
    """

    rows: list[Tensor]
    pieces: list[Tokens]
    sizes: list[int]

    @property
    def padded(self) -> int:
        """The tokens of all chunks that are computed, padding included."""
        return sum(self.sizes)

    def count_kept(self, limit: int) -> int:
        """How many of the first chunks have at most `limit` tokens together, padding included; an only one always."""
        return 1 if len(self.sizes) == 1 else sum(total <= limit for total in itertools.accumulate(self.sizes))

    @classmethod
    def of(cls, encoder: Encoder, tokens: Tokens, limits: StepLimits) -> Chunks:
        """The chunks of a batch, made in the thread of the caller; one chunk if the encoder does not pad."""
        rows = [torch.arange(len(tokens))]
        if encoder.pads and len(tokens):
            chunks = pack(tokens.lengths, limits.chunk_tokens, padding=limits.padding)
            rows = [torch.from_numpy(chunk) for chunk in chunks] if len(chunks) > 1 else rows
        pieces = [tokens.select(chunk) for chunk in rows] if len(rows) > 1 else [tokens]
        sizes = [
            len(piece) * int(piece.lengths.max(initial=0)) if encoder.pads else int(piece.lengths.sum())
            for piece in pieces
        ]
        return cls(rows, [encoder.prepared(piece) if len(piece) else piece for piece in pieces], sizes)


class Embedded:
    """The vectors of a batch, and backpropagation of their gradient into the encoder.

    vectors  (N, D) in the order of the batch, without a graph

    The chunks that keep their graph come first, also in `push`, which frees them before it makes the first other graph.
    """

    def __init__(self, encoder: Encoder, chunks: Chunks, limits: StepLimits) -> None:
        self.encoder, self.limits = encoder, limits
        self.chunks, self.pieces = chunks.rows, chunks.pieces
        graph_chunks = chunks.count_kept(limits.graph_tokens)
        self.states: list[dict[str, Tensor] | None] = []  # of the random generators, for the same dropout again
        self.parts: list[Tensor] = []
        with limits.autocast(encoder):
            for place, (piece, rows) in enumerate(zip(self.pieces, self.chunks, strict=True)):
                self.states.append(None if place < graph_chunks else devices.random_state(encoder.device))
                with torch.set_grad_enabled(place < graph_chunks):
                    self.parts.append(_embed(encoder, piece)[: len(rows)])
        self.vectors = torch.cat([part.detach() for part in self.parts])
        if len(self.parts) > 1:
            self.order = send(torch.cat(self.chunks), encoder.device)
            self.vectors = torch.empty_like(self.vectors).index_copy_(0, self.order, self.vectors)

    def push(self, grad: Tensor, last_chunk: AbstractContextManager[None] | None = None) -> None:
        """Add the share of every row of `grad` (N, D) to the gradients of the encoder's parameters.

        last_chunk  entered for the last one, which completes them
        """
        grad = grad[self.order] if len(self.chunks) > 1 else grad
        grads = torch.split(grad, [len(rows) for rows in self.chunks])
        with self.limits.autocast(self.encoder):
            both = zip(self.pieces, grads, self.states, self.parts, strict=True)
            for later, (piece, gradient, state, part) in zip(reversed(range(len(self.pieces))), both, strict=True):
                if state is not None:
                    with devices.same_randomness_after(self.encoder.device):
                        devices.set_random_state(state, self.encoder.device)
                        part = _embed(self.encoder, piece)[: len(gradient)]
                if part.requires_grad:
                    with nullcontext() if later or last_chunk is None else last_chunk:
                        torch.autograd.backward(part, gradient)


class OneRank:
    """What a rank does with the others in a step, where there are no others.

    `Ranks` in ranks.py is for several, `DividedRanks` in sharding.py for several that divide the weights.
    """

    number = 0

    def __init__(self, encoder: nn.Module) -> None:
        self.encoder = encoder

    def align(self, chunks: Chunks, limits: StepLimits) -> tuple[Chunks, StepLimits]:
        """The chunks of a batch and their limits, as all ranks can compute them together."""
        return chunks, limits

    def gather(self, batch: Batch, vectors: Tensor, *counts: int) -> tuple[Batch, Tensor, list[tuple[int, ...]]]:
        """The columns of the global batch, its vectors without gradient, and the `counts` of each rank."""
        return batch, vectors, [counts]

    def last_pass(self) -> AbstractContextManager[None]:
        """The context of the last backward pass of the step, which completes the gradients of the encoder."""
        return nullcontext()

    def sum_gradients(self) -> None:
        """Make the gradients of the encoder the sums over all ranks."""

    def average_gradients(self, objective: nn.Module) -> None:
        """Make the gradients of an objective's own parameters the means over all ranks, each of which has all."""

    def measure(self, parameters: Iterable[nn.Parameter]) -> tuple[list[Tensor], Tensor]:
        """The gradients, of row-sparse ones the values of their rows, and their norm as one vector, on the device."""
        grads = []
        for parameter in parameters:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()  # a row once, or its parts would be scaled and squared apart
                grads.append(parameter.grad.values())
            elif parameter.grad is not None:
                grads.append(parameter.grad)
        return grads, joint_norm(grads)


def joint_norm(tensors: Sequence[Tensor]) -> Tensor:
    """The norm of tensors as one vector, on their device; of none, zero. One operation, where torch has many."""
    if not tensors:
        return torch.zeros(())
    total: Tensor = torch.linalg.vector_norm(torch.stack([*torch._foreach_norm(list(tensors))]).float())
    return total


def backward(
    encoder: Encoder,
    objective: Objective,
    batch: Batch,
    limits: StepLimits,
    *,
    chunks: Chunks | None = None,
    share: float = 1.0,
    rank: OneRank | None = None,
    last_chunk: AbstractContextManager[None] | None = None,
) -> StepReport:
    """Add `share` of the gradient of the objective over the global batch to the parameters of encoder and objective.

    `batch` holds the rows of this `rank`, and `chunks` its tokens, if they were prepared before. Afterwards the encoder
    holds the gradients of these rows, the sums of which over the ranks are those of the global batch. `last_chunk` is
    entered for the last chunk that is computed. Gradients of the objective's own parameters are whole on every rank.
    """
    rank = rank or OneRank(encoder)
    with torch.no_grad(), limits.autocast(encoder):
        objective.annotate(batch)
    chunks = chunks or Chunks.of(encoder, batch.tokens, limits)
    embedded = Embedded(encoder, chunks, limits)
    counts = len(batch), int(batch.tokens.lengths.sum()), chunks.padded
    everyone, vectors, counts_of_ranks = rank.gather(batch, embedded.vectors, *counts)
    sizes, tokens, padded = zip(*counts_of_ranks, strict=True)
    vectors.requires_grad_()  # (N of all ranks, D)
    losses = objective(vectors, everyone)
    total = torch.stack(list(losses.values())).sum()
    if total.requires_grad:  # fills vectors.grad, and the gradients of the objective's own parameters
        torch.autograd.backward(total * share)
    if vectors.grad is not None:
        first = sum(sizes[: rank.number])
        embedded.push(vectors.grad[first : first + len(batch)], last_chunk)
    return StepReport(
        losses={name: loss.detach() for name, loss in losses.items()}, batch=everyone,
        groups=len(torch.unique(everyone.group)), tokens=sum(tokens), padded=sum(padded),
        negatives=count_negatives(everyone),
    )  # fmt: skip


def merge_reports(reports: Sequence[StepReport]) -> StepReport:
    """Reports of the batches of one step as one: losses and negatives are means, numbers are sums."""
    return StepReport(
        losses={name: torch.stack([report.losses[name] for report in reports]).mean() for name in reports[0].losses},
        batch=reports[-1].batch, groups=sum(report.groups for report in reports),
        tokens=sum(report.tokens for report in reports), padded=sum(report.padded for report in reports),
        negatives=sum(report.negatives for report in reports) / len(reports),
    )  # fmt: skip


def count_negatives(batch: Batch) -> float:
    """Mean number of rows of another meaning, hard negatives included, that the batch holds for a row of slot 0.

    Rows that share its group or its key do not count. It grows with the batch and the number of ranks; an objective may
    use only some of them as candidates (InfoNCE excludes the other anchors).
    """
    anchors = batch.slot == 0
    if not bool(anchors.any()):
        return 0.0
    texts = batch.slot >= 0
    _, inverse, counts = torch.unique(batch.key[texts], return_inverse=True, return_counts=True)
    same_meaning = torch.zeros(len(batch), dtype=torch.long)
    same_meaning[texts] = counts[inverse]
    return float((len(batch) - same_meaning[anchors]).double().mean())


def _embed(encoder: Encoder, piece: Tokens) -> Tensor:
    if not len(piece):
        dtype = torch.promote_types(next(encoder.parameters()).dtype, torch.float32)
        return torch.zeros(0, encoder.dim, dtype=dtype, device=encoder.device)
    vectors: Tensor = encoder(piece)
    return vectors if vectors.dtype == torch.float64 else vectors.float()


class Stream:
    """Batches and the objective that reads them.

    The next batch is made, cut into chunks and padded while the current one is trained on.
    """

    def __init__(self, name: str, batches: Batches, objective: Objective, prepare: Callable[[Batch], Chunks]) -> None:
        self.name, self.batches, self.objective, self.prepare = name, batches, objective, prepare
        self.position = batches.position  # position of the next batch
        self.latest: Batch | None = None
        self._maker = ThreadPoolExecutor(1, thread_name_prefix=f"batches-{name}")
        self._ahead: Future[tuple[Batch, Chunks, Position]] | None = None

    def next(self) -> tuple[Batch, Chunks]:
        """The next batch, and its tokens in chunks."""
        making = self._ahead or self._maker.submit(self._make)
        self.latest, chunks, self.position = making.result()
        self._ahead = self._maker.submit(self._make)
        return self.latest, chunks

    def close(self) -> None:
        """Stop making batches."""
        self._maker.shutdown(cancel_futures=True)

    def _make(self) -> tuple[Batch, Chunks, Position]:
        batch = self.batches.next()
        return batch, self.prepare(batch), self.batches.position


class StepResult:
    """What a step computed. An accelerator may still be at it, behind the host."""

    def __init__(self, reports: dict[str, StepReport], norm: Tensor, *, where: str, lr: float) -> None:
        self.reports, self.where, self.lr = reports, where, lr
        losses = [loss for report in reports.values() for loss in report.losses.values()]
        self.values = devices.fetch(torch.stack([norm, *losses]))  # in one copy

    def read(self) -> tuple[dict[str, StepReport], float]:
        """Wait for the report of each stream and the norm of the gradient.

        Raises CheckpointError, which begins with `where`, for a loss or a gradient that is not finite.
        """
        norm, *losses = self.values().tolist()
        if not all(map(math.isfinite, [norm, *losses])):
            raise CheckpointError(
                f"{self.where}: the loss or its gradient is no longer finite; lower optimizer.lr (now {self.lr:g}) or "
                "raise the temperature; what was saved before is intact"
            )
        values = iter(torch.tensor(losses, dtype=torch.float64))
        return {
            name: replace(report, losses={loss: next(values) for loss in report.losses})
            for name, report in self.reports.items()
        }, norm


def train_step(
    encoder: Encoder,
    streams: Sequence[Stream],
    optimizer: torch.optim.Optimizer,
    limits: StepLimits,
    *,
    lr: float,
    clip: float = 0.0,
    accumulate: int = 1,
    where: str = "step",
    ranks: Callable[[Encoder], OneRank] = OneRank,
) -> StepResult:
    """One update of the weights, with the gradients of all streams.

    lr          learning rate of the step
    clip        maximum norm of the gradient; 0: no clipping
    accumulate  batches of each stream, whose mean gradient is taken
    ranks       what this rank does with the others: OneRank, Ranks or DividedRanks

    An accelerator is not waited for: its weights are updated also if a value is not finite, which `read` of the result
    finds out. On a CPU, CheckpointError is raised before the update.
    """
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad(set_to_none=True)
    reports: dict[str, list[StepReport]] = {stream.name: [] for stream in streams}
    rank = ranks(encoder)
    turns = [*streams] * accumulate
    for turn, stream in enumerate(turns, 1):
        batch, chunks = stream.next()
        chunks, batch_limits = rank.align(chunks, limits)
        report = backward(
            encoder, stream.objective, batch, batch_limits, chunks=chunks, share=1 / accumulate, rank=rank,
            last_chunk=rank.last_pass() if turn == len(turns) else None,  # a sum must not be reduced twice
        )  # fmt: skip
        reports[stream.name].append(report)
    rank.sum_gradients()
    for stream in streams:
        rank.average_gradients(stream.objective)
    grads, norm = rank.measure(weight for group in optimizer.param_groups for weight in group["params"])
    merged = {name: merge_reports(of_stream) for name, of_stream in reports.items()}
    result = StepResult(merged, norm.to(encoder.device), where=where, lr=lr)
    if encoder.device.type == "cpu":
        length = result.read()[1]
        if clip and length > clip:
            torch._foreach_mul_(grads, clip / (length + 1e-6))
    elif clip:
        torch._foreach_mul_(grads, (clip / (norm + 1e-6)).clamp(max=1.0))
    optimizer.step()
    with torch.no_grad():
        for stream in streams:
            stream.objective.after_step(encoder, [report.batch for report in reports[stream.name]])
    return result
