"""Compact model folders: weights in int8, int4 or float16, and a compressed tokenizer.

A packed folder is an ordinary model folder in which `model.safetensors` is replaced by `packed.safetensors`, and
`tokenizer.json` by `tokenizer.json.xz`. Opening one expands the weights to float32 in memory and writes nothing, so a
packed model computes exactly as a float32 model with rounded weights. sentence-transformers needs the expanded folder,
which `isoglot.load(folder).save(other)` writes.

Quantisation is symmetric, without a zero point. A matrix is cut along its rows into groups, each with a float16 scale d
and integers q in [-L, L), L = 8 or 128: w = unit d q, with one float32 `unit` per matrix that keeps small scales out of
float16's subnormal range. For each group the scale with the least squared error is chosen among `_CANDIDATES` starting
points, each refined by least squares: for given q, d = <w, q> / <q, q>. The value of largest magnitude starts at -L,
the longer end of the range. Vectors (biases, layer norms) and the layers after the pooling stay float16.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EncoderError
from isoglot.model.configs import reading

Array = NDArray[Any]

GROUP = 32  # weights that share a scale: 4.5 or 8.5 bits per weight
WEIGHTS, TOKENIZER = "packed.safetensors", "tokenizer.json.xz"
SCALES = ".scales"
PLAIN_WEIGHTS, PLAIN_TOKENIZER = "model.safetensors", "tokenizer.json"  # in a folder that is not packed
_LARGEST = 1 << 29  # bytes of a tokenizer.json that are expanded at most


# Tensors


def dequantize(integers: Array, scales: Array, unit: float, columns: int) -> NDArray[np.float32]:
    """(..., columns) values of what `packing.quantize` returned. Raises ValueError if the shapes don't match."""
    half = GROUP // 2
    wide = integers.dtype == np.int8
    if integers.shape[:-1] != scales.shape[:-1] or integers.shape[-1] != scales.shape[-1] * (GROUP if wide else half):
        raise ValueError(f"{integers.shape} integers and {scales.shape} scales do not match")
    if not 0 <= scales.shape[-1] * GROUP - columns < GROUP:
        raise ValueError(f"{scales.shape[-1]} groups of {GROUP} are not {columns} columns")
    values = np.empty((scales.size, GROUP), np.float32)
    if wide:
        values[:] = integers.reshape(-1, GROUP)
    else:
        pairs = integers.reshape(-1, half)
        values[:, :half], values[:, half:] = pairs & 15, pairs >> 4
        values -= 8
    values *= (scales.astype(np.float32) * np.float32(unit)).reshape(-1, 1)
    return np.ascontiguousarray(values.reshape(*scales.shape[:-1], scales.shape[-1] * GROUP)[..., :columns])


# Files


def is_packed(folder: Path) -> bool:
    """Whether the weights of a module folder are packed."""
    return (folder / WEIGHTS).is_file()


def read_weights(folder: Path) -> dict[str, Array]:
    """The weights of a module folder, packed ones in float32. Raises EncoderError for a damaged file."""
    from safetensors import safe_open
    from safetensors.numpy import load_file

    if not is_packed(folder):
        with reading(folder / PLAIN_WEIGHTS):  # also for bfloat16, which NumPy does not have
            return load_file(folder / PLAIN_WEIGHTS)
    with reading(folder / WEIGHTS), safe_open(folder / WEIGHTS, "np") as file:
        facts = json.loads((file.metadata() or {})["isoglot"])
        return dict(_expand_tensors(file, facts))


def _expand_tensors(file: Any, facts: dict[str, Any]) -> Iterator[tuple[str, Array]]:
    for name in file.keys():  # noqa: SIM118 - not a dict
        if name.endswith(SCALES) and name.removesuffix(SCALES) in facts:
            continue
        values = file.get_tensor(name)
        if (fact := facts.get(name)) is not None:
            values = dequantize(values, file.get_tensor(name + SCALES), float(fact["unit"]), int(fact["columns"]))
        yield name, values.astype(np.float32, copy=False) if values.dtype.kind == "f" else values


def read_tokenizer_file(folder: Path) -> bytes:
    """The tokenizer.json of a folder, expanded if it is compressed.

    Raises EncoderError if it is missing, and for a compressed file that is damaged or expands to more than 512 MiB.
    """
    path = folder / TOKENIZER
    if not path.is_file():
        with reading(f"{folder}: the tokenizer"):
            return (folder / PLAIN_TOKENIZER).read_bytes()
    reader = lzma.LZMADecompressor()
    with reading(path):
        content = reader.decompress(path.read_bytes(), _LARGEST)
    if not reader.eof or reader.unused_data:
        raise EncoderError(f"{path}: is damaged at its end, or larger than 512 MiB; save or download the model again")
    return content


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder. Raises EncoderError if it is missing or damaged."""
    from tokenizers import Tokenizer

    content = read_tokenizer_file(folder)
    with reading(f"{folder}: the tokenizer"):
        return Tokenizer.from_buffer(content)


def read_description(folder: Path) -> dict[str, Any]:
    """What tokenizer.json of a folder says. Raises EncoderError if it is missing or damaged."""
    content = read_tokenizer_file(folder)
    with reading(f"{folder}: the tokenizer"):
        return dict(json.loads(content))
