"""`isoglot report`: results as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isoglot.cli.console import say
from isoglot.data.files import check_output
from isoglot.report.page import write_page
from isoglot.report.scores import files_of, read_results


def run(results: Sequence[Path], output: Path, *, seen: Sequence[str], title: str | None) -> None:
    """Write the page; of several results, the first is the base. Without a title, the page has its default one."""
    check_output(output, inputs=[file for path in results for file in files_of(path)])
    write_page(output, [read_results(path) for path in results], seen=seen, title=title)
    say(f"wrote {output}")
