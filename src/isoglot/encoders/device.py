"""Chooses the device and the number format. No other module chooses a device.

Number formats: float32; bfloat16, which is autocast: weights stay float32, products are rounded to eight bits of
mantissa, sums and norms are not; TF32, products of eleven bits of mantissa on CUDA devices that have it; and eight-bit
integers on a CPU (see int8.py).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from isoglot.core import environment
from isoglot.core.errors import EncoderError
from isoglot.model.backend import full_name

_pass = threading.local()


def resolve(device: torch.device | str = "auto") -> torch.device:
    """The device to use. `auto`: `$ISOGLOT_DEVICE` if set, else the accelerator (CUDA, XPU or MPS), else the CPU.

    An accelerator without a number is the one of this process: under torchrun that of its local rank. Raises
    EncoderError for a device that this machine or this build of PyTorch does not have.
    """
    name = str(device)
    if name == "auto":
        name = environment.default_device()
    present = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if name == "auto":
        name = "cpu" if present is None else present.type
    try:
        place = torch.device(name)
    except RuntimeError as error:
        raise EncoderError(f"device {name!r} is unknown; pass auto, cpu, cuda, cuda:1, xpu or mps") from error
    if place.type == "cpu":
        return torch.device("cpu")
    if present is None or place.type != present.type:
        available = "only the CPU" if present is None else f"the CPU and {present.type}"
        raise EncoderError(f"device {name!r} is not available: PyTorch finds {available} here; pass device='auto'")
    count = torch.accelerator.device_count()
    index = place.index
    if index is None:
        index = int(os.environ.get("LOCAL_RANK", torch.accelerator.current_device_index()))
    if index >= count:
        raise EncoderError(f"device '{place.type}:{index}' is not available: there are {count}, numbered from 0")
    return torch.device(place.type, index)


def describe(device: torch.device, precision: str | None = None) -> str:
    """One line about a device and a precision; None: the default there."""
    count = torch.get_num_threads()
    threads = f", {count} thread{'' if count == 1 else 's'}" if device.type == "cpu" else ""
    return f"device: {device}{threads}, {precision or settle(None, device)}"


def bf16_pays(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 in hardware; elsewhere autocast to it is slower than float32."""
    if device.type == "cpu":
        checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # private, absent in some versions
        return any(getattr(torch.cpu, name, lambda: False)() for name in checks)
    supported = getattr(torch.get_device_module(device), "is_bf16_supported", None)
    return supported is not None and bool(supported(including_emulation=False))


def settle(precision: str | None, device: torch.device) -> str:
    """The precision by its full name; None and `auto`: bfloat16 where the hardware has it, else float32.

    Raises ValueError.
    """
    precision = full_name(precision)
    if precision == "int8" and device.type != "cpu":
        raise ValueError(f"precision int8 needs a CPU and the encoder is on {device}; use bfloat16 there")
    if precision == "tf32" and not (device.type == "cuda" and torch.cuda.is_tf32_supported()):
        raise ValueError(f"precision tf32 needs a CUDA device that has it, and {device} does not; use float32 there")
    if precision != "auto":
        return precision
    return "bfloat16" if bf16_pays(device) else "float32"


def autocast(precision: str, device: torch.device, *, keeps_weights: bool = False) -> AbstractContextManager[object]:
    """The context to compute in.

    keeps_weights   round a weight to bfloat16 once. Not for inference: all threads would share what is kept, and a
                    chunk uses each weight once
    """
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=keeps_weights)
    if precision == "tf32":
        from isoglot.encoders.switches import tf32

        return tf32
    return nullcontext()


@contextmanager
def one_pass(computing: AbstractContextManager[object]) -> Iterator[None]:
    """A pass in the context `computing`, in which no weight changes: what is joined of them is kept for all chunks."""
    with computing:
        _pass.joined = {}
        try:
            yield
        finally:
            _pass.__dict__.pop("joined", None)


def joined_weights() -> dict[Any, Tensor]:
    """Weights that the pass of this thread has joined; outside of a pass an empty dict."""
    return getattr(_pass, "joined", {})


def fetch(values: Tensor) -> Callable[[], Tensor]:
    """Begin to copy a tensor to the host; call the result to wait for that copy, and for nothing queued later."""
    if values.device.type == "cpu":
        return lambda: values
    copy, copied = values.to("cpu", non_blocking=True), torch.Event(values.device)
    copied.record(torch.accelerator.current_stream(values.device))  # by default that of the current device

    def finish() -> Tensor:
        copied.synchronize()
        return copy

    return finish


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The states of the random generators used on `device`: the CPU's and, by device type, the device's own."""
    state = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":
        state[device.type] = torch.get_device_module(device).get_rng_state(*_place(device))
    return state


def set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Restore what `random_state` returned; a state from another type of device leaves the generator of this one."""
    torch.set_rng_state(state["cpu"])
    if device.type != "cpu" and device.type in state:
        torch.get_device_module(device).set_rng_state(state[device.type], *_place(device))


@contextmanager
def same_randomness_after(device: torch.device) -> Iterator[None]:
    """Restore the states of the random generators after the block."""
    state = random_state(device)
    try:
        yield
    finally:
        set_random_state(state, device)


def _place(device: torch.device) -> tuple[torch.device, ...]:
    return () if device.type == "mps" else (device,)  # a single device: its functions take no index
