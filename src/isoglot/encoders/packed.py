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
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from isoglot.errors import EncoderError, nearest

FULL, HALF = "float32", "float16"
BITS = {"int8": 8, "int4": 4}
FORMS = (FULL, HALF, *BITS)
ONNX = "onnx"  # weights in the file of onnx_export.py
GROUP = 32  # weights that share a scale: 4.5 or 8.5 bits per weight
WEIGHTS, TOKENIZER = "packed.safetensors", "tokenizer.json.xz"
_PLAIN_WEIGHTS, _PLAIN_TOKENIZER = "model.safetensors", "tokenizer.json"
_SCALES = ".scales"
_CANDIDATES = (1.0, 1.06, 0.97, 0.94, 0.9, 0.86, 0.81, 0.76)  # starting scales, relative to that of the largest value
_TOGETHER = 1 << 21  # values quantised at a time
_LARGEST = 1 << 29  # bytes of a tokenizer.json that are expanded at most


# Tensors


def quantize(values: Tensor, bits: int) -> tuple[Tensor, Tensor, float]:
    """Integers, scales and unit of a matrix (..., D), D padded with zeros to G groups of `GROUP`.

    bits   8: int8 of shape (..., 32 G). 4: uint8 of shape (..., 16 G); byte j of a group has weight j in its low half
           and weight j + 16 in its high half, each plus 8

    Scales are float16 of shape (..., G). Raises ValueError for values that are not finite.
    """
    level = 1 << (bits - 1)
    groups = ceil(values.shape[-1] / GROUP)
    padded = F.pad(values.float(), (0, groups * GROUP - values.shape[-1])).reshape(-1, GROUP)
    largest = float(padded.abs().amax()) if padded.numel() else 0.0
    if largest == float("inf") or largest != largest:
        raise ValueError("weights that are not finite can't be quantised")
    unit = largest / level or 1.0
    integers, scales = fit(padded / unit, level)
    shape = (*values.shape[:-1], groups)
    if bits == 4:
        stored = (integers + 8).view(torch.uint8)
        integers = stored[:, : GROUP // 2] | (stored[:, GROUP // 2 :] << 4)
    width = GROUP if bits == 8 else GROUP // 2
    return integers.reshape(*values.shape[:-1], groups * width), scales.reshape(shape), unit


def fit(groups: Tensor, level: int) -> tuple[Tensor, Tensor]:
    """(N, size) integers in [-level, level) and (N,) float16 scales of N groups with the least squared error found."""
    parts = [_fit(part, level) for part in torch.split(groups, max(1, _TOGETHER // groups.shape[1]))]
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def _fit(groups: Tensor, level: int) -> tuple[Tensor, Tensor]:
    extreme = groups.gather(1, groups.abs().argmax(1, keepdim=True)).squeeze(1)
    least = torch.full((len(groups),), torch.inf)
    best, scales = torch.zeros(groups.shape, dtype=torch.int8), torch.zeros(len(groups), dtype=torch.float16)
    for factor in (level / (level - 1), *_CANDIDATES):  # the first is plain symmetric rounding
        start = extreme * (-factor / level)
        start = torch.where(start == 0, 1.0, start)
        whole = (groups / start[:, None]).round_().clamp_(-level, level - 1)
        product, square = (groups * whole).sum(1), whole.square().sum(1)
        scale = (product / square.clamp(min=1)).half()
        wide = scale.float()
        error = wide * (wide * square - 2 * product)  # |w - dq|^2 without the constant |w|^2
        better = error < least
        least = torch.where(better, error, least)
        scales = torch.where(better, scale, scales)
        best = torch.where(better[:, None], whole.to(torch.int8), best)
    return best, scales


def dequantize(integers: Tensor, scales: Tensor, unit: float, columns: int) -> Tensor:
    """(..., columns) float32 values of what `quantize` returned. Raises ValueError if the shapes don't match."""
    half = GROUP // 2
    wide = integers.dtype == torch.int8
    if integers.shape[:-1] != scales.shape[:-1] or integers.shape[-1] != scales.shape[-1] * (GROUP if wide else half):
        raise ValueError(f"{tuple(integers.shape)} integers and {tuple(scales.shape)} scales do not match")
    if not 0 <= scales.shape[-1] * GROUP - columns < GROUP:
        raise ValueError(f"{scales.shape[-1]} groups of {GROUP} are not {columns} columns")
    values = torch.empty(scales.numel(), GROUP)
    if wide:
        values.copy_(integers.reshape(-1, GROUP))
    else:
        pairs = integers.reshape(-1, half)
        values[:, :half], values[:, half:] = pairs & 15, pairs >> 4
        values -= 8
    values *= (scales.float() * unit).reshape(-1, 1)
    return values.reshape(*scales.shape[:-1], scales.shape[-1] * GROUP)[..., :columns].contiguous()


# Files


def is_packed(folder: Path) -> bool:
    """Whether the weights of a module folder are packed."""
    return (folder / WEIGHTS).is_file()


def check(weights: str, words: str | None = None) -> None:
    """Raise ValueError for a form of weights that does not exist."""
    for form, known in ((weights, (*FORMS, ONNX)), (words or FULL, FORMS)):
        if form not in known:
            raise ValueError(f"weights in {form!r} are not known; {nearest(form, known)}")
    if weights == ONNX and words == HALF:
        raise ValueError("words in float16 can't be written to ONNX; use float32, int8 or int4")


def pack(folder: Path, weights: str, words: str | None = None) -> None:
    """Replace the weights and tokenizers in a model folder and the folders inside it by packed ones.

    weights   form of the matrices of encoders, one of `FORMS`
    words     form of the word tables; None: that of `weights`

    Raises EncoderError for a folder without weights, and for weights that are not finite.
    """
    files = sorted(folder.rglob(_PLAIN_WEIGHTS))
    if not files:
        raise EncoderError(f"{folder}: has no weights to convert")
    for file in files:
        of_encoder = (file.parent / _PLAIN_TOKENIZER).is_file()  # the others are layers after the pooling
        _pack_weights(file, weights if of_encoder else HALF, words or weights)
    for file in sorted(folder.rglob(_PLAIN_TOKENIZER)):
        compress_tokenizer(file)


def compress_tokenizer(file: Path) -> None:
    """Replace tokenizer.json by its compressed form; only the spaces of the JSON are lost."""
    content = json.dumps(json.loads(file.read_bytes()), ensure_ascii=False, separators=(",", ":"))
    (file.parent / TOKENIZER).write_bytes(lzma.compress(content.encode(), preset=6))
    file.unlink()


def _pack_weights(file: Path, weights: str, words: str) -> None:
    from safetensors.torch import load_file, save_file

    tensors, packed, facts = load_file(file), {}, {}
    table = _word_table(tensors)
    for name, values in tensors.items():
        form = words if name == table else weights
        if not values.is_floating_point() or form == FULL:
            packed[name] = values
        elif values.ndim < 2 or form == HALF:
            packed[name] = half if (half := values.half()).isfinite().all() else values
        else:
            try:
                integers, packed[name + _SCALES], unit = quantize(values, BITS[form])
            except ValueError as error:
                raise EncoderError(f"{file}: {name}: {error}") from error
            packed[name] = integers
            facts[name] = {"columns": values.shape[-1], "unit": unit}
    save_file(packed, file.with_name(WEIGHTS), metadata={"format": "pt", "isoglot": json.dumps(facts)})
    file.unlink()


def _word_table(tensors: dict[str, Tensor]) -> str | None:
    """The name of the embedding table with the most rows, which is that of the words."""
    tables = [name for name, values in tensors.items() if "embedding" in name and values.ndim == 2]
    return max(tables, key=lambda name: len(tensors[name]), default=None)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a packed module folder in float32. Raises EncoderError for a damaged file."""
    from safetensors import safe_open

    path = folder / WEIGHTS
    try:
        with safe_open(path, "pt") as file:
            facts = json.loads((file.metadata() or {})["isoglot"])
            return dict(_expanded(file, facts))
    except Exception as error:  # safetensors has exceptions of its own
        raise EncoderError(f"{path}: can't be read: {error}; save or download the model again") from error


def _expanded(file: Any, facts: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    for name in file.keys():  # noqa: SIM118 - not a dict
        if name.endswith(_SCALES) and name.removesuffix(_SCALES) in facts:
            continue
        values = file.get_tensor(name)
        if (fact := facts.get(name)) is not None:
            scales = file.get_tensor(name + _SCALES)
            values = dequantize(values, scales, float(fact["unit"]), int(fact["columns"]))
        yield name, values.float() if values.is_floating_point() else values


@contextmanager
def tokenizer_file(folder: Path) -> Iterator[Path]:
    """The tokenizer.json of a folder; a compressed one is expanded into a temporary file for the block.

    Raises EncoderError for a compressed file that is damaged or expands to more than 512 MiB.
    """
    path = folder / TOKENIZER
    if not path.is_file():
        yield folder / _PLAIN_TOKENIZER
        return
    reader = lzma.LZMADecompressor()
    try:
        content = reader.decompress(path.read_bytes(), _LARGEST)
    except lzma.LZMAError as error:
        raise EncoderError(f"{path}: can't be read: {error}; save or download the model again") from error
    if not reader.eof:
        raise EncoderError(f"{path}: is truncated, or larger than 512 MiB; save or download the model again")
    with tempfile.TemporaryDirectory(prefix="isoglot-") as place:
        expanded = Path(place, _PLAIN_TOKENIZER)
        expanded.write_bytes(content)
        yield expanded
