"""The encoder that a recipe trains: opened, or made from scratch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from isoglot.data.files import atomic_write
from isoglot.encoders import load
from isoglot.encoders.base import Encoder
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.tokenizer import train_tokenizer
from isoglot.encoders.towers import Towers
from isoglot.encoders.twins import Twins
from isoglot.environment import cache_folder
from isoglot.errors import EncoderError, RecipeError
from isoglot.memory import check_memory
from isoglot.settings import BackboneSettings, Recipe, StaticSettings, TowersSettings, TwinsSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from isoglot.training.progress import Watch


def make_encoder(recipe: Recipe, *, seed: int, watch: Watch) -> Encoder:
    """The encoder of a recipe: loaded, or made from scratch with a tokenizer trained on the first stage's text."""
    settings = recipe.encoder
    if isinstance(settings, StaticSettings):
        return _static(recipe, settings, seed=seed, watch=watch)
    if isinstance(settings, TowersSettings):
        towers = {tower.name: _backbone(recipe, tower, seed=seed) for tower in settings.towers}
        try:
            return Towers(towers, {tower.name: tower.scripts for tower in settings.towers})
        except ValueError as error:
            raise RecipeError(f"encoder.towers: {error}") from error
    if isinstance(settings, TwinsSettings):
        try:
            return Twins(_backbone(recipe, settings, seed=seed), _backbone(recipe, settings, seed=seed))
        except ValueError as error:
            raise RecipeError(f"encoder: {error}") from error
    return _backbone(recipe, settings, seed=seed)


def _backbone(recipe: Recipe, settings: BackboneSettings, *, seed: int) -> Encoder:
    """A transformer, ready to be trained."""
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


def _static(recipe: Recipe, settings: StaticSettings, *, seed: int, watch: Watch) -> StaticEncoder:
    """A static encoder, continued or new."""
    if settings.model:
        encoder = load(
            _local(recipe, settings.model), max_length=settings.max_length, token_weights=settings.token_weights or None
        )
        if not isinstance(encoder, StaticEncoder):
            raise EncoderError(f'{settings.model}: not a static encoder; write kind = "transformer" in [encoder]')
        return encoder
    tokenizer = _tokenizer(recipe, settings, watch)
    numbers = tokenizer.get_vocab_size() * settings.dim
    try:  # the table and the two moments of Adam
        check_memory(
            3 * 4 * numbers, torch.device("cpu"), f"{tokenizer.get_vocab_size():,} tokens x {settings.dim:,} numbers"
        )
    except ValueError as error:
        raise RecipeError(f"encoder.dim, encoder.vocabulary: {error}") from error
    return StaticEncoder.create(
        tokenizer, settings.dim, seed=seed, std=settings.scale,
        token_weights=settings.token_weights, max_length=settings.max_length or 256,
    )  # fmt: skip


def _tokenizer(recipe: Recipe, settings: StaticSettings, watch: Watch) -> Tokenizer:
    """A tokenizer from a file, or trained on the text of the first stage and kept in the cache."""
    from tokenizers import Tokenizer

    if settings.tokenizer:
        path = recipe.resolve(settings.tokenizer)
        try:
            return Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare exceptions
            raise EncoderError(f"{path}: not a tokenizer file ({error})") from error
    streams = [recipe.corpus(stream) for stream in recipe.stages[0].streams]
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
