"""`isoglot wikipedia`: from dumps to entity-linked sentences. Its options, its work folder, and what it shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoglot.data.files import check_output, exclusive, work_folder

if TYPE_CHECKING:
    from rich.progress import TaskID

    from isoglot.wikipedia import Choice, Sources

KNOWN = (  # paths in the work folder
    r"[0-9a-f]{16}/(redirects-\d+\.jsonl|tables\.(sqlite|tmp)|remarks\.txt"
    r"|(entities|articles-\d+)/(\d+\.jsonl|complete))"
)


def wikipedia(
    dumps: Annotated[
        list[str], typer.Argument(metavar="DUMP...", help="MediaWiki XML, plain or compressed; CODE=FILE: of that one.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to make.")],
    wikidata: Annotated[Path | None, typer.Option(help="Wikidata JSON dump: titles and types of entities.")] = None,
    titles: Annotated[Path | None, typer.Option(help="Instead: language, tab, title, tab, id.")] = None,
    types: Annotated[Path | None, typer.Option(help="Types, if not from Wikidata: id, tab, ids of its types.")] = None,
    min_links: Annotated[int, typer.Option(min=0, help="Keep entities linked more often than this.")] = 10,
    count_language: Annotated[
        str | None, typer.Option(help="Count the links of this Wikipedia only, for instance en; default: of all.")
    ] = None,
    all_pages: Annotated[bool, typer.Option("--all-pages", help="Also pages whose own entity was cut.")] = False,
    keep_lonely: Annotated[
        bool, typer.Option("--keep-lonely", help="Also sentences for which no hard negative was found.")
    ] = False,
    candidates: Annotated[int, typer.Option(min=1, help="Entities of one type drawn as hard negatives.")] = 10,
    per_entity: Annotated[int, typer.Option(min=1, help="Most sentences of an entity in a language.")] = 10_000,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Most sentences of a language; default: 1,000,000 of one, 50,000 each of several."),
    ] = None,
    min_length: Annotated[int, typer.Option(min=1, help="Columns of a sentence; wide characters take two.")] = 20,
    max_length: Annotated[int, typer.Option(min=1, help="Columns of a sentence.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Of hard negatives and samples.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    work: Annotated[
        Path | None, typer.Option(help="Folder for what is resumed from, kept; default: OUTPUT.work, removed.")
    ] = None,
) -> None:
    """Make sentences with linked entities from Wikipedia dumps, going on where an earlier run was stopped."""
    from isoglot.wikipedia import Choice, Limits, Sources

    sources = Sources(tuple(dumps), wikidata, titles, types, Limits(min_length, max_length))
    choice = Choice(
        min_links=min_links, count_language=count_language, all_pages=all_pages, keep_lonely=keep_lonely,
        candidates=candidates, share=per_entity, size=sample, seed=seed,
    )  # fmt: skip
    run(sources, output, choice=choice, workers=workers, work=work)


def run(sources: Sources, output: Path, *, choice: Choice, workers: int = 1, work: Path | None = None) -> None:
    """Make the folder and say what is in it. Raises `IsoglotError` for what the user can mend."""
    from isoglot.wikipedia import Listener, build
    from isoglot.wikipedia.sources import check

    dumps = [name if Path(name).exists() else name.partition("=")[2] for name in sources.dumps]
    inputs = [*dumps, sources.wikidata, sources.titles, sources.types]
    whole = Path(os.path.abspath(output))  # "." has no name that could be made longer  # noqa: PTH100
    place = work or whole.with_name(f"{whole.name}.work")
    check_output(output, inputs=inputs, folder=True, whole=True)
    check(sources, output)
    with (
        Passes() as passes,
        exclusive(output),
        work_folder(
            place, "a work folder of wikipedia", KNOWN, keep=work is not None, inputs=[*inputs, output]
        ) as folder,
    ):
        listener = Listener(passes, passes.say)
        report = build(sources, output, work=folder, choice=choice, workers=workers, listener=listener)
        for line in _lines(report):
            passes.say(line)


class Passes:
    """The pass that is running on stderr: a bar on a terminal, a line for each pass elsewhere. Use it with `with`."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        self._console = Console(stderr=True, highlight=False)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            Remaining(),
        )
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._words = ""
        self._task: TaskID | None = None

    def __enter__(self) -> Passes:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, words: str, done: int, total: int) -> None:
        """So much of this pass is done; a total of 0 is not known."""
        if words != self._words:
            if self._task is not None:
                self._bar.remove_task(self._task)
            if not self._console.is_terminal:
                self.say(words)
            self._words, self._task = words, self._bar.add_task(words, total=total or None)
        assert self._task is not None  # there is one for every words
        self._bar.update(self._task, completed=done, total=total or None)

    def say(self, words: str) -> None:
        """Print a line of words."""
        from rich.text import Text

        self._console.print(Text(words), soft_wrap=True)


def _lines(report: dict[str, Any]) -> Iterator[str]:
    for lang, counts in report["instances"].items():
        left_out = ", ".join(f"{count:,} {why}" for why, count in counts.items() if why not in ("eligible", "written"))
        yield f"{lang}: {counts['written']:,} sentences with an entity of {counts.get('eligible', 0):,}; left out: " + (
            left_out or "none"
        )
    yield f"{report['entities written']:,} entities"
