"""Natural language inference in one language: triplets as TSV or as SimCSE's quoted CSV, or labelled pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from isoglot.core.errors import CorpusError
from isoglot.data.formats import table_cells
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.data.readers.labelled import labelled_rows

_HEADERS = {
    *(("sent0", "sent1", "hard_neg"), ("sent0", "sent1")),
    *(("premise", "entailment", "contradiction"), ("premise", "entailment")),
    *(("anchor", "positive", "negative"), ("anchor", "positive")),
}


def read_nli(
    path: str | Path,
    *,
    language: str = UNKNOWN,
    labelled: bool = False,
    mode: Literal["pairs", "triplets"] = "pairs",
    split: str = "train",
    key: Literal["premise", "none"] = "premise",
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """A pair (premise, entailment) a row, keyed by the premise, with the contradiction as hard negative.

    Quoted CSV when the name ends in `.csv`, before any compression; else unquoted TSV. Columns in that order, under
    one of the usual headers (`sent0,sent1,hard_neg`; `premise,entailment,contradiction`; `anchor,positive,negative`)
    or none; the contradiction may be blank or missing. With `key = "none"`, rows of one premise are each other's
    negatives, as in SimCSE's code. Raises `CorpusError` for another number of columns, and for a blank premise or
    entailment.

    With `labelled`: a pair (premise, hypothesis) a row, without a key, with the number `label`, as in `labelled_rows`,
    which documents the layouts and `split`; undecided rows are counted in `counts["undecided"]`. With
    `mode = "triplets"` these become a pair (premise, entailment) for each entailment, keyed as above, with the last
    contradiction of the premise as hard negative; entailments of a premise without a contradiction are left out and
    counted in `counts["without contradiction"]`. The file is then read twice, and one contradiction per premise is in
    memory.
    """
    code = canonical(language, file=path)
    if mode == "triplets" and not labelled:
        raise CorpusError('mode = "triplets" makes triplets of labelled pairs; set labelled = true too', file=path)
    if labelled:
        counts = Counter() if counts is None else counts
        yield from _read_labelled(Path(path), code, split, counts, triplets=mode == "triplets", keyed=key == "premise")
        return
    empty = True
    for place, (line, cells) in enumerate(table_cells(path)):
        if place == 0 and tuple(cell.strip().lower() for cell in cells) in _HEADERS:
            continue
        if not 2 <= len(cells) <= 3:
            raise CorpusError(
                f"{len(cells)} columns where premise, entailment and contradiction are expected", file=path, line=line
            )
        empty = False
        _require_text(cells, ("premise", "entailment"), path, line)
        hard = tuple(cell for cell in cells[2:] if cell.strip())
        premise, entailment, *_ = cells
        keyed = premise if key == "premise" else ""
        yield Group((premise, entailment), (code, code), keyed, hard, (code,) * len(hard))
    if empty:
        raise CorpusError("contains a header and no text below it", file=path)


def _read_labelled(
    path: Path, code: str, split: str, counts: Counter[str], *, triplets: bool, keyed: bool
) -> Iterator[Group]:
    opposite = dict[str, str]()
    if triplets:
        opposite = {premise: text for (premise, text), label in _labelled(path, split, Counter()) if label == 2}
    for texts, label in _labelled(path, split, counts):
        if not triplets:
            yield Group(texts, (code, code), extras={"label": label})
        elif label == 0 and texts[0] in opposite:
            yield Group(texts, (code, code), texts[0] if keyed else "", (opposite[texts[0]],), (code,))
        elif label == 0:
            counts["without contradiction"] += 1


def _labelled(path: Path, split: str, counts: Counter[str]) -> Iterator[tuple[tuple[str, str], int]]:
    """Premise and hypothesis with their label; those without a decided label are counted."""
    for line, premise, hypothesis, label in labelled_rows(path, split):
        if label is None:
            counts["undecided"] += 1
            continue
        _require_text((premise, hypothesis), ("premise", "hypothesis"), path, line)
        yield (premise, hypothesis), label


def _require_text(cells: Sequence[str], names: Sequence[str], path: str | Path, line: int) -> None:
    for name, cell in zip(names, cells, strict=False):
        if not cell.strip():
            raise CorpusError(f"the {name} is empty; remove the row", file=path, line=line)
