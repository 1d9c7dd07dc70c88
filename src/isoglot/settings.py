"""The settings of a run: frozen models with defaults, ranges and descriptions.

A recipe is one run: an encoder, one or more stages of streams and an optimiser, and the evaluation. TOML and the
arguments of `isoglot.train` are two notations for it. Unknown keys are errors, except for the options of readers and
objectives, which check their own.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    field_validator,
    model_validator,
)

from isoglot import environment
from isoglot.data.batching import MOST, Batching, Count, Flag, Limit, Mixing, Positive, Seed
from isoglot.errors import CorpusError, RecipeError

if TYPE_CHECKING:
    from typing_extensions import Self

    from isoglot.data.corpus import Corpus

BUNDLED = Path(__file__).parent / "bundled"


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


# Types of values with their bounds; TOML's types are strict (no 1 for true, no "3" for 3). The bounds reject typing
# errors and impossible sizes, not unwise choices.
NAME_BYTES = 255
Text = Annotated[str, AfterValidator(_text)]
Name = Annotated[Text, AfterValidator(_path)]  # a path, or the name of a model
Texts = Annotated[tuple[Text, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
Names = Annotated[tuple[Name, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
Width = Annotated[int, Field(strict=True, gt=0, le=65536)]  # of vectors
Repeats = Annotated[int, Field(strict=True, gt=0, le=65536)]  # of work in one step
Length = Annotated[int, Field(strict=True, gt=0, le=2**20)]  # of a sentence in tokens
Ranges = Annotated[str, AfterValidator(_ranges)]
Layers = Annotated[Any, PlainValidator(_layers)]  # a union would warn when a list is written
Amount = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]
Rate = Annotated[float, Field(strict=True, ge=1e-30, le=1e3, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)]


class _Settings(BaseModel):
    """Settings may hold the thing that they name, an encoder in memory say. Private, so no recipe can write it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    _held: Any = PrivateAttr(None)

    def holding(self, thing: Any) -> Self:
        """The same settings with the thing itself."""
        self._held = thing
        return self

    @property
    def held(self) -> Any:
        """The thing itself; None: to be opened by its name."""
        return self._held


class StaticSettings(_Settings):
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


class OpenedSettings(_Settings):
    """Settings with which any encoder is opened."""

    model: Name = Field(description="folder, packaged name (`isoglot models list`) or hub id")
    pooling: Literal["cls", "mean", "max", "first-last", "first1-last"] | None = Field(
        None, description="None: that of the saved model, else mean"
    )
    max_length: Length | None = Field(None, description="maximum tokens per sentence; None: the model's own")
    prompt: Text | None = Field(None, description="put before every text; None: the model's own")

    def options(self, kind: type[BaseModel]) -> dict[str, Any]:
        """The settings that `kind` declares, apart from the model: arguments of `isoglot.encoders.load`."""
        return {name: getattr(self, name) for name in kind.model_fields if name != "model"}


class TeacherSettings(OpenedSettings):
    """A frozen encoder; the batches contain its vectors of every sentence, computed once per distinct text."""

    pivot: Text = Field("", description="encode only a group's sentence in this language (else its first); empty: all")
    precision: Literal["float32", "bfloat16"] = Field("float32", description="arithmetic of its vectors")


class AdapterSettings(_Settings):
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


class TowerSettings(BackboneSettings):
    """One tower: an encoder, and the texts that it encodes."""

    name: Text = Field(description="name of the tower's folder")
    scripts: Texts = Field(
        (),
        description="first words of Unicode's names of the letters it reads, such as LATIN or CJK; none: all the rest",
    )


class TowersSettings(_Settings):
    """Several encoders, each with its own tokenizer and weights; a text goes to the tower that reads its script."""

    kind: Literal["towers"]
    towers: tuple[TowerSettings, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _names_differ(self) -> TowersSettings:
        names = [tower.name for tower in self.towers]
        if len(set(names)) < len(names):
            raise ValueError(f"two towers are called {max(names, key=names.count)!r}; each needs a name of its own")
        return self


class _WithOptions(_Settings):
    """Settings of a reader or an objective; all keys that they do not name are its options, which it checks."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def options(self) -> dict[str, Any]:
        """The options."""
        return dict(self.model_extra or {})


class SourceSettings(Mixing, _WithOptions):  # in this order, so that more keys are allowed
    """A data set, or files and how to read them; all other keys are options of the reader, such as `languages`."""

    set: Name = Field("", description="name of a data set (`isoglot data list`), instead of reader and path")
    reader: Text = Field("", description="tsv, moses, folder, jsonl, tmx, nli, xnli, lines, entities, dataset")
    path: Name = Field("", description="file, folder or pattern, relative to the recipe, `bundled:` or `data:`")
    name: Text = Field("", description="name in logs; empty: the set or the path")

    @model_validator(mode="after")
    def _set_or_files(self) -> SourceSettings:
        if bool(self.set) == bool(self.path) or bool(self.reader) != bool(self.path):
            raise ValueError("pass either set, or reader and path")
        return self

    @property
    def mixing(self) -> Mixing:
        """The share of the source alone."""
        return Mixing(**{name: getattr(self, name) for name in Mixing.model_fields})

    @property
    def place(self) -> str:
        """The path; of a data set, its folder."""
        return f"data:{self.set}" if self.set else self.path


class ObjectiveSettings(_WithOptions):
    """An objective by name; all other keys are its options."""

    name: Text
    weight: Positive = 1.0


class StreamSettings(_Settings):
    """The sources of groups, their batching, and the objectives."""

    name: Text = "train"
    sources: tuple[SourceSettings, ...] = Field(min_length=1)
    languages: Texts = Field((), description="keep only sentences in these; empty: all")
    on_unknown_language: Literal["error", "skip"] = Field(
        "error", description="skip: leave out and count sentences in languages that are not known; also of a source"
    )
    join: Flag = Field(False, description="merge groups that share a sentence")
    largest: int = Field(16, strict=True, gt=1, le=MOST, description="maximum sentences of a joined group")
    deduplicate: Flag = Field(True, description="drop exact repetitions of a group")
    leakage: Names = Field((), description="tasks, suites, test files or folders, whose sentences are left out")
    teacher: TeacherSettings | None = Field(None, description="its vectors are in the batches as column `teacher`")
    batching: Batching = Batching()
    objectives: tuple[ObjectiveSettings, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _matching_takes_pairs(self) -> StreamSettings:
        if self.batching.rows == "matching" and (self.batching.most or any(source.most for source in self.sources)):
            raise ValueError('rows = "matching" takes all sentences of a group; leave out most')
        return self


class OptimizerSettings(_Settings):
    """AdamW on dense parameters, its row-sparse counterpart on embedding tables with sparse gradients; or RMSprop."""

    kind: Literal["adamw", "rmsprop"] = "adamw"
    lr: Rate = Field(description="peak learning rate")
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Positive = 1e-8
    weight_decay: Amount = Field(0.0, description="decoupled; never on biases, norms and row-sparse tables")
    warmup: Limit = Field(0, description="steps of linear warm-up")
    schedule: Literal["linear", "cosine", "constant", "stairs"] = Field(
        "linear", description="after the warm-up: linear or cosine decay to zero, or the steps of `stairs`"
    )
    stairs: tuple[Rate, ...] = Field((), description="learning rates, `stair` steps each, the last one to the end")
    stair: Limit = Field(0, description="steps on a stair")
    clip: Amount = Field(1.0, description="maximum gradient norm; 0: no clipping")
    accumulate: Repeats = Field(1, description="batches, each its own negatives, whose mean gradient makes a step")
    precision: Literal["auto", "fp32", "bf16", "tf32"] = Field(
        "auto", description="auto: bf16 autocast where the hardware multiplies it; tf32: on CUDA devices that have it"
    )

    @model_validator(mode="after")
    def _stairs(self) -> OptimizerSettings:
        if (self.schedule == "stairs") != bool(self.stairs and self.stair):
            raise ValueError('schedule = "stairs" goes with stairs (learning rates) and stair (steps on each)')
        return self

    @model_validator(mode="after")
    def _decay(self) -> OptimizerSettings:
        if (
            self.kind == "rmsprop" and self.weight_decay
        ):  # torch's RMSprop adds it to the gradient, so it is not decoupled
            raise ValueError(f'weight_decay = {self.weight_decay:g} requires kind = "adamw"; remove it')
        return self


class StageSettings(_Settings):
    """A part of a run with its own streams and optimiser; exactly one of epochs (of the first stream) and steps."""

    name: Text = "main"
    streams: tuple[StreamSettings, ...] = Field(min_length=1)
    optimizer: OptimizerSettings
    epochs: Positive | None = None
    steps: Count | None = None
    select: Flag = Field(True, description="whether [evaluation] may select its encoders; false for a warm-up")

    @model_validator(mode="after")
    def _one_length_and_distinct_names(self) -> StageSettings:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("set exactly one of epochs and steps")
        if len({stream.name for stream in self.streams}) < len(self.streams):
            raise ValueError("two streams have the same name; use different names")
        return self


class EvaluationSettings(_Settings):
    """A dev task that chooses the best checkpoint. Choose on dev data, report on test data."""

    name: Text = Field("", description="evaluations of the same name select together, by the mean of their scores")
    task: Text = Field("tatoeba", description="name of a task")
    data: Name = Field(description="its data, relative to the recipe; `bundled:` for the packaged text")
    languages: Texts = ()
    subset: Text = Field("mean", description="subset of the score that decides")
    metric: Text | None = Field("accuracy/mean", description="decides; an error is minimised; None: the main one")
    every: Limit = Field(0, description="steps between evaluations; 0: only at the end")
    patience: Limit = Field(0, description="stop after this many evaluations without a better one; 0: never")


class MemorySettings(_Settings):
    """Splitting of batches to bound memory (training/step.py)."""

    chunk_tokens: Count | None = Field(None, description="padded tokens of a chunk; unset: 512 on a CPU, else 16384")
    graph_tokens: Limit | None = Field(
        None,
        description="maximum tokens whose activations are kept; larger batches are embedded twice; unset: 3072 on a "
        "CPU, else 32768",
    )


class Recipe(_Settings):
    """One run."""

    name: Text
    description: Text = ""
    seed: Seed = 42
    encoder: Annotated[
        StaticSettings | TransformerSettings | TwinsSettings | TowersSettings, Field(discriminator="kind")
    ]
    stages: tuple[StageSettings, ...] = Field(min_length=1)
    evaluation: tuple[EvaluationSettings, ...] = Field(
        (), description="dev tasks; the first name's best encoder is kept in model/, that of another in best/NAME/"
    )
    memory: MemorySettings = MemorySettings()
    checkpoint_every: Limit | None = Field(0, description="steps; 0: at evaluations and at the end; None: never")
    folder: Path = Field(Path(), description="folder of relative paths; set by `load`")
    data: Path = Field(
        default_factory=environment.data_folder,
        description="folder of paths that begin with `data:`; the variable ISOGLOT_DATA, or data/",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_stage(cls, data: Any) -> Any:
        """Streams, optimizer, epochs and steps at the top level are the only stage."""
        if not isinstance(data, dict):
            return data
        parts = [key for key in ("streams", "optimizer", "epochs", "steps") if key in data]
        if parts and "stages" in data:
            raise ValueError(f"{parts[0]} can't be combined with stages: write it inside each [[stages]]")
        if not parts:
            return data
        return {k: v for k, v in data.items() if k not in parts} | {"stages": [{key: data[key] for key in parts}]}

    @field_validator("evaluation", mode="before")
    @classmethod
    def _one_evaluation(cls, given: Any) -> Any:
        """`[evaluation]` is a list of one."""
        return (given,) if isinstance(given, Mapping) else given

    @model_validator(mode="after")
    def _together(self) -> Recipe:
        """Evaluations of the same name need the same schedule."""
        for name in {evaluation.name for evaluation in self.evaluation}:
            if len({(e.every, e.patience) for e in self.evaluation if e.name == name}) > 1:
                raise ValueError(f"evaluations of the same name ({name!r}) need the same every and patience")
        return self

    def resolve(self, path: str) -> Path:
        """Resolve a path of the recipe: absolute, relative to its folder, or to `bundled:` and `data:`."""
        if path.startswith("bundled:"):
            return BUNDLED / path.removeprefix("bundled:")
        if path.startswith("data:"):
            return self.data.expanduser() / path.removeprefix("data:")
        return self.folder / Path(path).expanduser()

    def corpus(self, stream: StreamSettings) -> Corpus:
        """The corpus of one of its streams."""
        from isoglot.data.corpus import Corpus, FileSource, Source
        from isoglot.data.readers import READERS, options_of
        from isoglot.data.sets import catalogue, find

        sources: list[Source] = []
        for number, source in enumerate(stream.sources):
            if source.held is not None:
                sources.append(source.held)
                continue
            where = f"streams.{stream.name}.sources.{number}"
            reader, path, options = source.reader, self.resolve(source.path), source.options
            if source.set:
                try:
                    reader, path, training = find(source.set).source_in(self.data.expanduser())
                except CorpusError as error:
                    raise RecipeError(f"{where}.set: {error}") from None
                options = training | options
            names = options_of(reader) if reader in READERS else []
            if "on_unknown_language" in names:
                options.setdefault("on_unknown_language", stream.on_unknown_language)
            if "seed" in names and "seed" in source.model_fields_set:
                options["seed"] = source.seed
            if isinstance(other := options.get("other"), str):  # the second file of a Moses pair
                file = self.resolve(other)
                options["other"] = str(file if file.exists() else path.parent / other)
            name = source.name or source.set or source.path
            licence = catalogue()[name].licence if name in catalogue() else ""
            sources.append(FileSource(reader, path, options, name, source.mixing, where, licence))
        same = {name: getattr(stream, name) for name in ("name", "languages", "join", "largest", "deduplicate")}
        return Corpus(sources, leakage=[self.resolve(path) for path in stream.leakage], **same)

    def require_set(self, path: str) -> None:
        """Raise RecipeError, with the remedy, for a path in a data set that the folder of the data sets lacks."""
        from isoglot.data.sets import catalogue, command

        name = "".join(Path(path.removeprefix("data:")).parts[:1])  # a name, the beginning of one or a pattern
        folder = self.data.expanduser()
        if not path.startswith("data:") or not name:
            return
        if not fnmatch.filter([entry.name for entry in folder.iterdir()] if folder.is_dir() else [], f"{name}*"):
            remedy = f"get it: {command(name, data=folder)}" if name in catalogue() else "see `isoglot data list`"
            raise RecipeError(
                f"{path}: there is no {name} in {folder}, which `data:` stands for; set ISOGLOT_DATA to the folder of "
                f"your data sets, or {remedy}"
            )
