"""A folder that one run works in at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isoglot.errors import IsoglotError


@contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """The folder, made if it is not there, for the length of the block. Raises IsoglotError if another run has it.

    The lock is the system's, so that a run that was killed holds none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # not on Windows
            pass
        except OSError as error:
            raise IsoglotError(f"{folder}: another run works here; wait for it, or name another --work") from error
        yield folder
