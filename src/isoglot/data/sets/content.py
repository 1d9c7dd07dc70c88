"""Published files: their decompressed content with its bytes, size, lines and checksum, and untrusted archives.

Checksums are of the content, never of a compressed file, so a copy recompressed as `.xz` and the publisher's plain file
have the same checksum. Nothing is stripped: a byte order mark and carriage returns count, unlike in
`isoglot.data.files`, which reads text for use.

Every member's path of an archive (zip, and tar plain or compressed) is checked before it is written. An archive with an
absolute path, or one that leads out of the folder, is rejected; links and devices are skipped; and the unpacked size is
limited to `LIMIT`, regardless of the sizes stated in the archive.
"""

from __future__ import annotations

import hashlib
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from isoglot.core.errors import CorpusError
from isoglot.data.files import atomic_folder, decompress

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
        with path.open("rb") as file:
            yield from decompress(file)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CorpusError(f"cannot be read to its end ({reason}); get the file again", file=path) from error


LIMIT = 16 << 30  # unpacked bytes per archive; the largest in the catalogue has about 2 GB

_JUNK = {"__MACOSX", ".DS_Store", "Icon\r"}
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError)


def extract(archive: Path, folder: Path, *, limit: int = LIMIT) -> None:
    """Write every regular file of an archive below `folder`, which appears only when it is complete.

    Raises `CorpusError` for a file that is not an archive, is damaged, contains a path that leads out of the folder, or
    unpacks to more than `limit` bytes.
    """
    with atomic_folder(folder) as fresh:
        try:
            for name, source in _zip(archive) if zipfile.is_zipfile(archive) else _tar(archive):
                target = fresh / safe(name, archive)
                if not _JUNK.isdisjoint(target.parts):
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                with source, target.open("wb") as stream:
                    while block := source.read(BLOCK):
                        limit -= len(block)
                        if limit < 0:
                            raise CorpusError("unpacks to more than the size limit; do not use it", file=archive)
                        stream.write(block)
        except _DAMAGE as error:
            reason = str(error).partition("\n")[0].rstrip(":")  # tarfile adds a line for every compression it tried
            raise CorpusError(f"cannot be unpacked ({reason}); get it again", file=archive) from error


def safe(name: str, archive: Path) -> PurePosixPath:
    """A member's name as a path below the folder. Raises `CorpusError` for one that is not."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name:
        raise CorpusError(f"unsafe path {name!r}, which may lead out of the folder; do not use it", file=archive)
    return path


def _zip(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            kind = member.external_attr >> 16 & 0o170000  # of the original file system; 0 if it has none
            if not member.is_dir() and kind in (0, 0o100000):
                # The name as stored in the archive: the library would make an unsafe one look safe.
                yield member.orig_filename, opened.open(member)


def _tar(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(archive) as opened:
        for member in opened:
            if member.isfile() and (stream := opened.extractfile(member)):
                yield member.name, stream
