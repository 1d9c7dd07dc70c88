"""What killed processes and full disks leave: work that ends before any of its changes of the file system."""

import os
import resource
import sys
from contextlib import contextmanager

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "open")


def killed_before(change, work, *, by=None):
    """Whether a process that is killed before its `change`-th change of the file system ended before that.

    `by` is an exception that is raised there instead, as Ctrl-C does.
    """
    if (child := os.fork()) == 0:
        seen = 0

        def count(event, arguments):
            nonlocal seen
            if event in CHANGES and not (event == "open" and not isinstance(arguments[0], str)):
                seen += 1
                if seen == change:
                    if by is not None:
                        raise by
                    os._exit(9)

        sys.addaudithook(count)
        try:
            work()
        except BaseException:
            os._exit(9)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def kill_at_every_change(work, check, *, by=None):
    """Kill the work before each change of the file system; `check` is called after each, and after an unkilled run.

    Returns the number of changes.
    """
    for change in range(1, 200):
        ended = killed_before(change, work, by=by)
        check()
        if ended:
            return change - 1
    raise AssertionError("it never ends")


def tree(folder):
    """The content of all files of a folder, by their paths."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def full_after(size):
    """No file of this process grows above `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
