"""The first calls of a worker process."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import parent_process


def start_worker() -> None:
    """Leave Ctrl-C to the parent, which ends its workers, and end this worker when the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def end_with_parent() -> None:
    """End this worker when its parent dies: a killed parent cannot end its workers, and their queue stays open."""
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
