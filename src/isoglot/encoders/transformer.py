"""The transformer encoder: a backbone, our own BERT or any of Hugging Face, and a pooling over its tokens.

Token ids stay ragged until the backbone is called, so a chunk is padded only to its own longest sentence. The
backbone's own pooler, if a checkpoint has one, is frozen and never used, and kept only for saving.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isoglot.core.arguments import Range, check_arguments
from isoglot.data.batch import send
from isoglot.data.tokens import Tokens
from isoglot.encoders import adapters
from isoglot.encoders.base import Encoder
from isoglot.encoders.bert import Bert, Config, compile_layers
from isoglot.encoders.int8 import quantize
from isoglot.encoders.layers import Dense, write_layer_mean, write_weights
from isoglot.encoders.onnx_export import write_onnx
from isoglot.encoders.pooling import POOLINGS, mean
from isoglot.encoders.rounding import for_inference
from isoglot.encoders.switches import attending, quiet
from isoglot.model import Model, layout
from isoglot.model.tokenizer import SavedTokenizer, add_prompt, disable_extras, tokenize_rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from isoglot.encoders.settings import AdapterSettings

_LEAST_COSINE = 0.9995  # of a vector in bfloat16 with that in float32
_SENTENCES = (
    "The train to the coast leaves at half past seven, and it is full in summer.",
    "Wo ist der nächste Bahnhof?",
    "Сколько стоит билет на поезд?",
    "明日は雨が降るでしょう。",
    "أين أقرب محطة؟",
    "गर्मियों में ट्रेन भरी रहती है।",
)


class TransformerEncoder(Encoder):
    """A backbone, `bert.Bert` or one from `transformers`, with its fast tokenizer, and a pooling.

    pooling            a name in `POOLINGS`
    max_length         maximum tokens per sentence; None: what tokenizer and backbone allow
    head               `tanh`: a new linear layer with tanh after cls pooling, in training mode only, never saved
                       (SimCSE); `kept`: the same layer, saved and used at inference too (EASE, table 10); or `none`
    prompt             put before every text
    prompts            further prompts by name
    layers             keep only the first n layers of the backbone, or those with these numbers, from 1: a list,
                       or "every 3rd" (1, 4, 7, ...)
    dim                width of a new linear layer after the pooling, at first a random rotation; None: no new layer
    freeze_embeddings  do not train the word embeddings, most of a small multilingual model's weights
    train_layers       train only these layers of the backbone, numbered from 1: "6-12"; all else there is frozen
    adapter            train low-rank matrices instead of the linear layers of all layers or of train_layers, and
                       nothing else of what is saved (see adapters.py)
    sparse_embeddings  give the word embeddings row-sparse gradients (for `torch.optim.SparseAdam`)
    projections        layers after the pooling that a saved model has (see layers.py)
    normalizes         saved with a Normalize module, so that `encode` gives unit vectors by default
    dropout            probability of dropout in training, everywhere in the backbone; None: as its config.json says
    compile            run the layers through torch.compile, which takes a minute at the first chunks
    seed               random seed of the weights of head, new layer and adapter

    Raises ValueError for settings that contradict each other or the backbone.
    """

    pad: int
    backbone: Any  # PreTrainedModel | Bert
    tokenizer: Any  # PreTrainedTokenizerFast | SavedTokenizer

    @check_arguments()
    def __init__(
        self,
        backbone: PreTrainedModel | Bert,
        tokenizer: PreTrainedTokenizerFast | SavedTokenizer,
        *,
        pooling: str = "mean",
        max_length: int | None = None,
        head: Literal["none", "tanh", "kept"] = "none",
        prompt: str = "",
        prompts: Mapping[str, str] | None = None,
        layers: int | str | Sequence[int] | None = None,
        dim: Annotated[int, Range(1, 1 << 16)] | None = None,
        freeze_embeddings: bool = False,
        train_layers: str | None = None,
        adapter: AdapterSettings | Mapping[str, Any] | None = None,
        sparse_embeddings: bool = False,
        projections: Sequence[Dense] = (),
        normalizes: bool = False,
        dropout: Annotated[float, Range(0, 0.99)] | None = None,
        compile: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}")
        if head != "none" and pooling != "cls":
            raise ValueError(f"a head belongs to cls pooling, got pooling {pooling!r} with head={head!r}")
        self._length = _limit_length(backbone, tokenizer, max_length)
        self.backbone, self.tokenizer = backbone, tokenizer
        disable_extras(tokenizer.backend_tokenizer)
        self.pooling, self.prompt, self.normalizes = pooling, prompt, normalizes
        self.prompts = dict(prompts or {})
        self.concurrent = not POOLINGS[pooling].is_layered  # transformers 4 does not guarantee thread safety there
        self.layers = None if layers is None else _keep_layers(backbone, layers)
        if (pooler := getattr(backbone, "pooler", None)) is not None:
            pooler.requires_grad_(False)
        if dropout is not None:
            _set_dropout(backbone, dropout)
        words = backbone.get_input_embeddings()
        words.requires_grad_(not freeze_embeddings)
        words.sparse = sparse_embeddings
        self.hidden = int(backbone.config.hidden_size)
        self.new_layer = f"dim={dim}" if dim is not None else "head='kept'" if head == "kept" else ""
        if head == "kept":
            projections = [_head(self.hidden, seed), *projections]
        if dim is not None:
            width = projections[-1].linear.out_features if projections else self.hidden
            # Orthonormal rows or columns change angles as little as the width allows.
            projections = [*projections, _new_layer(width, dim, nn.init.orthogonal_, seed)]
        self.projections = nn.ModuleList(projections)
        self.dim = projections[-1].linear.out_features if projections else self.hidden
        self.head = _head(self.hidden, seed) if head == "tanh" else None
        self.pad = int(tokenizer.pad_token_id or 0)
        self.adapter: adapters.Attached | None = None
        self.restrict(train_layers=train_layers, adapter=adapter, seed=seed)
        if compile:
            compile_layers(self)

    def restrict(
        self,
        *,
        train_layers: str | None = None,
        adapter: AdapterSettings | Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Freeze the weights that these settings exclude from training. Raises ValueError."""
        if adapter is not None:
            if self.new_layer:
                raise ValueError(f"an adapter trains nothing else: a new layer ({self.new_layer}) would stay random")
            from isoglot.encoders.settings import AdapterSettings

            try:
                adapter = AdapterSettings.model_validate(adapter)
            except ValueError as error:
                raise ValueError(f"adapter: {error}") from error
        attached = adapters.restrict(self.backbone, train_layers=train_layers, adapter=adapter, seed=seed)
        if attached is not None:
            self.adapter = attached
            self.projections.requires_grad_(False)

    @property
    def max_length(self) -> int:
        """Maximum tokens per text, which the backbone must have positions for: else setting it raises ValueError."""
        return self._length

    @max_length.setter
    def max_length(self, value: int) -> None:
        self._length = _limit_length(self.backbone, self.tokenizer, value)

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids with special tokens; a text without tokens becomes one padding token."""
        prompted = add_prompt(texts, prompt, self.prompt)
        return tokenize_rows(
            self.tokenizer.backend_tokenizer, prompted, max_length=self.max_length, special=True, filler=self.pad
        )

    def prepared(self, tokens: Tokens) -> Tokens:
        """The tokens with their padded table, in memory that copies to an accelerator do not wait for."""
        table = _tensors(tokens, self.pad)
        if self.device.type not in ("cpu", "mps"):
            table = tuple(part if part is None else part.pin_memory() for part in table)
        return Tokens(tokens.ids, tokens.lengths, table)

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D) in float32, or wider if the backbone is."""
        if not len(tokens):
            return torch.zeros(0, self.dim, device=self.device)
        states, mask = self._run(tokens)
        vectors = POOLINGS[self.pooling](states, mask)
        if self.head is not None and self.training:
            vectors = self.head(vectors)
        for projection in self.projections:
            vectors = projection(vectors)
        return vectors.to(torch.promote_types(vectors.dtype, torch.float32))

    def states(self, tokens: Tokens, precision: str) -> NDArray[np.float32]:
        """(N, T, H) the last states of the tokens of N texts."""
        with self.computing(precision):
            states: NDArray[np.float32] = self._run(tokens)[0][-1].float().cpu().numpy()
        return states

    def _run(self, tokens: Tokens) -> tuple[Sequence[Tensor], Tensor | None]:
        """The states (N, T, H) that are pooled, the last ones last, and the mask (N, T)."""
        table = tokens.table or _tensors(tokens, self.pad)
        ids, mask = (part if part is None else send(part, self.device) for part in table)
        layered = POOLINGS[self.pooling].is_layered
        # Without a mask where nothing is padded: attention is faster, and transformers need not read the mask.
        with attending(self.device):
            output = self.backbone(input_ids=ids, attention_mask=mask, output_hidden_states=layered)
        return output.hidden_states if layered else (output.last_hidden_state,), mask

    @cached_property
    def keeps_bfloat16(self) -> bool:
        """Whether vectors in bfloat16 keep their direction, measured once on sentences in six languages.

        A small difference of large states, such as the whitened first token of some models, is lost in bfloat16, and
        nothing but the vectors shows which models have one.
        """
        encode = partial(self.encode, _SENTENCES, normalize_embeddings=True)
        cosines = np.einsum("nd,nd->n", encode(precision="float32"), encode(precision="bfloat16"))
        return bool(cosines.min() >= _LEAST_COSINE)

    def at(self, precision: str) -> Model:
        """The encoder or its copy for inference, or its graph in int8."""
        return quantize(self) if precision == "int8" else for_inference(self, precision)

    def save_graph(self, folder: str | Path, *, name: str | None, words: Any) -> None:
        """Write a folder whose weights are a graph for ONNX Runtime."""
        write_onnx(self, folder, name=name, words=words)

    def write(self, folder: Path, *, name: str | None = None) -> None:
        """Write backbone, tokenizer and pooling in the sentence-transformers layout; never a training head.

        An adapter is merged, and saved alone in `folder`/adapter if the backbone is what `isoglot.load` opened.
        """
        merged = adapters.merge_adapters(self.backbone)
        if isinstance(merged, Bert):
            write_weights(folder, merged.state_dict())
        else:
            with quiet():
                merged.save_pretrained(folder)
        self.write_settings(folder, name=name)
        if self.adapter is not None and self.origin:
            unchanged = {key: getattr(self, key) for key in ("pooling", "max_length", "prompt", "prompts", "layers")}
            settings = {"name": name or "", **unchanged}
            adapters.write(folder / adapters.FOLDER, self.backbone, self.adapter, self.origin, settings)

    def write_settings(self, folder: Path, *, name: str | None = None) -> None:
        """Write all files of a saved model but the weights of the backbone."""
        kinds = [("Transformer", "")]

        def add(kind: str, ending: str) -> Path:
            kinds.append((kind, f"{len(kinds)}_{ending}"))
            return folder / kinds[-1][1]

        pooling, name_of_pooling = POOLINGS[self.pooling], self.pooling
        if pooling.is_layered and pooling.function is mean:
            depth, name_of_pooling = int(self.backbone.config.num_hidden_layers), "mean"
            write_layer_mean(add("WeightedLayerPooling", "Layers"), pooling.layers, depth, self.hidden)
        layout.write_pooling(add("Pooling", "Pooling"), name_of_pooling, self.hidden)
        for projection in self.projections:
            cast(Dense, projection).save(add("Dense", "Dense"))
        if self.normalizes:
            add("Normalize", "Normalize")
        self._write_config(folder)
        layout.write_tokenizer(folder, self.tokenizer, self.max_length, has_pooler=not self._lacks_pooler)
        layout.write_modules(folder, kinds, prompt=self.prompt, prompts=self.prompts, name=name)

    @property
    def _lacks_pooler(self) -> bool:
        """Whether transformers would make a pooler for this backbone that it does not have."""
        if isinstance(self.backbone, Bert):
            makes_one = self.backbone.config.family.has_pooler
        else:
            makes_one = "add_pooling_layer" in inspect.signature(type(self.backbone).__init__).parameters
        return makes_one and getattr(self.backbone, "pooler", None) is None

    def _write_config(self, folder: Path) -> None:
        config = self.backbone.config
        architecture = config.family.architecture if isinstance(config, Config) else type(self.backbone).__name__
        changes = {
            "architectures": [architecture],
            "dtype": str(self.backbone.get_input_embeddings().weight.dtype).removeprefix("torch."),
            "output_hidden_states": POOLINGS[self.pooling].is_layered,  # where sentence-transformers looks for it
        }
        layout.write_json(folder / "config.json", {**json.loads(config.to_json_string()), **changes})


def _tensors(tokens: Tokens, pad: int) -> tuple[Tensor | None, ...]:
    """Padded ids and mask (N, T) as tensors; None instead of a mask where nothing is padded."""
    return tuple(part if part is None else torch.from_numpy(part) for part in tokens.pad(pad))


def _set_dropout(backbone: nn.Module, rate: float) -> None:
    """Set every dropout layer, and the numbers with this word in their name that attention reads; not the config."""
    for module in backbone.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        for name in [name for name, value in vars(module).items() if "dropout" in name and isinstance(value, float)]:
            setattr(module, name, rate)


def _new_layer(dim: int, out: int, draw: Callable[..., object], seed: int, activation: str = "Identity") -> Dense:
    """A layer whose weights `draw` draws and whose biases are zero."""
    layer = Dense(dim, out, activation=activation)
    draw(layer.linear.weight, generator=torch.Generator().manual_seed(seed))
    nn.init.zeros_(layer.linear.bias)
    return layer


def _head(dim: int, seed: int) -> Dense:
    """Linear and tanh, initialized like BERT's layers."""
    return _new_layer(dim, dim, partial(nn.init.normal_, std=0.02), seed, "Tanh")


def _limit_length(backbone: Any, tokenizer: Any, wish: int | None) -> int:
    """The requested length if the backbone has positions for it; by default the maximum of tokenizer and backbone."""
    positions = int(getattr(backbone.config, "max_position_embeddings", 0) or 10**9)
    if getattr(getattr(backbone, "embeddings", None), "padding_idx", None) is not None:
        positions -= int(backbone.embeddings.padding_idx) + 1  # RoBERTa numbers its positions from there
    if wish is None:
        wish = min(positions, int(tokenizer.model_max_length), 8192)
    if not 2 <= wish <= positions:
        raise ValueError(f"max_length must lie between 2 and the backbone's {positions} positions, got {wish}")
    return wish


def _keep_layers(backbone: Any, wish: int | str | Sequence[int]) -> list[int]:
    """Drop all other layers, and return the numbers of the kept ones, from 1."""
    depth = int(backbone.config.num_hidden_layers)
    if isinstance(wish, str):
        match = re.fullmatch(r"every (\d+)(?:st|nd|rd|th)", wish)
        numbers = list(range(1, depth + 1, int(match[1]))) if match and int(match[1]) else []
    else:
        numbers = list(range(1, min(wish, depth + 1) + 1)) if isinstance(wish, int) else list(wish)
    if not numbers or numbers != sorted(set(numbers)) or not 1 <= numbers[0] <= numbers[-1] <= depth:
        wanted = "a number, an increasing list or 'every 3rd'"
        raise ValueError(f"layers must be {wanted}, between 1 and the backbone's {depth}, got {wish!r}")
    layers = adapters.stack(backbone)
    for number in sorted({*range(1, depth + 1)} - {*numbers}, reverse=True):
        del layers[number - 1]
    backbone.config.num_hidden_layers = len(numbers)
    if types := getattr(backbone.config, "layer_types", None):
        backbone.config.layer_types = [types[number - 1] for number in numbers]
    return numbers
