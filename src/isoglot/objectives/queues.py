"""Queues of vectors, initialized at random; memory is checked before they are allocated."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from isoglot.core.memory import check_memory


def random_queues(encoder: nn.Module, length: int, seed: int) -> Tensor:
    """Two tables (2, length, D) of random unit rows, D that of the encoder; ValueError if memory is insufficient."""
    weight = next(encoder.parameters())
    kind, width = torch.promote_types(weight.dtype, torch.float32), cast(int, encoder.dim)
    check_memory(
        2 * width * kind.itemsize * length, weight.device, f"queue: two queues of {length:,} x {width} numbers"
    )
    queues = torch.empty(2, length, width, dtype=kind).normal_(generator=torch.Generator().manual_seed(seed))
    return queues.div_(torch.linalg.vector_norm(queues, dim=2, keepdim=True))
