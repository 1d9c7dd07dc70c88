"""Opens a model folder: those that sentence-transformers 2 to 6 wrote, and plain Hugging Face ones.

A folder is read by what its modules are, whatever the keys were called at the time. What cannot be run here is said,
never skipped, since a model without one of its parts gives vectors that look right.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import torch
from torch import nn

from isoglot.encoders import configs, dense, layout
from isoglot.encoders.base import Encoder
from isoglot.encoders.behind import put
from isoglot.encoders.pooling import POOLINGS
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.errors import EncoderError

_PROBES = 256  # pieces of a vocabulary that are tokenised to see whether any is known


def read(folder: Path, *, pooling: str | None, given: dict[str, Any]) -> Encoder:
    """The encoder in a model folder, in evaluation mode; `given` settings take the place of saved ones.

    No code of the folder is run: classes are known by name, transformers may use its own only, and pickles are read as
    weights or not at all. Raises EncoderError.
    """
    encoder = _read(folder, pooling, given).eval()
    _try(encoder, folder)
    return encoder


def _read(folder: Path, pooling: str | None, given: dict[str, Any], *, is_tower: bool = False) -> Encoder:
    if not (folder / "modules.json").is_file():
        if not (folder / "config.json").is_file():
            raise EncoderError(f"{folder}: holds no model: neither modules.json nor config.json is there")
        return _transformer(folder, [], pooling, given)
    modules = layout.read_modules(folder)
    kinds = [module.kind for module in modules]
    if "Normalize" in kinds[:-1]:  # here it is a habit of `encode`, after all layers
        raise EncoderError(f"{folder}: {kinds[kinds.index('Normalize') + 1]} behind Normalize is not run here")
    modules, behind = _parted(modules)
    saved = layout.read_prompts(folder)
    if modules and modules[0].kind == "Towers":
        if is_tower:
            raise EncoderError(f"{folder}: a tower cannot be towers itself")
    else:  # the prompts of towers are those of each
        given = {"prompt": saved.default, "prompts": saved.prompts, **given}
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

        return towers.opened(folder, lambda place: _read(place, pooling, given, is_tower=True))
    raise EncoderError(f"{folder}: begins with {first}; only Transformer and StaticEmbedding models are run here")


def _transformer(
    folder: Path, behind: list[layout.Module], pooling: str | None, given: dict[str, Any]
) -> TransformerEncoder:
    _refuse_unknown(TransformerEncoder, folder, given)
    settings: dict[str, Any] = {"pooling": "mean", "projections": []}
    backbone, tokenizer, saved = _backbone(folder)
    layers = None
    for module in behind:
        if module.kind == "Pooling":
            settings["pooling"] = _pooling_of(module, given.get("prompt", ""), chosen=pooling)
        elif module.kind == "WeightedLayerPooling":
            layers = dense.read_layer_mean(module, int(backbone.config.num_hidden_layers))
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
    config = layout.settings_of(module, configs.Pooling)
    names = config.modes
    if prompt and not config.include_prompt:
        raise EncoderError(
            f'{module.folder}: leaves the prompt out of the pooling, which is not run here; set prompt=""'
        )
    if chosen is None and (len(names) != 1 or names[0] not in POOLINGS):
        raise EncoderError(
            f"{module.folder}: pooling {' + '.join(names) or 'none'} is not run here; "
            f"choose one of {', '.join(POOLINGS)} with `pooling`"
        )
    return names[0] if chosen is None else chosen


def _backbone(folder: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Backbone, fast tokenizer, and the maximal length that sentence-transformers saved, if it did."""
    import transformers

    configs.read(folder / "config.json", configs.Backbone)
    configs.read_if_there(folder / "tokenizer_config.json", configs.Tokenizer)
    saved = configs.read_if_there(folder / "sentence_bert_config.json", configs.Length)
    if (folder / "adapter_config.json").exists():
        raise EncoderError(f"{folder}: holds an adapter, which is not run here; merge it into its model and save that")
    pickled = _pickled(folder)
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        with layout.quiet():
            backbone, report = transformers.AutoModel.from_pretrained(
                folder, output_loading_info=True, use_safetensors=pickled is None, **local
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, use_fast=True, **local)
    except Exception as error:  # transformers raises whatever its parts raise
        if pickled is not None and re.search("pickl|weights_only|torch.load", f"{type(error)} {error}", re.IGNORECASE):
            raise EncoderError(f"{pickled}: {dense.PICKLED}") from error
        raise EncoderError(f"{folder}: cannot be loaded: {_one_line(error)}") from error
    _require_weights(backbone, report, folder)
    if not getattr(tokenizer, "is_fast", False):
        raise EncoderError(f"{folder}: has no fast tokenizer; convert it with transformers and save tokenizer.json")
    _require_tokenizer(tokenizer.backend_tokenizer, len(backbone.get_input_embeddings().weight), folder)
    if saved.do_lower_case:
        _lowercase(tokenizer.backend_tokenizer)
    return backbone, tokenizer, {"max_length": saved.max_seq_length} if saved.max_seq_length else {}


def _pickled(folder: Path) -> Path | None:
    """The pickle in which the weights are; None if they are safetensors."""
    for name in ("model.safetensors", "model.safetensors.index.json"):
        if (folder / name).is_file():
            return None
    for name in ("pytorch_model.bin", "pytorch_model.bin.index.json"):
        if (folder / name).is_file():
            return folder / name
    raise EncoderError(f"{folder}: holds no weights; model.safetensors is missing")


def _require_weights(backbone: Any, report: dict[str, Any], folder: Path) -> None:
    """Raise EncoderError for weights that are missing, of other shapes, or of layers that the model would not have."""
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise EncoderError(f"{folder}: the weights lack {len(missing)} tensors, such as {missing[0]}")
    if report["missing_keys"]:
        backbone.pooler = None  # it would be random, and nothing here uses it
    if others := [*report.get("mismatched_keys", ()), *report.get("error_msgs", ())]:
        raise EncoderError(f"{folder}: the weights do not fit config.json: {_one_line(others[0])}")
    prefix = f"{backbone.base_model_prefix}."
    stacks = {name: len(part) for name, part in backbone.named_modules() if isinstance(part, nn.ModuleList)}
    for key in report.get("unexpected_keys", ()):
        for name, count in stacks.items():
            number = key.removeprefix(prefix).removeprefix(f"{name}.").partition(".")[0]
            if key.removeprefix(prefix).startswith(f"{name}.") and number.isdecimal() and int(number) >= count:
                raise EncoderError(f"{folder}: config.json describes {count} layers, and the weights have more ({key})")


def _require_tokenizer(tokenizer: Any, rows: int, folder: Path) -> None:
    """Raise EncoderError for a tokenizer with ids beyond the embedding table, or one that knows no text.

    transformers makes an empty tokenizer where the files of one are missing.
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    if vocabulary and max(vocabulary.values()) >= rows:
        piece = max(vocabulary, key=vocabulary.__getitem__)
        raise EncoderError(
            f"{folder}: the tokenizer has {len(vocabulary)} pieces, of which {piece!r} is number {vocabulary[piece]}, "
            f"and the embedding table has {rows} rows; it belongs to another model"
        )
    nothing = set(tokenizer.get_added_tokens_decoder())
    nothing.add(vocabulary.get(str(getattr(tokenizer.model, "unk_token", None)), -1))
    unknown = getattr(tokenizer.model, "unk_id", None)
    nothing.add(-1 if unknown is None else int(unknown))
    pieces = sorted(set(vocabulary.values()) - nothing)
    probes = [tokenizer.decode([number]) for number in pieces[:: max(1, len(pieces) // _PROBES)]]
    known = {number for found in tokenizer.encode_batch(probes, add_special_tokens=False) for number in found.ids}
    if not known - nothing:
        raise EncoderError(
            f"{folder}: the tokenizer knows no text: every piece is special or unknown; its files are missing or "
            "damaged; save or download the model again"
        )


def _try(encoder: Encoder, folder: Path) -> None:
    """Raise EncoderError for weights that are not finite, and for an encoder that cannot encode."""
    for name, weight in encoder.named_parameters():
        if weight.numel() and not all(bool(bound.isfinite()) for bound in weight.detach().aminmax()):
            raise EncoderError(f"{folder}: the weight {name} holds NaN or infinity; save or download the model again")
    try:
        with torch.inference_mode():
            vectors = encoder(encoder.tokenize(["", "A short sentence.", "Two sentences. One after the other."]))
    except Exception as error:  # sizes that do not fit each other show here, as whatever torch makes of them
        raise EncoderError(f"{folder}: the model cannot encode: {_one_line(error)}") from error
    if vectors.ndim != 2 or vectors.shape[1] != encoder.dim or not bool(vectors.isfinite().all()):
        raise EncoderError(f"{folder}: the model's vectors are not finite, or not of {encoder.dim} dimensions")


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
        _require_tokenizer(tokenizer, len(table), folder)
        length = (tokenizer.truncation or {}).get("max_length", 8192)
        settings = {"max_length": length, "normalizes": "Normalize" in behind, **given}
        return StaticEncoder(table.float(), tokenizer, **settings)
    except EncoderError:
        raise
    except Exception as error:  # tokenizers raises bare Exceptions
        raise EncoderError(f"{folder}: {_one_line(error)}") from error


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:300]
