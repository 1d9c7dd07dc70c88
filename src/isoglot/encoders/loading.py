"""Finds a model by name and opens it: a folder, a packaged model, or a hub id that is already in the local cache.

The network is never touched unless it is asked for.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from isoglot import environment
from isoglot.encoders import packaged
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import resolve
from isoglot.encoders.reading import read
from isoglot.errors import EncoderError, nearest

DEFAULT = "multilingual-e5-small"  # the model that is opened when none is named
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_HUB_SKIP = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", "*.py"]


def load(
    name: str | Path | None = None,
    *,
    device: torch.device | str = "auto",
    pooling: str | None = None,
    prompt: str | None = None,
    max_length: int | None = None,
    allow_download: bool = False,
    **training: Any,
) -> Encoder:
    """Open an encoder, in evaluation mode, by folder, packaged name, or hub id, looked for in this order.

    name                          None: `$ISOGLOT_MODEL`, else `DEFAULT`
    device                        auto: the accelerator (CUDA, XPU or MPS) if there is one, else the CPU
    pooling, prompt, max_length   instead of the folder's settings; None keeps these (mean pooling if there are none)
    allow_download                download a hub id that is not in the local cache; else the network is not touched
    training                      further settings of `TransformerEncoder` (head, layers, freeze_embeddings,
                                  sparse_embeddings, seed) or of `StaticEncoder` (token_weights, sparse)

    Raises EncoderError if there is no such model or device, it is damaged, or it needs what is not run here.
    """
    if name is None:
        name = environment.default_model() or DEFAULT
    if not isinstance(name, str | Path):
        raise TypeError(
            f"load takes the name or folder of a model, got {type(name).__name__}; "
            "to encode texts: isoglot.load().encode(texts)"
        )
    place = resolve(device)
    folder = find(str(name), allow_download=allow_download)
    settings = {"max_length": max_length, "prompt": prompt, **training}
    given = {name: value for name, value in settings.items() if value is not None}
    encoder = read(folder, pooling=pooling, given=given)
    encoder.name = encoder.name or _name(str(name))
    return encoder.to(place)


def find(name: str, *, allow_download: bool = False) -> Path:
    """The local folder of a model; packaged models are unpacked on first use. Raises EncoderError if there is none."""
    if Path(name).is_dir():
        return Path(name)
    if Path(name).is_file():
        raise EncoderError(
            f"{name}: is a file, and a model is a folder or a name such as {DEFAULT}; the model comes first, then texts"
        )
    if name in packaged.NAMES:
        return packaged.get(name)
    if _HUB_ID.fullmatch(name) and (folder := _hub(name, allow_download)):
        return folder
    raise EncoderError(
        f"Model {name!r} not found: not a folder, a packaged model, or a hub id in the local Hugging Face cache; "
        f"{nearest(name, packaged.NAMES)}. Packaged models: {', '.join(packaged.NAMES)}. "
        "To download a hub id: isoglot.load(name, allow_download=True)"
    )


def _name(name: str) -> str:
    """How results name a model: a packaged name or hub id as it is; a folder by its own name, `model` by its parent's.

    Training writes RUN/model, and RUN is what tells models apart.
    """
    if not Path(name).is_dir():
        return name
    folder = Path(name).resolve()
    return folder.parent.name if folder.name == "model" and folder.parent.name else folder.name


def _hub(name: str, allow_download: bool) -> Path | None:
    """The snapshot of a hub id in the local cache; None if it is not there. Raises EncoderError for any other fault."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=not allow_download, ignore_patterns=_HUB_SKIP))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        if allow_download:
            raise EncoderError(f"model {name!r} can't be downloaded: {error}") from error
        return None
    except Exception as error:  # permissions, a damaged cache, and what the client raises about a download
        where = "can't be downloaded" if allow_download else "can't be read from the local Hugging Face cache"
        raise EncoderError(f"model {name!r} {where}: {error}") from error
