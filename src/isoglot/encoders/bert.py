"""BERT (Devlin et al. 2019) as a module of its own, opened without importing transformers.

Importing transformers takes longer than opening a small model and encoding with it. The packaged models are BERTs, so
this one network is here: its parameters have the names that transformers gives them, saved folders are the same, and
outputs and gradients agree (tests/encoders/test_bert.py). A folder with anything unusual, such as another activation,
relative positions, half precision or a missing tensor, is left to transformers and its errors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# What transformers assumes of keys that a config.json lacks.
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
    "pad_token_id": 0,
}
_REQUIRED = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "quantization_config": None,
    "dtype": "float32",
    "torch_dtype": "float32",
}
_IGNORED = ("embeddings.position_ids", "embeddings.token_type_ids")  # saved by old versions


class Config(SimpleNamespace):
    """config.json with defaults for missing keys, as attributes."""

    def to_dict(self) -> dict[str, Any]:
        """The keys and values."""
        return dict(vars(self))

    def to_json_string(self, **_: Any) -> str:
        """The keys and values as JSON."""
        return json.dumps(vars(self), indent=2, sort_keys=True) + "\n"


class States(NamedTuple):
    """The last layer's states (N, T, D), and if wanted those of the embedding layer and of every layer."""

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...] | None = None


class Embeddings(nn.Module):
    """The sum of word, segment and position embeddings, normalized."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = _table(config.vocab_size, width, padding=config.pad_token_id)
        self.position_embeddings = _table(config.max_position_embeddings, width)
        self.token_type_embeddings = _table(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, words: Tensor, segments: Tensor | None) -> Tensor:
        """(N, T, D) word embeddings and (N, T) segments, all 0 if None, to (N, T, D)."""
        kinds = self.token_type_embeddings.weight[0] if segments is None else self.token_type_embeddings(segments)
        positions = self.position_embeddings.weight[: words.shape[1]]
        output: Tensor = self.dropout(self.LayerNorm(words + kinds + positions))
        return output


def _table(rows: int, width: int, *, padding: int | None = None) -> nn.Embedding:
    """An embedding table of any values: to draw them where there is no memory imports torch's compiler."""
    return nn.Embedding(rows, width, padding_idx=padding, _weight=torch.empty(rows, width))


class SelfAttention(nn.Module):
    """Scaled dot-product attention of `num_attention_heads` heads."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads, self.dropout = config.num_attention_heads, config.attention_probs_dropout_prob
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(N, T, D) to (N, T, D)."""
        shape = (*x.shape[:2], self.heads, -1)
        query, key, value = (layer(x).view(shape).transpose(1, 2) for layer in (self.query, self.key, self.value))
        rate = self.dropout if self.training else 0.0
        output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=rate)
        return output.transpose(1, 2).reshape(x.shape)


class Output(nn.Module):
    """A linear layer and dropout, added to the input of the block, normalized."""

    def __init__(self, config: Config, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        """(N, T, `width`) and (N, T, D) to (N, T, D)."""
        output: Tensor = self.LayerNorm(self.dropout(self.dense(x)) + before)
        return output


class Layer(nn.Module):
    """A layer: self-attention, then two linear layers with GELU between them."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = nn.ModuleDict({"self": SelfAttention(config), "output": Output(config, config.hidden_size)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(config.hidden_size, config.intermediate_size)})
        self.output = Output(config, config.intermediate_size)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(N, T, D) to (N, T, D)."""
        x = self.attention["output"](self.attention["self"](x, mask), x)
        output: Tensor = self.output(F.gelu(self.intermediate["dense"](x)), x)
        return output


class Bert(nn.Module):
    """The network, called like `transformers.BertModel`; its pooler, if it has one, is kept only for saving."""

    def __init__(self, config: Config, *, pooler: bool) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layer": layers})
        width = config.hidden_size
        self.pooler = nn.ModuleDict({"dense": nn.Linear(width, width)}) if pooler else None

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
        states = [self.embeddings(words, token_type_ids)]
        for layer in cast(nn.ModuleList, self.encoder["layer"]):
            states.append(layer(states[-1], mask))
            if not output_hidden_states:
                del states[0]
        return States(states[-1], tuple(states) if output_hidden_states else None)

    def get_input_embeddings(self) -> nn.Embedding:
        """The word embeddings."""
        return self.embeddings.word_embeddings

    def save_pretrained(self, folder: Path) -> None:
        """Write config.json and model.safetensors as transformers does."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().cpu().contiguous() for name, value in self.state_dict().items()}
        dtype = str(self.get_input_embeddings().weight.dtype).removeprefix("torch.")
        self.config.architectures, self.config.dtype = ["BertModel"], dtype
        (folder / "config.json").write_text(self.config.to_json_string(), encoding="utf-8")
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def fits(config: Mapping[str, Any]) -> bool:
    """Whether a config.json describes nothing but what is here."""
    settings = {**_REQUIRED, **config}
    return "model_type" in config and all(settings[key] in (usual, None) for key, usual in _REQUIRED.items())


def build(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Bert | None:
    """The network of a config.json that fits, with these weights, which it shares; None if they are not those of it.

    The names of weights may begin with `bert.`, as in a model with a head.
    """
    named = {name.removeprefix("bert."): value for name, value in weights.items()}
    named = {name: value for name, value in named.items() if name not in _IGNORED}
    settings = Config(**{**_DEFAULTS, **config})
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
