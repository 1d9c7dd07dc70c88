"""Opens a model by name or folder, and chooses the engine that computes its vectors."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.core.errors import EncoderError
from isoglot.core.machine import wants_accelerator
from isoglot.core.plugins import torch_half
from isoglot.data.files import file_state
from isoglot.model import configs, layout
from isoglot.model.base import Model
from isoglot.model.finding import default_name, find, folder_name
from isoglot.model.onnx import OnnxModel
from isoglot.model.static import StaticModel, is_static


@check_arguments(
    name="to encode texts: isoglot.load().encode(texts)",
    model_name_or_path="pass name",
    backend="pass engine",
    truncate_dim="pass it to encode",
)
def load(
    name: str | Path | None = None,
    *,
    device: str | Any = "auto",
    engine: Literal["static", "onnx", "torch"] | None = None,
    pooling: str | None = None,
    prompt: str | None = None,
    max_length: PositiveInt | None = None,
    allow_download: bool = False,
    **training: Any,
) -> Model:
    """Open a model by folder, packaged name, or hub id, looked for in this order.

    A folder that contains an adapter alone opens as its backbone, found in the same way, with the adapter merged.

    name            None: `$ISOGLOT_MODEL`, else `DEFAULT`
    device          device to compute on: cpu, cuda, cuda:1, xpu, mps or auto ($ISOGLOT_DEVICE, else the fastest)
    engine          static (NumPy, for static models), onnx (ONNX Runtime on a CPU, for folders with a graph), torch
                    (everything; needs the extra `torch`); None: torch for an accelerator, a change of pooling, or
                    training; else static or onnx where it can; else torch
    pooling         pooling, instead of the model's own: `POOLINGS`
    prompt          prefix of every text, instead of the model's own prompt
    max_length      maximum tokens per text, instead of the model's own
    allow_download  download a hub id that is not in the local cache; else the network is not touched
    training        settings of an encoder of torch: see `isoglot.encoders.load`

    Raises EncoderError for an unknown model or device, a damaged model, a model with unsupported modules, and one that
    the engine can't run.
    """
    name = default_name() if name is None else name
    on_accelerator = wants_accelerator(str(device))
    folder = find(str(name), allow_download=allow_download)
    given = {"prompt": prompt, "max_length": max_length, "pooling": pooling, **training}
    settings = {key: value for key, value in given.items() if value is not None}
    of_torch = sorted(settings.keys() - {"prompt", "max_length"})
    fits = _choose_engine(folder)
    engine = engine or ("torch" if of_torch or fits is None or on_accelerator else fits)
    if engine == "torch":
        encoder: Model = torch_half("encoders.loading").open_encoder(folder, str(name), device, settings)
        return encoder
    if engine != fits:
        raise EncoderError(f"{name}: can't be run by the engine {engine}; use engine={fits or 'torch'!r}")
    if of_torch:
        raise EncoderError(f"{name}: the engine {engine} can't change {', '.join(of_torch)}; use engine='torch'")
    if on_accelerator and str(device) != "auto":
        raise EncoderError(f"{name}: the engine {engine} computes on the CPU, not on {device}; use engine='torch'")
    state = file_state(folder / "modules.json")
    modules, saved = layout.read_modules(folder), layout.read_settings(folder)
    normalizes = any(module.kind == "Normalize" for module in modules)
    with configs.reading(folder):
        model = (StaticModel if engine == "static" else OnnxModel).open(modules[0].folder)
    model.prompt = saved.default if prompt is None else prompt
    model.prompts, model.normalizes = saved.prompts or {}, normalizes
    if max_length is not None:
        try:
            model.max_length = max_length
        except ValueError as error:
            raise EncoderError(f"{folder}: {error}") from error
    model.name, model.folder, model._state = saved.name or folder_name(str(name)), folder, state
    model.origin = str(folder.resolve()) if Path(name).is_dir() else str(name)
    logging.getLogger(__name__).debug("%s: engine %s, precision %s", model.name, engine, model.precision)
    return model


def source_identity(model: Model) -> str:
    """An identity that all engines of a folder have in common, and `isoglot export` keeps: which model vectors are of.

    A model that was changed since it was opened has its own identity alone.
    """
    if isinstance(model, OnnxModel):
        return model.source_identity()
    identity = model.identity()
    with suppress(EncoderError):  # the folder is gone
        if model.origin and _choose_engine(find(model.origin)) == "onnx":
            settings: dict[str, Any] = {"prompt": model.prompt, "max_length": model.max_length, "device": "cpu"}
            graph: Any = load(model.origin, engine="onnx", **settings)
            if load(model.origin, engine="torch", **settings).identity() == identity:
                return str(graph.source_identity())
    return identity


def _choose_engine(folder: Path) -> Literal["static", "onnx"] | None:
    """The engine without torch that runs a folder; None if there is none."""
    if not (folder / "modules.json").is_file():
        return None
    if is_static(layout.read_modules(folder)):
        return "static"
    return "onnx" if layout.is_onnx(folder) else None
