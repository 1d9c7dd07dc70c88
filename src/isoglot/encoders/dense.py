"""The small modules that saved models carry behind or before the pooling: dense layers, and means of layers.

LaBSE and the distilled USE models end in a dense layer. sentence-transformers expresses first-last pooling as a
weighted mean over the states of all layers; so it is read and written as that.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from isoglot.encoders import configs, layout
from isoglot.errors import EncoderError

PICKLED = "no weights can be read from it without running the code in it; use a copy saved as safetensors"
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
    config = layout.settings_of(module, configs.Dense)
    activation = config.activation_function.rsplit(".", 1)[-1]
    if activation not in ACTIVATIONS:
        raise EncoderError(f"{module.folder}: unknown activation {activation!r}; known are {', '.join(ACTIVATIONS)}")
    weights = read_weights(module.folder)
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    expected: dict[str, tuple[int, ...]] = {"linear.weight": (config.out_features, config.in_features)}
    if config.bias:
        expected["linear.bias"] = (config.out_features,)
    if shapes != expected:
        raise EncoderError(f"{module.folder}: config.json describes weights {expected}, and there are {shapes}")
    layer = Dense(config.in_features, config.out_features, bias=config.bias, activation=activation)
    layer.load_state_dict(weights)
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


def read_layer_mean(module: layout.Module, depth: int) -> str:
    """`first-last` or `first1-last`, whichever mean of `depth` layers is saved; EncoderError for any other."""
    config = layout.settings_of(module, configs.LayerMean)
    saved = read_weights(module.folder).get("layer_weights", torch.zeros(0))
    weights, start = saved.flatten().tolist(), config.layer_start
    used = {start + layer: weight for layer, weight in enumerate(weights) if weight != 0}
    last = config.num_hidden_layers or start + len(weights) - 1
    if last != depth:
        raise EncoderError(f"{module.folder}: is a mean of {last} layers, and the model has {depth}")
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

    if (folder / "model.safetensors").is_file():
        try:
            return load_file(folder / "model.safetensors")
        except Exception as error:  # the reader has exceptions of its own
            raise EncoderError(
                f"{folder}: the weights cannot be read: {error}; save or download the model again"
            ) from error
    path = folder / "pytorch_model.bin"
    if not path.is_file():
        raise EncoderError(f"{folder}: holds no weights; model.safetensors is missing")
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a pickle may raise anything; what torch advises is to run it
        raise EncoderError(f"{path}: {PICKLED}") from error
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise EncoderError(f"{path}: {PICKLED}")
    return loaded


def write_weights(folder: Path, weights: dict[str, Tensor]) -> None:
    """The tensors of a module folder, as safetensors."""
    from safetensors.torch import save_file

    save_file(
        {name: value.detach().cpu().contiguous() for name, value in weights.items()}, folder / "model.safetensors"
    )
