"""Encoding in pieces for callers that have the address of a cluster, or work on this machine's workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isoglot.errors import EncoderError
from isoglot.scale.encoding import LINES, NOTE, encode_shards
from isoglot.scale.shards import Shards
from isoglot.scale.work import Cluster


def encode_pieces(
    model: str,
    texts: Sequence[Path],
    into: Path,
    *,
    ray: str,
    cores: int = 1,
    lines: int = LINES,
    settings: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> Shards:
    """Vectors of the lines of text files, in files of `lines` rows in the folder `into`. Existing pieces are kept.

    `settings` are those of `encode_shards` that are not None. Raises what `encode_shards` does, and `EncoderError` for
    settings that only the encoder can check; a folder without any piece can then be used with other settings.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    begun = (into / NOTE).exists()
    try:
        cluster = Cluster(ray, cpus=cores)
        return encode_shards(model, texts, into, cluster=cluster, lines=lines, settings=given, progress=progress)
    except Exception as error:
        if not begun and into.is_dir() and not any(into.glob("*.npy")):
            (into / NOTE).unlink(missing_ok=True)
            if not any(into.iterdir()):
                into.rmdir()
        if isinstance(error, ValueError | TypeError | RuntimeError):
            raise EncoderError(f"{model}: {error}") from error
        raise
