"""The processes of Ray's workers, for tests that kill them."""

import os
from pathlib import Path


def descendants(title):
    """Processes below this one whose command line begins so."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat, command = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            if command.startswith(title.encode()):
                found.append(int(entry.name))

    def ours(pid):
        while pid > 1:
            if pid == os.getpid():
                return True
            pid = parents.get(pid, 0)
        return False

    return [pid for pid in found if ours(pid)]
