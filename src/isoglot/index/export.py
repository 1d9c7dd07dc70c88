"""An index as one Parquet file, for any vector database: `id`, `text`, `language`, `vector`, in the order of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isoglot.data.files import atomic_write
from isoglot.errors import SearchError
from isoglot.index.index import Index

_ROWS = 4096  # of a row group


def export(index: Index, path: str | Path) -> int:
    """Write the file and give its number of rows; `vector` is a list of D float32, of length one.

    The schema's metadata name the model (`isoglot.model`, `isoglot.identity`). In memory is one row group. Raises
    `SearchError` if pyarrow is not installed; a file that exists is replaced only when the new one is whole.
    """
    arrow, parquet = _arrow()
    vector = arrow.list_(arrow.float32(), index.origin.dim)
    fields = [(name, arrow.string()) for name in ("id", "text", "language")]
    known = {"isoglot.model": index.origin.name, "isoglot.identity": index.origin.identity}
    schema = arrow.schema([*fields, ("vector", vector)], metadata=known)
    with atomic_write(path, binary=True) as stream, parquet.ParquetWriter(stream, schema) as writer:
        for start in range(0, len(index), _ROWS):
            rows = range(start, min(start + _ROWS, len(index)))
            sentences = index.store.by_row(rows)
            values = arrow.array(index.vectors(rows).reshape(-1))
            columns = [[getattr(sentences[row], name) for row in rows] for name in ("id", "text", "language")]
            columns.append(arrow.FixedSizeListArray.from_arrays(values, index.origin.dim))
            writer.write_table(arrow.table(columns, schema=schema))
    return len(index)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise SearchError("Parquet files are written with pyarrow: pip install pyarrow") from error
    return pyarrow, parquet
