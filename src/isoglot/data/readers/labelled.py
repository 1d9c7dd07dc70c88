"""Pairs with a label: premise, hypothesis and one of three classes, in the published layouts of NLI sets.

SentEval   a folder with line-aligned files s1.<split>, s2.<split> and labels.<split>
tables     TSV (quoted CSV if so named) with named columns: MNLI and SNLI as released, GLUE, SICK, AllNLI; or
           without names, premise, hypothesis and label, as XTREME has XNLI
JSON lines SNLI and MNLI as released, or with the names of the Hugging Face sets
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from isoglot.data.files import json_object, read_lines, without_compression
from isoglot.data.formats import table_cells
from isoglot.data.groups import Group
from isoglot.errors import CorpusError, shown

PREMISE = ("sentence1", "premise", "s1", "sentence_a")
HYPOTHESIS = ("sentence2", "hypothesis", "hypo", "s2", "sentence_b")
LABEL = ("gold_label", "label", "entailment_judgment")
CLASSES = {
    **{"entailment": 0, "neutral": 1, "contradiction": 2, "contradictory": 2},  # the last: XNLI-MT-1.0
    **{"0": 0, "1": 1, "2": 2},  # Hugging Face
}
UNDECIDED = ("-", "-1", "")  # no majority among the annotators


def label_of(text: str) -> int | None:
    """0 entailment, 1 neutral, 2 contradiction, None for anything else."""
    return CLASSES.get(text.strip().lower())


def read_labelled(path: Path, code: str, *, split: str, counts: Counter[str]) -> Iterator[Group]:
    """A pair per row, in the language `code`, with the number `label`: 0 entailment, 1 neutral, 2 contradiction.

    Pairs without a decided label are left out and counted in
    `counts["undecided"]`. Where a table has a column `split` (AllNLI), only that split is read; of a folder, its files.
    Raises `CorpusError` for a layout it does not know, a blank sentence and an unknown label.
    """
    if path.is_dir():
        found: Iterable[tuple[int, Mapping[str, str]]] = _folder(path, split)
    elif without_compression(path.name).endswith((".jsonl", ".json")):
        found = _objects(path)
    else:
        found = table_rows(path, split)
    for line, row in found:
        label = label_of(row["label"])
        if label is None and row["label"].strip() in UNDECIDED:
            counts["undecided"] += 1
            continue
        if label is None:
            problem = f"the label {row['label']!r} is not one of {', '.join(CLASSES)}; correct it"
            raise CorpusError(problem, file=path, line=line)
        for name in ("premise", "hypothesis"):
            if not row[name].strip():
                raise CorpusError(f"the {name} is empty; remove the row", file=path, line=line)
        yield Group((row["premise"], row["hypothesis"]), (code, code), extras={"label": label})


def _folder(root: Path, split: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    files = {name: _plain_or_packed(root / f"{stem}.{split}") for name, stem in _STEMS.items()}
    for cells in zip_longest(*map(read_lines, files.values())):
        if None in cells:
            short = list(files.values())[cells.index(None)]
            raise CorpusError("has fewer lines than the files next to it; they must be aligned", file=short)
        yield cells[0][0], {name: text for name, (_, text) in zip(files, cells, strict=True)}


_STEMS = {"premise": "s1", "hypothesis": "s2", "label": "labels"}


def _plain_or_packed(path: Path) -> Path:
    packed = [
        file for file in sorted(path.parent.glob(f"{path.name}.*")) if without_compression(file.name) == path.name
    ]
    return packed[0] if packed and not path.exists() else path


def _objects(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    for number, text in read_lines(path):
        item = json_object(text, file=path, line=number)
        names = list(item)
        yield number, {name: _text(item[names[at]], path, number) for name, at in _places(names, path, number).items()}


def table_rows(
    path: Path, split: str = "", *, labels: Iterable[tuple[int, str]] | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Premise, hypothesis and label of the rows of a table, with their lines, by its header or in this order.

    Rows of two cells take their label from `labels`. Where the table has a column `split`, only that split is read.
    """
    places: dict[str, int] = {}
    width, splits, apart = 3, -1, iter(labels or ())
    for number, cells in table_cells(path):
        cells = [*cells, *(label for _, label in islice(apart, 1))] if len(cells) == 2 else cells
        if not places:
            names = [cell.strip().lower() for cell in cells]
            if len(cells) == 3 and (label_of(cells[2]) is not None or cells[2].strip() in UNDECIDED):
                places = {"premise": 0, "hypothesis": 1, "label": 2}
            elif len(cells) > 2:
                places, width = _places(names, path, number), len(names)
                splits = names.index("split") if "split" in names else -1
                continue
        if len(cells) != width:
            problem = f"{len(cells)} columns where premise, hypothesis and label are expected, {width} in all"
            raise CorpusError(problem, file=path, line=number)
        if splits < 0 or cells[splits] == split:
            yield number, {name: cells[place] for name, place in places.items()}
    if labels is not None and next(apart, None) is not None:
        raise CorpusError("has fewer rows than its file of labels has lines; they must be aligned", file=path)


def _places(names: Sequence[str], path: Path, line: int) -> dict[str, int]:
    """Where premise, hypothesis and label stand among the names of columns."""
    known = {"premise": PREMISE, "hypothesis": HYPOTHESIS, "label": LABEL}
    places = {}
    for what, possible in known.items():
        found = [place for place, name in enumerate(names) if name.lower() in possible]
        if not found:
            problem = f"no column for the {what} ({', '.join(possible)}) among {shown(', '.join(names))}"
            raise CorpusError(problem, file=path, line=line)
        places[what] = min(found, key=lambda place: possible.index(names[place].lower()))
    return places


def _text(value: Any, path: Path, line: int) -> str:
    if isinstance(value, dict | list):
        problem = f"contains a JSON {type(value).__name__} where a sentence or a label is expected"
        raise CorpusError(problem, file=path, line=line)
    return "" if value is None else str(value)
