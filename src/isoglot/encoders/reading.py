"""Opens a model folder: those that sentence-transformers 2 to 6 wrote, and plain Hugging Face ones.

A folder is read by what its modules are, whatever the keys were called at the time. What cannot be run here is said,
never skipped, since a model without one of its parts gives vectors that look right.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from isoglot.encoders import dense, layout
from isoglot.encoders.base import Encoder
from isoglot.encoders.behind import put
from isoglot.encoders.pooling import POOLINGS
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.errors import EncoderError


def read(folder: Path, *, pooling: str | None, given: dict[str, Any]) -> Encoder:
    """The encoder in a model folder; `given` settings take the place of saved ones."""
    if not (folder / "modules.json").is_file():
        if not (folder / "config.json").is_file():
            raise EncoderError(f"{folder}: holds no model: neither modules.json nor config.json is there")
        return _transformer(folder, [], pooling, given)
    modules = layout.read_modules(folder)
    kinds = [module.kind for module in modules]
    if "Normalize" in kinds[:-1]:  # here it is a habit of `encode`, after all layers
        raise EncoderError(f"{folder}: {kinds[kinds.index('Normalize') + 1]} behind Normalize is not run here")
    modules, behind = _parted(modules)
    if not (modules and modules[0].kind == "Towers"):  # whose prompts are those of each tower
        given = {"prompt": layout.read_prompt(folder), **given}
    return put(_first(folder, modules, pooling, given), behind)


def _parted(modules: list[layout.Module]) -> tuple[list[layout.Module], list[layout.Module]]:
    """The modules an encoder runs itself, Normalize among them, and the layers that are put behind it.

    A transformer runs dense layers itself, up to the first flow; no other encoder runs any.
    """
    own = bool(modules) and modules[0].kind == "Transformer"
    behind = ("Flow",) if own else ("Dense", "Flow")
    start = next((place for place, module in enumerate(modules) if module.kind in behind), len(modules))
    layers = [module for module in modules[start:] if module.kind in ("Dense", "Flow")]
    return [module for module in modules if module not in layers], layers


def _first(folder: Path, modules: list[layout.Module], pooling: str | None, given: dict[str, Any]) -> Encoder:
    first = modules[0].kind if modules else "nothing"
    if first == "Transformer":
        return _transformer(modules[0].folder, modules[1:], pooling, given)
    if first == "StaticEmbedding":
        return _static(modules, pooling, given)
    if first == "UseEncoder":
        from isoglot.encoders.use import UseEncoder

        _refuse_unknown(UseEncoder, folder, given)
        return UseEncoder(**given)
    if first == "Towers":
        from isoglot.encoders import towers

        return towers.opened(folder, lambda place: read(place, pooling=pooling, given=given))
    raise EncoderError(f"{folder}: begins with {first}; only Transformer and StaticEmbedding models are run here")


def _transformer(
    folder: Path, behind: list[layout.Module], pooling: str | None, given: dict[str, Any]
) -> TransformerEncoder:
    _refuse_unknown(TransformerEncoder, folder, given)
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
                "(first and last layer), Pooling, Dense, Flow and Normalize are"
            )
    settings["pooling"] = pooling or layers or settings["pooling"]
    backbone, tokenizer, saved = _backbone(folder)
    try:
        return TransformerEncoder(backbone, tokenizer, **{**saved, **settings, **given})
    except (ValueError, TypeError) as error:
        raise EncoderError(f"{folder}: {error}") from error


def _refuse_unknown(kind: type[Encoder], folder: Path, given: dict[str, Any]) -> None:
    unknown = sorted(given.keys() - inspect.signature(kind.__init__).parameters.keys())
    if unknown:
        raise EncoderError(
            f"{folder}: holds a {kind.__name__}, which has no setting {', '.join(unknown)}; leave it out"
        )


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
    _refuse_unknown(StaticEncoder, folder, given)
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
