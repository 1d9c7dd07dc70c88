"""Taking archives apart without trusting them: zip, and tar plain or compressed.

What is special here: the archive never names a path that is written to unchecked. A member whose name is absolute, or
leads out of the folder, makes the whole archive refused; links and devices are passed over; and what comes out may not
be larger than `LIMIT`, whatever the archive says of itself.
"""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from isoglot.data.sets.content import BLOCK
from isoglot.errors import CorpusError

LIMIT = 16 << 30  # bytes out of one archive; the largest of the catalogue makes about 2 GB

_JUNK = {"__MACOSX", ".DS_Store", "Icon\r"}
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError)


def extract(archive: Path, folder: Path, *, limit: int = LIMIT) -> None:
    """Write every regular file of an archive below `folder`, which appears only when all of them are out.

    Raises `CorpusError` for what is no archive, is damaged, holds a name that leads out of the folder, or holds more
    than `limit` bytes.
    """
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        for name, opened in _members(archive):
            target = fresh / safe(name, archive)
            if not _JUNK.isdisjoint(target.parts):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with opened as source, target.open("wb") as stream:
                limit = _copy(source, stream, limit, archive)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.replace(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def safe(name: str, archive: Path) -> PurePosixPath:
    """A member's name as a path below the folder. Raises `CorpusError` for one that is not."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name:
        raise CorpusError(f"holds the name {name!r}, which may lead out of the folder; do not use it", file=archive)
    return path


def _members(archive: Path) -> Iterator[tuple[str, AbstractContextManager[IO[bytes]]]]:
    try:
        yield from _zip(archive) if zipfile.is_zipfile(archive) else _tar(archive)
    except _DAMAGE as error:
        raise _damaged(archive, error) from error


def _zip(archive: Path) -> Iterator[tuple[str, AbstractContextManager[IO[bytes]]]]:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            kind = member.external_attr >> 16 & 0o170000  # of the file system it was packed on; 0 if that has none
            if not member.is_dir() and kind in (0, 0o100000):
                # The name as it stands in the archive: the library would make an unsafe one look safe.
                yield member.orig_filename, opened.open(member)


def _tar(archive: Path) -> Iterator[tuple[str, AbstractContextManager[IO[bytes]]]]:
    with tarfile.open(archive) as opened:
        for member in opened:
            if member.isfile() and (stream := opened.extractfile(member)):
                yield member.name, stream


def _copy(source: IO[Any], stream: IO[bytes], limit: int, archive: Path) -> int:
    """Copy all of it; the bytes that are still allowed afterwards."""
    while block := _read(source, archive):
        limit -= len(block)
        if limit < 0:
            raise CorpusError("unpacks to more than is allowed, so it is not what it should be", file=archive)
        stream.write(block)
    return limit


def _read(source: IO[Any], archive: Path) -> bytes:
    try:
        block: bytes = source.read(BLOCK)
    except _DAMAGE as error:
        raise _damaged(archive, error) from error
    return block


def _damaged(archive: Path, error: Exception) -> CorpusError:
    reason = str(error).partition("\n")[0].rstrip(":")  # tarfile adds a line for every compression that it tried
    return CorpusError(f"cannot be unpacked ({reason}); get it again", file=archive)
