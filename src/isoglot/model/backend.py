"""`Backend`: what each engine implements, texts to tokens and tokens to vectors, and the settings of an encoding."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EncoderError
from isoglot.core.machine import available_cores
from isoglot.core.plugins import torch_half
from isoglot.data.files import file_state
from isoglot.data.tokens import Tokens
from isoglot.model.tokenizer import backend_of, digest

Rows = NDArray[np.floating]
Self = TypeVar("Self", bound="Backend")

PRECISIONS = ("float32", "bfloat16", "tf32", "int8", "auto")
_SHORT = {"fp32": "float32", "bf16": "bfloat16"}
_MOST_WORKERS = 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of an encoding, complete. `window` and `most` count texts, `budget` padded tokens."""

    width: int
    unit: bool
    dtype: str
    budget: int
    most: int | None
    window: int
    precision: str


def full_name(precision: str | None) -> str:
    """The full name of a precision; that of None is auto. Raises ValueError for an unknown one."""
    name = "auto" if precision is None else _SHORT.get(precision, precision)
    if name in ("uint8", "binary", "ubinary"):
        raise ValueError(
            f"precision={name!r} is a type of the vectors that are returned: pass output_precision={name!r}; precision "
            f"is how they are computed, one of {', '.join(PRECISIONS)}"
        )
    if name not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    return name


class Backend:
    """What computes: texts to tokens, and chunks of tokens to vectors. `Model` adds what its callers use.

    name         how results name the model: a packaged name, a hub id, or the name of a folder
    dim          width D of the vectors
    max_length   maximum tokens per text, special tokens included
    pooling      how a sentence's token states are pooled; "" if the model has no choice
    normalizes   whether the model was saved with a Normalize module: `encode` then gives unit vectors by default
    pads         whether chunks are padded to their longest row, so that they should have rows of similar length
    pad          id of the padding token; None without padding
    concurrent   whether several threads may compute chunks at once, each on one core; on a CPU that is faster than one
                 chunk on all cores, unless a chunk is too little work for a thread
    precision    the precision in which the model computes by default
    overlaps     whether `begin` returns before the rows are computed, as on an accelerator
    origin       argument with which `isoglot.load` can open it again; "" for a model made or changed in memory
    prompt       put before every text unless a call passes another; Towers: each tower has its own
    prompts      further prompts by name, such as query and document, for `prompt_name`
    folder       that it was opened from, by an engine without torch
    """

    name: str = ""
    dim: int
    max_length: int
    pooling: str = ""
    normalizes: bool = False
    pads: bool = True
    pad: int | None = None
    concurrent: bool = False
    precision: str = "float32"
    overlaps: bool = False
    origin: str = ""
    prompt: str = ""
    prompts: Mapping[str, str] = MappingProxyType({})
    folder: Path | None = None
    _state: tuple[int, ...] = ()  # of a file of the folder, by which another model in its place is noticed

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids of each text, truncated to `max_length`, special tokens added; an empty text has a row too.

        prompt   put before every text instead of the model's own; None: its own

        Any number of threads may call it.
        """
        raise NotImplementedError

    def begin(self, tokens: Tokens, plan: Plan) -> Callable[[], Rows]:
        """Start computing the rows (N, `plan.width`) of a chunk in float32; call the result to wait for them."""
        raise NotImplementedError

    def states(self, tokens: Tokens, precision: str) -> NDArray[np.float32]:
        """(N, T, H) last states of the tokens of N texts, before the pooling. Raises EncoderError if there are none."""
        del tokens, precision
        raise EncoderError(f"a {self.kind} has no vectors of tokens; use a transformer, such as isoglot.load()")

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest that changes when the ids of any text would change: the key of token caches."""
        return digest(backend_of(cast(Any, self).tokenizer), self.max_length, self.prompt)

    @property
    def kind(self) -> str:
        """Name of the class, the same for all engines of a model."""
        return type(self).__qualname__

    @property
    def parameters_count(self) -> int:
        """Number of weights."""
        raise NotImplementedError

    def add_weights(self, checksum: Any) -> None:
        """Update a checksum of `hashlib` with all weights, for `identity`."""
        raise NotImplementedError

    @property
    def device(self) -> Any:
        """The device on which vectors are computed."""
        return "cpu"

    def describe(self, precision: str | None = None) -> str:
        """One line about device, threads and precision."""
        cores = available_cores()
        threads = f", {cores} thread{'' if cores == 1 else 's'}" if str(self.device) == "cpu" else ""
        return f"device: {self.device}{threads}, {self.settle(precision)}"

    def evaluating(self: Self) -> Self:
        """The model in evaluation mode: itself, or a copy that shares its weights."""
        return self

    def settle(self, precision: str | None, place: Any = None) -> str:
        """The precision by its full name. None and `auto`: the model's own. Raises ValueError for an unknown one.

        place   the device that computes; None: the model's own
        """
        del place
        name = full_name(precision)
        return self.precision if name == "auto" else name

    @property
    def threads(self) -> int:
        """Threads that compute chunks at the same time."""
        return available_cores() if self.concurrent else 1

    def start_threads(self, count: int) -> ThreadPoolExecutor:
        """A pool of threads, each of which computes on one core."""
        return ThreadPoolExecutor(count, "isoglot-encode")

    def places(self, workers: int | Sequence[Any]) -> list[Any]:
        """The device of each worker process; none: this process.

        Raises ValueError for less than one worker, EncoderError for a device that is absent.
        """
        if isinstance(workers, int):
            if not 1 <= workers <= _MOST_WORKERS:
                raise ValueError(f"workers must be 1 to {_MOST_WORKERS}, or a list of devices, got {workers}")
            return [self.device] * workers if workers > 1 else []
        devices = [] if isinstance(workers, str) else [self._place(device) for device in workers]
        if not devices:
            raise ValueError(f"workers must be a number or a list of devices such as ['cuda:0'], got {workers!r}")
        return devices

    def _place(self, device: Any) -> Any:
        """A device by its name. Raises EncoderError if the engine can't compute there."""
        if str(device) != "cpu":
            raise EncoderError(f"device {str(device)!r}: this model runs on the CPU; load it with engine='torch'")
        return "cpu"

    def move(self: Self, place: str) -> Self:
        """In a worker process: the model on the worker's device, for one thread."""
        del place
        self._require_unchanged()  # before its files are read
        return self

    def identity(self) -> str:
        """Hexadecimal digest of weights, tokenizer, truncation, prompt and pooling; a second per gigabyte of weights.

        Two models of one identity give the same vectors up to rounding; device and batch size are not part of it.
        """
        facts = {name: getattr(self, name) for name in ("dim", "pads", "pooling", "normalizes", "pad")}
        lines = [f"{name}={value}" for name, value in facts.items() if value not in ("", None)]
        checksum = hashlib.sha256("\n".join([f"{self.kind} {self.fingerprint}", *lines]).encode())
        self.add_weights(checksum)
        return checksum.hexdigest()

    def trainable(self) -> Any:
        """The model as an `isoglot.encoders.Encoder`, a module of torch, which `isoglot.train` trains.

        Raises EncoderError without torch, or if the model was made in memory.
        """
        if not self.origin:
            raise EncoderError(f"{self.name or 'the model'} has no folder to be opened from; pass isoglot.load(folder)")
        settings = {"prompt": self.prompt, "prompts": self.prompts, "max_length": self.max_length}
        encoder = torch_half("encoders").load(self.origin, device="cpu", **settings)
        self._require_unchanged()
        return encoder

    def _require_unchanged(self) -> None:
        """Raise EncoderError if another model was saved into the folder since this one was opened."""
        file = None if self.folder is None else self.folder / "modules.json"  # links change its last time
        if file is not None and not (file.is_file() and file_state(file)[:4] == self._state[:4]):
            raise EncoderError(f"{self.folder}: another model was saved there since this one was opened; open it again")

    def at(self, precision: str) -> Backend:
        """The model that computes in a settled precision. Raises EncoderError if there is none."""
        return self if precision == self.precision else cast(Backend, self.trainable().at(precision))
