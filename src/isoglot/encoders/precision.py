"""Number formats to compute in: float32, bfloat16 where the hardware multiplies it, and eight-bit integers on a CPU.

bf16 is autocast: weights stay float32, products are rounded to eight bits of mantissa, sums and norms are not. int8
(see int8.py) rounds the weights of every linear layer and, chunk by chunk, what comes into it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from isoglot.encoders.device import bf16_pays

PRECISIONS = ("fp32", "bf16", "int8", "auto")


def settled(precision: str, device: torch.device) -> str:
    """The precision itself; for `auto`, bf16 where the hardware has it and fp32 elsewhere. Raises ValueError."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    if precision == "int8" and device.type != "cpu":
        raise ValueError(f"precision int8 runs on a CPU and the encoder is on {device}; take bf16 there")
    if precision != "auto":
        return precision
    return "bf16" if bf16_pays(device) else "fp32"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """The context to compute in."""
    if precision == "bf16":
        # Without its cache of weights in bfloat16: all threads share it, and a chunk uses each weight once.
        return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False)
    return nullcontext()
