"""Reads the JSON files of a model folder and checks every key that is used.

Model folders are untrusted. A value of the wrong type, an impossible size, a path that leads out of the folder or the
name of code in the folder raises an EncoderError with file and key, before the value is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from isoglot.core.errors import EncoderError, IsoglotError, quote

# Bounds of a vector, a vocabulary or a sentence, and of the number of layers: memory is allocated by them.
Size = Annotated[int, Field(gt=0, lt=1 << 24)]
Depth = Annotated[int, Field(gt=0, le=1000)]
Permutation: TypeAlias = Literal["random", "reversed"]  # of the channels of a flow
Setting = TypeVar("Setting")


class _Strict(BaseModel):
    """Values of exactly these types; keys that are not used may contain anything."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, protected_namespaces=())


class Entry(_Strict):
    """An entry of modules.json: a class of sentence-transformers or of this library, and its folder."""

    idx: int
    path: str
    type: str

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str) -> str:
        for pure in (PurePosixPath(path), PureWindowsPath(path)):
            if pure.is_absolute() or pure.drive or ".." in pure.parts or "\0" in path:
                raise ValueError("leads out of the model folder")
        return path

    @field_validator("type")
    @classmethod
    def _check_class(cls, name: str) -> str:
        if not all(part.isidentifier() for part in name.split(".")) or (
            name.split(".")[0] not in ("sentence_transformers", "isoglot")
        ):
            raise ValueError("is a class of neither sentence-transformers nor isoglot; foreign code is not run")
        return name


class Settings(_Strict):
    """config_sentence_transformers.json; `name` is a key of this library's own."""

    name: str = ""
    prompts: dict[str, str] | None = None
    default_prompt_name: str | None = None

    @model_validator(mode="after")
    def _check_default(self) -> Settings:
        if self.default_prompt_name is not None and self.default_prompt_name not in (self.prompts or {}):
            raise ValueError(f"default_prompt_name is {self.default_prompt_name!r}, which prompts does not contain")
        return self

    @property
    def default(self) -> str:
        """The prompt put before every text."""
        return "" if self.default_prompt_name is None else (self.prompts or {})[self.default_prompt_name]


class Length(_Strict):
    """sentence_bert_config.json."""

    max_seq_length: Size | None = None
    do_lower_case: bool = False


class Pooling(_Strict):
    """config.json of a Pooling module: `pooling_mode`, or older, a flag `pooling_mode_NAME_tokens` for each."""

    pooling_mode: str | list[str] | None = None
    include_prompt: bool = True

    @model_validator(mode="after")
    def _flags(self) -> Pooling:
        for key, value in (self.model_extra or {}).items():
            if key.startswith("pooling_mode_") and not isinstance(value, bool):
                raise ValueError(f"{key} must be true or false, got {quote(value, most=60)}")
        return self

    @property
    def modes(self) -> list[str]:
        """The poolings by name, such as mean."""
        if self.pooling_mode is not None:
            return [self.pooling_mode] if isinstance(self.pooling_mode, str) else list(self.pooling_mode)
        flags = [key for key, on in (self.model_extra or {}).items() if key.startswith("pooling_mode_") and on]
        return [flag.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token") for flag in flags]


class Dense(_Strict):
    """config.json of a Dense module."""

    in_features: Size
    out_features: Size
    bias: bool = True
    activation_function: str = "torch.nn.modules.activation.Tanh"
    module_input_name: Literal["sentence_embedding"] = "sentence_embedding"  # not the states of tokens
    module_output_name: Literal["sentence_embedding"] | None = None


class LayerMean(_Strict):
    """config.json of a WeightedLayerPooling module."""

    layer_start: Annotated[int, Field(ge=0)] = 0
    num_hidden_layers: Depth | None = None


class Flow(_Strict):
    """config.json of a Flow module."""

    model_config = ConfigDict(extra="forbid")

    dim: Size
    levels: Depth = 3
    depth: Depth = 3
    width: Size = 32
    permutation: Permutation = "random"


class AdapterOrigin(_Strict):
    """The entry `isoglot` of adapter_config.json: the weights an adapter belongs to, and the encoder."""

    sha256: str
    name: str = ""
    pooling: str
    max_length: Size
    prompt: str = ""
    prompts: dict[str, str] = {}
    layers: list[Annotated[int, Field(gt=0)]] | None = None


class Adapter(_Strict):
    """adapter_config.json, in the layout of peft."""

    peft_type: Literal["LORA"]
    base_model_name_or_path: str
    r: Annotated[int, Field(gt=0, le=65536)]
    lora_alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    target_modules: list[str]
    isoglot: AdapterOrigin


class Tower(_Strict):
    """An entry of towers.json; the name is that of a sub-folder."""

    name: Annotated[str, Field(pattern=r"^[\w-]+$")]
    scripts: list[str]


class _Hub(_Strict):
    """Files read by transformers, which would offer to run the code named in `auto_map`."""

    auto_map: Any = None

    @field_validator("auto_map")
    @classmethod
    def _no_code(cls, names: Any) -> Any:
        if names:
            advice = "use another model, or remove this key if transformers has the architecture"
            raise ValueError(f"names code that comes with the model, which is not run; {advice}")
        return names


class Backbone(_Hub):
    """config.json of a transformer: the keys that determine the allocated memory, and those that name code."""

    model_type: str
    vocab_size: Size | None = None
    hidden_size: Size | None = None
    intermediate_size: Size | None = None
    max_position_embeddings: Size | None = None
    type_vocab_size: Annotated[int, Field(ge=0, lt=1 << 24)] | None = None
    num_attention_heads: Size | None = None

    @model_validator(mode="before")
    @classmethod
    def _layers_and_kernels(cls, config: Any) -> Any:
        for key, value in config.items() if isinstance(config, dict) else ():
            if key in ("num_hidden_layers", "num_layers", "n_layers", "n_layer", "num_decoder_layers") and (
                type(value) is not int or not 0 < value <= 1000
            ):
                raise ValueError(f"{key} must be a whole number from 1 to 1000, got {quote(value, most=60)}")
            if key.lstrip("_").startswith(("attn_impl", "experts_impl")) and any(sign in str(value) for sign in "/:"):
                raise ValueError(f"{key} is {quote(value, most=60)}: code of another repository is not run")
        return config


class Tokenizer(_Hub):
    """tokenizer_config.json."""

    tokenizer_class: str | None = None
    model_max_length: Annotated[int | float, Field(gt=1)] | None = None
    model_input_names: list[str] | None = None
    do_lower_case: bool | None = None
    truncation_side: Literal["right"] | None = None


def read(path: Path, kind: type[Setting]) -> Setting:
    """A JSON file of a model folder, checked. Raises EncoderError."""
    return check_value(path, kind, read_json(path))


def read_if_there(path: Path, kind: type[Setting]) -> Setting:
    """As `read`; for a missing file, the defaults."""
    return read(path, kind) if path.is_file() else kind()


def check_value(path: Path, kind: type[Setting], value: Any) -> Setting:
    """A value that was read from `path` as settings of a kind."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        why = first["msg"].removeprefix("Value error, ")
        shown = "" if first["type"] == "missing" or not first["loc"] else f" (got {quote(first['input'], most=60)})"
        raise EncoderError(f"{path}: {where}: {why}{shown}; correct the file, or save the model again") from error


def read_json(path: Path) -> Any:
    """One JSON file; EncoderError names it if it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EncoderError(f"{path}: cannot be read: {error.strerror}; the model folder is incomplete") from error
    except (ValueError, RecursionError) as error:
        raise EncoderError(f"{path}: is not valid JSON ({error}); save or download the model again") from error


@contextmanager
def reading(what: str | Path, advice: str = "save or download the model again") -> Iterator[None]:
    """Raise EncoderError for what a library raises in the block about a damaged part of a model.

    They have classes of their own, and some in Rust panic, which is not an `Exception`.
    """
    try:
        yield
    except IsoglotError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise EncoderError(f"{what}: can't be read: {one_line(error)}; {advice}") from error


def one_line(error: object) -> str:
    """The beginning of what an error of a library says."""
    return " ".join(str(error).split())[:300]
