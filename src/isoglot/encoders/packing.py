"""Writes packed model folders: weights in int8, int4 or float16, and a compressed tokenizer (see `model/packed.py`)."""

from __future__ import annotations

import json
import lzma
import math
from math import ceil
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from isoglot.core.errors import EncoderError
from isoglot.model.packed import GROUP, PLAIN_TOKENIZER, PLAIN_WEIGHTS, SCALES, TOKENIZER, WEIGHTS

FULL, HALF = "float32", "float16"
BITS = {"int8": 8, "int4": 4}
_CANDIDATES = (1.0, 1.06, 0.97, 0.94, 0.9, 0.86, 0.81, 0.76)  # starting scales, relative to that of the largest value
_TOGETHER = 1 << 21  # values quantised at a time


def quantize(values: Tensor, bits: int) -> tuple[Tensor, Tensor, float]:
    """Integers, scales and unit of a matrix (..., D), D padded with zeros to G groups of `GROUP`.

    bits   8: int8 of shape (..., 32 G). 4: uint8 of shape (..., 16 G); byte j of a group has weight j in its low half
           and weight j + 16 in its high half, each plus 8

    Scales are float16 of shape (..., G). Raises EncoderError for values that are not finite.
    """
    shape = (*values.shape[:-1], ceil(values.shape[-1] / GROUP))
    integers, scales, unit = fit_blocks(values.float().reshape(-1, values.shape[-1]), GROUP, 1 << (bits - 1))
    if bits == 4:
        stored = (integers + 8).view(torch.uint8)
        integers = stored[..., : GROUP // 2] | (stored[..., GROUP // 2 :] << 4)
    return integers.reshape(*shape[:-1], shape[-1] * integers.shape[-1]), scales.reshape(shape), unit


def fit_blocks(values: Tensor, block: int, level: int, *, power_of_two: bool = False) -> tuple[Tensor, Tensor, float]:
    """Integers (N, blocks, `block`) in [-level, level) and float16 scales (N, blocks) of a matrix (N, D), and the unit
    of the scales, which keeps small ones out of float16's subnormal range; a power of two rounds no scale.

    Raises EncoderError for values that are not finite.
    """
    rows, blocks = len(values), ceil(values.shape[1] / block)
    largest = float(values.abs().max()) if values.numel() else 0.0
    if not math.isfinite(largest):
        raise EncoderError("weights that are not finite can't be rounded; save or download the model again")
    unit = largest / level or 1.0
    unit = 2.0 ** math.floor(math.log2(unit)) if power_of_two else unit
    padded = F.pad(values, (0, blocks * block - values.shape[1])).reshape(-1, block)
    integers, scales = fit(padded / unit, level)
    return integers.reshape(rows, blocks, block), scales.reshape(rows, blocks), unit


def fit(groups: Tensor, level: int) -> tuple[Tensor, Tensor]:
    """(N, size) integers in [-level, level) and (N,) float16 scales of N groups with the least squared error found."""
    parts = [_fit(part, level) for part in torch.split(groups, max(1, _TOGETHER // groups.shape[1]))]
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def _fit(groups: Tensor, level: int) -> tuple[Tensor, Tensor]:
    extreme = groups.gather(1, groups.abs().argmax(1, keepdim=True)).squeeze(1)
    smallest = torch.full((len(groups),), torch.inf)
    best, scales = torch.zeros(groups.shape, dtype=torch.int8), torch.zeros(len(groups), dtype=torch.float16)
    for factor in (level / (level - 1), *_CANDIDATES):  # the first is plain symmetric rounding
        start = extreme * (-factor / level)
        start = torch.where(start == 0, 1.0, start)
        whole = (groups / start[:, None]).round_().clamp_(-level, level - 1)
        product, square = (groups * whole).sum(1), whole.square().sum(1)
        scale = (product / square.clamp(min=1)).half()
        wide = scale.float()
        error = wide * (wide * square - 2 * product)  # |w - dq|^2 without the constant |w|^2
        better = error < smallest
        smallest = torch.where(better, error, smallest)
        scales = torch.where(better, scale, scales)
        best = torch.where(better[:, None], whole.to(torch.int8), best)
    return best, scales


def pack(folder: Path, weights: str, words: str | None = None) -> None:
    """Replace the weights and tokenizers in a model folder and the folders inside it by packed ones.

    weights   form of the matrices of encoders: float32, float16, int8 or int4
    words     form of the word tables; None: that of `weights`

    Raises EncoderError for a folder without weights, and for weights that are not finite.
    """
    files = sorted(folder.rglob(PLAIN_WEIGHTS))
    if not files:
        raise EncoderError(f"{folder}: has no weights to convert")
    for file in files:
        of_encoder = (file.parent / PLAIN_TOKENIZER).is_file()  # the others are layers after the pooling
        _pack_weights(file, weights if of_encoder else HALF, words or weights)
    for file in sorted(folder.rglob(PLAIN_TOKENIZER)):
        compress_tokenizer(file)


def compress_tokenizer(file: Path) -> None:
    """Replace tokenizer.json by its compressed form; only the spaces of the JSON are lost."""
    content = json.dumps(json.loads(file.read_bytes()), ensure_ascii=False, separators=(",", ":"))
    (file.parent / TOKENIZER).write_bytes(lzma.compress(content.encode(), preset=6))
    file.unlink()


def _pack_weights(file: Path, weights: str, words: str) -> None:
    from safetensors.torch import load_file, save_file

    tensors, packed, facts = load_file(file), {}, {}
    tables = [name for name, values in tensors.items() if "embed" in name and values.ndim == 2]
    tables = [name for name in tables if "position" not in name]  # of which a small vocabulary has fewer than these
    table = max(tables, key=lambda name: len(tensors[name]), default=None)  # that of the words has the most rows
    for name, values in tensors.items():
        form = words if name == table else weights
        if not values.is_floating_point() or form == FULL:
            packed[name] = values
        elif values.ndim < 2 or form == HALF:
            packed[name] = half if (half := values.half()).isfinite().all() else values
        else:
            try:
                integers, packed[name + SCALES], unit = quantize(values, BITS[form])
            except EncoderError as error:
                raise EncoderError(f"{file}: {name}: {error}") from error
            packed[name] = integers
            facts[name] = {"columns": values.shape[-1], "unit": unit}
    # With two entries of metadata, whose order is random in each process, equal models would be different files.
    save_file(packed, file.with_name(WEIGHTS), metadata={"isoglot": json.dumps(facts)})
    file.unlink()
