"""A simulated accelerator: tensors of a device of their own, whose values lie in the CPU's memory.

It fails where a real one would, when an operation mixes tensors of two devices, and records each time that the host
waits for it: a value is read (`item`, `if tensor`, `.cpu()`), the size of a result depends on values (`nonzero`, a
Boolean index, `unique`), or a tensor is copied to it while the host waits. So neither needs a GPU to be tested.

It is PyTorch's backend for others, PrivateUse1. Factories reach it by the fallback of its dispatch key, all other
operations by the `__torch_dispatch__` of its tensors, in every thread. Its random numbers are its own. Autocast rounds
the inputs of products, and trained weights once in a pass. Operations that are more than a view are counted.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._pytree import tree_iter, tree_map

NAME = "sim"
SOURCE = str(Path(__file__).parent.parent / "src" / "isoglot")
aten = torch.ops.aten
# Operations whose result has a size that depends on values, which the host must read.
SIZED = {
    aten.nonzero.default, aten.masked_select.default, aten._unique2.default, aten.unique_dim.default,
    aten.unique_consecutive.default, aten.bincount.default, aten.equal.default, aten._local_scalar_dense.default,
}  # fmt: skip
COPIES = {aten._to_copy.default, aten.copy_.default}
PRODUCTS = ("linear", "matmul", "addmm", "mm", "bmm", "scaled_dot_product_attention")  # what autocast rounds
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}


class Sim:
    """The state of the simulated device: whether it is there, its random numbers, and the waits so far."""

    present = False
    random: Tensor
    pinned: ClassVar[set[int]] = set()  # where memory is that copies can be made from beside the host's work
    waits: ClassVar[Counter[str]] = Counter()
    operations: ClassVar[Counter[str]] = Counter()
    rounded: ClassVar[dict[int, tuple[Tensor, Tensor]]] = {}  # autocast's cache: trained weights and their copies


class SimTensor(Tensor):
    """A tensor on the simulated device; `raw` holds its values."""

    raw: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, raw: Tensor) -> SimTensor:
        made = Tensor._make_wrapper_subclass(
            cls, raw.shape, strides=torch.empty(raw.shape, device="meta").stride() if raw.is_sparse else raw.stride(),
            storage_offset=0 if raw.is_sparse else raw.storage_offset(), dtype=raw.dtype, device=torch.device(NAME, 0),
        )  # fmt: skip
        made.raw = raw
        return made

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})

    def __reduce_ex__(self, protocol):
        return SimTensor, (self.raw,)

    def __getitem__(self, key: Any) -> Tensor:
        return super().__getitem__(torch.tensor(key) if isinstance(key, list) else key)  # PyTorch's own fails on a list

    # Row-sparse gradients
    is_sparse = property(lambda self: self.raw.is_sparse)

    def coalesce(self) -> Tensor:
        if self.raw.is_coalesced():
            return self
        _wait("coalesce")
        return SimTensor(self.raw.coalesce())

    def indices(self) -> Tensor:
        return SimTensor(self.raw.indices())

    def values(self) -> Tensor:
        return SimTensor(self.raw.values())

    def to_dense(self, *_: Any, **__: Any) -> Tensor:
        return SimTensor(self.raw.to_dense())

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def storage(self) -> Any:
        return self.raw.storage()

    def untyped_storage(self) -> Any:
        return self.raw.untyped_storage()

    def __repr__(self, **_: Any) -> str:
        return f"SimTensor({self.raw})"


class Event:
    """A place in the queue of the device."""

    def __init__(self, device: torch.device) -> None:
        assert device.type == NAME

    def record(self, stream: torch.Stream) -> None:
        assert stream.device.type == NAME

    def synchronize(self) -> None:
        _wait("event")


def _run(operation: Any, args: Any, kwargs: Any) -> Any:
    if operation._can_decompose():
        found = operation.decompose(*args, **kwargs)
        if found is not NotImplemented:
            return found
    there = _target(operation, args, kwargs)
    _check(operation, args, kwargs)
    inputs = [given for given in tree_iter((args, kwargs)) if isinstance(given, SimTensor)]
    plain_args, plain_kwargs = tree_map(_plain, (args, kwargs))
    with torch.inference_mode(False), _own_random(operation):  # a view in that mode has to be what its base is
        result = operation(*plain_args, **plain_kwargs)
        if there and not operation.is_view:
            is_cast = operation is aten._to_copy.default and args[0].dtype != result.dtype
            Sim.operations["cast" if is_cast else operation.overloadpacket.__name__] += 1
        known = {id(given.raw): given for given in inputs}
        return tree_map(lambda made: _wrapped(made, known) if there else made, result)


def _run_with(operation: Any, *args: Any, **kwargs: Any) -> Any:
    return _run(operation, args, kwargs)


def _plain(value: Any) -> Any:
    if isinstance(value, SimTensor):
        return value.raw
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == NAME else value


def _wrapped(made: Any, known: dict[int, SimTensor]) -> Any:
    if not isinstance(made, Tensor):
        return made
    return known[id(made)] if id(made) in known else SimTensor(made)


def _target(operation: Any, args: Any, kwargs: Any) -> bool:
    """Whether the result is on the simulated device; copies between devices are recorded."""
    asked = kwargs.get("device")
    if operation is aten.copy_.default:
        there, source = isinstance(args[0], SimTensor), isinstance(args[1], SimTensor)
        waits = not (kwargs.get("non_blocking") or (len(args) > 2 and args[2]))
    else:
        there = asked is None or torch.device(asked).type == NAME
        source = operation in COPIES and isinstance(args[0], SimTensor)
        waits = not kwargs.get("non_blocking", False)
    given = args[1] if operation is aten.copy_.default else args[0] if operation in COPIES else None
    if there and given is not None and not source:
        waits = waits or (given.numel() > 0 and given.data_ptr() not in Sim.pinned)
    if operation in COPIES and there != source and waits:
        _wait("copied to the device" if there else "copied to the host")
    return there


def _check(operation: Any, args: Any, kwargs: Any) -> None:
    """Record a wait, and raise for tensors of two devices."""
    masks = [index for index in (args[1] if operation in INDEXED else ()) if index is not None]
    if operation in SIZED or (operation is aten.repeat_interleave.Tensor and kwargs.get("output_size") is None):
        _wait(operation.__name__)
    elif any(mask.dtype in (torch.bool, torch.uint8) for mask in masks):
        filled = operation is not aten.index.Tensor and args[2].numel() == 1 and len(masks) == 1
        if not filled:  # that is `masked_fill`
            _wait(f"{operation.__name__} with a mask")
    if operation in INDEXED and any(not isinstance(index, SimTensor) for index in masks):
        _wait("index copied to the device")
        args = (args[0], *args[2:])  # indices may lie on the host
    tensors = [given for given in tree_iter((args, kwargs)) if isinstance(given, Tensor)]
    strange = [given for given in tensors if not isinstance(given, SimTensor) and given.ndim]
    if strange and operation not in COPIES:
        raise RuntimeError(f"{operation}: tensors of two devices, {NAME} and cpu {tuple(strange[0].shape)}")
    if isinstance(kwargs.get("generator"), torch.Generator):
        raise RuntimeError(f"{operation}: a generator of the CPU for a tensor on {NAME}")


def _wait(what: str) -> None:
    frames = [frame for frame in traceback.extract_stack() if frame.filename.startswith(SOURCE)]
    where = f"{Path(frames[-1].filename).relative_to(SOURCE)}:{frames[-1].lineno}" if frames else "elsewhere"
    Sim.waits[f"{where} {what}"] += 1


@contextmanager
def _own_random(operation: Any) -> Iterator[None]:
    if torch.Tag.nondeterministic_seeded not in operation.tags:
        yield
        return
    outside = torch.get_rng_state()
    torch.set_rng_state(Sim.random)
    try:
        yield
    finally:
        Sim.random = torch.get_rng_state()
        torch.set_rng_state(outside)


def _rows(grad, indices, *settings, sparse=False):
    if sparse or (len(settings) > 3 and settings[3]):
        return SimTensor(aten.embedding_sparse_backward(grad.raw, indices.raw, *settings[:3]))
    return aten.embedding_dense_backward(grad, indices, *settings[:3])


def _product(operation, *args, **kwargs):
    """A product under autocast."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
    with torch._C._ExcludeDispatchKeyGuard(keys):
        args, kwargs = tree_map(_cast, (args, kwargs))
        return operation(*args, **kwargs)


def _cast(value):
    if not isinstance(value, SimTensor) or value.dtype != torch.float32:
        return value
    dtype = torch.get_autocast_dtype(NAME)
    if not (value.requires_grad and value.is_leaf and torch.is_autocast_cache_enabled()):
        return value.to(dtype)
    if id(value) not in Sim.rounded:
        Sim.rounded[id(value)] = value, value.to(dtype)
    return Sim.rounded[id(value)][1]


@contextmanager
def simulated() -> Iterator[torch.device]:
    """Let the device be there, as `torch.accelerator`, inside the block."""
    _register()
    Sim.present, Sim.random, tensor = True, torch.Generator().manual_seed(0).get_state(), torch.tensor

    def from_data(*args: Any, device: Any = None, **kwargs: Any) -> Tensor:
        return tensor(*args, **kwargs).to(device)  # PyTorch's own does not know such tensors

    def pinned(given: Tensor) -> Tensor:
        found = given.clone()
        Sim.pinned.add(found.data_ptr())
        return found

    def forget() -> None:
        Sim.rounded.clear()
        before[-1]()

    before = Tensor.pin_memory, torch.tensor, torch.Event, torch.clear_autocast_cache
    Tensor.pin_memory, torch.tensor, torch.Event, torch.clear_autocast_cache = pinned, from_data, Event, forget
    try:
        yield torch.device(NAME, 0)
    finally:
        Sim.present = False
        Tensor.pin_memory, torch.tensor, torch.Event, torch.clear_autocast_cache = before


@contextmanager
def waits() -> Iterator[Counter[str]]:
    """How often the host waits for the device inside the block, by line of the source."""
    Sim.waits = found = Counter()
    yield found
    Sim.waits = Counter()


@contextmanager
def operations() -> Iterator[Counter[str]]:
    """How often each operation runs on the device inside the block; changes of the number format are `cast`."""
    Sim.operations = found = Counter()
    yield found
    Sim.operations = Counter()


_library: list[torch.library.Library] = []  # registrations end with it


def _register() -> None:
    if _library:
        return
    hook = type("Hook", (torch._C._acc.PrivateUse1Hooks,), {
        "is_available": lambda _: Sim.present, "has_primary_context": lambda *_: True, "is_built": lambda _: True,
    })()  # fmt: skip
    module = SimpleNamespace(
        is_available=lambda: Sim.present, is_initialized=lambda: True, device_count=lambda: 1,
        current_device=lambda: 0, _is_in_bad_fork=lambda: False, is_bf16_supported=lambda including_emulation: False,
        manual_seed_all=lambda seed: None, get_amp_supported_dtype=lambda: [torch.bfloat16, torch.float16],
        get_rng_state=lambda *_: Sim.random.clone(), set_rng_state=lambda state, *_: setattr(Sim, "random", state),
    )  # fmt: skip
    backend_registration._setup_privateuseone_for_python_backend(NAME, module, hook)
    # Two parts of PyTorch's own would come first: `arange` resizes what it fills, sparse rows are no `SimTensor`.
    made = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    made[0].fallback(_run_with, "PrivateUse1")
    made[0].fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for name in ("default", "start", "start_step"):
        operation = getattr(aten.arange, name)
        made[1].impl(operation, partial(_run_with, operation), "PrivateUse1")
    made[1].impl("embedding_backward", _rows, "AutogradPrivateUse1")
    for name in PRODUCTS:
        made[1].impl(name, partial(_product, getattr(aten, name)), "AutocastPrivateUse1")
    _library.extend(made)
