"""Reading text from files, plain or compressed, and writing files so that a crash leaves the old one.

What is special here: compression is told by the first bytes, never by the name alone; a line ends at a line feed and
nowhere else (`str.splitlines` would also cut at U+2028, U+0085 and others, which occur inside sentences and would
shift parallel files against each other); only regular files are read, because most are read more than once; and
whatever is wrong, binary data included, is reported with the line it happened on.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import json
import lzma
import os
import re
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from isoglot.errors import CorpusError, OutputError

COMPRESSED = (".bz2", ".gz", ".xz")  # sorted, so that all who find a text packed in several ways take the same

LONGEST_LINE = 1 << 25  # bytes; what is longer is no text of sentences, and would be held in memory whole

_BLOCK = 1 << 18
_BOM = b"\xef\xbb\xbf"
# The letters alone could open a sentence, so the magic number of the first block is asked for too.
_BZ2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")

_HALF = re.compile("[\ud800-\udfff]")

_UNPACK = "unpack it and pass the text file inside"
_CONVERT = "convert it to a text file"
# How files begin that are passed as text by mistake; some of these bytes could also open a sentence.
_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive (as .docx, .xlsx and .npz are)", _UNPACK),
    (b"PK\x05\x06", "an empty zip archive", "pass a text file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "Zstandard data", "unpack it with zstd -d, or pack it as .gz, .xz or .bz2"),
    (b"\x1f\x8b", "gzip data inside compressed data", "unpack it once"),
    (b"\xfd7zXZ\x00", "xz data inside compressed data", "unpack it once"),
    (b"BZh", "bzip2 data inside compressed data", "unpack it once"),
    (b"PAR1", "a Parquet file", _CONVERT),
    (b"ARROW1", "an Arrow file", _CONVERT),
    (b"SQLite format 3\x00", "an SQLite database", _CONVERT),
    (b"\x89HDF\r\n", "an HDF5 file", _CONVERT),
    (b"\x93NUMPY", "a NumPy table", "pass it where vectors are expected, and text here"),
    (b"\x89PNG\r\n", "a PNG image", "pass a text file"),
    (b"\xff\xd8\xff", "a JPEG image", "pass a text file"),
    (b"%PDF-", "a PDF document", _CONVERT),
    (b"\xd0\xcf\x11\xe0", "an old Office document", _CONVERT),
    (b"\x7fELF", "a program", "pass a text file"),
    *((bytes([0x80, version]), "a Python pickle", "convert it to a text file") for version in range(2, 6)),
)
_TAR = b"ustar"
_TAR_AT = 257


class CutShortError(CorpusError):
    """Compressed data end too early or are damaged from some place on; what came before has been read."""


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 text file with their numbers from 1, without line ends (LF or CR LF) and without a BOM.

    Held in memory: one block of 256 KiB and the longest line, which has at most `LONGEST_LINE` bytes. Raises
    `CorpusError` for a file that is missing, not a regular file, empty, cut short, binary or not UTF-8, and for one
    whose lines end at CR alone.
    """
    number, pieces, held = 0, [b""], 0
    for block in read_blocks(path):
        head, feed, rest = block.rpartition(b"\n")
        if feed:
            lines = _decode(b"".join([*pieces, head]), path, number + 1)
            yield from enumerate(lines, number + 1)
            number += len(lines)
            pieces, held = [], 0
        pieces.append(rest)
        held += len(rest)
        if held > LONGEST_LINE:
            _refuse_carriage_returns(b"".join(pieces[-2:]), path, number + 1)
            problem = f"has more than {LONGEST_LINE >> 20} MiB without a line end; pass text, one sentence a line"
            raise CorpusError(problem, file=path, line=number + 1)
    if last := b"".join(pieces):
        if number == 0:
            _refuse_carriage_returns(last[:-1], path, 1)
        yield from enumerate(_decode(last, path, number + 1), number + 1)


def read_texts(path: str | Path) -> Iterator[tuple[int, str]]:
    """The texts of a file with their lines: JSON strings in a file called `.jsonl`, plain or compressed, else lines.

    A line of JSON that is blank is an empty text. Raises `CorpusError` as `read_lines` does, and for a line that holds
    anything but one JSON string.
    """
    quoted = ".jsonl" in Path(path).suffixes[-2:]
    for number, line in read_lines(path):
        if not quoted or not line.strip():
            yield number, line if not quoted else ""
            continue
        found = _json(line, path, number, "one JSON string a line")
        if not isinstance(found, str):
            problem = f"holds a JSON {type(found).__name__}; write one JSON string a line"
            raise CorpusError(problem, file=path, line=number)
        yield number, found


def json_object(text: str, *, file: str | Path, line: int) -> dict[str, Any]:
    """The object that a line of a file of objects, one a line, holds.

    Raises `CorpusError` for a line that is blank, not JSON or no object, for a name that an object holds twice, for
    NaN and infinity, and for half of a surrogate pair, which JSON can escape and UTF-8 cannot hold.
    """
    if not text.strip():
        raise CorpusError("is empty; remove the line", file=file, line=line)
    found = _json(text, file, line, "one object a line")
    if not isinstance(found, dict):
        raise CorpusError(f"holds a JSON {type(found).__name__}; write one object a line", file=file, line=line)
    return found


def read_blocks(path: str | Path, *, keep_bom: bool = False) -> Iterator[bytes]:
    """The content of a file, decompressed, without a UTF-8 BOM unless it is kept, in blocks of at most 256 KiB.

    Raises `CorpusError` for a file that is missing, not a regular file, empty, or in a known binary format, and
    `CutShortError` naming the last complete line when compressed data are cut short or damaged.
    """
    lines = size = 0
    with _open(path) as stream:
        while block := _read(stream, path, lines):
            if size == 0:
                _refuse_binary(block, path)
            text = block if size or keep_bom else block.removeprefix(_BOM)
            size += len(text)
            lines += text.count(b"\n")
            yield text
    if size == 0:
        raise CorpusError("holds no text; give a file with at least one line", file=path)


def first_bytes(path: str | Path) -> bytes:
    """The beginning of a file, decompressed, whatever it holds. Raises `CorpusError` as `read_blocks` does."""
    with _open(path) as stream:
        return _read(stream, path, 0)


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
        _refuse_special(path)
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
    except OSError as error:
        raise CorpusError(f"cannot be opened: {error.strerror or error}", file=path) from error


def _refuse_special(path: str | Path) -> None:
    """Only regular files: a pipe gives its bytes once, while most files are looked at first and then read again."""
    try:
        mode = Path(path).stat().st_mode
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise CorpusError(f"cannot be the name of a file ({error}); check it", file=path) from None
    if stat.S_ISDIR(mode):
        raise CorpusError("is a folder; name a file in it, or read it with the reader 'folder'", file=path)
    if not stat.S_ISREG(mode):
        raise CorpusError("is a pipe or a device, not a regular file; save its content to a file first", file=path)


def _read(stream: BinaryIO, path: str | Path, lines: int) -> bytes:
    try:
        # read1 hands over what came before the fault; read would lose it with the exception.
        return cast("bytes", stream.read1(_BLOCK))  # type: ignore[attr-defined]
    except EOFError:
        problem = "compressed data end too early"
    except (OSError, zlib.error, lzma.LZMAError) as error:
        problem = f"cannot be read further ({error})"
    where = f"after line {lines}" if lines else "before the first line end"
    raise CutShortError(f"{problem}, {where}; copy or make the file again", file=path)


def binary_format(block: bytes) -> tuple[str, str]:
    """What the format is that a file begins like, and what to do with it where text is expected; empty: not known."""
    if block.startswith(_TAR, _TAR_AT):
        return "a tar archive", _UNPACK
    found = ((kind, advice) for signature, kind, advice in _SIGNATURES if block.startswith(signature))
    return next(found, ("", ""))


def _refuse_binary(block: bytes, path: str | Path) -> None:
    """Refuse what begins like a known format, unless all of the first block is text."""
    kind, advice = binary_format(block)
    if kind and not _is_text(block):
        raise CorpusError(f"is {kind}, not text; {advice}", file=path)


def _is_text(block: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(block)
    except UnicodeDecodeError:
        return False
    return b"\0" not in block


def _refuse_carriage_returns(text: bytes, path: str | Path, line: int) -> None:
    """Refuse lines that end at CR alone, which would otherwise be one line."""
    if b"\r" in text and b"\n" not in text:
        problem = "ends its lines with CR alone (classic Mac); convert the file, for instance with: tr '\\r' '\\n'"
        raise CorpusError(problem, file=path, line=line)


def _decode(block: bytes, path: str | Path, first: int) -> list[str]:
    try:
        lines = block.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise _not_utf8(block, path, first, error) from None
    if b"\0" in block:
        line = first + block.count(b"\n", 0, block.index(b"\0"))
        wide = first == 1 and max(block[0:64:2].count(0), block[1:64:2].count(0)) > max(4, len(block[:64]) // 4)
        what = "seems to be UTF-16; convert the file, for instance with: iconv -f UTF-16LE -t UTF-8" if wide else (
            "holds a NUL byte, so the file is binary or damaged; pass text in UTF-8"
        )  # fmt: skip
        raise CorpusError(what, file=path, line=line)
    if b"\r" in block:
        return [line[:-1] if line.endswith("\r") else line for line in lines]
    return lines


def _not_utf8(block: bytes, path: str | Path, first: int, error: UnicodeDecodeError) -> CorpusError:
    line = first + block.count(b"\n", 0, error.start)
    column = error.start - (block.rfind(b"\n", 0, error.start) + 1)
    guess = "LATIN1"
    if first == 1 and block.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        guess = "UTF-32"
    elif first == 1 and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        guess = "UTF-16"
    return CorpusError(
        f"byte 0x{block[error.start]:02x} at position {column} is not UTF-8; "
        f"convert the file, for instance with: iconv -f {guess} -t UTF-8",
        file=path,
        line=line,
    )


def _json(text: str, file: str | Path, line: int, wanted: str) -> Any:
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"is not JSON ({error}); write {wanted}", file=file, line=line) from None
    if "\\ud" in text.lower() and (half := _HALF.search(json.dumps(found, ensure_ascii=False))):
        problem = f"holds {half.group()!r}, half of a surrogate pair; write the whole character"
        raise CorpusError(problem, file=file, line=line)
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {max(names, key=names.count)!r} stands twice in one object")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _create(path: Path, mode: str, *, binary: bool) -> IO[Any]:
    return path.open(f"{mode}b") if binary else path.open(mode, encoding="utf-8", newline="\n")
