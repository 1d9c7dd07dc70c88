"""Tables of vectors, one row per text: opened without running code, checked, scaled to length one, and written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isoglot.core.errors import CorpusError, naming_extras
from isoglot.data.files import binary_format, first_bytes

TYPES = ("float16", "float32", "float64")

_MAGIC = b"\x93NUMPY"
_SAVE = "save one table of floats, a row for each text, with numpy.save"
_BLOCK = 1 << 22  # values checked per block
_ROWS = 4096  # rows written per block


def not_finite(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers of the rows (N, D) that contain NaN or infinity, ascending."""
    return np.flatnonzero(~np.isfinite(rows).all(axis=1))


def unit(rows: NDArray[Any], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """A copy of rows (N, D) at length one, as `dtype`; a row of zeros is unchanged.

    Raises ValueError, naming the first row, for NaN or infinity.
    """
    table = np.asarray(rows)
    if np.can_cast(dtype, table.dtype) and table.dtype != dtype:  # whose values may leave the range of float32
        table = np.ldexp(table, -np.frexp(np.abs(table).max(axis=1, initial=0))[1][:, None])  # exact, so rounded alike
    table = table.astype(dtype, copy=False)
    # Divided by the largest value first, because squares of very small or very large values leave the range of floats.
    largest = np.maximum(table.max(axis=1, initial=0), -table.min(axis=1, initial=0))[:, None]
    if len(bad := not_finite(largest)):
        raise ValueError(f"row {bad[0]} of the vectors contains NaN or infinity")
    scaled = table / np.where(largest > 0, largest, 1)
    # Summed in float64, so that the sum does not depend on the other rows of the block.
    lengths = np.sqrt(np.einsum("nd,nd->n", scaled, scaled, dtype=np.float64)).astype(scaled.dtype)[:, None]
    scaled /= np.where(lengths > 0, lengths, 1)
    return np.asarray(scaled)


def open_array(path: str | Path) -> NDArray[Any]:
    """The array of a `.npy` file, as a read-only memory map.

    Raises `OSError` for a file that can't be read and `ValueError` for all else: numpy evaluates the header, and of a
    damaged one its parser raises errors of its own, such as `tokenize.TokenError`.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:
        pickled = isinstance(error, ValueError) and "pickle" in str(error)  # numpy's guess at any unknown file
        raise ValueError("not a NumPy array" if pickled else f"not a NumPy array: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ValueError("several arrays in one file")
    return array


def open_table(path: str | Path) -> NDArray[Any]:
    """A table (N, D) in float16, float32 or float64, mapped from a `.npy` file and read-only.

    Raises `CorpusError` for a missing file, another format, a file that is cut short, and a table of another type or
    shape, one without columns included. Pickles are never loaded.
    """
    head = first_bytes(path)
    if not head.startswith(_MAGIC):
        kind, _ = binary_format(head)
        raise CorpusError(f"is {kind + ', ' if kind else ''}not a NumPy table (.npy); {_SAVE}", file=path)
    try:
        table = open_array(path)
    except (OSError, ValueError) as error:
        why = "it contains Python objects" if "object" in str(error) else str(error)
        raise CorpusError(f"is not a NumPy table that can be read ({why}); {_SAVE}", file=path) from None
    if table.dtype.name not in TYPES or table.ndim != 2 or not table.shape[1]:
        raise CorpusError(f"contains {table.dtype} of shape {table.shape}; {_SAVE}", file=path)
    return table


def require_finite(table: NDArray[Any], path: str | Path) -> None:
    """Raise `CorpusError` with the first row, from 0, that contains NaN, infinity or what float32 cannot hold.

    The table is read once, in blocks.
    """
    step = max(1, _BLOCK // table.shape[1])
    for start in range(0, len(table), step):
        with np.errstate(over="ignore"):
            bad = not_finite(np.asarray(table[start : start + step], np.float32))
        if len(bad):
            problem = f"row {start + bad[0]} contains NaN, infinity or a value beyond float32 (rows count from 0)"
            raise CorpusError(f"{problem}; encode it again", file=path)


def write_vectors(stream: IO[bytes], vectors: NDArray[Any], texts: Iterable[str], *, form: str) -> None:
    """Write vectors (N, D) to a binary stream: `npy`, or `jsonl` or `parquet` with the N texts next to them.

    JSON lines have the keys `text` and `vector`, rounded to 8 decimals; Parquet the columns `text` and `vector`, in
    float32. Raises `MissingExtraError` without pyarrow.
    """
    # np.save loses the end of an array without an error where the disk is full, and needs a stream with a position.
    if form == "npy":
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(vectors))
        for start in range(0, len(vectors), _ROWS):
            stream.write(np.ascontiguousarray(vectors[start : start + _ROWS]).tobytes())
    elif form == "jsonl":
        for some, rows in _blocks(texts, vectors):
            for text, row in zip(some, rows.astype("float64").round(8).tolist(), strict=True):
                stream.write(json.dumps({"text": text, "vector": row}, ensure_ascii=False).encode() + b"\n")
    else:
        write_parquet(stream, {"text": "string", "vector": vectors.shape[1]}, _blocks(texts, vectors))


def _blocks(texts: Iterable[str], vectors: NDArray[Any]) -> Iterator[tuple[list[str], NDArray[Any]]]:
    lines = iter(texts)
    for start in range(0, len(vectors), _ROWS):
        yield list(islice(lines, _ROWS)), vectors[start : start + _ROWS]


def write_parquet(
    stream: IO[bytes],
    columns: Mapping[str, str | int],
    blocks: Iterable[Sequence[Any]],
    *,
    metadata: Mapping[str, str] | None = None,
) -> int:
    """Write a Parquet file and return its number of rows.

    columns   name -> a type by its name in pyarrow, such as "string", or the width D of vectors, written in float32
    blocks    the cells of each column, for vectors an array (N, D); a block becomes a row group
    metadata  of the schema

    Raises `MissingExtraError` without pyarrow.
    """
    with naming_extras():
        import pyarrow as pa
        from pyarrow import parquet
    kinds = {
        name: pa.list_(pa.float32(), kind) if isinstance(kind, int) else pa.type_for_alias(kind)
        for name, kind in columns.items()
    }
    schema, rows = pa.schema(list(kinds.items()), metadata=metadata), 0
    with parquet.ParquetWriter(stream, schema) as writer:
        for block in blocks:
            cells = [
                pa.FixedSizeListArray.from_arrays(pa.array(np.asarray(part, np.float32).reshape(-1)), kind)
                if isinstance(kind, int)
                else pa.array([one if one is None or kind != "string" else str(one) for one in part], kinds[name])
                for (name, kind), part in zip(columns.items(), block, strict=True)
            ]
            writer.write_table(pa.table(cells, schema=schema))
            rows += len(block[0])
    return rows
