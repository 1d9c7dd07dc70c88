"""BERT (Devlin et al. 2019) and the networks of the same layers as one module, opened without importing transformers.

RoBERTa, XLM-R, DistilBERT and MPNet are BERTs with other names and a few settings: `FAMILIES` is the table of these.
Importing transformers takes longer than opening a small model and encoding with it, and its networks read the padding
mask on the host in each forward pass, for which the host waits for an accelerator. Parameters have the names that
transformers gives them, saved folders are the same, and outputs and gradients agree (tests/encoders/test_bert.py). A
folder with anything unusual, such as another activation, half precision or a missing tensor, is left to transformers
and its errors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache, reduce
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isoglot.core.errors import EncoderError
from isoglot.encoders.rounding import Joining, Linear, round_weights

# What transformers assumes of keys that a config.json lacks. Where a family has other sizes, the weights do not fit.
_DEFAULTS: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}
_REQUIRED = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "sinusoidal_pos_embds": False,
    "relative_attention_num_buckets": 32,
    "is_decoder": False,
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "quantization_config": None,
    "dtype": "float32",
    "torch_dtype": "float32",
}
_IGNORED = ("embeddings.position_ids", "embeddings.token_type_ids")  # saved by old versions
_OLD = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}  # names of TensorFlow
_DISTANCES = "encoder.relative_attention_bias"
_EXACT, _FAR = 8, 128  # MPNet: distances with a bucket each in either direction, and the last one of several buckets


class Family(NamedTuple):
    """How the networks of one `model_type` differ from BERT.

    architecture     the class of transformers
    prefix           of the names of weights in a model with a head
    parts            in a layer: query, key, value, output, norm; and the two linear layers and the norm after them
    layers           where the layers are
    pad              token id of padding where config.json has none
    keys             names of settings in config.json
    has_segments     whether it has embeddings of segments
    skips_padding    whether positions count only what is not padding, and begin behind the id of padding
    is_relative      whether attention has a learned term for the distance of two tokens
    drops_attention  whether there is dropout behind attention
    has_pooler       whether transformers makes a pooler
    """

    architecture: str
    prefix: str
    parts: tuple[str, ...]
    layers: str = "encoder.layer"
    pad: int = 0
    keys: Mapping[str, str] = {}
    has_segments: bool = True
    skips_padding: bool = False
    is_relative: bool = False
    drops_attention: bool = True
    has_pooler: bool = True


_FEED_FORWARD = ("intermediate.dense", "output.dense", "output.LayerNorm")
_SELF = ("attention.self.query", "attention.self.key", "attention.self.value")
_PARTS = (*_SELF, "attention.output.dense", "attention.output.LayerNorm", *_FEED_FORWARD)
_DISTIL_KEYS = {
    "hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim", "hidden_act": "activation", "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}  # fmt: skip
_ATTENTION = tuple(f"attention.{part}" for part in ("q_lin", "k_lin", "v_lin", "out_lin"))
_DISTIL_PARTS = (*_ATTENTION, "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm")
_MPNET_PARTS = (*(f"attention.attn.{part}" for part in "qkvo"), "attention.LayerNorm", *_FEED_FORWARD)
FAMILIES = {
    "bert": Family("BertModel", "bert", _PARTS),
    "roberta": Family("RobertaModel", "roberta", _PARTS, pad=1, skips_padding=True),
    "xlm-roberta": Family("XLMRobertaModel", "roberta", _PARTS, pad=1, skips_padding=True),
    "camembert": Family("CamembertModel", "roberta", _PARTS, pad=1, skips_padding=True),
    "distilbert": Family(
        "DistilBertModel", "distilbert", _DISTIL_PARTS, "transformer.layer", keys=_DISTIL_KEYS, has_segments=False,
        drops_attention=False, has_pooler=False,
    ),
    "mpnet": Family(
        "MPNetModel", "mpnet", _MPNET_PARTS, pad=1, has_segments=False, skips_padding=True, is_relative=True
    ),
}  # fmt: skip


class Config(SimpleNamespace):
    """config.json with defaults for missing keys, as attributes with the names of BERT."""

    @property
    def family(self) -> Family:
        """How the network differs from BERT."""
        return FAMILIES[self.model_type]

    def to_dict(self) -> dict[str, Any]:
        """The keys of the file and their values."""
        return {self.family.keys.get(name, name): value for name, value in vars(self).items()}

    def to_json_string(self, **_: Any) -> str:
        """The keys and values as JSON."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"


class States(NamedTuple):
    """The last layer's states (N, T, D), and if wanted those of the embedding layer and of every layer."""

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...] | None = None


class Embeddings(nn.Module):
    """The sum of word, segment and position embeddings, normalized."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, family = config.hidden_size, config.family
        self.padding_idx = config.pad_token_id if family.skips_padding else None
        self.word_embeddings = _table(config.vocab_size, width, padding=config.pad_token_id)
        positions = _table(config.max_position_embeddings, width, padding=self.padding_idx)
        if self.padding_idx is None:  # optimizers number weights in the order of transformers
            self.position_embeddings = positions
        self.token_type_embeddings = _table(config.type_vocab_size, width) if family.has_segments else None
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.position_embeddings = positions
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, words: Tensor, ids: Tensor | None, segments: Tensor | None) -> Tensor:
        """(N, T, D) word embeddings, their ids (N, T) and segments, all 0 if None, to (N, T, D)."""
        if self.token_type_embeddings is not None:
            kinds = self.token_type_embeddings
            words = words + (kinds.weight[0] if segments is None else kinds(segments))
        first = 0 if self.padding_idx is None else self.padding_idx + 1
        if self.padding_idx is None or ids is None:
            positions = self.position_embeddings.weight[first : first + words.shape[1]]
        else:
            counted = ids != self.padding_idx
            positions = self.position_embeddings(counted.cumsum(1) * counted + self.padding_idx)
        output: Tensor = self.dropout(self.LayerNorm(words + positions))
        return output


def _table(rows: int, width: int, *, padding: int | None = None) -> nn.Embedding:
    """An embedding table of any values: to draw them where there is no memory imports torch's compiler."""
    return nn.Embedding(rows, width, padding_idx=padding, _weight=torch.empty(rows, width))


class Layer(Joining):
    """Self-attention, then two linear layers with GELU between them; each added to its input and normalized."""

    joined: nn.Linear | None

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, wide, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
        self.paths = [path.split(".") for path in config.family.parts]
        self.drops_attention = config.family.drops_attention
        parts = [*(Linear(width, width) for _ in range(4)), nn.LayerNorm(width, eps=eps)]
        parts += [Linear(width, wide), Linear(wide, width), nn.LayerNorm(width, eps=eps)]
        for path, part in zip(config.family.parts, parts, strict=True):
            _place(self, path, part)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.heads, self.attention_dropout = config.num_attention_heads, config.attention_probs_dropout_prob
        self.joined = None

    def parts(self) -> list[Any]:
        """The modules of `paths`, without the slow attributes of modules."""
        return [reduce(lambda module, name: module._modules[name], path, cast(Any, self)) for path in self.paths]

    def join(self) -> None:
        """Query, key and value from one product."""
        parts = self.parts()[:3]
        if all(type(part) is Linear for part in parts):
            with torch.device("meta"):
                self.joined = nn.Linear(1, 1)
            for name in ("weight", "bias"):
                whole = torch.cat([getattr(part, name).detach() for part in parts])
                setattr(self.joined, name, nn.Parameter(whole, requires_grad=False))
            for path in self.paths[:3]:
                _place(self, ".".join(path), nn.Identity())

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(N, T, D) to (N, T, D)."""
        *parts, output, norm, wide, narrow, last = self.parts()
        if self.joined is not None:
            rows = self.joined(x).chunk(3, dim=-1)
        elif self.training and x.device.type != "cpu" and all(type(part) is Linear for part in parts):
            # Joined anew in each pass; on a CPU that costs more than three products.
            whole = (round_weights(*(getattr(part, name) for part in parts)) for name in ("weight", "bias"))
            rows = F.linear(x, *whole).chunk(3, dim=-1)
        else:
            rows = [part(x) for part in parts]
        shape = (*x.shape[:2], self.heads, -1)
        query, key, value = (each.view(shape).transpose(1, 2) for each in rows)
        rate = self.attention_dropout if self.training else 0.0
        read = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=rate)
        read = output(read.transpose(1, 2).reshape(x.shape))
        x = norm((self.dropout(read) if self.drops_attention else read) + x)
        states: Tensor = last(self.dropout(narrow(F.gelu(wide(x)))) + x)
        return states


def _place(module: nn.Module, path: str, part: nn.Module) -> None:
    """Make `part` the submodule at a path, whose modules are made where they are missing."""
    *places, name = path.split(".")
    for place in places:
        if place not in dict(module.named_children()):
            module.add_module(place, nn.Module())
        module = cast(nn.Module, getattr(module, place))
    module.add_module(name, part)


class Bert(nn.Module):
    """The network, called like that of transformers; its pooler, if it has one, is kept only for saving."""

    def __init__(self, config: Config, *, pooler: bool) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        _place(self, config.family.layers, nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers)))
        if config.family.is_relative:
            _place(self, _DISTANCES, _table(32, config.num_attention_heads))
        width = config.hidden_size
        self.pooler = nn.ModuleDict({"dense": nn.Linear(width, width)}) if pooler else None
        self.compiles = False

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
    ) -> States:
        """(N, T) ids, or their word embeddings (N, T, D), and a mask (N, T), 1 for tokens, to the states."""
        words = self.embeddings.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        if self.config.family.is_relative:
            table = cast(nn.Embedding, self.get_submodule(_DISTANCES))
            # Contiguous, or fused attention of CUDA refuses a chunk without padding, whose mask they are.
            terms = table(_buckets(words.shape[1], words.device)).permute(2, 0, 1).contiguous()
            mask = terms[None] if mask is None else terms.masked_fill(~mask, -math.inf)
        states = [self.embeddings(words, input_ids, token_type_ids)]
        run = _compile() if self.compiles and len(words) > 1 else Layer.__call__  # one row would be a graph of its own
        for layer in attrgetter(self.config.family.layers)(self):
            states.append(run(layer, states[-1], mask))
            if not output_hidden_states:
                del states[0]
        return States(states[-1], tuple(states) if output_hidden_states else None)

    def get_input_embeddings(self) -> nn.Embedding:
        """The word embeddings."""
        return self.embeddings.word_embeddings


def compile_layers(encoder: nn.Module) -> None:
    """Run the layers of every backbone in an encoder through torch.compile. EncoderError if one can't be."""
    for part in encoder.modules():
        if (backbone := getattr(part, "backbone", None)) is not None and not isinstance(backbone, Bert):
            raise EncoderError(f"compile: a {type(backbone).__name__} is run by transformers; leave compile out")
        if isinstance(part, Bert):
            part.compiles = True


@cache
def _compile() -> Callable[[Layer, Tensor, Tensor | None], Tensor]:
    """A layer through torch.compile: one for all layers and models, since a graph takes the weights as inputs.

    Sizes are dynamic, so that chunks of other lengths need no further graphs.
    """
    return torch.compile(Layer.forward, dynamic=True)


def _buckets(length: int, device: torch.device) -> Tensor:
    """(T, T) the bucket of the distance from each token to each: 16 forward, 16 backward; beyond 8, on a log scale."""
    place = torch.arange(length, device=device)
    distance = place[None] - place[:, None]
    size = distance.abs()
    scaled = (size.clamp(min=1) / _EXACT).log() / math.log(_FAR / _EXACT) * _EXACT
    far = (_EXACT + scaled.long()).clamp(max=2 * _EXACT - 1)
    return torch.where(size < _EXACT, size, far) + 2 * _EXACT * (distance > 0)


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a config.json by the names of BERT, with defaults."""
    family = FAMILIES[config["model_type"]]
    names = {theirs: name for name, theirs in family.keys.items()}
    return {**_DEFAULTS, "pad_token_id": family.pad, **{names.get(key, key): value for key, value in config.items()}}


def fits(config: Mapping[str, Any]) -> bool:
    """Whether a config.json describes nothing but what is here."""
    if config.get("model_type") not in FAMILIES:
        return False
    settings = {**_REQUIRED, **_settings(config)}
    if FAMILIES[config["model_type"]].is_relative and settings["pad_token_id"] != 1:
        return False  # positions of MPNet take it for 1
    return all(settings[key] in (usual, None) for key, usual in _REQUIRED.items())


def build(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Bert | None:
    """The network of a config.json that fits, with these weights, which it shares; None if they are not those of it.

    The names of weights may begin with a prefix, as in a model with a head, whose other weights are left out.
    """
    settings = Config(**_settings(config))
    prefix = f"{settings.family.prefix}."
    has_head = any(name.startswith(prefix) for name in weights)
    named = {}
    for name, value in weights.items():
        if name.startswith(prefix) or not has_head:
            for old, new in _OLD.items():
                name = name.replace(old, new)
            named[name.removeprefix(prefix)] = value
    named = {name: value for name, value in named.items() if name not in _IGNORED}
    if settings.hidden_size % settings.num_attention_heads or settings.pad_token_id not in range(settings.vocab_size):
        return None
    with torch.device("meta"):
        model = Bert(settings, pooler="pooler.dense.weight" in named)
    expected = {name: value.shape for name, value in model.state_dict().items()}
    if {name: value.shape for name, value in named.items()} != expected:
        return None
    if any(value.dtype != torch.float32 for value in named.values()):
        return None
    model.load_state_dict(named, assign=True)
    return model.eval()
