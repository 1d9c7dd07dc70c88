"""The first call of a worker process."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import parent_process


def start_worker() -> None:
    """Leave Ctrl-C to the parent, which ends its workers, and end this worker when the parent dies.

    A killed parent cannot end its workers, and their queue stays open.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
