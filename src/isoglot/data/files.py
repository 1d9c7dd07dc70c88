"""Reading text from files, plain or compressed, and writing files so that a crash leaves the old one.

What is special here: compression is told by the first bytes, never by the name alone; a line ends at a line feed and
nowhere else (`str.splitlines` would also cut at U+2028, U+0085 and others, which occur inside sentences and would
shift parallel files against each other); and whatever is wrong is reported with the line it happened on.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import re
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from isoglot.errors import CorpusError, OutputError

COMPRESSED = (".bz2", ".gz", ".xz")  # sorted, so that all who find a text packed in several ways take the same

_BLOCK = 1 << 18
_BOM = b"\xef\xbb\xbf"
# The letters alone could open a sentence, so the magic number of the first block is asked for too.
_BZ2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")

_HALF = re.compile("[\ud800-\udfff]")


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 text file with their numbers from 1, without line ends (LF or CR LF) and without a BOM.

    Held in memory: one block of 256 KiB and the longest line. Raises `CorpusError` for a file that is missing, a
    folder, empty, cut short or not UTF-8.
    """
    number, pieces = 0, [b""]
    for block in read_blocks(path):
        head, feed, rest = block.rpartition(b"\n")
        if not feed:
            pieces.append(rest)
            continue
        lines = _decode(b"".join([*pieces, head]), path, number + 1)
        yield from enumerate(lines, number + 1)
        number += len(lines)
        pieces = [rest]
    if last := b"".join(pieces):
        yield from enumerate(_decode(last, path, number + 1), number + 1)


def json_object(text: str, *, file: str | Path, line: int) -> dict[str, Any]:
    """The object that a line of a file of objects, one a line, holds.

    Raises `CorpusError` for a line that is blank, not JSON or no object, and for half of a surrogate pair, which JSON
    can escape and UTF-8 cannot hold.
    """
    if not text.strip():
        raise CorpusError("is empty; remove the line", file=file, line=line)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"is not JSON ({error}); write one object a line", file=file, line=line) from None
    if not isinstance(found, dict):
        raise CorpusError(f"holds a JSON {type(found).__name__}; write one object a line", file=file, line=line)
    if "\\ud" in text.lower() and (half := _HALF.search(json.dumps(found, ensure_ascii=False))):
        problem = f"holds {half.group()!r}, half of a surrogate pair; write the whole character"
        raise CorpusError(problem, file=file, line=line)
    return found


def read_blocks(path: str | Path) -> Iterator[bytes]:
    """The content of a file, decompressed, without a UTF-8 BOM, in blocks of at most 256 KiB.

    Raises `CorpusError` naming the last complete line when compressed data are cut short or damaged.
    """
    lines = size = 0
    with _open(path) as stream:
        while block := _read(stream, path, lines):
            text = block if size else block.removeprefix(_BOM)
            size += len(text)
            lines += text.count(b"\n")
            yield text
    if size == 0:
        raise CorpusError("holds no text; give a file with at least one line", file=path)


def without_compression(name: str) -> str:
    """A file name without its ending `.gz`, `.xz` or `.bz2`."""
    return name[: name.rindex(".")] if name.endswith(COMPRESSED) else name


@contextmanager
def atomic_write(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A new file, UTF-8 text or bytes, that takes the name `path` only when the block ends without an exception.

    Until then, and after any failure (`OSError` on a full disk, an interrupt), whatever `path` held is untouched and
    no temporary file is left. Missing folders are made; a symbolic link is followed; a pipe or device is written to
    directly.
    """
    target = Path(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        with _create(target, "w", binary=binary) as stream:
            yield stream
        return
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        with _create(temporary, "x", binary=binary) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def exclusive(path: str | Path) -> Iterator[None]:
    """Hold the output `path`, a file or a folder, for this process alone while the block runs.

    Every writer of an output that takes long enters this before it reads or writes anything there. The lock is the
    file `.NAME.lock` beside it; the system releases it when the process dies, and it is removed with the last use.
    Raises `OutputError` at once if another process holds it.
    """
    from filelock import FileLock, Timeout

    target = Path(path).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(target.with_name(f".{target.name[:200]}.lock"))
    try:
        lock.acquire(timeout=0.2, poll_interval=0.05)  # an inode that was just unlinked needs another try
    except Timeout:
        raise OutputError(f"{path}: another process is writing it; wait for it, or choose another output") from None
    try:
        yield
    finally:
        # Unlinked while it is held: a process that opened it meanwhile finds another inode, or none, and tries again.
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def digest(path: str | Path) -> str:
    """SHA-256 of the file's bytes as they lie on disk, in hexadecimal. Raises `OSError` when it cannot be read."""
    checksum = hashlib.sha256()
    with Path(path).open("rb") as stream:
        while block := stream.read(_BLOCK):
            checksum.update(block)
    return checksum.hexdigest()


def _open(path: str | Path) -> BinaryIO:
    try:
        with Path(path).open("rb") as stream:
            magic = stream.read(10)
        if magic.startswith(b"\x1f\x8b"):
            return cast("BinaryIO", gzip.open(path, "rb"))
        if magic.startswith(b"\xfd7zXZ\x00"):
            return cast("BinaryIO", lzma.open(path, "rb"))
        if _BZ2.match(magic):
            return cast("BinaryIO", bz2.open(path, "rb"))
        return Path(path).open("rb")
    except FileNotFoundError:
        raise CorpusError("no such file; check the name", file=path) from None
    except IsADirectoryError:
        raise CorpusError("is a folder; name a file in it, or read it with the reader 'folder'", file=path) from None
    except OSError as error:
        raise CorpusError(f"cannot be opened: {error.strerror or error}", file=path) from error


def _read(stream: BinaryIO, path: str | Path, lines: int) -> bytes:
    try:
        # read1 hands over what came before the fault; read would lose it with the exception.
        return cast("bytes", stream.read1(_BLOCK))  # type: ignore[attr-defined]
    except EOFError:
        problem = "compressed data end too early"
    except (OSError, zlib.error, lzma.LZMAError) as error:
        problem = f"cannot be read further ({error})"
    where = f"after line {lines}" if lines else "before the first line end"
    raise CorpusError(f"{problem}, {where}; copy or make the file again", file=path)


def _decode(block: bytes, path: str | Path, first: int) -> list[str]:
    try:
        lines = block.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise _not_utf8(block, path, first, error) from None
    if b"\r" in block:
        return [line[:-1] if line.endswith("\r") else line for line in lines]
    return lines


def _not_utf8(block: bytes, path: str | Path, first: int, error: UnicodeDecodeError) -> CorpusError:
    line = first + block.count(b"\n", 0, error.start)
    column = error.start - (block.rfind(b"\n", 0, error.start) + 1)
    utf16 = first == 1 and block.startswith((b"\xff\xfe", b"\xfe\xff"))
    guess = "UTF-16" if utf16 else "LATIN1"
    return CorpusError(
        f"byte 0x{block[error.start]:02x} at position {column} is not UTF-8; "
        f"convert the file, for instance with: iconv -f {guess} -t UTF-8",
        file=path,
        line=line,
    )


def _create(path: Path, mode: str, *, binary: bool) -> IO[Any]:
    return path.open(f"{mode}b") if binary else path.open(mode, encoding="utf-8", newline="\n")
