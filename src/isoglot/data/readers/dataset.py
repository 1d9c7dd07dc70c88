"""Hugging Face `datasets` objects, recognised by what they can do, so that the library is needed only to load them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from isoglot.data.languages import canonical
from isoglot.data.records import Group
from isoglot.errors import CorpusError

_ROWS = 1000
TRANSLATION = "translation"


def from_dataset(
    dataset: Iterable[Mapping[str, Any]],
    *,
    columns: Mapping[str, str] | None = None,
    hard_negatives: Mapping[str, str] | None = None,
    name: str = "dataset",
) -> Iterator[Group]:
    """One group a row of a `Dataset`, an `IterableDataset`, or any iterable of dicts.

    `columns` and `hard_negatives` map a column to the language of its sentences, as in `{"en": "eng"}`; without
    `columns` the column `translation`, a dict of language and sentence as OPUS sets have it, is read. A null or blank
    sentence is left out; a row without any text is an error. Raises `CorpusError`, beginning with `name` and the
    row's number from 1, also for a column that is missing or holds no strings.
    """
    wanted = {column: canonical(code, file=name) for column, code in (columns or {}).items()}
    hard = {column: canonical(code, file=name) for column, code in (hard_negatives or {}).items()}
    for number, row in enumerate(_rows(dataset), 1):
        try:
            texts = _pick(row, wanted) if wanted else _translations(row)
            negatives = _pick(row, hard)
        except CorpusError as error:
            raise CorpusError(str(error), file=name, line=number) from None
        if not texts:
            raise CorpusError("holds no text in any language; filter such rows out", file=name, line=number)
        yield Group(*_columns(texts), "", *_columns(negatives))


def read_dataset(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    hard_negatives: Mapping[str, str] | None = None,
    split: str | None = None,
) -> Iterator[Group]:
    """The groups of a dataset saved in a folder by `save_to_disk`; needs the `datasets` library.

    `split` names one where the folder holds several. Raises `CorpusError` as `from_dataset`, and where the library,
    the folder or the split is missing.
    """
    try:
        from datasets import load_from_disk
    except ImportError:
        raise CorpusError("needs the library datasets; install isoglot[datasets]", file=path) from None
    try:
        dataset = load_from_disk(str(path))
    except (OSError, ValueError) as error:
        raise CorpusError(f"cannot be read as a saved dataset ({error})", file=path) from error
    if isinstance(dataset, Mapping):
        if split not in dataset:
            raise CorpusError(f"has no split {split!r}; give split= as one of {', '.join(dataset)}", file=path)
        dataset = dataset[split]
    yield from from_dataset(dataset, columns=columns, hard_negatives=hard_negatives, name=str(path))


def _rows(dataset: Any) -> Iterator[Mapping[str, Any]]:
    if not hasattr(dataset, "iter"):
        yield from dataset
        return
    # Row by row, a Dataset decodes each cell on its own; in batches it is many times faster.
    for batch in dataset.iter(_ROWS):
        names = list(batch)
        yield from (dict(zip(names, cells, strict=True)) for cells in zip(*batch.values(), strict=True))


def _pick(row: Mapping[str, Any], wanted: Mapping[str, str]) -> list[tuple[str, str]]:
    if missing := [column for column in wanted if column not in row]:
        raise CorpusError(f"has no column {missing[0]!r}; the columns are {', '.join(map(repr, row))}")
    return [(row[column], code) for column, code in wanted.items() if _is_sentence(row[column], column)]


def _translations(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    cell = row.get(TRANSLATION)
    if not isinstance(cell, Mapping):
        raise CorpusError(
            f"has no column {TRANSLATION!r} of languages and sentences; give columns=, for instance "
            f"{{{next(iter(row), 'text')!r}: 'eng'}}"
        )
    return [(text, canonical(code)) for code, text in cell.items() if _is_sentence(text, code)]


def _is_sentence(value: Any, column: str) -> bool:
    if value is not None and not isinstance(value, str):
        raise CorpusError(f"column {column!r} holds a {type(value).__name__} where a sentence is expected")
    return bool(value and value.strip())


def _columns(pairs: list[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(text for text, _ in pairs), tuple(code for _, code in pairs)
