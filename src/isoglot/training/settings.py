"""The settings of a run: frozen models with defaults, ranges and descriptions.

A recipe is one run: an encoder, one or more stages of streams and an optimiser, and the evaluation. TOML and the
arguments of `isoglot.train` are two notations for it. Unknown keys are errors, except for the options of readers and
objectives, which check their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from isoglot.core import environment
from isoglot.data.batching import MOST, Batching, Count, Flag, Limit, Mixing, Positive, Seed
from isoglot.data.files import BUNDLED
from isoglot.encoders.settings import (
    Name,
    Names,
    OpenedSettings,
    Settings,
    Share,
    StaticSettings,
    Text,
    Texts,
    TowersSettings,
    TransformerSettings,
    TwinsSettings,
)

MEMORY = "memory"  # reader of the data of a call of `isoglot.train`
Repeats = Annotated[int, Field(strict=True, gt=0, le=65536)]  # of work in one step
Amount = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]
Rate = Annotated[float, Field(strict=True, ge=1e-30, le=1e3, allow_inf_nan=False)]


class TeacherSettings(OpenedSettings):
    """A frozen encoder; the batches contain its vectors of every sentence, computed once per distinct text."""

    pivot: Text = Field("", description="encode only a group's sentence in this language (else its first); empty: all")
    precision: Literal["float32", "bfloat16"] = Field("float32", description="arithmetic of its vectors")


class _WithOptions(Settings):
    """Settings of a reader or an objective; all keys that they do not name are its options, which it checks."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def options(self) -> dict[str, Any]:
        """The options."""
        return dict(self.model_extra or {})


class SourceSettings(Mixing, _WithOptions):  # in this order, so that more keys are allowed
    """A data set, or files and how to read them; all other keys are options of the reader, such as `languages`."""

    set: Name = Field("", description="name of a data set (`isoglot data list`), instead of reader and path")
    reader: Text = Field("", description="name of a reader, such as tsv; none with `set`")
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


class StreamSettings(Settings):
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
    def _matching_and_joining(self) -> StreamSettings:
        if self.batching.rows == "matching" and (self.batching.most or any(source.most for source in self.sources)):
            raise ValueError('rows = "matching" takes all sentences of a group; leave out most')
        if self.largest != StreamSettings.model_fields["largest"].default and not self.join:
            raise ValueError("largest is of joined groups; write join = true, or leave it out")
        return self


class OptimizerSettings(Settings):
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
    def _kind_and_schedule(self) -> OptimizerSettings:
        if {self.schedule == "stairs", bool(self.stairs), bool(self.stair)} == {True, False}:
            raise ValueError('schedule = "stairs" goes with stairs (learning rates) and stair (steps on each)')
        if self.stairs and self.lr != max(self.stairs):
            raise ValueError(f"lr is the peak, which stairs ({max(self.stairs):g}) decide; change stairs and lr")
        if self.kind == "rmsprop" and self.weight_decay:  # torch adds it to the gradient, so it is not decoupled
            raise ValueError(f'weight_decay = {self.weight_decay:g} requires kind = "adamw"; remove it')
        if self.kind == "rmsprop" and self.betas != OptimizerSettings.model_fields["betas"].default:
            raise ValueError('betas require kind = "adamw"; remove them')
        return self


class StageSettings(Settings):
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


class EvaluationSettings(Settings):
    """A dev task that chooses the best checkpoint. Choose on dev data, report on test data."""

    name: Text = Field("", description="evaluations of the same name select together, by the mean of their scores")
    task: Text = Field("tatoeba", description="name of a task")
    data: Name = Field(description="its data, relative to the recipe; `bundled:` for the packaged text")
    languages: Texts = ()
    subset: Text = Field("mean", description="subset of the score that decides")
    metric: Text = Field("accuracy/mean", description="decides; an error is minimised; empty: the main one")
    every: Limit = Field(0, description="steps between evaluations; 0: only at the end")
    patience: Limit = Field(0, description="end a stage after this many evaluations without a better one; 0: never")


class MemorySettings(Settings):
    """How a batch is computed: its splitting to bound memory (training/step.py), and compiled layers."""

    chunk_tokens: Count | None = Field(None, description="padded tokens of a chunk; unset: 512 on a CPU, else 16384")
    graph_tokens: Limit | None = Field(
        None,
        description="maximum padded tokens whose activations are kept; other chunks are embedded twice; unset: 3072 on "
        "a CPU, else what free memory allows, 32768 where it is not known",
    )
    shard_weights: Flag = Field(
        False,
        description="several processes divide the weights of a transformer, its gradients and the optimizer's state "
        "among them (FSDP2)",
    )
    compile: Flag = Field(
        False, description="run the layers of transformers through torch.compile, which takes a minute at the start"
    )


class Recipe(Settings):
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
    def _one_evaluation(cls, value: Any) -> Any:
        """`[evaluation]` is a list of one."""
        return (value,) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _check_evaluations(self) -> Recipe:
        """Evaluations of the same name need the same schedule, patience an interval, and all a stage that selects."""
        if self.evaluation and not any(stage.select for stage in self.stages):
            raise ValueError("evaluation: no stage has select = true, so it would never run; remove one of the two")
        for name in {evaluation.name for evaluation in self.evaluation}:
            if len({(e.every, e.patience) for e in self.evaluation if e.name == name}) > 1:
                raise ValueError(f"evaluations of the same name ({name!r}) need the same every and patience")
        if any(one.patience and not one.every and one.held is None for one in self.evaluation):
            raise ValueError("evaluation: patience counts evaluations before the end of a stage; set every too")
        return self

    @property
    def streams(self) -> list[StreamSettings]:
        """The streams of all stages."""
        return [stream for stage in self.stages for stream in stage.streams]

    def local(self, model: str) -> str:
        """The path of a model in the recipe's folder; any other name unchanged."""
        path = self.resolve(model)
        return str(path) if path.is_dir() else model

    def resolve(self, path: str) -> Path:
        """Resolve a path of the recipe: absolute, relative to its folder, or to `bundled:` and `data:`."""
        if path.startswith("bundled:"):
            return BUNDLED / path.removeprefix("bundled:")
        if path.startswith("data:"):
            return self.data.expanduser() / path.removeprefix("data:")
        return self.folder / Path(path).expanduser()
