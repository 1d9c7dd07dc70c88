"""The free memory, and an error for arrays that do not fit before they are allocated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

MEMORY = Path("/proc/meminfo")
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of a container


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
