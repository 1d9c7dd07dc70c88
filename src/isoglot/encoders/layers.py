"""Layers after an encoder's vectors: dense layers, normalizing flows, and an encoder with one of them.

LaBSE and the distilled USE models end in a dense layer. sentence-transformers expresses first-last pooling as a
weighted mean over the states of all layers; so it is read and written as that.

The flow is Glow over a vector, as in BERT-flow (Li et al. 2020): an invertible network z = f(x) under which the vectors
are as likely as possible if z is normal: its density is p(x) = N(f(x); 0, I) |det df/dx| (their eq. 2), and cosines are
then taken between the z. Glow is made for images; a vector of D dimensions is read as D channels of one pixel, so
Glow's squeezing, which trades pixels for channels, has nothing to do. A level is `depth` steps of actnorm, permutation
and additive coupling; after each level but the last the second half of the channels is done and the first half
continues. Odd widths: the first half is the larger by one. The permutation is random in the paper and reverses the
channels in its code; the rest is as in the code.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.core.errors import EncoderError
from isoglot.data.tokens import Tokens
from isoglot.encoders.base import Encoder
from isoglot.encoders.pooling import POOLINGS, mean
from isoglot.model import configs, layout, packed
from isoglot.model.finding import ADAPTER

PICKLED = "no weights can be read from it without running the code in it; use a copy saved as safetensors"
ACTIVATIONS: dict[str, type[nn.Module]] = {"Identity": nn.Identity, "Tanh": nn.Tanh, "ReLU": nn.ReLU, "GELU": nn.GELU}


class Dense(nn.Module):
    """(N, `dim`) to (N, `out`): a linear layer and an activation, a key of `ACTIVATIONS`; drawn by torch's own seed."""

    module_type = "sentence_transformers.models.Dense"  # in modules.json

    def __init__(self, dim: int, out: int, *, bias: bool = True, activation: str = "Tanh") -> None:
        super().__init__()
        self.dim, self.out = dim, out
        self.linear = nn.Linear(dim, out, bias=bias)
        self.activation = ACTIVATIONS[activation]()

    def forward(self, vectors: Tensor) -> Tensor:
        """The projected vectors."""
        projected: Tensor = self.activation(self.linear(vectors))
        return projected

    def save(self, folder: Path) -> None:
        """Write config.json and the weights into a module folder."""
        config = {
            "in_features": self.dim,
            "out_features": self.out,
            "bias": self.linear.bias is not None,
            "activation_function": f"{type(self.activation).__module__}.{type(self.activation).__name__}",
        }
        layout.write_json(folder / "config.json", config)  # makes the folder
        write_weights(folder, self.state_dict())


def read_dense(folder: Path) -> Dense:
    """The dense layer saved in a module folder; EncoderError if it is of a kind we do not run."""
    config = configs.read(folder / "config.json", configs.Dense)
    activation = config.activation_function.rsplit(".", 1)[-1]
    if activation not in ACTIVATIONS:
        raise EncoderError(f"{folder}: unknown activation {activation!r}; known are {', '.join(ACTIVATIONS)}")
    with torch.device("meta"):  # the sizes in config.json take no memory
        layer = Dense(config.in_features, config.out_features, bias=config.bias, activation=activation)
    weights = {name: weight.float() for name, weight in read_weights(folder).items()}
    with configs.reading(folder):
        layer.load_state_dict(weights, assign=True)
    return layer


def read_layer_mean(folder: Path, depth: int) -> str:
    """The pooling that is the saved mean of `depth` layers, such as `first-last`; EncoderError for any other."""
    config = configs.read_if_there(folder / "config.json", configs.LayerMean)
    saved = read_weights(folder).get("layer_weights", torch.zeros(0))
    weights, start = saved.flatten().tolist(), config.layer_start
    used = {start + layer: weight for layer, weight in enumerate(weights) if weight != 0}
    last = config.num_hidden_layers or start + len(weights) - 1
    if last != depth:
        raise EncoderError(f"{folder}: is a mean of {last} layers, and the model has {depth}")
    for name, pooling in POOLINGS.items():
        layers = {layer % (depth + 1) for layer in pooling.layers}
        if pooling.function is mean and used.keys() == layers and len({*used.values()}) == 1:
            return name
    raise EncoderError(f"{folder}: only the mean of the first and the last layer is run, not weights {weights}")


def write_layer_mean(folder: Path, layers: Sequence[int], depth: int, dim: int) -> None:
    """The module folder that averages these of `depth` layers."""
    weights = torch.zeros(depth + 1)
    weights[list(layers)] = 1
    config = {"word_embedding_dimension": dim, "layer_start": 0, "num_hidden_layers": depth}
    layout.write_json(folder / "config.json", config)
    write_weights(folder, {"layer_weights": weights})


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a module folder, from safetensors or an older pickle read without running its code."""
    if packed.is_packed(folder):
        return {name: torch.from_numpy(array) for name, array in packed.read_weights(folder).items()}
    if (folder / "model.safetensors").is_file():
        return read_tensors(folder / "model.safetensors")
    path = folder / "pytorch_model.bin"
    if not path.is_file():
        raise EncoderError(f"{folder}: contains no weights; model.safetensors is missing")
    try:
        loaded: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
        if not all(isinstance(value, Tensor) for value in loaded.values()):
            raise TypeError("holds other things than tensors")
    except Exception as error:  # a pickle may raise anything, and hold anything; what torch advises is to run it
        raise EncoderError(f"{path}: {PICKLED}") from error
    return loaded


def read_tensors(file: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises EncoderError."""
    from safetensors.torch import load_file

    with configs.reading(file):
        return load_file(file)


def write_weights(folder: Path, weights: dict[str, Tensor]) -> None:
    """The tensors of a module folder, as safetensors."""
    from safetensors.torch import save_file

    copied = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
    save_file(copied, folder / "model.safetensors", metadata={"format": "pt"})  # without which transformers reads none


# Flows

_FASTER = 3.0  # log-scales are stored divided by this, so that they learn faster by this factor (published code)


class ActNorm(nn.Module):
    """y = (x + b) e^s per channel, set by the first batch in training mode so that y has mean zero and variance one."""

    ready: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.shift, self.log_scale = nn.Parameter(torch.zeros(dim)), nn.Parameter(torch.zeros(dim))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x: Tensor) -> Tensor:
        """(N, D) to (N, D)."""
        if self.training and not self.ready:
            with torch.no_grad():
                self.shift.copy_(-x.mean(0))
                self.log_scale.copy_(-(x.std(0, unbiased=False) + 1e-6).log() / _FASTER)
                self.ready.fill_(True)
        return (x + self.shift) * (_FASTER * self.log_scale).exp()

    @property
    def log_det(self) -> Tensor:
        """The log of |det dy/dx|, the same for every x: the sum of s."""
        return _FASTER * self.log_scale.sum()


class Step(nn.Module):
    """Actnorm, a fixed permutation P of the channels, and the additive coupling (a, b) -> (a, b + m(a)).

    m has two hidden layers of `width`, each with actnorm and ReLU, and begins as zero; its shape is that of Glow, with
    1 x 1 convolutions, which over one pixel are linear layers.
    """

    order: Tensor

    def __init__(self, dim: int, width: int, order: Tensor, draw: torch.Generator) -> None:
        super().__init__()
        half = (dim + 1) // 2
        self.norm = ActNorm(dim)
        self.register_buffer("order", order)
        hidden = [nn.Linear(half, width, bias=False), nn.Linear(width, width, bias=False)]
        for layer in hidden:
            nn.init.normal_(layer.weight, std=0.05, generator=draw)
        last = nn.Linear(width, dim - half)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.net = nn.Sequential(hidden[0], ActNorm(width), nn.ReLU(), hidden[1], ActNorm(width), nn.ReLU(), last)
        self.log_scale = nn.Parameter(torch.zeros(dim - half))

    def forward(self, x: Tensor) -> Tensor:
        """(N, D) to (N, D); only the actnorm changes volume."""
        a, b = self.norm(x)[:, self.order].chunk(2, dim=1)
        shift = self.net(a) * (_FASTER * self.log_scale).exp()
        return torch.cat([a, b + shift], dim=1)


class Flow(nn.Module):
    """(N, D) to (N, D), invertible: `levels` of `depth` steps, couplings of `width`.

    permutation  random: of each step, drawn with `seed` and saved (the paper); reversed: the channels (its code)
    seed         random seed of permutations and weights

    Raises ValueError for another permutation, sizes below one, or fewer than two channels left for the last level.
    """

    module_type = "isoglot.encoders.layers.Flow"

    @check_arguments()
    def __init__(
        self,
        dim: int,
        *,
        levels: PositiveInt = 3,
        depth: PositiveInt = 3,
        width: PositiveInt = 32,
        permutation: configs.Permutation = "random",
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.config = {"dim": dim, "levels": levels, "depth": depth, "width": width, "permutation": permutation}
        self.dim = self.out = dim
        self.levels = nn.ModuleList()
        draw = torch.Generator().manual_seed(seed)
        for _ in range(levels):
            if dim < 2:
                raise ValueError(f"vectors of {self.dim} dimensions cannot be halved for {levels} levels; take fewer")
            is_random = permutation == "random"
            orders = [
                torch.randperm(dim, generator=draw) if is_random else torch.arange(dim).flip(0) for _ in range(depth)
            ]
            self.levels.append(nn.Sequential(*(Step(dim, width, order, draw) for order in orders)))
            dim = (dim + 1) // 2

    def forward(self, vectors: Tensor | MutableMapping[str, Any]) -> Tensor | MutableMapping[str, Any]:
        """The z of vectors (N, D): what each level gave off, then the rest.

        Handed the features of sentence-transformers, a mapping, it takes and puts back their `sentence_embedding`.
        """
        if not isinstance(vectors, Tensor):
            vectors["sentence_embedding"] = self(vectors["sentence_embedding"])
            return vectors
        *halving, last = self.levels
        done = []
        for level in halving:
            vectors, off = level(vectors).chunk(2, dim=1)
            done.append(off)
        return torch.cat([*done, last(vectors)], dim=1)

    def log_likelihood(self, vectors: Tensor) -> Tensor:
        """(N,) log p(x) in nats: -(|z|^2 + D log 2 pi) / 2 + log |det dz/dx|."""
        z: Tensor = self(vectors)
        log_det = torch.stack([step.norm.log_det for step in _all_steps(self)]).sum()
        return log_det - (z.square().sum(1) + self.dim * math.log(2 * math.pi)) / 2

    @property
    def device(self) -> torch.device:
        """Where the flow is."""
        return next(self.parameters()).device

    def save(self, folder: str | Path, *_: Any, **__: Any) -> None:
        """Write config.json and the weights into a module folder, as sentence-transformers asks its modules to."""
        layout.write_json(Path(folder) / "config.json", self.config)
        write_weights(Path(folder), self.state_dict())

    @staticmethod
    def load(folder: str) -> Flow:
        """The flow in a module folder, as sentence-transformers asks for it. Raises EncoderError."""
        return read_flow(Path(folder))


def read_flow(folder: Path) -> Flow:
    """The flow saved in a module folder; EncoderError if its settings or weights are not one's."""
    config, weights = configs.read(folder / "config.json", configs.Flow), read_weights(folder)
    with configs.reading(f"{folder}: the flow"):
        _require_sizes(config, weights)
        flow = Flow(**config.model_dump())
        flow.load_state_dict(weights)
        if any((step.order.sort().values != torch.arange(len(step.order))).any() for step in _all_steps(flow)):
            raise ValueError("an order of channels names one twice")
    return flow.eval()


def _require_sizes(config: configs.Flow, weights: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless weights of about the described size are there: a flow is built before it is filled."""
    first, last = weights.get("levels.0.0.norm.shift"), f"levels.{config.levels - 1}.{config.depth - 1}.norm.shift"
    hidden = weights.get("levels.0.0.net.3.weight")
    if first is None or hidden is None or last not in weights:
        raise ValueError("config.json describes more levels or steps than there are weights")
    if first.shape != (config.dim,) or hidden.shape != (config.width, config.width):
        raise ValueError(f"the weights are not of dim {config.dim} and width {config.width}, as config.json says")


def _all_steps(flow: Flow) -> list[Step]:
    return [part for part in flow.modules() if isinstance(part, Step)]


# Encoders made of others

Layer = Dense | Flow


def _delegate(name: str) -> Any:
    """A property of a `Wrapper`: the attribute of its first part, set in all of them."""

    def write(self: Any, value: Any) -> None:
        for part in self.parts:
            setattr(getattr(self, part), name, value)

    return property(lambda self: getattr(getattr(self, self.parts[0]), name), write)


class Wrapper(Encoder):
    """An encoder made of others, its `parts`, which read the same tokens and have the same settings."""

    parts: tuple[str, ...]
    prompt, prompts, pooling = map(_delegate, ("prompt", "prompts", "pooling"))  # poolings are part of the identity
    normalizes, max_length, fingerprint = map(_delegate, ("normalizes", "max_length", "fingerprint"))

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids as the first part gives them."""
        tokens: Tokens = getattr(self, self.parts[0]).tokenize(texts, prompt=prompt)
        return tokens

    def prepared(self, tokens: Tokens) -> Tokens:
        """The tokens as the first part prepares them."""
        made: Tokens = getattr(self, self.parts[0]).prepared(tokens)
        return made


class WithLayer(Wrapper):
    """`encoder`, which is shared and not copied, and `layer` after it; tokens, prompt and length are the encoder's.

    The layer comes after the pooling and before any scaling to length one, here and in the saved folder. So a layer
    that is fitted later (fitting.py) becomes a part of the model. A transformer has a place of its own for dense
    layers, and a folder that ends in these alone is read as one.

    Raises ValueError if the layer takes vectors of another width.
    """

    parts = ("own",)

    def __init__(self, encoder: Encoder, layer: Layer) -> None:
        super().__init__()
        if layer.dim != encoder.dim:
            raise ValueError(f"the layer takes {layer.dim} dimensions and the encoder gives {encoder.dim}")
        self.own, self.layer = encoder, layer
        self.dim, self.pads, self.concurrent = layer.out, encoder.pads, encoder.concurrent
        self.name, self.card = encoder.name, encoder.card and encoder.card.derive(encoder.name)
        self.train(encoder.training)

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D): the encoder's raw vectors, through the layer."""
        weight = next(self.layer.parameters())
        vectors: Tensor = self.layer(self.own(tokens).to(weight.dtype))
        return vectors

    def write(self, folder: Path, *, name: str | None = None) -> None:
        """Write the encoder's folder with the layer as one more module, before Normalize if it ends in that."""
        self.own.write(folder, name=name)
        shutil.rmtree(folder / ADAPTER, ignore_errors=True)  # it would open as a model without the layer
        modules = layout.read_json(folder / "modules.json")
        kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
        place = kinds.index("Normalize") if "Normalize" in kinds else len(kinds)
        path = f"{place}_{type(self.layer).__name__}"
        modules.insert(place, {"path": path, "type": self.layer.module_type})
        numbered = [{**module, "idx": index, "name": str(index)} for index, module in enumerate(modules)]
        layout.write_json(folder / "modules.json", numbered)
        self.layer.save(folder / path)


def with_layers(encoder: Encoder, modules: Sequence[layout.Module]) -> Encoder:
    """The encoder with saved layers after it, in their order; EncoderError if one can't be read or does not fit."""
    for module in modules:
        layer = read_dense(module.folder) if module.kind == "Dense" else read_flow(module.folder)
        with configs.reading(module.folder):
            encoder = WithLayer(encoder, layer).eval()
    return encoder
