"""`isoglot report`: write results as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

from isoglot.cli.console import from_stdin, say, to_stdout
from isoglot.cli.options import Output
from isoglot.cli.signatures import split


def report(
    results: list[Path], *, output: Output = Path("page.html"), seen: str = "", title: str | None = None
) -> None:
    """Write results as one self-contained HTML page.

    results  folders of results, or results.json files, - for stdin; the first is the baseline
    output   output HTML file; - for stdout
    seen     languages of the training data, separated by commas
    title    title of the page
    """
    from isoglot.data.files import check_output
    from isoglot.evaluation.scores import files_of, read_results
    from isoglot.report.page import write_page

    with from_stdin(*results) as paths, to_stdout(output, "html") as target:
        check_output(target, inputs=[file for path in paths for file in files_of(path)])
        write_page(target, [read_results(path) for path in paths], seen=split(seen), title=title)
    say(f"wrote {output}")
