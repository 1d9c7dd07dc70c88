"""The decompressed content of a stored file: its bytes, size, lines and checksum.

Checksums are of the content, never of a compressed file, so a copy recompressed as `.xz` and the publisher's plain file
have the same checksum. Nothing is stripped: a byte order mark and carriage returns count, unlike in
`isoglot.data.files`, which reads text for use.
"""

from __future__ import annotations

import hashlib
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.files import decompressed

BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of a file's decompressed content: SHA-256 in hexadecimal, bytes, and lines.

    A last line without a line feed counts as a line.
    """

    sha256: str
    size: int
    lines: int

    def __str__(self) -> str:
        return f"sha256 {self.sha256} with {self.lines:,} lines"


class Measure:
    """Measures a stream of blocks; `content` is the result for all blocks so far."""

    def __init__(self) -> None:
        self._hash, self._size, self._feeds, self._last = hashlib.sha256(), 0, 0, b"\n"

    def add(self, block: bytes) -> None:
        """Count one more block."""
        self._hash.update(block)
        self._size += len(block)
        self._feeds += block.count(b"\n")
        self._last = block[-1:] or self._last

    @property
    def content(self) -> Content:
        """The facts about everything added."""
        return Content(self._hash.hexdigest(), self._size, self._feeds + (self._last != b"\n"))


def measure(path: Path) -> Content:
    """The facts about a file's content. Raises `CorpusError` when it cannot be read or decompressed to its end."""
    total = Measure()
    for block in blocks(path):
        total.add(block)
    return total.content


def blocks(path: Path) -> Iterator[bytes]:
    """The content of a file, plain or compressed (detected by its first bytes), in blocks of at most 256 KiB.

    Raises `CorpusError` for a file that is missing, is a folder, or is cut short or damaged.
    """
    try:
        with path.open("rb") as file, decompressed(file, path) as stream:
            while block := stream.read(BLOCK):
                yield block
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CorpusError(f"cannot be read to its end ({reason}); get the file again", file=path) from error


def is_compressed(path: Path) -> bool:
    """Whether a file is gzip, xz or bzip2 by its first bytes."""
    with path.open("rb") as stream:
        return decompressed(stream, path) is not stream
