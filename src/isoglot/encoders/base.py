"""`Encoder`: a model of torch, which can be trained: tokens to vectors with a gradient."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import EncoderError
from isoglot.data.tokens import Tokens
from isoglot.encoders.device import autocast, describe, fetch, resolve, settle
from isoglot.model import layout
from isoglot.model.backend import Plan, Rows, full_name
from isoglot.model.base import Model
from isoglot.model.card import Card

Kind = TypeVar("Kind", bound="Encoder")

_alone = threading.RLock()  # for encoders whose forward is not thread-safe
_starting = threading.Lock()


def _reset_threads() -> None:
    """In a forked process: torch's other threads, and those that held these locks, are gone."""
    global _alone, _starting
    _alone, _starting = threading.RLock(), threading.Lock()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_reset_threads)


class Encoder(Model, nn.Module):
    """A `Model` whose vectors have a gradient. A subclass implements these members beside `tokenize` and `fingerprint`.

    forward      `Tokens` of N sentences -> (N, D) on the encoder's device, not normalised; the encoder does its own
                 padding
    write        writes the files of a saved model into a new folder; callers use `save`
    prepared     what `forward` needs of the host, made in the calling thread; by default nothing
    exports      the encoders that training may return: itself, or the parts that the dev score chooses from
    """

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D) vectors of N tokenised sentences."""
        raise NotImplementedError

    def write(self, folder: Path, *, name: str | None = None) -> None:
        """Write the encoder into `folder`, which exists and is empty, in the sentence-transformers layout."""
        raise NotImplementedError

    def exports(self) -> Sequence[Encoder]:
        """The encoders that training chooses from by dev score; without a dev score, the first one."""
        return (self,)

    def prepared(self, tokens: Tokens) -> Tokens:
        """The tokens with what `forward` needs of the host made now, in the calling thread; by default unchanged."""
        return tokens

    def save_graph(self, folder: str | Path, *, name: str | None, words: str) -> None:
        """Write a folder whose weights are a graph for ONNX Runtime; only transformers can. Raises EncoderError."""
        del name, words
        raise EncoderError(f"{folder}: only transformers can be exported to ONNX, and this is a {type(self).__name__}")

    def write_model(self, folder: str | Path, *, name: str | None, weights: str, words: str | None) -> None:
        """Write the encoder and its model card to `folder`, in the forms of `save`, which checks them."""
        from isoglot.encoders import packing

        if weights == "onnx":
            self.save_graph(folder, name=name, words=words or "int4")
            return
        with layout.replacing(folder) as new:
            self.write(new, name=name)
            if not weights == (words or weights) == packing.FULL:
                packing.pack(new, weights, words)
            forms = weights if words in (None, weights) else f"{weights}, words {words}"
            self.write_card(new, name=name, weights=forms)

    def write_card(self, folder: Path, *, name: str | None, weights: str) -> None:
        """Write the model card into a folder that the encoder was just written to, in this form of weights."""
        card = self.card or Card()
        card.write(
            folder, name=name or card.name, kind=self.kind, dim=self.dim, max_length=self.max_length,
            parameters=self.parameters_count, weights=weights,
        )  # fmt: skip

    def __call__(self, tokens: Tokens) -> Tensor:
        """`forward`, for training. Raises TypeError for texts, which `encode` takes."""
        if isinstance(tokens, str | list | tuple):
            raise TypeError("an encoder is called with Tokens; to encode texts: encoder.encode(texts)")
        return cast(Tensor, nn.Module.__call__(self, tokens))

    def __getattr__(self, name: str) -> Any:
        try:
            return nn.Module.__getattr__(self, name)
        except AttributeError:
            return Model.__getattr__(self, name)

    def __repr__(self) -> str:
        return nn.Module.__repr__(self)

    def extra_repr(self) -> str:
        """What `repr` shows before the modules."""
        return self.summary

    # The engine

    def describe(self, precision: str | None = None) -> str:
        """One line about device, threads and precision."""
        return describe(self.device, self.settle(precision))

    @property
    def device(self) -> torch.device:
        """The device of the encoder's weights; the CPU if it has none."""
        return next((weight.device for weight in self.parameters()), torch.device("cpu"))

    @property
    def overlaps(self) -> bool:  # type: ignore[override]
        """Whether the device computes while the host goes on."""
        return self.device.type != "cpu"

    def begin(self, tokens: Tokens, plan: Plan) -> Callable[[], Rows]:
        """Start computing the rows (N, `plan.width`) of a chunk; call the result to wait for them."""
        with self.computing(plan.precision):
            rows = fetch(self(tokens)[:, : plan.width].float())
        return lambda: rows().numpy()

    @contextmanager
    def computing(self, precision: str) -> Iterator[None]:
        """Inference in a precision; one thread at a time, unless several may compute at once."""
        with torch.inference_mode(), autocast(precision, self.device), nullcontext() if self.concurrent else _alone:
            yield

    def trainable(self) -> Encoder:
        """The encoder itself."""
        return self

    def evaluating(self: Kind) -> Kind:
        """The encoder in evaluation mode: see `evaluating`."""
        return evaluating(self)

    def settle(self, precision: str | None, place: Any = None) -> str:
        """The precision by its full name: see `device.settle`. On a CPU, `auto` asks `keeps_bfloat16` too."""
        device = self.device if place is None else torch.device(place)
        settled = settle(precision, device)
        is_automatic = settled == "bfloat16" and full_name(precision) == "auto" and device.type == "cpu"
        return "float32" if is_automatic and not self.keeps_bfloat16 else settled

    @property
    def keeps_bfloat16(self) -> bool:
        """Whether bfloat16 gives (nearly) the same vectors in less time."""
        return False

    def at(self, precision: str) -> Model:
        """The encoder, which computes in every precision but int8. Raises EncoderError for that."""
        if precision == "int8":
            raise EncoderError(
                f"int8 is computed by transformers, and this is a {type(self).__name__}; use float32 "
                "(output_precision='int8' returns vectors of bytes)"
            )
        return self

    @property
    def threads(self) -> int:
        """As many as torch has, if several may compute at once."""
        with _starting:  # a thread's first look at the setting, while a pool starts, would find that of the pool
            return torch.get_num_threads() if self.concurrent else 1

    def start_threads(self, count: int) -> ThreadPoolExecutor:
        """A pool of `count` threads that compute with one of torch's threads each; the caller keeps its own number."""
        pool = ThreadPoolExecutor(count, "isoglot-encode")
        started = threading.Barrier(count + 1)

        def start() -> None:
            torch.get_num_threads()  # the first call in a thread copies the global setting; later ones do not
            torch.set_num_threads(1)
            started.wait()

        with _starting:  # a thread's setting is also the initial one of later threads, until it is reset
            before = torch.get_num_threads()
            for _ in range(count):
                pool.submit(start)
            started.wait()
            torch.set_num_threads(before)
        return pool

    def _place(self, device: Any) -> torch.device:
        return resolve(device)

    def move(self, place: str) -> Encoder:
        """In a worker process: the encoder on the worker's device, with one thread."""
        torch.set_num_threads(1)
        device = torch.device(place)
        if device.type != "cpu":  # or every worker would also open a context on the first device
            torch.accelerator.set_device_index(device)
        return self.to(device).eval()

    @property
    def parameters_count(self) -> int:
        """Number of weights."""
        return sum(weight.numel() for weight in self.parameters())

    def add_weights(self, checksum: Any) -> None:
        """Update a checksum with names, shapes, types and values of all weights."""
        add_tensors(checksum, self.state_dict())


def add_tensors(checksum: Any, tensors: Mapping[str, Tensor]) -> None:
    """Update a checksum of `hashlib` with names, shapes, types and values."""
    for name, tensor in sorted(tensors.items()):
        checksum.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        checksum.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())


@check_arguments()
def to_tensor(rows: Rows, device: Any) -> Tensor:
    """A copy of the rows as a tensor on a device."""
    return torch.from_numpy(np.array(rows)).to(device)


def evaluating(encoder: Kind, *, always_copy: bool = False) -> Kind:
    """The encoder in evaluation mode: itself if all of it is, else a copy that shares everything but the mode.

    The mode of the encoder itself is never changed, since another thread may be training it or encoding with it.
    """
    if not always_copy and not any(module.training for module in encoder.modules()):
        return encoder
    copies: dict[nn.Module, nn.Module] = {}

    def copy_module(module: nn.Module) -> nn.Module:
        if module not in copies:
            new = copies[module] = module.__new__(type(module))
            new.__dict__ = {**module.__dict__, "training": False}
            new.__dict__["_modules"] = {
                name: child if child is None else copy_module(child) for name, child in module._modules.items()
            }
        return copies[module]

    return cast(Kind, copy_module(encoder))
