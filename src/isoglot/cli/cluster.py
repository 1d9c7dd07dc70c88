"""`--ray` of `encode` and `mine`: the same work in pieces on a cluster, or on workers of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isoglot.cli.counting import timed
from isoglot.scale import Cluster, Shards, encode_shards, neighbours_shards
from isoglot.scale.encoding import LINES
from isoglot.search import Neighbours


def encode_pieces(
    model: str,
    texts: Sequence[Path],
    into: Path,
    *,
    ray: str,
    cores: int = 1,
    lines: int = LINES,
    settings: Mapping[str, Any],
) -> Shards:
    """Vectors of the lines of text files, in files of so many lines in the folder `into`. What is there stays.

    `settings` are those of `encode_shards`; None means that one is not given.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    with timed(f"encoding {', '.join(text.name for text in texts)}") as timing:
        cluster = Cluster(ray, cpus=cores)
        return encode_shards(model, texts, into, cluster=cluster, lines=lines, settings=given, progress=timing)


def compare_pieces(
    x: Shards | NDArray[Any], y: Shards | NDArray[Any], k: int, *, ray: str, cores: int = 1, budget: int
) -> Neighbours:
    """The neighbours by cosine in both directions, block by block."""
    with timed(f"comparing {len(x):,} with {len(y):,}") as timing:
        return neighbours_shards(x, y, k, budget=budget, cluster=Cluster(ray, cpus=cores), progress=timing)
