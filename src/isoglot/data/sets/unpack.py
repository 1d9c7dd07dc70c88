"""Unpack untrusted archives: zip, and tar plain or compressed.

Every member's path is checked before it is written. An archive with an absolute path, or one that leads out of the
folder, is rejected; links and devices are skipped; and the unpacked size is limited to `LIMIT`, regardless of the sizes
stated in the archive.
"""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from isoglot.core.errors import CorpusError
from isoglot.data.files import atomic_folder
from isoglot.data.sets.content import BLOCK

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
