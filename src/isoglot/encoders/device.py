"""Where to compute, and in which precision."""

from __future__ import annotations

import torch


def default_device() -> torch.device:
    """A GPU if there is one, else the CPU. Under torchrun, the GPU of this process."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def bf16_pays(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 in hardware; elsewhere autocast to it is slower than float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # private, absent in some versions
    return any(getattr(torch.cpu, name, lambda: False)() for name in checks)
