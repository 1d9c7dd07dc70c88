"""Several processes as one: what torch.distributed must do for a step, and nothing when there is one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from isoglot.data.batch import Batch, Tokens

T = TypeVar("T")
PATIENCE = timedelta(days=30)  # of ranks that wait while rank 0 builds a table or evaluates alone

_waiting: tuple[object, dist.ProcessGroup] | None = None  # the default group, and the one beside it to wait in


@contextmanager
def group(device: torch.device) -> Iterator[None]:
    """Join the process group that torchrun announces in the environment; without torchrun, do nothing.

    The group is left also when the block raises: its threads may abort a process that ends while it holds them.
    """
    global _waiting
    joining = "RANK" in os.environ and not dist.is_initialized()
    if joining:
        if device.type != "cpu":
            torch.accelerator.set_device_index(device)
        dist.init_process_group(dist.get_default_backend_for_device(device))
    try:
        yield
    finally:
        if joining:
            _waiting = None  # its threads end with the last reference
            dist.destroy_process_group()


def patient() -> dist.ProcessGroup:
    """A group of all ranks, on the CPU, in which one may wait for hours: others give up after minutes.

    Made when it is first needed, by all ranks at once. Values and barriers go through it, tensors of a step do not.
    """
    global _waiting
    everyone = dist.group.WORLD
    if _waiting is None or _waiting[0] is not everyone:
        _waiting = everyone, dist.new_group(backend="gloo", timeout=PATIENCE)
    return _waiting[1]


@contextmanager
def first_alone() -> Iterator[None]:
    """Rank 0 goes first, the others follow when it is done: what it leaves in a cache, they find there."""
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
    """Whether this process is the one that speaks, also after the group is left."""
    return os.environ.get("RANK", "0") == "0"


def world() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def gather(rows: Tensor) -> Tensor:
    """The rows of all ranks, rank by rank, without gradient. Ranks may hold different numbers of rows."""
    if world() == 1:
        return rows
    sizes = counts(len(rows), rows.device)
    padded = rows.new_zeros((max(sizes), *rows.shape[1:]))
    padded[: len(rows)] = rows
    parts = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(parts, padded)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


def counts(own: int, device: torch.device) -> list[int]:
    """A number of each rank, such as that of its rows."""
    if world() == 1:
        return [own]
    found = [torch.zeros(1, dtype=torch.long, device=device) for _ in range(world())]
    dist.all_gather(found, torch.tensor([own], device=device))
    return [int(count) for count in found]


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


def gather_batch(batch: Batch) -> Batch:
    """The columns of the global batch. Tokens stay where they are: no objective reads them."""
    if world() == 1:
        return batch
    device = batch.group.device
    none = Tokens(torch.zeros(0, dtype=torch.long, device=device), torch.zeros(0, dtype=torch.long, device=device))
    return Batch(
        tokens=none,
        group=gather(batch.group),
        key=gather(batch.key),
        slot=gather(batch.slot),
        lang=gather(batch.lang),
        extras={name: gather(value) for name, value in sorted(batch.extras.items())},
    )


def sum_gradients(module: nn.Module) -> None:
    """Add up the gradients of all ranks: each holds those of its own rows."""
    if world() == 1:
        return
    for parameter in module.parameters():
        if not parameter.requires_grad:
            continue
        if _is_sparse(parameter):
            parameter.grad = _sum_sparse(parameter)
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)


def average_gradients(module: nn.Module) -> None:
    """Take the mean of the gradients of all ranks, of an objective's own parameters: each rank has the whole of them.

    They are equal but for rounding, which may differ between devices; without this, the ranks' parameters drift apart.
    """
    if world() == 1:
        return
    for parameter in module.parameters():
        if parameter.grad is None:  # on every rank alike
            continue
        if parameter.grad.is_sparse:
            parameter.grad = _sum_sparse(parameter)
        else:
            dist.all_reduce(parameter.grad)
        parameter.grad = parameter.grad / world()


def _is_sparse(parameter: Tensor) -> bool:
    """Whether any rank holds a row-sparse gradient; all ranks must give the same answer."""
    flag = torch.tensor([float(parameter.grad is not None and parameter.grad.is_sparse)], device=parameter.device)
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag)


def _sum_sparse(parameter: Tensor) -> Tensor:
    """Row-sparse gradients of all ranks end to end; duplicates are added up when they are coalesced."""
    grad = parameter.grad
    if grad is None:
        rows = torch.zeros(0, dtype=torch.long, device=parameter.device)
        values = parameter.new_zeros((0, *parameter.shape[1:]))
    else:
        rows, values = grad._indices()[0], grad._values()
    return torch.sparse_coo_tensor(gather(rows)[None], gather(values), parameter.shape)
