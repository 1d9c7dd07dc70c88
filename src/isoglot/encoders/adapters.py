"""Which weights of a transformer are trained: chosen layers, or a low-rank adapter (LoRA, Hu et al. 2022).

A linear layer W x + b of a chosen layer becomes W x + b + (alpha / r) B A x (their eq. 3): W and b are frozen, A (r,
d_in) and B (d_out, r) are trained, and B begins at zero, so that training begins at the backbone. W + (alpha / r) B A
is never formed in training, since its gradient would have the size of W.

A saved model has the merged weights and is an ordinary model. The folder `adapter` inside it contains only A and B, in
the layout of the library peft with an entry `isoglot` of our own: the SHA-256 of the backbone's weights and the
settings of the encoder. `isoglot.load` opens it as the backbone with the adapter merged.

Deviation: A is uniform with variance 1 / (3 d_in), as in the authors' code; their paper draws it from a normal
distribution.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isoglot.core.errors import EncoderError, nearest
from isoglot.encoders.base import add_tensors, evaluating
from isoglot.encoders.layers import read_tensors
from isoglot.encoders.rounding import Linear
from isoglot.model import configs, layout
from isoglot.model.finding import ADAPTER

if TYPE_CHECKING:
    from isoglot.encoders.settings import AdapterSettings

FOLDER, CONFIG, WEIGHTS = ADAPTER, "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."  # prefix of tensor names in peft's files
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


class LowRank(Linear):
    """`linear`, frozen, plus scale * up @ down; `down` is A (r, d_in), `up` is B (d_out, r), scale is alpha / r."""

    scale: Tensor

    def __init__(self, linear: nn.Linear, rank: int, alpha: float, generator: torch.Generator) -> None:
        nn.Module.__init__(self)  # the weights are those of `linear`, not new ones
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        bound = self.in_features**-0.5
        down = torch.rand(rank, self.in_features, generator=generator) * 2 * bound - bound
        self.down = nn.Parameter(down.to(self.weight))
        self.up = nn.Parameter(torch.zeros(self.out_features, rank).to(self.weight))
        self.register_buffer("scale", torch.tensor(alpha / rank).to(self.weight))  # a buffer: part of the identity

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_in) to (..., d_out)."""
        low = F.linear(x, self.down) * self.scale  # (..., r)
        return super().forward(x) + F.linear(low, self.up)

    def to_linear(self) -> nn.Linear:
        """An ordinary layer with the same output up to rounding; the bias is shared."""
        plain = nn.Linear(self.in_features, self.out_features, bias=False, device="meta")
        plain.weight = nn.Parameter((self.weight + self.scale * self.up @ self.down).detach(), requires_grad=False)
        plain.bias = self.bias
        return plain


@dataclass(frozen=True, slots=True)
class Attached:
    """What was attached to a backbone: the settings, and the SHA-256 of the weights before."""

    settings: AdapterSettings
    sha256: str


def restrict(
    backbone: Any, *, train_layers: str | None = None, adapter: AdapterSettings | None = None, seed: int = 0
) -> Attached | None:
    """Freeze the backbone except for some layers, numbered from 1, or except for an adapter in these (by default in
    all).

    Layers below the first trained one are then computed without a graph. Raises ValueError for layers or targets
    that the backbone does not have, and if it has an adapter already.
    """
    if adapter is None and train_layers is None:
        return None
    if find_adapters(backbone):
        raise ValueError("the encoder has an adapter already; save it, load the merged model, and train that")
    layers = stack(backbone)
    unfrozen = list(layers) if train_layers is None else [layers[number] for number in parse(train_layers, len(layers))]
    backbone.requires_grad_(False)
    if adapter is None:
        for layer in unfrozen:
            layer.requires_grad_(True)
        return None
    sha256 = digest(backbone)
    targets = _targets(backbone, unfrozen, adapter.targets)
    generator = torch.Generator().manual_seed(seed)
    for name, linear in targets:
        alpha = adapter.rank if adapter.alpha is None else adapter.alpha
        backbone.set_submodule(name, LowRank(linear, adapter.rank, alpha, generator))
    return Attached(adapter, sha256)


def stack(backbone: Any) -> nn.ModuleList:
    """The layers of a backbone of any supported architecture. Raises EncoderError if they can't be found."""
    depth = int(backbone.config.num_hidden_layers)
    lists = [part for part in backbone.modules() if isinstance(part, nn.ModuleList) and len(part) == depth]
    if len(lists) != 1:
        raise EncoderError(f"no layers found in a {type(backbone).__name__}; leave layers, train_layers, adapter unset")
    return lists[0]


def parse(text: str, depth: int) -> list[int]:
    """Indices from 0 of layers written as ranges, numbered from 1, both ends included: "6-12" or "1,11-12".

    Raises ValueError for another form and for layers beyond `depth`.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= depth:
            raise ValueError(f"train_layers must lie between 1 and {depth}, such as '1-{depth}', got {text!r}")
        numbers.update(range(first - 1, last))
    return sorted(numbers)


def _targets(backbone: nn.Module, layers: Sequence[nn.Module], wanted: Sequence[str]) -> list[tuple[str, nn.Linear]]:
    """The linear layers inside `layers` whose names end in one of `wanted` (none: all), by their names."""
    inside = {part for layer in layers for part in layer.modules() if isinstance(part, nn.Linear)}
    linear = [(name, cast(nn.Linear, part)) for name, part in backbone.named_modules() if part in inside]
    for target in wanted:
        if not any(f".{name}".endswith(f".{target}") for name, _ in linear):
            names = {name.rpartition(".")[2] for name, _ in linear}
            raise ValueError(f"adapter.targets: no linear layer is called {target!r}; {nearest(target, names)}")
    return [(name, part) for name, part in linear if not wanted or any(f".{name}".endswith(f".{t}") for t in wanted)]


def find_adapters(backbone: nn.Module) -> dict[str, LowRank]:
    """The adapted layers by their names."""
    return {name: part for name, part in backbone.named_modules() if isinstance(part, LowRank)}


def merge_adapters(backbone: Any) -> Any:
    """The backbone, or if it has an adapter, a copy with the adapter merged that shares all other weights."""
    parts = find_adapters(backbone)
    if not parts:
        return backbone
    out: Any = evaluating(backbone, always_copy=True)
    for name, part in parts.items():
        out.set_submodule(name, part.to_linear())
    return out


def digest(backbone: nn.Module) -> str:
    """SHA-256 of names, shapes and values of all weights but those of the pooler, which is never used."""
    checksum = hashlib.sha256()
    add_tensors(checksum, {k: v for k, v in backbone.state_dict().items() if not k.startswith("pooler.")})
    return checksum.hexdigest()


# The folder of an adapter


def write(folder: Path, backbone: nn.Module, details: Attached, origin: str, settings: dict[str, Any]) -> None:
    """Write A and B in float16 and adapter_config.json into `folder`; `settings` are those of the encoder."""
    from safetensors.torch import save_file

    parts = find_adapters(backbone)
    names = {"lora_A": "down", "lora_B": "up"}
    tensors = {
        f"{_PREFIX}{name}.{theirs}.weight": getattr(part, ours).detach().to("cpu", torch.float16).contiguous()
        for name, part in parts.items()
        for theirs, ours in names.items()
    }
    config = {
        "peft_type": "LORA",
        "task_type": "FEATURE_EXTRACTION",
        "base_model_name_or_path": origin,
        "r": details.settings.rank,
        "lora_alpha": details.settings.rank if details.settings.alpha is None else details.settings.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(parts),
        "inference_mode": True,
        "isoglot": {"sha256": details.sha256, **settings},
    }
    layout.write_json(folder / CONFIG, config)
    save_file(tensors, folder / WEIGHTS)


def merge(folder: Path, config: configs.Adapter, backbone: Any) -> None:
    """Add the adapter in `folder` to the weights of its backbone, in place.

    Raises EncoderError for a backbone with other weights than the adapter was trained on, and for a damaged file.
    """
    if digest(backbone) != config.isoglot.sha256:
        raise EncoderError(
            f"{folder}: the weights of {config.base_model_name_or_path} are not those that the adapter was trained on "
            f"(SHA-256 {config.isoglot.sha256[:12]}...); use the merged model, or the backbone of that version"
        )
    tensors, name = read_tensors(folder / WEIGHTS), ""
    linear = {name: part for name, part in backbone.named_modules() if isinstance(part, nn.Linear)}
    scale = config.lora_alpha / config.r
    try:
        for name in config.target_modules:
            down, up = (tensors.pop(f"{_PREFIX}{name}.{kind}.weight") for kind in ("lora_A", "lora_B"))
            if len(down) != config.r:
                raise ValueError(f"has rank {len(down)}, not {config.r}")
            weight = linear[name].weight
            with torch.no_grad():
                weight += scale * (up.to(weight) @ down.to(weight))
        if tensors:
            raise ValueError(f"{CONFIG} does not name {next(iter(tensors))}")
    except (KeyError, RuntimeError, ValueError) as error:
        raise EncoderError(
            f"{folder}: {name}: the adapter does not fit the backbone: {error}; save or download the adapter again"
        ) from error
