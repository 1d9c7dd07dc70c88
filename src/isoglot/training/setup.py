"""What a run needs before its first step: the encoder, the streams, and a record of what is run."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from isoglot.data.batch import Batch
from isoglot.data.batching import Batches, Position
from isoglot.data.files import atomic_write
from isoglot.data.streams import Sources, build_table
from isoglot.encoders import load
from isoglot.encoders.base import Encoder
from isoglot.encoders.packaged import cache_folder
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.tokenizer import train_tokenizer
from isoglot.errors import CheckpointError, EncoderError
from isoglot.objectives import Sum
from isoglot.objectives import build as build_objective
from isoglot.settings import Recipe, StageSettings, StaticSettings, TransformerSettings
from isoglot.training import ranks

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from isoglot.training.progress import Watch

Words = Callable[[str], None]


class Stream:
    """Batches and the objectives that read them; the next batch is made while the current one is trained on."""

    def __init__(self, name: str, batches: Batches, objective: Sum) -> None:
        self.name, self.batches, self.objective = name, batches, objective
        self.position = batches.position  # of the next batch to be trained on
        self._maker = ThreadPoolExecutor(1, thread_name_prefix=f"batches-{name}")
        self._ahead: Future[tuple[Batch, Position]] | None = None

    def next(self) -> Batch:
        """The next batch."""
        made = self._ahead or self._maker.submit(self._make)
        batch, self.position = made.result()
        self._ahead = self._maker.submit(self._make)
        return batch

    def close(self) -> None:
        """Stop making batches."""
        self._maker.shutdown(cancel_futures=True)

    def _make(self) -> tuple[Batch, Position]:
        return self.batches.next(), self.batches.position


def make_encoder(recipe: Recipe, *, seed: int, watch: Watch) -> Encoder:
    """The encoder of a recipe: loaded, or made from scratch with a tokenizer trained on the first stage's text."""
    settings = recipe.encoder
    if isinstance(settings, TransformerSettings):
        try:
            return load(
                _local(recipe, settings.model),
                pooling=settings.pooling,
                prompt=settings.prompt,
                max_length=settings.max_length,
                head=settings.head == "tanh",
                layers=settings.layers,
                freeze_embeddings=settings.freeze_embeddings,
                seed=seed,
            )
        except (TypeError, ValueError) as error:  # of another kind, or settings that contradict each other
            raise EncoderError(
                f"{settings.model}: cannot be trained as a transformer with these settings: {error}"
            ) from error
    if settings.model:
        encoder = load(
            _local(recipe, settings.model), max_length=settings.max_length, token_weights=settings.token_weights or None
        )
        if not isinstance(encoder, StaticEncoder):
            raise EncoderError(f'{settings.model}: not a static encoder; write kind = "transformer" in [encoder]')
        return encoder
    return StaticEncoder.create(
        _tokenizer(recipe, settings, watch), settings.dim, seed=seed, std=settings.scale,
        token_weights=settings.token_weights, max_length=settings.max_length or 256,
    )  # fmt: skip


def make_streams(
    recipe: Recipe, stage: StageSettings, encoder: Encoder, *, seed: int, positions: Sequence[Position], watch: Words
) -> list[Stream]:
    """The streams of a stage, each from its position, or from the beginning where there is none."""
    streams = []
    for number, settings in enumerate(stage.streams):
        sources = Sources(settings, recipe.resolve)
        weights = sources.weights()
        with ranks.first_alone():
            table = build_table(
                sources, encoder.tokenize, fingerprint=encoder.fingerprint, cache=cache_folder() / "tables", watch=watch
            )
        position = positions[number] if number < len(positions) else None
        batches = Batches(
            table,
            settings.batching,
            seed=seed,
            weights=weights,
            position=position,
            rank=ranks.rank(),
            world=ranks.world(),
        )
        terms = [
            (o.weight, build_objective(o.name, o.options, encoder, where=f"streams.{settings.name}.objectives.{i}"))
            for i, o in enumerate(settings.objectives)
        ]
        streams.append(Stream(settings.name, batches, Sum(*terms)))
    return streams


def begun(folder: Path) -> bool:
    """Whether a run in the folder has made a step; one that failed before it may be begun anew."""
    log = folder / "log.jsonl"
    return (log.exists() and log.stat().st_size > 0) or any((folder / "checkpoints").glob("step-*"))


def write_run(recipe: Recipe, folder: Path, *, seed: int, resume: bool) -> None:
    """Record what is run; on resuming, refuse a recipe, a seed or a number of ranks that is not the run's."""
    import isoglot

    path = folder / "run.json"
    streams = [stream for stage in recipe.stages for stream in stage.streams]
    ours = {
        "recipe": recipe.model_dump(mode="json", exclude={"folder"}),
        "seed": seed,
        "number of ranks": ranks.world(),
        "text": [Sources(stream, recipe.resolve).digest() for stream in streams],
    }
    if resume and begun(folder):
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path}: damaged ({error}); without it the run cannot be resumed") from error
        changed = [key for key in ours if theirs.get(key) != ours[key]]
        if changed:
            raise CheckpointError(
                f"{path}: the run there has another {' and '.join(changed)}; resume with the same, or start anew"
            )
        return
    versions = {"isoglot": isoglot.__version__, "torch": torch.__version__, "python": platform.python_version()}
    with atomic_write(path) as stream:
        json.dump({**ours, "versions": versions}, stream, indent=1)


def _tokenizer(recipe: Recipe, settings: StaticSettings, watch: Watch) -> Tokenizer:
    """A tokenizer from a file, or trained on the text of the first stage and kept in the cache."""
    from tokenizers import Tokenizer

    if settings.tokenizer:
        path = recipe.resolve(settings.tokenizer)
        try:
            return Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare exceptions
            raise EncoderError(f"{path}: not a tokenizer file ({error})") from error
    streams = [Sources(stream, recipe.resolve) for stream in recipe.stages[0].streams]
    made = [settings.algorithm, settings.vocabulary, settings.lowercase]
    path = (
        cache_folder() / "tokenizers" / f"{streams[0].text_digest(*made, *(s.text_digest() for s in streams[1:]))}.json"
    )
    if (known := _readable(path)) is not None:
        return known
    watch(f"training a tokenizer of {settings.vocabulary:,} tokens")
    tokenizer = train_tokenizer(
        (text for stream in streams for text in stream.texts()),
        settings.vocabulary,
        model=settings.algorithm,
        lowercase=settings.lowercase,
    )
    with atomic_write(path) as stream:
        stream.write(tokenizer.to_str())
    return Tokenizer.from_file(str(path))


def _readable(path: Path) -> Tokenizer | None:
    """A tokenizer of the cache, or None if it is not there or damaged."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception:  # the library raises bare exceptions
        return None


def _local(recipe: Recipe, model: str) -> str:
    """A model that stands beside the recipe as a path, any other name as it is."""
    path = recipe.resolve(model)
    return str(path) if path.is_dir() else model
