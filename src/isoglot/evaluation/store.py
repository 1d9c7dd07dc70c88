"""Vectors kept on disk from one evaluation to the next, found by the text they are of.

A store is a folder of one encoder's vectors, written in shards: `NAME.vectors.npy` (N, D) float32, then
`NAME.keys.npy` (N, 16), a digest of each text. A shard counts once its keys are there, and both files appear whole or
not at all, so an evaluation that was killed loses its last shard at most and the next one goes on from the rest.

What is special here: NAME is a digest of the keys, so files of one name are always of the same texts in the same order,
whoever wrote them. Evaluations that share a folder at the same time therefore keep their shards apart; each sees what
was there when it began. Any other NAME is read as well, such as the numbers of earlier versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import atomic_write
from isoglot.data.vectors import open_array
from isoglot.errors import EvaluationError

Vectors = NDArray[np.float32]
_DIGEST = 16  # bytes of a key


class Store:
    """Vectors of one encoder in a folder, which is made when the first are added.

    Raises EvaluationError for a folder whose files are damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shards: list[Vectors] = []
        self._places: dict[bytes, tuple[int, int]] = {}
        for number, path in enumerate(sorted(folder.glob("*.keys.npy"))):
            keys, vectors = _read(path), _read(path.with_name(path.name.replace(".keys.", ".vectors.")))
            whole = keys.dtype == np.uint8 and keys.shape == (len(vectors), _DIGEST) and vectors.dtype == np.float32
            if not whole or vectors.shape[1:] != (self._shards or [vectors])[0].shape[1:]:
                raise EvaluationError(f"{path}: does not fit its vectors; remove the folder {folder}")
            self._shards.append(vectors)
            self._places.update({bytes(key): (number, row) for row, key in enumerate(keys)})

    def __len__(self) -> int:
        return len(self._places)

    def find(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """The vectors (D,) of those of the texts that are kept here."""
        places = {text: self._places.get(_key(text)) for text in texts}
        found = {text: np.array(self._shards[place[0]][place[1]]) for text, place in places.items() if place}
        if found and not np.isfinite(list(found.values())).all():
            raise EvaluationError(f"{self.folder}: holds a vector that is not finite; remove the folder")
        return found

    def add(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Keep the vectors (N, D) of N texts that are not kept yet, as one shard."""
        number = len(self._shards)
        keys = [_key(text) for text in texts]
        name = hashlib.blake2b(b"".join(keys), digest_size=16).hexdigest()
        path = self.folder / f"{name}.vectors.npy"
        with atomic_write(path, binary=True) as file:
            np.save(file, np.asarray(vectors, np.float32))
        with atomic_write(self.folder / f"{name}.keys.npy", binary=True) as file:
            np.save(file, np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), -1))
        self._shards.append(_read(path))
        self._places.update({key: (number, row) for row, key in enumerate(keys)})


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()


def _read(path: Path) -> NDArray[np.float32]:
    try:
        table: NDArray[np.float32] = open_array(path)
        if table.ndim != 2:
            raise ValueError("not a table")
    except (OSError, ValueError) as error:
        raise EvaluationError(f"{path}: cannot be read as kept vectors ({error}); remove its folder") from error
    return table
