"""What this machine has: cores, accelerators, and free memory, with an error for arrays that do not fit."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from isoglot.core import environment
from isoglot.core.plugins import torch_half

MEMORY = Path("/proc/meminfo")
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of a container
_DRIVERS = ("/dev/nvidia0", "/dev/kfd", "/dev/dri", "/dev/dxg")  # of CUDA, ROCm, XPU, and CUDA in WSL

_limits: list[int] = []  # of `limit_cores`, the innermost last


def available_cores() -> int:
    """Cores that this process may use: `OMP_NUM_THREADS` if it is set, else those that the system grants."""
    if _limits:
        return _limits[-1]
    with suppress(ValueError):
        return max(1, int(os.environ.get("OMP_NUM_THREADS", "")))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def limit_cores(count: int) -> Iterator[None]:
    """Compute with at most this many cores inside the block, torch included if it is imported."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    _limits.append(count)
    if torch:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        _limits.pop()
        if torch:
            torch.set_num_threads(before)


def wants_accelerator(device: str) -> bool:
    """Whether a device is an accelerator; for `auto`, whether torch finds one.

    torch is imported only where there is a driver, because that takes longer than all else. Raises EncoderError for a
    device that is not there.
    """
    name = environment.default_device() if device == "auto" else device
    if name == "cpu":
        return False
    if name == "auto":
        is_mac = platform.system() == "Darwin" and platform.machine() == "arm64"
        has_driver = is_mac or any(Path(path).exists() for path in _DRIVERS)
        if not has_driver or importlib.util.find_spec("torch") is None:
            return False
    return bool(str(torch_half("encoders.device").resolve(name)) != "cpu")


def free_bytes(device: Any) -> int | None:
    """Free memory of a device; None where it can't be known.

    Of a CPU what Linux calls available, elsewhere all there is, and never more than a container may use.
    """
    if str(device) != "cpu":
        import torch

        read_free = getattr(torch.get_device_module(device), "mem_get_info", None)
        return None if read_free is None else int(read_free(device)[0])
    if MEMORY.exists():
        facts = dict(line.split(":", 1) for line in MEMORY.read_text(encoding="ascii").splitlines())
        free = int(facts["MemAvailable"].split()[0]) * 1024
    elif hasattr(os, "sysconf"):
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    else:
        return None
    limits = [path.read_text(encoding="ascii").strip() for path in LIMITS if path.is_file()]
    return min([free, *(int(limit) for limit in limits if limit.isdigit())])


def check_memory(need: int, device: Any, what: str) -> None:
    """Raise ValueError for `what` if it takes more than the free memory, before the system kills the process."""
    free = free_bytes(device)
    if free is not None and need > free:
        raise ValueError(f"{what} need {need / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB of memory are free; use fewer")
