"""What a recipe may say: frozen settings, each with its default, its range and its meaning.

A recipe is one run: an encoder, one or more stages of streams and an optimiser, and how it is judged meanwhile. Keys
that are not here are errors, but for the options of readers and objectives, which check their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Share = Annotated[float, Field(ge=0, lt=1)]
BUNDLED = Path(__file__).parent / "bundled"


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StaticSettings(_Settings):
    """An embedding bag: mean of token vectors. Made from scratch, or continued from `model`."""

    kind: Literal["static"]
    model: str = Field("", description="folder of a static encoder to continue; empty: from scratch")
    dim: int = Field(256, gt=0, description="width of the vectors")
    vocabulary: int = Field(32000, gt=300, description="tokens of the tokenizer trained on the streams' text")
    tokenizer: str = Field("", description="tokenizer.json to use instead of training one")
    algorithm: Literal["unigram", "bpe"] = Field("bpe", description="kind of the tokenizer that is trained")
    lowercase: bool = Field(True, description="fold case before tokenising")
    max_length: int | None = Field(None, gt=0, description="most tokens of a sentence; None: the model's own, or 256")
    token_weights: bool = Field(False, description="train one scalar per token beside its vector")
    scale: float = Field(0.02, gt=0, description="standard deviation of the initial vectors")

    @model_validator(mode="after")
    def _new_or_continued(self) -> StaticSettings:
        """A model that is continued has its tokenizer and its width already."""
        made = {"dim", "vocabulary", "tokenizer", "algorithm", "lowercase", "scale"} & self.model_fields_set
        if self.model and made:
            raise ValueError(f"{', '.join(sorted(made))} of {self.model} cannot be changed; leave out")
        return self


class _Opened(_Settings):
    """What any encoder is opened with."""

    model: str = Field(description="folder, packaged name (`isoglot models list`) or hub id")
    pooling: Literal["cls", "mean", "max", "first-last", "first1-last"] | None = Field(
        None, description="None: what the model was saved with, else mean"
    )
    max_length: int | None = Field(None, gt=0, description="most tokens of a sentence; None: the model's own")
    prompt: str | None = Field(None, description="put before every text; None: the model's own")


class TeacherSettings(_Opened):
    """A frozen encoder whose vectors of every sentence go with the batches, computed once for each distinct text."""


class BackboneSettings(_Opened):
    """A Hugging Face encoder that is trained."""

    head: Literal["none", "tanh"] = Field("none", description="tanh: a layer over the pooled vector, in training only")
    layers: int | None = Field(None, gt=0, description="keep only the first layers")
    freeze_embeddings: bool = Field(False, description="leave the word embeddings as they are")


class TransformerSettings(BackboneSettings):
    """A Hugging Face encoder, from a folder, a packaged name or, where there is a network, a hub id."""

    kind: Literal["transformer"]


class TwinsSettings(BackboneSettings):
    """Two copies of one Hugging Face encoder, which training drives apart (Contrastive Tension); one is kept."""

    kind: Literal["twins"]


class TowerSettings(BackboneSettings):
    """One tower: an encoder, and which texts are its own."""

    name: str = Field(description="what the tower's folder is called")
    scripts: tuple[str, ...] = Field(
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


class SourceSettings(BaseModel):
    """Files and how to read them; all other keys are options of the reader, such as `languages`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    reader: str = Field(description="tsv, moses, folder, jsonl, tmx, nli, xnli, lines, entities, dataset")
    path: str = Field(
        description="file, folder or pattern, relative to the recipe, or after `bundled:` (packaged text) or `data:`"
    )
    name: str = Field("", description="what weights and logs call it; empty: the path")
    weight: float | None = Field(None, gt=0, description="share of the items of an epoch, relative to other sources")

    @property
    def options(self) -> dict[str, Any]:
        """What is handed to the reader."""
        return dict(self.model_extra or {})


class Batching(_Settings):
    """How groups become batches (data/batching.py)."""

    size: int = Field(128, gt=0, description="groups per batch over all ranks; with `tokens`, the most of them")
    tokens: int = Field(0, ge=0, description="token budget of a batch, rows x longest row; 0: none")
    pool: int = Field(
        1,
        gt=0,
        description="batches among which like lengths meet: less padding, harder to learn from; 1: random order",
    )
    rows: Literal["all", "matching"] = Field(
        "all",
        description="matching: a random perfect matching cuts each group into cross-language pairs (MPCL +Single)",
    )
    most: int = Field(0, ge=0, description="how many sentences of a group are drawn at random; 0: all")
    hard_negatives: int = Field(-1, ge=-1, description="how many of a group's hard negatives are drawn; -1: all")
    views: int = Field(1, gt=0, description="times each sentence is repeated, for dropout masks (SimCSE)")
    anchor: Literal["random", "first"] = Field(
        "random", description="random: each sentence is slot 0 with the same chance; first: the order of the source"
    )
    one_pair: bool = Field(False, description="every batch holds one combination of languages only (IMASCL)")
    temperature: float = Field(1.0, gt=0, description="languages are drawn as n^(1/temperature); large: equal shares")


class ObjectiveSettings(BaseModel):
    """An objective by name; all other keys are its options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    weight: float = 1.0

    @property
    def options(self) -> dict[str, Any]:
        """What is handed to the objective."""
        return dict(self.model_extra or {})


class StreamSettings(_Settings):
    """Where groups come from, how they are batched, and which objectives read them."""

    name: str = "train"
    sources: tuple[SourceSettings, ...] = Field(min_length=1)
    languages: tuple[str, ...] = Field((), description="keep only sentences in these; empty: all")
    join: bool = Field(False, description="merge groups that share a sentence")
    largest: int = Field(16, gt=1, description="most sentences of a joined group")
    deduplicate: bool = Field(True, description="drop exact repetitions of a group")
    leakage: tuple[str, ...] = Field((), description="test files or folders none of whose sentences may be trained on")
    teacher: TeacherSettings | None = Field(None, description="whose vectors the objectives read beside the batch")
    batching: Batching = Batching()
    objectives: tuple[ObjectiveSettings, ...] = Field(min_length=1)


class OptimizerSettings(_Settings):
    """AdamW on dense parameters, its row-sparse counterpart on embedding tables with sparse gradients; or RMSprop."""

    kind: Literal["adamw", "rmsprop"] = "adamw"
    lr: float = Field(gt=0, description="peak learning rate")
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: float = Field(1e-8, gt=0)
    weight_decay: float = Field(0.0, ge=0, description="decoupled; never on biases, norms and row-sparse tables")
    warmup: int = Field(0, ge=0, description="steps of linear warm-up")
    schedule: Literal["linear", "cosine", "constant", "stairs"] = Field(
        "linear", description="what follows the warm-up: to zero along a line or a cosine, or down `stairs`"
    )
    stairs: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        (), description="with schedule = stairs: the learning rates, `stair` steps each, the last one to the end"
    )
    stair: int = Field(0, ge=0, description="steps on a stair")
    clip: float = Field(1.0, ge=0, description="most gradient norm; 0: no clipping")
    accumulate: int = Field(1, gt=0, description="batches, each its own negatives, whose mean gradient makes a step")
    precision: Literal["auto", "fp32", "bf16"] = Field("auto", description="auto: bf16 autocast where it pays")

    @model_validator(mode="after")
    def _stairs(self) -> OptimizerSettings:
        if (self.schedule == "stairs") != bool(self.stairs and self.stair):
            raise ValueError('schedule = "stairs" goes with stairs (learning rates) and stair (steps on each)')
        return self


class StageSettings(_Settings):
    """A part of a run with its own streams and optimiser; exactly one of epochs (of the first stream) and steps."""

    name: str = "main"
    streams: tuple[StreamSettings, ...] = Field(min_length=1)
    optimizer: OptimizerSettings
    epochs: float | None = Field(None, gt=0)
    steps: int | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _one_length_and_distinct_names(self) -> StageSettings:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give exactly one of epochs and steps")
        if len({stream.name for stream in self.streams}) < len(self.streams):
            raise ValueError("two streams have one name; give each a name of its own")
        return self


class EvaluationSettings(_Settings):
    """A dev task that chooses the best checkpoint. Choose on dev data, report on test data."""

    name: str = Field("", description="several with one name choose together, by the mean of their scores")
    task: str = Field("tatoeba", description="name of a task")
    data: str = Field(description="its data, relative to the recipe; `bundled:` for the packaged text")
    languages: tuple[str, ...] = ()
    subset: str = Field("mean", description="subset of the score that decides")
    metric: str = Field("accuracy/mean", description="metric of the score that decides; an error is minimised")
    every: int = Field(0, ge=0, description="steps between evaluations; 0: only at the end")
    patience: int = Field(0, ge=0, description="stop after so many evaluations without a better one; 0: never")


class MemorySettings(_Settings):
    """How a batch is cut so that any batch fits (training/step.py)."""

    chunk_tokens: int = Field(512, gt=0, description="tokens, padding included, that pass through the encoder at once")
    graph_tokens: int = Field(3072, ge=0, description="most tokens whose activations are kept; more are embedded twice")


class Recipe(_Settings):
    """One run."""

    name: str
    description: str = ""
    seed: int = Field(42, ge=0)
    encoder: Annotated[
        StaticSettings | TransformerSettings | TwinsSettings | TowersSettings, Field(discriminator="kind")
    ]
    stages: tuple[StageSettings, ...] = Field(min_length=1)
    evaluation: tuple[EvaluationSettings, ...] = Field(
        (), description="dev tasks; the first name's best encoder is kept in model/, that of another in best/NAME/"
    )
    memory: MemorySettings = MemorySettings()
    checkpoint_every: int = Field(0, ge=0, description="steps between checkpoints; 0: at evaluations and at the end")
    folder: Path = Field(Path(), description="what relative paths are relative to; set by `load`")
    data: Path = Field(
        default_factory=lambda: Path(os.environ.get("ISOGLOT_DATA", "data")),
        description="what paths that begin with `data:` are relative to; the variable ISOGLOT_DATA, or data/",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_stage(cls, data: Any) -> Any:
        """Streams, optimizer, epochs and steps at the top make the only stage."""
        if not isinstance(data, dict):
            return data
        own = [key for key in ("streams", "optimizer", "epochs", "steps") if key in data]
        if own and "stages" in data:
            raise ValueError(f"{own[0]} stands beside stages: write it inside each [[stages]]")
        if not own:
            return data
        return {k: v for k, v in data.items() if k not in own} | {"stages": [{key: data[key] for key in own}]}

    @field_validator("evaluation", mode="before")
    @classmethod
    def _one_evaluation(cls, given: Any) -> Any:
        """`[evaluation]` is a list of one."""
        return (given,) if isinstance(given, Mapping) else given

    @model_validator(mode="after")
    def _together(self) -> Recipe:
        """Dev tasks that choose together are looked at together."""
        for name in {evaluation.name for evaluation in self.evaluation}:
            if len({(e.every, e.patience) for e in self.evaluation if e.name == name}) > 1:
                raise ValueError(f"evaluations of the same name ({name!r}) need the same every and patience")
        return self

    def resolve(self, path: str) -> Path:
        """A path of the recipe: absolute, relative to its folder, or to what `bundled:` and `data:` stand for."""
        if path.startswith("bundled:"):
            return BUNDLED / path.removeprefix("bundled:")
        if path.startswith("data:"):
            return self.data.expanduser() / path.removeprefix("data:")
        return self.folder / Path(path).expanduser()
