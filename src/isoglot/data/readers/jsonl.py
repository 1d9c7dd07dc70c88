"""Records: JSON lines or Parquet, one object or row per group, in one of the shapes that `group_of` knows; and Hugging
Face datasets saved in a folder.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from isoglot.core.errors import CorpusError, naming_extras
from isoglot.data.files import atomic_write
from isoglot.data.formats import input_format, parquet_metadata, read_records
from isoglot.data.groups import Group, group_of, groups_of, roles_in
from isoglot.data.languages import UNKNOWN, OnUnknown, canonical_list, check_id


def read_jsonl(
    path: str | Path,
    *,
    language: str = UNKNOWN,
    on_unknown_language: OnUnknown = "error",
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """One group per line, or row of a file named `.parquet`; `language` is that of sentences that come without one, or
    with commas those of the sentences of a row.

    With `on_unknown_language = "skip"`, sentences in a language that is not known are left out and counted. Raises
    `CorpusError` for a line that is blank, no JSON object, of no known shape, with an unknown language, or with a
    number that is not finite.
    """
    codes = canonical_list(language, file=path)
    if codes == (UNKNOWN,) and input_format(path) == "parquet":  # both sides of mined pairs are in the metadata
        codes = canonical_list(parquet_metadata(path, "isoglot.languages") or UNKNOWN, file=path)
    skipped = (Counter() if counts is None else counts) if on_unknown_language == "skip" else None
    for number, item in read_records(path):
        try:
            group = group_of(item, codes, skipped=skipped)
        except CorpusError as error:
            raise CorpusError(str(error), file=path, line=number) from None
        if number == 1 and not roles_in(item):
            check_id(item, group.texts, file=path, line=number)
        if group.texts:
            yield group


def write_jsonl(path: Path, groups: Iterable[Group]) -> None:
    """Write groups as JSON lines that `read_jsonl` reads back."""
    with atomic_write(path) as stream:
        stream.writelines(map(json_line, groups))


def json_line(group: Group) -> str:
    """The line of a group, with its line end."""
    item: dict[str, Any] = {"texts": group.texts, "langs": group.langs}
    item |= {"key": group.key} if group.key else {}
    hard = {"hard_negatives": group.hard_negatives, "hard_langs": group.hard_langs}
    item |= hard if group.hard_negatives else {}
    item |= {"extras": dict(group.extras)} if group.extras else {}
    return json.dumps(item, ensure_ascii=False) + "\n"


def read_dataset(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    hard_negatives: Mapping[str, str] | None = None,
    split: str | None = None,
    on_unknown_language: OnUnknown = "error",
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """The groups of a dataset saved in a folder by `save_to_disk`; needs the `datasets` library.

    `columns` and `hard_negatives` map a column to the language of its sentences, as in `{"en": "eng"}`; without
    `columns` the names of the columns define their meaning, as for `groups_of`. A null or blank sentence is left out.
    `split` names one where the folder contains several. With `on_unknown_language = "skip"`, sentences in a language
    that is not known are left out and counted. Raises `CorpusError` for a row without any text, a column that is
    missing or contains no strings, and where the library, the folder or the split is missing.
    """
    with naming_extras():
        from datasets import load_from_disk
    try:
        dataset = load_from_disk(str(path))
    except (OSError, ValueError) as error:
        raise CorpusError(f"cannot be read as a saved dataset ({error})", file=path) from error
    if isinstance(dataset, Mapping):
        if split not in dataset:
            raise CorpusError(f"has no split {split!r}; pass split= as one of {', '.join(dataset)}", file=path)
        dataset = dataset[split]
    skipped = (Counter() if counts is None else counts) if on_unknown_language == "skip" else None
    try:
        yield from groups_of(dataset, columns, hard_negatives=hard_negatives, skipped=skipped)
    except (CorpusError, TypeError) as error:
        raise CorpusError(str(error), file=path) from None
