"""Rows of premise, hypothesis and label, in the published layouts of NLI sets.

SentEval   a folder with line-aligned files s1.<split>, s2.<split> and labels.<split>
tables     TSV (quoted CSV if so named) with named columns: MNLI and SNLI as released, GLUE, SICK, AllNLI; or
           without names, premise, hypothesis and label, as XTREME has XNLI
JSON lines SNLI and MNLI as released, or with the names of the Hugging Face sets
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from isoglot.core.errors import CorpusError, shown
from isoglot.data.files import read_lines, stored, without_compression
from isoglot.data.formats import read_records, read_table

COLUMNS = {
    "premise": ("sentence1", "premise", "s1", "sentence_a"),
    "hypothesis": ("sentence2", "hypothesis", "hypo", "s2", "sentence_b"),
    "label": ("gold_label", "label", "entailment_judgment"),
}
CLASSES = {
    **{"entailment": 0, "neutral": 1, "contradiction": 2, "contradictory": 2},  # the last: XNLI-MT-1.0
    **{"0": 0, "1": 1, "2": 2},  # Hugging Face
}
UNDECIDED = ("-", "-1", "")  # no majority among the annotators


def labelled_rows(
    path: Path, split: str = "", *, labels: Path | None = None
) -> Iterator[tuple[int, str, str, int | None]]:
    """Line, premise, hypothesis and label of each row: 0 entailment, 1 neutral, 2 contradiction, None undecided.

    Of a table with a column `split` (AllNLI), only that split is read; of a folder, its files. Rows of two cells take
    their label from the lines of `labels`. Raises `CorpusError` for a layout it does not know and an unknown label.
    """
    for line, premise, hypothesis, text in _cells(path, split, labels):
        label = CLASSES.get(text.strip().lower())
        if label is None and text.strip() not in UNDECIDED:
            problem = f"the label {text!r} is not one of {', '.join(CLASSES)}; correct it"
            raise CorpusError(problem, file=path, line=line)
        yield line, premise, hypothesis, label


def _cells(path: Path, split: str, labels: Path | None) -> Iterator[tuple[int, str, str, str]]:
    if path.is_dir():
        files = [stored(path, name) or path / name for name in (f"s1.{split}", f"s2.{split}", f"labels.{split}")]
        for cells in zip_longest(*map(read_lines, files)):
            if None in cells:
                problem = "has fewer lines than the files next to it; they must be aligned"
                raise CorpusError(problem, file=files[cells.index(None)])
            (line, premise), (_, hypothesis), (_, label) = cells
            yield line, premise, hypothesis, label
    elif without_compression(path.name).endswith((".jsonl", ".json")):
        for line, item in read_records(path):
            values = [item[name] for name in _columns(item, path, line)]
            if any(isinstance(value, dict | list) for value in values):
                raise CorpusError("contains a JSON dict or list for a sentence or a label", file=path, line=line)
            premise, hypothesis, label = ("" if value is None else str(value) for value in values)
            yield line, premise, hypothesis, label
    else:
        yield from _table(path, split, labels)


def _table(path: Path, split: str, labels: Path | None) -> Iterator[tuple[int, str, str, str]]:
    def implied(first: list[str]) -> list[str] | None:
        has_label = len(first) == 3 and (first[2].strip().lower() in CLASSES or first[2].strip() in UNDECIDED)
        names = [*COLUMNS][: 2 if labels else 3]
        return [*COLUMNS] if has_label else names if len(first) == 2 else None

    names, rows = read_table(path, implied=implied)
    if labels and len(names) == 2:
        for row, label in zip_longest(rows, read_lines(labels)):
            if row is None or label is None:
                raise CorpusError(f"does not have as many rows as {labels} has lines; they must be aligned", file=path)
            yield row[0], row[1][0], row[1][1], label[1]
        return
    first, second, third = (names.index(name) for name in _columns(names, path, 1))
    splits = names.index("split") if "split" in names else None
    for line, cells in rows:
        if splits is None or cells[splits] == split:
            yield line, cells[first], cells[second], cells[third]


def _columns(names: Iterable[str], path: Path, line: int) -> list[str]:
    """The names of the columns of premise, hypothesis and label; of several, the first that is listed above."""
    folded = {name.lower(): name for name in names}
    found = []
    for what, possible in COLUMNS.items():
        if not (columns := [folded[name] for name in possible if name in folded]):
            problem = f"no column for the {what} ({', '.join(possible)}) among {shown(', '.join(names))}"
            raise CorpusError(problem, file=path, line=line)
        found.append(columns[0])
    return found
