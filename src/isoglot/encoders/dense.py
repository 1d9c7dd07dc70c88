"""The small modules that saved models carry behind or before the pooling: dense layers, and means of layers.

LaBSE and the distilled USE models end in a dense layer. sentence-transformers expresses first-last pooling as a
weighted mean over the states of all layers; so it is read and written as that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isoglot.encoders import layout
from isoglot.errors import EncoderError

TYPE = "sentence_transformers.models.Dense"
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Identity": nn.Identity,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
}


class Dense(nn.Module):
    """(N, `dim`) to (N, `out`): a linear layer and an activation, a key of `ACTIVATIONS`; drawn by torch's own seed."""

    def __init__(self, dim: int, out: int, *, bias: bool = True, activation: str = "Tanh") -> None:
        super().__init__()
        self.dim, self.out = dim, out
        self.linear = nn.Linear(dim, out, bias=bias)
        self.activation = ACTIVATIONS[activation]()

    def forward(self, vectors: Tensor) -> Tensor:
        """The projected vectors."""
        projected: Tensor = self.activation(self.linear(vectors))
        return projected


def read(module: layout.Module) -> Dense:
    """The dense layer saved in a module folder; EncoderError if it is of a kind we do not run."""
    config: dict[str, Any] = module.config
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rsplit(".", 1)[-1]
    if activation not in ACTIVATIONS:
        raise EncoderError(f"{module.folder}: unknown activation {activation!r}; known are {', '.join(ACTIVATIONS)}")
    sizes = int(config["in_features"]), int(config["out_features"])
    layer = Dense(*sizes, bias=config.get("bias", True), activation=activation)
    layer.load_state_dict(read_weights(module.folder))
    return layer


def write(folder: Path, layer: Dense) -> None:
    """The dense layer as a module folder."""
    config = {
        "in_features": layer.linear.in_features,
        "out_features": layer.linear.out_features,
        "bias": layer.linear.bias is not None,
        "activation_function": f"{type(layer.activation).__module__}.{type(layer.activation).__name__}",
    }
    layout.write_json(folder / "config.json", config)
    write_weights(folder, layer.state_dict())


def read_layer_mean(module: layout.Module) -> str:
    """`first-last` or `first1-last`, whichever mean of layers is saved; EncoderError for any other."""
    weights = read_weights(module.folder)["layer_weights"].tolist()
    start = int(module.config.get("layer_start", 0))
    used = {start + layer: weight for layer, weight in enumerate(weights) if weight != 0}
    last = int(module.config.get("num_hidden_layers", len(weights) - 1))
    for name, first in (("first-last", 0), ("first1-last", 1)):
        if sorted(used) == [first, last] and used[first] == used[last]:
            return name
    raise EncoderError(f"{module.folder}: only the mean of the first and the last layer is run, not weights {weights}")


def write_layer_mean(folder: Path, first: int, depth: int, dim: int) -> None:
    """The module folder that averages layer `first` with the last of `depth` layers."""
    weights = torch.zeros(depth + 1)
    weights[[first, depth]] = 1
    config = {"word_embedding_dimension": dim, "layer_start": 0, "num_hidden_layers": depth}
    layout.write_json(folder / "config.json", config)
    write_weights(folder, {"layer_weights": weights})


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a module folder, from safetensors or an older pickle read without running its code."""
    from safetensors.torch import load_file

    try:
        if (folder / "model.safetensors").is_file():
            return load_file(folder / "model.safetensors")
        loaded: dict[str, Tensor] = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
        return loaded
    except Exception as error:  # every reader has exceptions of its own
        raise EncoderError(
            f"{folder}: the weights cannot be read: {error}; save or download the model again"
        ) from error


def write_weights(folder: Path, weights: dict[str, Tensor]) -> None:
    """The tensors of a module folder, as safetensors."""
    from safetensors.torch import save_file

    save_file(
        {name: value.detach().cpu().contiguous() for name, value in weights.items()}, folder / "model.safetensors"
    )
