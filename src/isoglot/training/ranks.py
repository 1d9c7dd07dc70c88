"""Distributed training: the collective operations of a step; no-ops for a single process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from isoglot.core.errors import IsoglotError
from isoglot.data.batch import Batch
from isoglot.data.tokens import Tokens
from isoglot.training.step import OneRank

T = TypeVar("T")
BUCKET = 1 << 23  # maximum numbers summed in one message
PATIENCE = timedelta(days=30)  # timeout of ranks that wait while rank 0 builds a table or evaluates

_waiting: tuple[object, dist.ProcessGroup] | None = None  # the default group, and the one next to it to wait in


@contextmanager
def group(device: torch.device) -> Iterator[None]:
    """Join the process group that torchrun announces in the environment; without torchrun, do nothing.

    The group is left also when the block raises: its threads may abort a process that ends while it holds them.
    """
    joining = "RANK" in os.environ and not dist.is_initialized()
    if joining:
        if device.type != "cpu":
            torch.accelerator.set_device_index(device)
        dist.init_process_group(dist.get_default_backend_for_device(device))
    try:
        yield
    except RuntimeError as error:
        if not joining or not (isinstance(error, dist.DistError) or "gloo" in str(error)):
            raise
        raise IsoglotError(
            f"rank {rank()}: lost its connection to another rank; see its messages for the reason, then repeat the "
            "same command, which resumes from the newest checkpoint"
        ) from error
    finally:
        if joining:
            leave()


def leave() -> None:
    """Leave the process group, and drop the one beside it: the threads of a group end with its last reference."""
    global _waiting
    _waiting = None
    dist.destroy_process_group()


def patient() -> dist.ProcessGroup:
    """A CPU group of all ranks with a timeout of hours, where the default group gives up after minutes.

    Made when it is first needed, by all ranks at once. Values and barriers go through it, tensors of a step do not.
    """
    global _waiting
    everyone = dist.group.WORLD
    if _waiting is None or _waiting[0] is not everyone:
        _waiting = everyone, dist.new_group(backend="gloo", timeout=PATIENCE)
    return _waiting[1]


@contextmanager
def take_turns() -> Iterator[None]:
    """Rank 0 runs the block first, then the others, which find its results in the cache."""
    if rank() > 0:
        wait()
    try:
        yield
    finally:
        if rank() == 0:
            wait()


def rank() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def is_first() -> bool:
    """Whether this is rank 0, which prints; also after the group is left."""
    return os.environ.get("RANK", "0") == "0"


def world() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def exchange(*numbers: int) -> list[tuple[int, ...]]:
    """The numbers of each rank, such as those of its rows and tokens, in one message between the hosts."""
    if world() == 1:
        return [numbers]
    rows = [torch.zeros(len(numbers), dtype=torch.long) for _ in range(world())]
    dist.all_gather(rows, torch.tensor(numbers), group=patient())
    return [tuple(row.tolist()) for row in rows]


def gather(rows: Tensor, sizes: Sequence[int]) -> Tensor:
    """The rows of all ranks, rank by rank, without gradient; `sizes` is how many each has."""
    padded = rows.new_zeros((max(sizes), *rows.shape[1:]))
    padded[: len(rows)] = rows
    parts = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(parts, padded, group=patient() if rows.device.type == "cpu" else None)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


def is_divided(part: object) -> bool:
    """Whether the weights of an encoder, a weight or its gradient are divided among the ranks (sharding.py)."""
    return hasattr(part, "unshard") or hasattr(part, "full_tensor")


def collect(value: Any) -> list[Any]:
    """The value of every rank, on every rank."""
    if world() == 1:
        return [value]
    values: list[Any] = [None] * world()
    dist.all_gather_object(values, value, group=patient())
    return values


def from_first(value: T) -> T:
    """The value of rank 0, on every rank: decisions must be the same everywhere."""
    if world() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0, group=patient())
    return values[0]


def wait() -> None:
    """Return when all ranks have called this, however long it takes."""
    if world() > 1:
        dist.barrier(group=patient())


class Ranks(OneRank):
    """A step of several ranks, each with its own rows: they see the vectors of all, and sum their gradients.

    Dense gradients are sent in buckets of parameters, in reverse order of registration, which is about the order in
    which a backward pass completes them. All ranks send the same buckets in the same order, whatever the number of
    their chunks: a bucket is sent when it and all before it are complete. `last_pass` finds out while the backward pass
    goes on; `sum_gradients` sends the others. The parameters of a module that is marked `sparse`, as `nn.Embedding` is,
    can have row-sparse gradients and are summed after the pass.
    """

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__(encoder)
        self.number = rank()
        self.trained = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
        marked = [part for part in encoder.modules() if getattr(part, "sparse", False)]
        self.tables = {id(parameter) for part in marked for parameter in part.parameters(recurse=False)}
        self.buckets = _buckets([each for each in reversed(self.trained) if id(each) not in self.tables])
        self.sent: list[Callable[[], None]] = []

    def gather(self, batch: Batch, vectors: Tensor, *counts: int) -> tuple[Batch, Tensor, list[tuple[int, ...]]]:
        """The global batch. Tokens stay where they are: no objective reads them."""
        counts_of_ranks = exchange(*counts)
        sizes = [rows for rows, *_ in counts_of_ranks]
        columns = gather(torch.stack([batch.group, batch.key, batch.slot, batch.lang], dim=1), sizes)
        extras = {name: gather(value, sizes) for name, value in sorted(batch.extras.items())}
        group, key, slot, lang = columns.unbind(dim=1)
        return Batch(Tokens.empty(), group, key, slot, lang, extras), gather(vectors, sizes), counts_of_ranks

    @contextmanager
    def last_pass(self) -> Iterator[None]:
        """Send the buckets that the backward pass in the block completes: that of the last chunk of the step."""
        places = {id(parameter): place for place, bucket in enumerate(self.buckets) for parameter in bucket}
        missing = [len(bucket) for bucket in self.buckets]

        def complete(parameter: Tensor) -> None:
            missing[places[id(parameter)]] -= 1
            while len(self.sent) < len(missing) and not missing[len(self.sent)]:
                self.sent.append(_send(self.buckets[len(self.sent)]))

        trained = [parameter for bucket in self.buckets for parameter in bucket]
        hooks = [each.register_post_accumulate_grad_hook(complete) for each in trained]  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def sum_gradients(self) -> None:
        """Make the gradients the sums; None where no rank has one."""
        if not self.trained:
            return
        # 0: none, 1: dense, 2: row-sparse. All ranks must have the same answer.
        kinds = torch.tensor([0 if each.grad is None else 1 + each.grad.is_sparse for each in self.trained])
        asked = dist.all_reduce(kinds, dist.ReduceOp.MAX, group=patient(), async_op=True)
        self.sent += [_send(bucket) for bucket in self.buckets[len(self.sent) :]]
        asked.wait()
        for parameter, kind in zip(self.trained, kinds.tolist(), strict=True):
            if kind == 2:
                parameter.grad = _sum_sparse(parameter)
            elif kind == 1 and id(parameter) in self.tables:
                self.sent.append(_send([parameter]))
        for receive in self.sent:
            receive()
        for parameter, kind in zip(self.trained, kinds.tolist(), strict=True):
            parameter.grad = parameter.grad if kind else None

    def average_gradients(self, objective: nn.Module) -> None:
        """Take the mean of the gradients of all ranks, of an objective's own parameters: each rank has all of them.

        They are equal except for rounding, which may differ between devices; without this, the ranks' parameters drift
        apart.
        """
        Ranks(objective).sum_gradients()
        for parameter in objective.parameters():
            if parameter.grad is not None:
                parameter.grad = parameter.grad / world()


def _buckets(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Parameters in their order, those of a bucket of one type: many small gradients make one message."""
    buckets: list[list[Tensor]] = []
    size = 0
    for parameter in parameters:
        size += parameter.numel()
        if not buckets or size > BUCKET or buckets[-1][0].dtype != parameter.dtype:
            buckets.append([])
            size = parameter.numel()
        buckets[-1].append(parameter)
    return buckets


def _send(bucket: Sequence[Tensor]) -> Callable[[], None]:
    """Begin to add up the gradients of some parameters, zeros for None; call the result to wait for the sums.

    Raises TypeError for a row-sparse gradient.
    """
    for parameter in bucket:
        if parameter.grad is not None and parameter.grad.is_sparse:
            shape = tuple(parameter.shape)
            raise TypeError(f"the gradient of a parameter {shape} is row-sparse; set `sparse = True` in its module")
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    grads = [cast(Tensor, parameter.grad) for parameter in bucket]
    flat = torch.cat([grad.flatten() for grad in grads])
    work = dist.all_reduce(flat, async_op=True)

    def receive() -> None:
        work.wait()
        for grad, part in zip(grads, torch.split(flat, [grad.numel() for grad in grads]), strict=True):
            grad.copy_(part.view_as(grad))

    return receive


def _sum_sparse(parameter: Tensor) -> Tensor:
    """Row-sparse gradients of all ranks end to end; duplicates are added up when they are coalesced."""
    grad = parameter.grad
    if grad is None:
        rows = torch.zeros(0, dtype=torch.long, device=parameter.device)
        values = parameter.new_zeros((0, *parameter.shape[1:]))
    else:
        rows, values = grad._indices()[0], grad._values()
    sizes = [size for (size,) in exchange(len(rows))]
    return torch.sparse_coo_tensor(gather(rows, sizes)[None], gather(values, sizes), parameter.shape)
