"""`--ray` of `encode` and `mine`: the same work in pieces on a cluster, or on workers of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.cli.counting import timed
from isoglot.errors import EncoderError
from isoglot.scale import Cluster, Shards, encode_shards, neighbours_shards, open_shards
from isoglot.scale.encoding import LINES, NOTE
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

    `settings` are those of `encode_shards`; None means that one is not given. Raises what `encode_shards` does, and
    `EncoderError` for settings that only the encoder can judge; a folder that was begun is then free for others.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    begun = (into / NOTE).exists()
    with timed(f"encoding {', '.join(text.name for text in texts)}") as timing:
        cluster = Cluster(ray, cpus=cores)
        try:
            return encode_shards(model, texts, into, cluster=cluster, lines=lines, settings=given, progress=timing)
        except Exception as error:
            if not begun:
                _release(into)
            if isinstance(error, ValueError | TypeError | RuntimeError):
                raise EncoderError(f"{model}: {error}") from error
            raise


def compare_pieces(
    x: Shards | NDArray[Any], y: Shards | NDArray[Any], k: int, *, ray: str, cores: int = 1, budget: int
) -> Neighbours:
    """The neighbours by cosine in both directions, block by block. Maps of files are read by the workers, not sent."""
    x, y = _mapped(x), _mapped(y)
    with timed(f"comparing {len(x):,} with {len(y):,}") as timing:
        return neighbours_shards(x, y, k, budget=budget, cluster=Cluster(ray, cpus=cores), progress=timing)


def _mapped(vectors: Shards | NDArray[Any]) -> Shards | NDArray[Any]:
    if isinstance(vectors, np.memmap) and vectors.filename:
        shards = open_shards(Path(vectors.filename))
        if shards.shape == vectors.shape:  # not a part of the file
            return shards
    return vectors


def _release(folder: Path) -> None:
    """Forget what a folder is for, if no piece was written: the next command may be the same with another setting."""
    if folder.is_dir() and not any(folder.glob("*.npy")):
        (folder / NOTE).unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
