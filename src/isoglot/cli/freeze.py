"""`isoglot freeze`: a run or sweep as a small folder or archive with which others repeat it."""

from __future__ import annotations

from pathlib import Path

from isoglot.cli.console import say
from isoglot.cli.options import Output


def freeze(run: Path, *, output: Output) -> None:
    """Freeze a finished run or sweep, so that others can repeat it and compare the results.

    run     folder of `isoglot train` or `isoglot sweep`
    output  a new folder, or an archive whose name ends in .zip
    """
    from isoglot.training.freeze import freeze

    freeze(run, output)
    say(f"wrote {output}; repeat.sh in it repeats {run}")
