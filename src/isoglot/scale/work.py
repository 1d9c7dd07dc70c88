"""Runs pieces of work, sequentially in this process or in parallel on a Ray cluster.

Ray runs a piece again when the worker or the machine it ran on dies. A piece that raises is not run again: the same
function of the same arguments would raise again.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from isoglot.core.arguments import NonNegativeInt, PositiveInt, Range, check_fields
from isoglot.core.errors import IsoglotError, naming_extras

Function = Callable[..., Any]
Pieces = Iterable[tuple[Any, ...]]
LOCAL = "local"
_AHEAD = 3  # submitted pieces per running one, so that no worker waits and memory stays bounded
_WAITING = 2  # times as many, with those that are finished but wait for an earlier one


@check_fields
@dataclass(frozen=True, slots=True)
class Cluster:
    """Where pieces run. Without an address: sequentially in this process, without Ray.

    address   Ray to distribute over: "local" (workers on this machine), "auto" or ray://HOST:PORT (a running cluster)
    workers   with "local": maximum pieces at once; None: one for each core
    cpus      cores and threads of a piece, in this process too
    gpus      accelerators of a piece; if any, models are loaded on one
    retries   how often a piece is run again after its worker died
    """

    address: str | None = None
    workers: PositiveInt | None = None
    cpus: PositiveInt = 1
    gpus: Annotated[float, Range(0)] = 0
    retries: NonNegativeInt = 3


def run(
    function: Function,
    pieces: Pieces,
    cluster: Cluster,
    *,
    shared: Sequence[Any] = (),
    most: float = math.inf,
    waiting: float = _WAITING,
) -> Iterator[Any]:
    """The result of each piece, in the order of the pieces.

    `pieces` are read as they are sent, a few for each worker ahead. What follows a slow piece is kept until that is
    done: at most `waiting` times as many as are sent, and at most `most` are sent or kept at once.

    `function` takes `shared`, which is sent to a machine once, and then what is in the piece; it must be at the top of
    a module. What a piece raises is raised here. Raises `IsoglotError` when Ray is needed and not installed, cannot be
    reached, or lost a piece more than `retries` times.
    """
    if cluster.address is None:
        yield from (function(*shared, *piece) for piece in pieces)
        return
    with _connect(cluster) as ray:
        yield from _on_ray(ray, function, pieces, cluster, shared, most, waiting)


def _on_ray(
    ray: Any, function: Function, pieces: Pieces, cluster: Cluster, shared: Sequence[Any], most: float, waiting: float
) -> Iterator[Any]:
    needs = {"num_cpus": cluster.cpus, "num_gpus": cluster.gpus, "max_retries": cluster.retries}
    remote, references = ray.remote(function).options(**needs, retry_exceptions=False), [*map(ray.put, shared)]
    room = min(_AHEAD * _at_once(ray.cluster_resources(), cluster), most)
    ahead = min(waiting * room, most)  # of the piece that follows next
    unsent, sent, following = iter(pieces), 0, 0
    under_way: dict[Any, int] = {}  # the number of the piece of each reference
    results: dict[int, Any] = {}  # of pieces that wait for the one that follows next
    try:
        while True:
            while len(under_way) < room and sent - following < ahead and (piece := next(unsent, None)) is not None:
                under_way[remote.remote(*references, *piece)] = sent
                sent += 1
            if not under_way:
                return
            done, _ = ray.wait(list(under_way), num_returns=1)
            for reference in done:
                results[under_way.pop(reference)] = _result(ray, reference, cluster)
            while following in results:
                yield results.pop(following)
                following += 1
    finally:
        for reference in under_way:  # the cluster continues to exist after an error
            ray.cancel(reference, force=True)


def _at_once(resources: Mapping[str, float], cluster: Cluster) -> int:
    """How many pieces can run at once on what the cluster has; Ray's autoscaler may add machines, so at least one."""
    by_cores = resources.get("CPU", 1) / cluster.cpus
    by_gpus = resources.get("GPU", 0) / cluster.gpus if cluster.gpus else by_cores
    return max(1, int(min(by_cores, by_gpus)))


def _result(ray: Any, reference: Any, cluster: Cluster) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.ObjectLostError, ray.exceptions.NodeDiedError) as error:
        lost = f"a piece of work was lost {cluster.retries + 1} times with its worker ({type(error).__name__})"
        raise IsoglotError(f"{lost}; give workers more memory, or make the pieces smaller") from error
    except ray.exceptions.OutOfMemoryError as error:
        raise IsoglotError(f"a worker ran out of memory; make the pieces smaller: {error}") from error


@contextmanager
def _connect(cluster: Cluster) -> Iterator[Any]:
    """Ray, connected; what was started or connected here ends with the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the future default, to silence the warning
    with naming_extras():
        ray: Any = importlib.import_module("ray")
    if ray.is_initialized():
        yield ray
        return
    cores = cluster.workers and cluster.workers * cluster.cpus
    local = {"include_dashboard": False, "num_cpus": cores} if cluster.address == LOCAL else {}
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR", **local)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        reason = str(error).partition("\n")[0]
        advice = "start one with `ray start --head`, or pass 'local'"
        raise IsoglotError(f"no Ray cluster at {cluster.address!r} ({reason}); {advice}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
