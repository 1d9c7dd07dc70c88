"""Distributed training: the collective operations of a step; no-ops for a single process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from isoglot.data.batch import Batch, Tokens

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
def first_alone() -> Iterator[None]:
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
    found = [torch.zeros(len(numbers), dtype=torch.long) for _ in range(world())]
    dist.all_gather(found, torch.tensor(numbers), group=patient())
    return [tuple(row.tolist()) for row in found]


def gather(rows: Tensor, sizes: Sequence[int]) -> Tensor:
    """The rows of all ranks, rank by rank, without gradient; `sizes` is how many each has."""
    if world() == 1:
        return rows
    padded = rows.new_zeros((max(sizes), *rows.shape[1:]))
    padded[: len(rows)] = rows
    parts = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(parts, padded, group=patient() if rows.device.type == "cpu" else None)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


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


def gather_batch(batch: Batch, sizes: Sequence[int]) -> Batch:
    """The columns of the global batch. Tokens stay where they are: no objective reads them."""
    if world() == 1:
        return batch
    columns = gather(torch.stack([batch.group, batch.key, batch.slot, batch.lang], dim=1), sizes)
    group, key, slot, lang = columns.unbind(dim=1)
    return Batch(
        Tokens(torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)),
        group,
        key,
        slot,
        lang,
        extras={name: gather(value, sizes) for name, value in sorted(batch.extras.items())},
    )


def sum_gradients(module: nn.Module) -> None:
    """Add up the gradients of all ranks: each holds those of its own rows."""
    if world() == 1:
        return
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    # Whether any rank holds a row-sparse gradient: all ranks must give the same answer.
    flags = torch.tensor([parameter.grad is not None and parameter.grad.is_sparse for parameter in trained]).int()
    dist.all_reduce(flags, dist.ReduceOp.MAX, group=patient())
    dense = []
    for parameter, sparse in zip(trained, flags.tolist(), strict=True):
        if sparse:
            parameter.grad = _sum_sparse(parameter)
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dense.append(parameter.grad)
    _sum_dense(dense)


def average_gradients(module: nn.Module) -> None:
    """Take the mean of the gradients of all ranks, of an objective's own parameters: each rank has all of them.

    They are equal except for rounding, which may differ between devices; without this, the ranks' parameters drift
    apart.
    """
    if world() == 1:
        return
    held = [parameter for parameter in module.parameters() if parameter.grad is not None]  # the same on every rank
    dense = [parameter for parameter in held if not _sparse(parameter)]
    _sum_dense([cast(Tensor, parameter.grad) for parameter in dense])
    for parameter in held:
        grad = _sum_sparse(parameter) if _sparse(parameter) else cast(Tensor, parameter.grad)
        parameter.grad = grad / world()


def _sparse(parameter: Tensor) -> bool:
    return parameter.grad is not None and parameter.grad.is_sparse


def _sum_dense(grads: list[Tensor]) -> None:
    """Add up over the ranks, in place: many small tensors in one message, and all messages on their way at once."""
    buckets: dict[torch.dtype, list[list[Tensor]]] = {}
    for grad in grads:
        own = buckets.setdefault(grad.dtype, [[]])
        if own[-1] and sum(each.numel() for each in own[-1]) + grad.numel() > BUCKET:
            own.append([])
        own[-1].append(grad)
    sent = []
    for bucket in (bucket for own in buckets.values() for bucket in own):
        flat = torch.cat([grad.flatten() for grad in bucket])
        sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))
    for bucket, flat, work in sent:
        work.wait()
        for grad, part in zip(bucket, torch.split(flat, [grad.numel() for grad in bucket]), strict=True):
            grad.copy_(part.view_as(grad))


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
