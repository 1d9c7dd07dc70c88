"""`isoglot plot`: sentences of files as a map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import typer

from isoglot.data.files import check_output, read_lines, without_compression
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.data.readers import read
from isoglot.data.readers.aligned import read_aligned, split_name
from isoglot.encoders import encode, load
from isoglot.errors import EvaluationError
from isoglot.report.plot import LAYOUTS, LIMIT, choose, lay_out, write_map
from isoglot.report.plot.sentences import Chosen, Sentence
from isoglot.report.plot.writing import check_ending

_NOTES = {
    "pca": "PCA of unit vectors",
    "tsne": "t-SNE of unit vectors; it keeps neighbours, so read which points lie together, not distances",
    "umap": "UMAP of unit vectors; it keeps neighbours, so read which points lie together, not distances",
}
_READERS = {".tsv": "tsv", ".jsonl": "jsonl", ".tmx": "tmx"}


@dataclass(frozen=True, slots=True)
class Look:
    """How the map is drawn: its layout, what colours mean, how many sentences, drawn with which seed."""

    layout: str = "tsne"
    color: str = "language"
    labels: Path | None = None
    limit: int = LIMIT
    seed: int = 0
    title: str | None = None


def run(
    model: str,
    files: Sequence[Path],
    output: Path,
    *,
    look: Look,
    languages: Sequence[str] = (),
    parallel: bool = False,
    pooling: str | None = None,
    prompt: str | None = None,
) -> None:
    """Draw the sentences of the files, at most `look.limit` of them, into a picture or an HTML file."""
    check_ending(output)
    check_output(output, inputs=[model, *files, look.labels])
    if look.layout not in LAYOUTS:  # before the model has worked
        raise EvaluationError(f"unknown layout {look.layout!r}; choose one of {', '.join(LAYOUTS)}")
    chosen, names = _chosen(files, look, languages=languages, parallel=parallel)
    sentences = chosen.sentences("label" if names else look.color)
    if names:
        sentences = [replace(sentence, kind=names[int(sentence.kind)]) for sentence in sentences]
    encoder = load(model, pooling=pooling, prompt=prompt)
    vectors = encode(encoder, [sentence.text for sentence in sentences])
    places = lay_out(vectors, look.layout)
    title = look.title or f"Sentences as {Path(model).name} sees them"
    note = f"{chosen.words}. {_NOTES[look.layout]}."
    write_map(output, _with_names(sentences), places, title=title, note=note)
    typer.echo(f"{chosen.words}, {look.layout}: {output}", err=True)


def read_groups(
    files: Sequence[Path], *, languages: Sequence[str] = (), parallel: bool = False, skip_empty: bool = True
) -> Iterator[Group]:
    """The groups of the files, each by the reader for its ending; plain text is a group a line, blank lines left out.

    `parallel`: line i of every file says the same. `languages` are those of plain text files, one for each or one for
    all, instead of those at the end of their names; of the columns of TSV; of the sentences of JSONL that name none.
    Raises `EvaluationError` when they do not fit the files, and `CorpusError`.
    """
    if not parallel:
        for place, file in enumerate(files):
            yield from _read(file, _of(place, files, languages), languages, skip_empty=skip_empty)
        return
    named = [(file, _language(file, _of(place, files, languages), languages)) for place, file in enumerate(files)]
    if len(named) < 2:
        raise EvaluationError("parallel text needs two files or more, one for each language")
    yield from read_aligned(named)


def _chosen(
    files: Sequence[Path], look: Look, *, languages: Sequence[str], parallel: bool
) -> tuple[Chosen, Sequence[str]]:
    """The groups to show and, if there is a file of labels, the labels' names by the numbers in the extra `label`."""
    # Without a line, the labels of those behind it would shift.
    skip = look.labels is None
    groups = read_groups(files, languages=languages, parallel=parallel, skip_empty=skip)
    names: dict[str, int] = {}
    if look.labels is not None:
        groups = _labelled(groups, look.labels, names)
    return choose(groups, limit=look.limit, seed=look.seed), list(names)


def _labelled(groups: Iterable[Group], file: Path, names: dict[str, int]) -> Iterator[Group]:
    """Groups with the number of their label; the names are collected."""
    for place, (group, label) in enumerate(zip_longest(groups, read_lines(file)), 1):
        if label is None or group is None:
            more, fewer = ("sentences", "labels") if label is None else ("labels", "sentences")
            raise EvaluationError(
                f"{file}: there are more {more} than {fewer}, of which there are {place - 1}; "
                "a file of labels has one line for each group of sentences, in their order"
            )
        number = names.setdefault(label[1].strip(), len(names))
        yield replace(group, extras={**group.extras, "label": float(number)})


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


def _with_names(sentences: Sequence[Sentence]) -> list[Sentence]:
    """`und` is not a name that people read."""
    return [replace(one, kind="language unknown") if one.kind == UNKNOWN else one for one in sentences]
