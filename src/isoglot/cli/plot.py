"""`isoglot plot`: sentences of files as a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from isoglot.cli.console import say
from isoglot.cli.options import open_encoder
from isoglot.data.files import check_output, read_lines, without_compression
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.data.readers import read
from isoglot.data.readers.aligned import read_aligned, split_name
from isoglot.errors import EvaluationError
from isoglot.report.plot import LIMIT, plot

_READERS = {".tsv": "tsv", ".jsonl": "jsonl", ".tmx": "tmx"}


def run(
    model: str,
    files: Sequence[Path],
    output: Path,
    *,
    layout: str = "tsne",
    color: str = "language",
    labels: Path | None = None,
    limit: int = LIMIT,
    seed: int = 0,
    title: str | None = None,
    languages: Sequence[str] = (),
    parallel: bool = False,
    pooling: str | None = None,
    prompt: str | None = None,
    device: str = "auto",
) -> None:
    """Draw the sentences of the files, at most `limit` of them, into a picture or an HTML file."""
    check_output(output, inputs=[model, *files, labels])
    # Without a line, the labels of those after it would shift.
    groups = read_groups(files, languages=languages, parallel=parallel, skip_empty=labels is None)
    made = plot(
        open_encoder(model, device=device, pooling=pooling, prompt=prompt),
        groups,
        output=output,
        method=layout,
        color=color,
        labels=None if labels is None else (line.strip() for _, line in read_lines(labels)),
        limit=limit,
        seed=seed,
        title=title or f"Sentence map: {model}",
    )
    say(f"{made.note} Wrote {output}")


def read_groups(
    files: Sequence[Path], *, languages: Sequence[str] = (), parallel: bool = False, skip_empty: bool = True
) -> Iterator[Group]:
    """The groups of the files, read by their extensions; plain text is one group per line, without blank lines.

    `parallel`: line i of every file has the same meaning. `languages` are those of plain text files, one for each or
    one for all, instead of those at the end of their names; of the columns of TSV; of JSONL sentences without one.
    Raises `EvaluationError` if they do not match the files, and `CorpusError`.
    """
    if not parallel:
        for place, file in enumerate(files):
            yield from _read(file, _of(place, files, languages), languages, skip_empty=skip_empty)
        return
    named = [(file, _language(file, _of(place, files, languages), languages)) for place, file in enumerate(files)]
    if len(named) < 2:
        raise EvaluationError("parallel text needs two files or more, one for each language")
    yield from read_aligned(named)


def _of(place: int, files: Sequence[Path], languages: Sequence[str]) -> str | None:
    """The language given for a file: the only one, or the one at its place; None if they are not one for each."""
    if len(languages) == 1:
        return languages[0]
    return languages[place] if len(languages) == len(files) else None


def _read(file: Path, language: str | None, languages: Sequence[str], *, skip_empty: bool) -> Iterator[Group]:
    if file.is_dir():
        return read("folder", file, **({"languages": list(languages)} if languages else {}))
    reader = _READERS.get(Path(without_compression(file.name)).suffix, "lines")
    if reader == "tsv" and languages:
        return read("tsv", file, languages=list(languages))
    if reader == "jsonl" and language:
        return read("jsonl", file, language=language)
    if reader == "lines":
        return read("lines", file, language=_language(file, language, languages), skip_empty=skip_empty)
    return read(reader, file)


def _language(file: Path, given: str | None, languages: Sequence[str]) -> str:
    if languages and given is None:
        raise EvaluationError(f"{file}: {len(languages)} languages were given; give one for all files, or one for each")
    code = given or split_name(file.name)[1] or UNKNOWN
    return canonical(code, file=file)
