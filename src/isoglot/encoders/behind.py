"""An encoder with one more layer behind it, whatever the encoder is: a dense layer or a flow.

This is how what is fitted afterwards (whitening.py, flow.py) becomes a part of the model: the layer stands behind the
pooling and before any scaling to length one, here and in the saved folder. A folder that ends in dense layers alone is
read as a transformer with projections; only what a transformer has no place for is read as this.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from isoglot.data.batch import Tokens
from isoglot.encoders import dense, flow, layout
from isoglot.encoders.base import Encoder
from isoglot.errors import EncoderError

Layer = dense.Dense | flow.Flow


class Behind(Encoder):
    """`encoder`, which is shared and not copied, and `layer` behind it; tokens, prompt and length are the encoder's.

    Raises ValueError if the layer takes vectors of another width.
    """

    def __init__(self, encoder: Encoder, layer: Layer) -> None:
        super().__init__()
        if layer.dim != encoder.dim:
            raise ValueError(f"the layer takes {layer.dim} dimensions and the encoder gives {encoder.dim}")
        self.own, self.layer = encoder, layer
        self.dim, self.max_length, self.pads = layer.out, encoder.max_length, encoder.pads
        self.concurrent = encoder.concurrent
        self.normalizes = encoder.normalizes
        self.pooling = encoder.pooling  # two poolings of one model are two encoders: see `identity`
        self.name, self.prompts = encoder.name, encoder.prompts
        self.train(encoder.training)

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids as the encoder gives them."""
        return self.own.tokenize(texts, prompt=prompt)

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D): the encoder's raw vectors, through the layer."""
        weight = next(self.layer.parameters())
        vectors: Tensor = self.layer(self.own(tokens).to(weight.dtype))
        return vectors

    @property
    def prompt(self) -> str:
        """That of the encoder."""
        return self.own.prompt

    @prompt.setter
    def prompt(self, value: str) -> None:
        self.own.prompt = value

    @property
    def fingerprint(self) -> str:
        """That of the encoder: the layer changes no token."""
        return self.own.fingerprint

    def save(self, folder: Path) -> None:
        """Write the encoder's folder with the layer as a module more, before Normalize if it ends in that."""
        with layout.replacing(folder) as new:
            self.own.save(new)
            modules = layout.read_json(new / "modules.json")
            kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
            place = kinds.index("Normalize") if "Normalize" in kinds else len(kinds)
            kind = dense.TYPE if isinstance(self.layer, dense.Dense) else flow.TYPE
            path = f"{place}_{kind.rsplit('.', 1)[-1]}"
            modules.insert(place, {"path": path, "type": kind})
            numbered = [{**module, "idx": index, "name": str(index)} for index, module in enumerate(modules)]
            layout.write_json(new / "modules.json", numbered)
            write(new / path, self.layer)


def write(folder: Path, layer: Layer) -> None:
    """The layer as a module folder."""
    if isinstance(layer, dense.Dense):
        folder.mkdir(exist_ok=True)
        dense.write(folder, layer)
    else:
        layer.save(folder)


def read(module: layout.Module) -> Layer:
    """The layer in a module folder; EncoderError if it cannot be read or is of a kind that is not run here."""
    return dense.read(module) if module.kind == "Dense" else flow.read(module)


def put(encoder: Encoder, modules: Sequence[layout.Module]) -> Encoder:
    """The encoder with saved layers behind it, in their order; EncoderError if one does not fit."""
    for module in modules:
        try:
            encoder = Behind(encoder, read(module)).eval()
        except ValueError as error:
            raise EncoderError(f"{module.folder}: {error}; save or download the model again") from error
    return encoder
