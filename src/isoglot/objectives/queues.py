"""Queues of vectors: random at first, and refused before they are made if there is no room for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

MEMORY = Path("/proc/meminfo")


def random_queues(encoder: nn.Module, length: int, seed: int) -> Tensor:
    """Two tables (2, length, D) of random unit rows, as wide as the encoder; ValueError if there is no room."""
    weight = next(encoder.parameters())
    kind, width = torch.promote_types(weight.dtype, torch.float32), cast(int, encoder.dim)
    row = 2 * width * kind.itemsize
    free = free_bytes(weight.device)
    if free is not None and row * length > free:
        raise ValueError(
            f"queue: two queues of {length:,} keys of {width} dimensions take {row * length / 1e9:,.1f} GB and "
            f"{free / 1e9:,.1f} GB of memory are free; take less than {free // row:,}"
        )
    queues = torch.empty(2, length, width, dtype=kind).normal_(generator=torch.Generator().manual_seed(seed))
    return queues.div_(torch.linalg.vector_norm(queues, dim=2, keepdim=True))


def free_bytes(device: torch.device) -> int | None:
    """Free memory of a device; of a CPU what Linux calls available, elsewhere all there is; None where nobody says."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if MEMORY.exists():
        known = dict(line.split(":", 1) for line in MEMORY.read_text(encoding="ascii").splitlines())
        return int(known["MemAvailable"].split()[0]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None
