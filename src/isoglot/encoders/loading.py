"""Opens a model as an encoder of torch.

Supported folders are those of sentence-transformers 2 to 6 and plain Hugging Face
ones. Modules are recognized by their type, also under their older names. An unsupported module is an error, never
skipped, since a model without one of its parts would return plausible but wrong vectors.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from isoglot.core.errors import EncoderError
from isoglot.encoders import adapters, bert, onnx_export
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import resolve
from isoglot.encoders.layers import PICKLED, read_dense, read_layer_mean, read_tensors, read_weights, with_layers
from isoglot.encoders.pooling import POOLINGS
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.switches import quiet
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.model import card, configs, layout, packaged, packed
from isoglot.model.finding import find, folder_name
from isoglot.model.loading import load as load_model
from isoglot.model.static import StaticModel
from isoglot.model.tokenizer import lowercase, prepare_tokenizer

# The modules that may follow the first one of a model.
_AFTER = {
    "Transformer": ("WeightedLayerPooling", "Pooling", "Dense", "Flow", "Normalize"),
    "StaticEmbedding": ("Dense", "Flow", "Normalize"),
    "UseEncoder": ("Dense", "Flow"),
    "Towers": ("Dense", "Flow"),
}


def load(name: str | Path | None = None, **settings: Any) -> Encoder:
    """Open an encoder, in evaluation mode: the same as `isoglot.load` with engine="torch".

    settings   of `isoglot.load`, and further ones of `TransformerEncoder` (head, layers, dim, dropout,
               freeze_embeddings, train_layers, adapter, sparse_embeddings, compile, seed) or of `StaticEncoder`
               (token_weights, sparse)

    Raises EncoderError for an unknown model or device, a damaged model, and a model with unsupported modules.
    """
    return cast(Encoder, load_model(name, engine="torch", **settings))


def open_encoder(folder: Path, name: str, device: Any, settings: dict[str, Any]) -> Encoder:
    """The encoder in the folder of a model of this name, with settings that replace saved ones, on a device.

    Raises EncoderError.
    """
    place = resolve(device)
    encoder = read(folder, settings)
    encoder.name = encoder.name or folder_name(name)
    if (source := packaged.SOURCES.get(name)) and not Path(name).is_dir():  # their own cards have no licence
        encoder.card = (encoder.card or card.Card()).model_copy(update={"licence": source.licence})
    again = str(folder.resolve()) if Path(name).is_dir() else name
    transformers = [part for part in encoder.modules() if isinstance(part, TransformerEncoder)]
    if len(transformers) == 1 and not _is_adapter(folder) and not transformers[0].new_layer:
        transformers[0].origin = again
    if encoder not in transformers:
        encoder.origin = again
    return encoder.to(place)


def digest_of(name: str) -> str:
    """Digest of the files of a model, and of those of the backbone that an adapter names. Raises EncoderError."""
    folder = find(name)
    digest = layout.digest_of(folder)
    if not _is_adapter(folder):
        return digest
    base = configs.read(folder / adapters.CONFIG, configs.Adapter).base_model_name_or_path
    return hashlib.sha256(f"{digest} {digest_of(base)}".encode()).hexdigest()


def expand(name: str) -> Path:
    """A folder of a packaged model that sentence-transformers opens, in the cache. Raises EncoderError."""
    source = packaged.get(name)
    if name not in packaged.list_models():
        return source
    folder = packaged.place("expanded") / name  # beside that of `get`, which makes its own again
    read(source, {}).save(folder)
    return folder


# A folder to an encoder


def read(folder: Path, settings: dict[str, Any]) -> Encoder:
    """The encoder in a model folder, in evaluation mode; `settings` replace saved ones. No code from the folder
    is run: classes are recognised by name, transformers uses only its own code, and pickles are read only as weights.
    Raises EncoderError.
    """
    with configs.reading(f"{folder}: the tokenizer"):  # what tokenizers raises about damage is no Exception
        encoder = _read(folder, settings).eval()
        _try(encoder, folder)
    encoder.card = card.read(folder)
    return encoder


def _read(folder: Path, settings: dict[str, Any], *, is_tower: bool = False) -> Encoder:
    if not (folder / "modules.json").is_file():
        if _is_adapter(folder):
            return _read_adapter(folder, settings)
        return _transformer(folder, [], settings)
    modules = layout.read_modules(folder)
    _check_modules(modules, folder)
    first, kinds = modules[0].kind, [module.kind for module in modules]
    saved = layout.read_settings(folder)
    if first != "Towers":  # each tower has its own prompts
        settings = {"prompt": saved.default, "prompts": saved.prompts, **settings}
    elif is_tower:
        raise EncoderError(f"{folder}: a tower cannot be towers itself")
    if "Normalize" in _AFTER[first]:
        settings = {"normalizes": "Normalize" in kinds, **settings}
    # A transformer runs dense layers itself, up to the first flow; no other encoder runs any.
    outside = ("Flow",) if first == "Transformer" else ("Dense", "Flow")
    start = next((place for place, kind in enumerate(kinds) if kind in outside), len(kinds))
    layers = [module for module in modules[start:] if module.kind != "Normalize"]
    encoder = with_layers(_open_first(folder, modules[:start], settings), layers)
    encoder.name = saved.name
    return encoder


def _check_modules(modules: list[layout.Module], folder: Path) -> None:
    """Raise EncoderError for modules that are not run here, or not in this order."""
    first = modules[0].kind if modules else "nothing"
    if first not in _AFTER:
        raise EncoderError(f"{folder}: begins with {first}; only Transformer and StaticEmbedding models are run here")
    for before, module in pairwise(modules):
        if module.kind not in _AFTER[first]:
            choices = ", ".join(_AFTER[first])
            raise EncoderError(f"{module.folder}: {module.kind} modules are not run here after {first}; {choices} are")
        if before.kind == "Normalize":  # here `encode` normalises, after all layers
            raise EncoderError(f"{folder}: {module.kind} after Normalize is not run here")


def _is_adapter(folder: Path) -> bool:
    """Whether a folder contains only an adapter."""
    return (folder / adapters.CONFIG).is_file() and not (folder / "config.json").is_file()


def _read_adapter(folder: Path, settings: dict[str, Any]) -> Encoder:
    """The backbone that an adapter's folder names, with the adapter merged."""
    config = configs.read(folder / adapters.CONFIG, configs.Adapter)
    saved = config.isoglot
    try:
        base = find(config.base_model_name_or_path)
    except EncoderError as error:
        raise EncoderError(
            f"{folder / adapters.CONFIG}: base_model_name_or_path: {error}; or write where the backbone is now"
        ) from error
    if _is_adapter(base):
        raise EncoderError(f"{folder}: its backbone {base} is an adapter too; save the merged model instead")
    if "layers" in settings:
        raise EncoderError(f"{folder}: layers can't be chosen for an adapter; open the merged model instead")
    restriction = {name: settings[name] for name in ("train_layers", "adapter", "seed") if name in settings}
    of_base = saved.model_dump(include={"pooling", "prompt", "prompts", "max_length", "layers"}, exclude_none=True)
    of_base |= {name: value for name, value in settings.items() if name not in ("train_layers", "adapter")}
    encoder = _read(base, of_base)
    parts = [part for part in encoder.modules() if isinstance(part, TransformerEncoder)]
    if len(parts) != 1:
        raise EncoderError(f"{folder}: its backbone {base} is not a transformer; save or download the adapter again")
    adapters.merge(folder, config, parts[0].backbone)
    with _naming(folder):
        parts[0].restrict(**restriction)
    encoder.name = saved.name
    return encoder


def _open_first(folder: Path, modules: list[layout.Module], settings: dict[str, Any]) -> Encoder:
    """The encoder that the first module is, with the modules that it runs itself."""
    first = modules[0].kind
    if first == "Transformer":
        return _transformer(modules[0].folder, modules[1:], settings)
    if first == "StaticEmbedding":
        return _static(modules[0].folder, settings)
    if first == "UseEncoder":
        from isoglot.encoders.converters import UseEncoder

        _check_settings(UseEncoder, folder, settings)
        saved = configs.read_if_there(folder / layout.LENGTH, configs.Length).max_seq_length
        return UseEncoder(**{**({"max_length": saved} if saved else {}), **settings})
    from isoglot.encoders import towers

    return towers.open_towers(folder, lambda place: _read(place, settings, is_tower=True))


def _transformer(folder: Path, after: list[layout.Module], settings: dict[str, Any]) -> TransformerEncoder:
    _check_settings(TransformerEncoder, folder, settings)
    pooling, projections, layers = "mean", [], ""
    backbone, tokenizer, saved = _backbone(folder)
    for module in after:
        if module.kind == "Pooling":
            pooling = _read_pooling(module, settings)
        elif module.kind == "WeightedLayerPooling":
            layers = read_layer_mean(module.folder, int(backbone.config.num_hidden_layers))
        elif module.kind == "Dense":
            projections.append(read_dense(module.folder))
    if layers and pooling != "mean" and "pooling" not in settings:
        raise EncoderError(f"{folder}: pooling {pooling} of a mean of layers is not run here; choose another `pooling`")
    of_modules = {"pooling": layers or pooling, "projections": projections}
    with _naming(folder):
        return TransformerEncoder(backbone, tokenizer, **{**saved, **of_modules, **settings})


def _check_settings(kind: type[Encoder], folder: Path, settings: dict[str, Any]) -> None:
    unknown = sorted(settings.keys() - inspect.signature(kind.__init__).parameters.keys())
    if unknown:
        raise EncoderError(f"{folder}: a {kind.__name__} has no setting {', '.join(unknown)}; leave it out")


def _read_pooling(module: layout.Module, settings: dict[str, Any]) -> str:
    """The pooling a Pooling module asks for, in the words of this library, or that of the settings."""
    config = configs.read_if_there(module.folder / "config.json", configs.Pooling)
    names = config.modes
    if not config.include_prompt and any([settings.get("prompt"), *(settings.get("prompts") or {}).values()]):
        raise EncoderError(f'{module.folder}: its pooling leaves prompts out; set prompt="" and prompts={{}}')
    if "pooling" not in settings and (len(names) != 1 or names[0] not in POOLINGS):
        raise EncoderError(
            f"{module.folder}: pooling {' + '.join(names) or 'none'} is not run here; "
            f"choose one of {', '.join(POOLINGS)} with `pooling`"
        )
    return str(settings.get("pooling") or names[0])


def _backbone(folder: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Backbone, fast tokenizer, and the maximal length that sentence-transformers saved, if it did."""
    configs.read(folder / "config.json", configs.Backbone)
    configs.read_if_there(folder / "tokenizer_config.json", configs.Tokenizer)
    saved = configs.read_if_there(folder / layout.LENGTH, configs.Length)
    if (folder / "adapter_config.json").exists():
        raise EncoderError(f"{folder}: contains an adapter, which is not run here; save the merged model instead")
    expanded, weights = None, layout.find_weights(folder)
    if layout.is_onnx(folder):  # weights in a form of our own
        graph = onnx_export.read_graph(folder / layout.GRAPH)
        expanded = {name: weight for name, weight in graph.items() if not name.startswith("projections.")}
    elif packed.is_packed(folder):
        expanded = read_weights(folder)
    if expanded is None and weights is None:
        raise EncoderError(f"{folder}: contains no weights; model.safetensors is missing")
    is_pickled = expanded is None and weights is not None and weights.name.startswith("pytorch")
    try:
        tokenizer: Any = layout.read_tokenizer(folder)
        backbone: Any = _read_backbone(folder, expanded, safe=not is_pickled)
        if tokenizer is None:
            tokenizer = _read_transformers_tokenizer(folder)
    except EncoderError:
        raise
    except Exception as error:  # transformers passes on any exception of its parts
        if is_pickled and re.search("pickl|weights_only|torch.load", f"{type(error)} {error}", re.IGNORECASE):
            raise EncoderError(f"{weights}: {PICKLED}") from error
        raise EncoderError(f"{folder}: cannot be loaded: {configs.one_line(error)}") from error
    prepare_tokenizer(tokenizer.backend_tokenizer, len(backbone.get_input_embeddings().weight), folder)
    if saved.do_lower_case:
        lowercase(tokenizer.backend_tokenizer)
    return backbone, tokenizer, {"max_length": saved.max_seq_length} if saved.max_seq_length else {}


def _read_backbone(folder: Path, expanded: dict[str, Tensor] | None, *, safe: bool) -> Any:
    """The backbone: our own, if it is of the family of BERT and needs nothing of transformers, or one of these."""
    described, plain = layout.read_json(folder / "config.json"), folder / "model.safetensors"
    if bert.fits(described) and (expanded is not None or plain.is_file()):
        network = bert.build(described, read_tensors(plain) if expanded is None else expanded)
        if network is not None:
            return network
    import transformers

    with quiet():
        if expanded is None:
            backbone, report = transformers.AutoModel.from_pretrained(
                folder, output_loading_info=True, use_safetensors=safe, local_files_only=True, trust_remote_code=False
            )
        else:
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            backbone, report = transformers.MODEL_MAPPING[type(config)].from_pretrained(
                None, config=config, state_dict=expanded, output_loading_info=True
            )
    _require_weights(backbone, report, folder)
    return backbone


def _read_transformers_tokenizer(folder: Path) -> Any:
    """A fast tokenizer that transformers reads. Raises EncoderError if it is a slow one."""
    import transformers

    with quiet():
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, use_fast=True, local_files_only=True, trust_remote_code=False
        )
    if not getattr(tokenizer, "is_fast", False):
        raise EncoderError(f"{folder}: has no fast tokenizer; convert it with transformers and save tokenizer.json")
    return tokenizer


def _require_weights(backbone: Any, report: dict[str, Any], folder: Path) -> None:
    """Raise EncoderError for weights that are missing, of other shapes, or of layers that the model would not have."""
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise EncoderError(f"{folder}: the weights lack {len(missing)} tensors, such as {missing[0]}")
    if report["missing_keys"]:  # the pooler is unused, so it may be missing; some networks call one anyway
        can_lack_it = "add_pooling_layer" in inspect.signature(type(backbone)).parameters
        backbone.pooler = None if can_lack_it else nn.Identity()
    if others := [*report.get("mismatched_keys", ()), *report.get("error_msgs", ())]:
        raise EncoderError(f"{folder}: the weights do not fit config.json: {configs.one_line(others[0])}")
    prefix = f"{backbone.base_model_prefix}."
    stacks = {name: len(part) for name, part in backbone.named_modules() if isinstance(part, nn.ModuleList)}
    for key in report.get("unexpected_keys", ()):
        for name, count in stacks.items():
            number = key.removeprefix(prefix).removeprefix(f"{name}.").partition(".")[0]
            if key.removeprefix(prefix).startswith(f"{name}.") and number.isdecimal() and int(number) >= count:
                raise EncoderError(f"{folder}: config.json describes {count} layers, and the weights have more ({key})")


def _try(encoder: Encoder, folder: Path) -> None:
    """Raise EncoderError for weights that are not finite, and for an encoder that cannot encode."""
    for name, weight in encoder.named_parameters():
        # the sum is a fast test
        if not bool(weight.detach().sum().isfinite()) and not bool(weight.detach().isfinite().all()):
            raise EncoderError(f"{folder}: {name} contains NaN or infinity; save or download the model again")
    try:
        with torch.inference_mode():
            vectors = encoder(encoder.tokenize(["", "A short sentence."]))
    except Exception as error:  # weights of inconsistent shapes raise here, with various exceptions of torch
        raise EncoderError(f"{folder}: the model cannot encode: {configs.one_line(error)}") from error
    if vectors.ndim != 2 or vectors.shape[1] != encoder.dim or not bool(vectors.isfinite().all()):
        raise EncoderError(f"{folder}: the model's vectors are not finite, or not of {encoder.dim} dimensions")


def _static(folder: Path, settings: dict[str, Any]) -> StaticEncoder:
    settings = dict(settings)
    pooling = settings.pop("pooling", "mean")
    _check_settings(StaticEncoder, folder, settings)
    if pooling != "mean":
        raise EncoderError(f"{folder}: a static encoder takes the mean; pooling {pooling!r} needs a transformer")
    weights = {name: weight.float().numpy() for name, weight in read_weights(folder).items()}
    saved = StaticModel.open(folder, weights)
    with _naming(folder):
        return StaticEncoder(torch.tensor(saved.table), saved.tokenizer, **{"max_length": saved.max_length, **settings})


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Raise EncoderError, with the folder, for settings that an encoder does not take."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise EncoderError(f"{folder}: {configs.one_line(error)}") from error
