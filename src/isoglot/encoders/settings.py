"""Settings of encoders: how one is opened, or made from scratch, and which of its weights are trained."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    model_validator,
)

from isoglot.data.batching import Count, Flag, Positive
from isoglot.encoders.pooling import POOLINGS

if TYPE_CHECKING:
    from typing_extensions import Self


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain the character NUL")
    return value


def _path(value: str) -> str:
    if max(len(os.fsencode(part)) for part in value.split("/")) > NAME_BYTES:
        raise ValueError(f"no file system has names of more than {NAME_BYTES} bytes")
    return value


def _ranges(value: str) -> str:
    if not re.fullmatch(r"\d+(-\d+)?(, *\d+(-\d+)?)*", value):
        raise ValueError('must be layers, numbered from 1, such as "6-12" or "1,12"')
    return value


def _layers(value: Any) -> int | tuple[int, ...] | str:
    """A number, a list of numbers, or "every 3rd"; they are checked against the backbone when it is opened."""
    if isinstance(value, str) and re.fullmatch(r"every [1-9]\d{0,3}(st|nd|rd|th)", value):
        return value
    numbers = [value] if type(value) is int else value if isinstance(value, list | tuple) else []
    if not numbers or not all(type(number) is int and 1 <= number <= 1000 for number in numbers):
        raise ValueError('must be a number of layers, a list of layers, numbered from 1, or "every 3rd"')
    return value if isinstance(value, int) else tuple(numbers)


def _check_pooling(value: Any) -> str:
    if value not in [*POOLINGS]:  # a list, since a value of TOML may have no hash
        raise ValueError(f"must be one of {', '.join(POOLINGS)}")
    return str(value)


# Types of values with their bounds; TOML's types are strict (no 1 for true, no "3" for 3). The bounds reject typing
# errors and impossible sizes, not unwise choices.
NAME_BYTES = 255
Text = Annotated[str, AfterValidator(_text)]
Name = Annotated[Text, AfterValidator(_path)]  # a path, or the name of a model
Texts = Annotated[tuple[Text, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
Names = Annotated[tuple[Name, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
Width = Annotated[int, Field(strict=True, gt=0, le=65536)]  # of vectors
Length = Annotated[int, Field(strict=True, gt=0, le=2**20)]  # of a sentence in tokens
Ranges = Annotated[str, AfterValidator(_ranges)]
PoolingName = Annotated[str, PlainValidator(_check_pooling)]
Layers = Annotated[Any, PlainValidator(_layers)]  # a union would warn when a list is written
Share = Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)]


class Settings(BaseModel):
    """Settings may hold the thing that they name, an encoder in memory say. Private, so no recipe can write it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    _held: Any = PrivateAttr(None)

    def hold(self, thing: Any) -> Self:
        """The same settings with the thing itself."""
        self._held = thing
        return self

    @property
    def held(self) -> Any:
        """The thing itself; None: to be opened by its name."""
        return self._held


class StaticSettings(Settings):
    """An embedding bag: mean of token vectors. Made from scratch, or continued from `model`."""

    kind: Literal["static"]
    model: Name = Field("", description="folder of a static encoder to continue; empty: from scratch")
    dim: Width = Field(256, description="width of the vectors")
    vocabulary: int = Field(32000, strict=True, gt=300, le=2**22, description="tokens of a trained tokenizer")
    tokenizer: Name = Field("", description="tokenizer.json to use instead of training one")
    algorithm: Literal["unigram", "bpe"] = Field("bpe", description="kind of the tokenizer that is trained")
    sentences: Count = Field(1_000_000, description="sentences, drawn at random, that the tokenizer is trained on")
    lowercase: Flag = Field(True, description="fold case before tokenising")
    max_length: Length | None = Field(None, description="maximum tokens per sentence; None: the model's own, or 256")
    token_weights: Flag = Field(False, description="train one scalar per token in addition to its vector")
    scale: Positive = Field(0.02, description="standard deviation of the initial vectors")

    @model_validator(mode="after")
    def _new_or_continued(self) -> StaticSettings:
        """Raises ValueError for a tokenizer or width of a model that is continued."""
        made = self.model_fields_set - {"kind", "model", "max_length", "token_weights"}
        if self.model and made:
            raise ValueError(f"{', '.join(sorted(made))} of {self.model} cannot be changed; leave out")
        return self


class OpenedSettings(Settings):
    """Settings with which any encoder is opened."""

    model: Name = Field(description="folder, packaged name (`isoglot models list`) or hub id")
    pooling: PoolingName | None = Field(None, description="None: that of the saved model, else mean")
    max_length: Length | None = Field(None, description="maximum tokens per sentence; None: the model's own")
    prompt: Text | None = Field(None, description="put before every text; None: the model's own")

    def options(self, kind: type[BaseModel]) -> dict[str, Any]:
        """The settings that `kind` declares, apart from the model: arguments of `isoglot.encoders.load`."""
        return {name: getattr(self, name) for name in kind.model_fields if name != "model"}


class AdapterSettings(Settings):
    """Low-rank matrices that are trained instead of linear layers (LoRA)."""

    rank: int = Field(16, strict=True, gt=0, le=1024, description="rank of the matrices")
    alpha: Positive | None = Field(None, description="their product is scaled by alpha / rank; None: alpha = rank")
    targets: Texts = Field((), description="name suffixes of the linear layers to adapt; empty: all linear layers")


class BackboneSettings(OpenedSettings):
    """A Hugging Face encoder that is trained."""

    head: Literal["none", "tanh", "kept"] = Field(
        "none",
        description="tanh: a layer over the first token's vector, in training only; kept: saved with the model too",
    )
    layers: Layers | None = Field(None, description='the first n, a list of numbers from 1, or "every 3rd"; None: all')
    dim: Width | None = Field(None, description="width of a new linear layer after the pooling; None: no such layer")
    dropout: Share | None = Field(None, description="probability in training; None: that of the model's config.json")
    freeze_embeddings: Flag = Field(False, description="do not train the word embeddings")
    sparse_embeddings: Flag = Field(False, description="update only word embeddings whose tokens are in the batch")
    train_layers: Ranges | None = Field(None, description='train only these, from 1: "6-12" or "1,12"; None: all')
    adapter: AdapterSettings | None = Field(None, description="train only low-rank matrices, in train_layers or all")


class TransformerSettings(BackboneSettings):
    """A Hugging Face encoder, from a folder, a packaged name or, where there is a network, a hub id."""

    kind: Literal["transformer"]


class TwinsSettings(BackboneSettings):
    """Two copies of one Hugging Face encoder, which training drives apart (Contrastive Tension); one is kept."""

    kind: Literal["twins"]

    @model_validator(mode="after")
    def _have_no_dropout(self) -> TwinsSettings:
        if self.dropout is not None:
            raise ValueError("twins are trained without dropout; leave it out")
        return self


class TowerSettings(BackboneSettings):
    """One tower: an encoder, and the texts that it encodes."""

    name: Text = Field(description="name of the tower's folder")
    scripts: Texts = Field(
        (),
        description="first words of Unicode's names of the letters it reads, such as LATIN or CJK; none: all the rest",
    )


class TowersSettings(Settings):
    """Several encoders, each with its own tokenizer and weights; a text goes to the tower that reads its script."""

    kind: Literal["towers"]
    towers: tuple[TowerSettings, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _names_differ(self) -> TowersSettings:
        names = [tower.name for tower in self.towers]
        if len(set(names)) < len(names):
            raise ValueError(f"two towers are called {max(names, key=names.count)!r}; each needs a name of its own")
        return self
