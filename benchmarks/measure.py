"""Measures time and memory of the calling process, and runs scripts in new processes.

What one library leaves behind (imported modules, grown heaps, warm caches) must not count for the other, so every run
is a fresh process, and competing runs alternate: other work on the machine then affects all of them equally. Processor
seconds (user and system, all threads) depend less on other work on the machine than wall-clock time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

STATUS = Path("/proc/self/status")


class Moment(NamedTuple):
    """Wall-clock seconds and processor seconds, both since a fixed moment."""

    wall: float
    cpu: float

    def since(self, other: Moment) -> Moment:
        """The differences from another moment."""
        return Moment(self.wall - other.wall, self.cpu - other.cpu)


def now() -> Moment:
    """The present moment of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Moment(time.perf_counter(), used.ru_utime + used.ru_stime)


def memory(*, peak: bool = False) -> float:
    """Resident memory of this process in MB (10^6 bytes), now or at its peak; where Linux is not, always the peak.

    Linux is asked for the peak of the program itself: `ru_maxrss` also counts what ran in the process before `exec`.
    """
    if STATUS.exists():
        name = "VmHWM:" if peak else "VmRSS:"
        line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def fresh(
    script: Path,
    arguments: Sequence[str],
    *,
    result: Path,
    environment: Mapping[str, str],
    python: str = sys.executable,
) -> dict[str, Any]:
    """Run a script in a new process and read the JSON file that it writes; if it fails, show its words and exit."""
    command = [python, str(script), *arguments]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    values: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return values


def keep(options: argparse.Namespace, sides: Mapping[str, Any], runs: Mapping[str, Any]) -> None:
    """Write the settings, the summary and every run to `options.output`, a JSON file, if there is one."""
    if options.output:
        setting = {name: value for name, value in vars(options).items() if name not in ("output", "one")}
        text = json.dumps({"options": setting, "sides": sides, "runs": runs}, indent=1)
        options.output.write_text(text + "\n", encoding="utf-8")
