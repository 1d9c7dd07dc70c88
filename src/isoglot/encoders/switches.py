"""Switches that are the whole process's: TF32 and the attention of cuDNN, turned while threads compute, and what
transformers prints.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch


class Switch(AbstractContextManager[None]):
    """A switch of PyTorch, which is the whole process's, is at `value` while any thread is inside."""

    def __init__(self, read: Callable[[], Any], turn: Callable[[Any], None], value: bool) -> None:
        self.lock, self.inside, self.before = threading.RLock(), 0, None
        self.read, self.turn, self.value = read, turn, value

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.before = self.read()
                self.turn(self.value)
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.turn(self.before)


def _tf32_choice() -> bool | str:
    """Whether products may be in TF32: of PyTorch's two switches, the one that the program used."""
    products = torch.backends.cuda.matmul
    try:
        return bool(products.allow_tf32)
    except RuntimeError:  # the program used the newer one, in a way that the older can't express
        return str(products.fp32_precision)


def _choose_tf32(value: bool | str) -> None:
    setattr(torch.backends.cuda.matmul, "fp32_precision" if isinstance(value, str) else "allow_tf32", value)


_quiet = threading.RLock()
tf32 = Switch(_tf32_choice, _choose_tf32, True)
_attention = Switch(torch.backends.cuda.cudnn_sdp_enabled, torch.backends.cuda.enable_cudnn_sdp, False)


def attending(device: torch.device) -> AbstractContextManager[object]:
    """The context of a forward pass: without the attention of cuDNN.

    It makes a plan for each shape that it meets first, and nearly every chunk of texts has one that is new. On an H100
    (PyTorch 2.11) that was 60 ms of a chunk's forward pass, and most of the time of a step of training. It also refuses
    a mask with a gradient, as the distances of MPNet are: the two passes of a chunk would be computed by two kernels,
    which drop out other cells.
    """
    return _attention if device.type == "cuda" else nullcontext()


@contextmanager
def full_precision() -> Iterator[None]:
    """Products of float32 are computed in float32 inside the block, by all threads; TF32 waits for its end."""
    with tf32.lock, Switch(_tf32_choice, _choose_tf32, False):
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Silence progress bars and reports of transformers; relevant problems are raised as errors.

    One thread at a time, since these settings are of the whole process.
    """
    from transformers.utils import logging

    with _quiet:
        level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()
