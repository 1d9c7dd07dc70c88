"""Natural language inference in one language: triplets as TSV or as SimCSE's quoted CSV, or labelled pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from isoglot.data.formats import table_cells
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.data.readers.labelled import read_labelled
from isoglot.errors import CorpusError

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
    negatives, as in SimCSE's code. Raises `CorpusError` for another number of columns, for a blank premise or
    entailment, and for another `key`.

    With `labelled`: a pair (premise, hypothesis) a row, without a key, with the number `label`, as in `read_labelled`,
    which documents the layouts and `split`. With `mode = "triplets"` these become a pair (premise, entailment) for
    each entailment, keyed as above, with the last contradiction of the premise as hard negative; entailments of a
    premise without a contradiction are left out and counted in `counts["without contradiction"]`. The file is then
    read twice, and one contradiction per premise is in memory.
    """
    code = canonical(language, file=path)
    if key not in ("premise", "none"):
        raise CorpusError(f"key must be premise or none, not {key!r}", file=path)
    if mode not in ("pairs", "triplets"):
        raise CorpusError(f"mode must be pairs or triplets, not {mode!r}", file=path)
    if mode == "triplets" and not labelled:
        raise CorpusError('mode = "triplets" makes triplets of labelled pairs; set labelled = true too', file=path)
    if labelled:
        counted = Counter[str]() if counts is None else counts
        pairs = partial(read_labelled, Path(path), code, split=split)
        if mode == "pairs":
            yield from pairs(counts=counted)
        else:
            yield from _triplets(pairs, counted, keyed=key == "premise")
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
        yield _group(cells, code, cells[0] if key == "premise" else "", path, line)
    if empty:
        raise CorpusError("contains a header and no text below it", file=path)


def _triplets(pairs: Callable[..., Iterator[Group]], counts: Counter[str], *, keyed: bool) -> Iterator[Group]:
    opposite = {pair.texts[0]: pair.texts[1] for pair in pairs(counts=Counter()) if pair.extras["label"] == 2}
    for pair in pairs(counts=counts):
        premise = pair.texts[0]
        if pair.extras["label"] == 0 and premise in opposite:
            yield Group(pair.texts, pair.langs, premise if keyed else "", (opposite[premise],), pair.langs[:1])
        elif pair.extras["label"] == 0:
            counts["without contradiction"] += 1


def _group(cells: list[str], code: str, key: str, path: str | Path, line: int) -> Group:
    for name, cell in zip(("premise", "entailment"), cells, strict=False):
        if not cell.strip():
            raise CorpusError(f"the {name} is empty; remove the row", file=path, line=line)
    contradictions = tuple(cell for cell in cells[2:] if cell.strip())
    return Group((cells[0], cells[1]), (code, code), key, contradictions, (code,) * len(contradictions))
