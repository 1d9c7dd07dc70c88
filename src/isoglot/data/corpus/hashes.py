"""Sentences as 64-bit numbers, so that millions of them can be compared without being held.

Two different sentences get the same number with a chance of n * n / 2**65 for n sentences: one in 3,700 for a hundred
million of them. Equal sentences always do. Zero is never given, and marks an empty place.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b


def hash_sentence(text: str, language: str) -> bytes:
    """Eight bytes, equal for the same text in the same language."""
    return blake2b(f"{language}\0{text}".encode(), digest_size=8).digest()


class Seen:
    """The hashes met so far, in a flat table: 11 to 22 bytes for each, where a `set` of integers takes about 80."""

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 * 1024))
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, digest: bytes) -> bool:
        """Put in a hash of eight bytes; whether it was new."""
        if not self._place(int.from_bytes(digest, "little") or 1):
            return False
        self._size += 1
        if 4 * self._size > 3 * len(self._table):
            self._grow()
        return True

    def _place(self, value: int) -> bool:
        table = self._table
        mask = len(table) - 1
        place = value & mask
        while table[place]:
            if table[place] == value:
                return False
            place = (place + 1) & mask
        table[place] = value
        return True

    def _grow(self) -> None:
        values = self._table
        self._table = array("Q", bytes(16 * len(values)))
        for value in values:
            if value:
                self._place(value)
