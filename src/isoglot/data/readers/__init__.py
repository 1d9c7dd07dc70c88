"""Readers: turn files of several formats into streams of `Group`s.

One file per format; each reader is a generator `read_x(path, *, options)` that keeps one block of text in memory and
raises `CorpusError` with file and line for input it cannot use. A blank sentence is an error where it would silently
shift or shrink the data; `skip_empty=True` leaves it out and counts it. To add a format, write such a function and
enter it in `READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from glob import escape
from pathlib import Path
from typing import Any

from isoglot.core.errors import CorpusError
from isoglot.core.plugins import Registry
from isoglot.data.formats import DOCUMENTS, TABLES, input_format
from isoglot.data.groups import Group, groups_of
from isoglot.data.readers.aligned import read_folder, read_moses, read_sentences
from isoglot.data.readers.entities import read_entities
from isoglot.data.readers.jsonl import read_dataset, read_jsonl
from isoglot.data.readers.nli import read_nli, read_xnli
from isoglot.data.readers.translations import read_po, read_tmx, read_xliff
from isoglot.data.readers.tsv import read_tsv

__all__ = ["READERS", "Reader", "files_of", "match_pattern", "read", "read_tsv", "reader_of"]

Reader = Callable[..., Iterator[Group]]

_OWN: dict[str, Reader] = {
    **dict.fromkeys(TABLES, read_tsv),
    **{"moses": read_moses, "folder": read_folder, "jsonl": read_jsonl, "parquet": read_jsonl},
    **{"tmx": read_tmx, "po": read_po, "xliff": read_xliff, "nli": read_nli, "xnli": read_xnli},
    **dict.fromkeys(("lines", *DOCUMENTS), read_sentences),
    **{"entities": read_entities, "dataset": read_dataset},
}
READERS: Registry[Reader] = Registry("isoglot.readers", _OWN, kind="a function", is_valid=callable, handed=("counts",))


def read(reader: str, path: str | Path, **options: Any) -> Iterator[Group]:
    """The groups of `path`, read by the reader of that name in `READERS`.

    Raises `RecipeError` at once for an unknown reader or a wrong option, and `CorpusError` while reading.
    """
    READERS.check(reader, {name: value for name, value in options.items() if name != "counts"})
    groups = READERS[reader](path, **options)
    return groups if READERS[reader] is _OWN.get(reader) else groups_of(groups)  # a plug-in may have any codes


def reader_of(path: Path, *, default: str) -> str:
    """The reader of a folder, or by the suffix of a name, compressed or not; the default for any other suffix."""
    return "folder" if path.is_dir() else input_format(path, default)


def files_of(path: str | Path) -> list[Path]:
    """The files that a path given to a reader stands for, sorted: itself, all of a folder, all that it begins.

    Raises `CorpusError` when there are none.
    """
    root = Path(path)
    if root.is_file():
        return [root]
    paths = root.rglob("*") if root.is_dir() else root.parent.glob(f"{escape(root.name)}.*")
    if not (files := sorted(file for file in paths if file.is_file())):
        raise CorpusError("no such file; check the name", file=root)
    return files


def match_pattern(path: Path) -> list[Path]:
    """The files and folders that match a path with `*`, `?` or `[`, sorted; of a name, which may have these, itself.

    Raises `CorpusError` when there are none.
    """
    if path.exists() or not any(mark in str(path) for mark in "*?["):
        return [path]
    anchor = Path(path.anchor)
    if not (paths := sorted(anchor.glob(str(path.relative_to(anchor))))):
        raise CorpusError("no file has a name like this", file=path)
    return paths
