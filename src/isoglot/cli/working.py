"""The folder that a long run works in, so that the same command resumes it after a kill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from isoglot.data.files import check_output, exclusive, own, remove_owned


@contextmanager
def working(
    folder: Path, kind: str, known: str, *, keep: bool, inputs: Sequence[str | Path | None] = ()
) -> Iterator[Path]:
    """The work folder, for one run at a time; when all went well its files go, unless they are to be kept.

    It is made here, and holds only files whose path in it the regular expression `known` matches. Raises `OutputError`
    for any other folder, for one that is or holds an input, and while another run works in it.
    """
    check_output(folder, inputs=inputs, folder=True, whole=True)
    with exclusive(folder):
        own(folder, kind, known)
        done = False
        try:
            yield folder
            done = not keep
        finally:
            if done or not any(path.is_file() and path.name[:1] != "." for path in folder.rglob("*")):
                remove_owned(folder, known)  # also of a run that ended before it kept anything
