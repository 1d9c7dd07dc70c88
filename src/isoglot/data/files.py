"""Read text from plain or compressed files, and write files atomically: after a crash the old file is still there.

Compression is detected by the first bytes, never by the name alone. A line ends at a line feed only (`str.splitlines`
would also split at U+2028, U+0085 and others, which occur inside sentences and would shift parallel files against each
other). Only regular files are read, because most are read more than once. Every error, binary data included, is
reported with its line.
"""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import hashlib
import json
import lzma
import os
import re
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from time import time
from typing import IO, Any, BinaryIO, TypeVar

from isoglot.core.errors import CorpusError, OutputError

BUNDLED = Path(__file__).parents[1] / "bundled"  # the text in the package
COMPRESSED = (".bz2", ".gz", ".xz")  # sorted, so that of several copies of a text the same one is always read

LONGEST_LINE = 1 << 25  # bytes; a longer line is not sentences, and lines are read into memory completely

_SETTLED = 2.0  # seconds after which a change of a file is sure to have another time
_BLOCK = 1 << 18
_BOM = b"\xef\xbb\xbf"
# The letters alone could open a sentence, so the magic number of the first block is checked too.
_BZ2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")

_HALF = re.compile("[\ud800-\udfff]")
_Value = TypeVar("_Value")

_LONGEST = 200  # bytes of a name that leave room for an ending; file systems allow 255
_CUT = 160
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tmp", re.DOTALL)
LOCK = ".lock"  # of `exclusive`, inside a folder
_OLD = "old"  # in a temporary folder: the folder that is being replaced
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_meters: list[Callable[[int], None]] = []  # of `meter`
_collections: list[set[Path]] = []  # of `collecting`
_UNPACK = "unpack it and pass the text file inside"
_CONVERT = "convert it to a text file"
# First bytes of files that are passed as text by mistake; some of them could also begin a sentence.
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


class Again(Iterable[_Value]):
    """An iterable that is made again for each iteration."""

    def __init__(self, make: Callable[[], Iterator[_Value]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[_Value]:
        return self._make()


class CutShortError(CorpusError):
    """Compressed data that are truncated or damaged; everything before that place has been read."""


def read_lines(path: str | Path, *, carriage_returns: bool = True) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 text file with their numbers from 1, without line ends (LF or CR LF) and without a BOM.

    Without `carriage_returns`, one is an error, at the end of a line too.
    Kept in memory: one block of 256 KiB and the longest line, which has at most `LONGEST_LINE` bytes. Raises
    `CorpusError` for a file that is missing, not a regular file, empty, cut short, binary or not UTF-8, and for one
    whose lines end at CR alone.
    """
    number, pieces, size = 0, [b""], 0
    for block in read_blocks(path):
        head, feed, tail = block.rpartition(b"\n")
        if feed:
            lines = _decode(b"".join([*pieces, head]), path, number + 1, carriage_returns=carriage_returns)
            yield from enumerate(lines, number + 1)
            number += len(lines)
            pieces, size = [], 0
        pieces.append(tail)
        size += len(tail)
        if size > LONGEST_LINE:
            _refuse_carriage_returns(b"".join(pieces[-2:]), path, number + 1)
            problem = f"has more than {LONGEST_LINE >> 20} MiB without a line end; pass text, one sentence per line"
            raise CorpusError(problem, file=path, line=number + 1)
    if last := b"".join(pieces):
        if number == 0:
            _refuse_carriage_returns(last[:-1], path, 1)
        yield from enumerate(_decode(last, path, number + 1, carriage_returns=carriage_returns), number + 1)


def json_string(text: str, *, file: str | Path, line: int) -> str:
    """The string in a line of JSON lines, empty for a blank line. Raises `CorpusError` for anything else."""
    return _json(text, str, "JSON string", file, line) if text.strip() else ""


def json_object(text: str, *, file: str | Path, line: int) -> dict[str, Any]:
    """The object in a line of JSON lines.

    Raises `CorpusError` for a line that is blank, not JSON or no object, for a duplicate name in an object, for
    NaN and infinity, and for half of a surrogate pair, which JSON can escape and UTF-8 cannot encode.
    """
    if not text.strip():
        raise CorpusError("is empty; remove the line", file=file, line=line)
    return _json(text, dict, "object", file, line)


def read_blocks(path: str | Path, *, keep_bom: bool = False) -> Iterator[bytes]:
    """The decompressed content of a file in blocks of at most 256 KiB, without a UTF-8 BOM unless `keep_bom` is set.

    Raises `CorpusError` for a file that is missing, not a regular file, empty, or in a known binary format, and
    `CutShortError` naming the last complete line when compressed data are cut short or damaged.
    """
    lines = size = 0
    with _open(path) as file:
        done, content = 0, decompress(file)
        while block := _read(content, path, lines):
            count_bytes(file.tell() - done)
            done = file.tell()
            if size == 0:
                kind, advice = binary_format(block)
                if kind and not _is_text(block):
                    raise CorpusError(f"is {kind}, not text; {advice}", file=path)
            text = block if size or keep_bom else block.removeprefix(_BOM)
            size += len(text)
            lines += text.count(b"\n")
            yield text
    if size == 0:
        raise CorpusError("contains no text; pass a file with at least one line", file=path)


def first_bytes(path: str | Path) -> bytes:
    """The beginning of a file as bytes, decompressed. Raises `CorpusError` as `read_blocks` does."""
    with _open(path) as file:
        return _read(decompress(file), path, 0)


def without_compression(name: str) -> str:
    """A file name without its ending `.gz`, `.xz` or `.bz2`."""
    return name[: name.rindex(".")] if name.lower().endswith(COMPRESSED) else name


def suffix_of(path: str | Path) -> str:
    """The suffix of a file's name in lower case, without an ending `.gz`, `.xz` or `.bz2`."""
    return Path(without_compression(Path(path).name)).suffix.lower()


def locate(folder: Path, name: str) -> Path | None:
    """The location of a file in a folder, plain or compressed in any way; the plain one of several copies."""
    plain = without_compression(name)
    return next((path for ending in ("", *COMPRESSED) if (path := folder / f"{plain}{ending}").is_file()), None)


def name_beside(target: Path, ending: str) -> Path:
    """`.NAME.ending` next to `target`: the name of a temporary file or folder for an output.

    A name that is too long for the ending is truncated, and a digest keeps it unique.
    """
    name, encoded = target.name, os.fsencode(target.name)
    if not name:
        raise OutputError(f"{target}: is the root of the file system; choose another output")
    if len(encoded) > _LONGEST:
        name = f"{encoded[:_CUT].decode('utf-8', 'ignore')}.{hashlib.sha256(encoded).hexdigest()[:16]}"
    return target.with_name(f".{name}.{ending}")


@contextmanager
def atomic_write(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A new file, UTF-8 text or bytes, that is renamed to `path` only if the block ends without an exception.

    Until then, and after any failure, the old file is untouched and no temporary file is left; temporary files of a
    killed process are removed by the next call. Missing folders are created, symbolic links followed, pipes and devices
    written to directly. Raises `OutputError` if the file can't be written.
    """
    target = Path(path)
    if _is_device(target):
        with writing(path), _create(target, "w", binary=binary) as stream:
            yield stream
        return
    with writing(path):
        target = Path(os.path.realpath(target))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = name_beside(target, f"{secrets.token_hex(4)}.tmp")
        remove_temporary(target.parent, re.escape(name_beside(target, "").name[1:-1]))
        try:
            with _create(temporary, "x", binary=binary) as stream:
                _lock(stream.fileno())
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Raise `OutputError`, naming `path`, for what goes wrong in the block while it is written.

    Errors of other files and of a closed pipe are raised unchanged.
    """
    try:
        yield
    except OSError as error:
        system = error.errno is not None or type(error) is OSError  # not those of gzip or of the network
        name = error.filename2 or error.filename  # of a copy, what is written is the second
        if not system or isinstance(error, ConnectionError | TimeoutError) or not _concerns(name, Path(path)):
            raise
        room = "; make room" if error.errno in _FULL else ""
        raise OutputError(f"{path}: can't be written: {error.strerror or error}{room}") from error


def _concerns(name: str | bytes | int | None, path: Path) -> bool:
    """Whether an error names `path`, its lock, a folder above it, or what `name_beside` makes; none: a stream."""
    if not isinstance(name, str | bytes):
        return True
    named = Path(os.fsdecode(name))
    targets = {path, path.absolute(), Path(os.path.realpath(path))}
    beside = any(str(named).startswith(str(name_beside(one, ""))) or one.is_relative_to(named) for one in targets)
    return beside or named in {one / LOCK for one in targets}


def remove_temporary(folder: Path, names: str) -> None:
    """Remove temporary files of killed processes from `folder`, for files whose names this expression matches."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match is None or re.fullmatch(names, match[1]) is None:
                continue
            with suppress(OSError):
                descriptor = os.open(entry.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
                try:
                    if _lock(descriptor):  # a running process holds the lock of the file that it writes
                        Path(entry.path).unlink()
                finally:
                    os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open file until it is closed; False if another process has, or the system can't."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


@contextmanager
def exclusive(path: str | Path, *, wait: float = 0.2) -> Iterator[None]:
    """Lock the output `path`, a file or a folder, for this thread while the block runs. Everything that writes an
    output for a long time enters this before it reads or writes anything there; inside the block, the same thread may
    enter it again. The lock is the file `.NAME.lock` next to it, or `.lock` inside a folder next to which nothing can
    be written; the system releases it when the process dies, and it is removed with the last use. A pipe or device is
    not locked. Raises `OutputError` if another process still holds it after `wait` seconds; -1 waits until it is free.
    """
    from filelock import FileLock, Timeout

    target = Path(os.path.realpath(path))
    if _is_device(target):
        yield
        return
    with writing(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock_path = name_beside(target, "lock")
        if target.is_dir() and not os.access(target.parent, os.W_OK | os.X_OK):
            lock_path = target / LOCK
        if lock_path.is_dir() or (lock_path.is_file() and lock_path.stat().st_size):
            raise OutputError(f"{lock_path}: is not empty, so it is not a lock; move it away, or choose another output")
        lock = FileLock(lock_path, is_singleton=True)  # one for all uses, which it counts for each thread
        try:
            lock.acquire(timeout=wait, poll_interval=0.05)  # an inode that was just unlinked needs another try
        except Timeout:
            raise OutputError(f"{path}: another process is writing it; wait for it, or choose another output") from None
    try:
        yield
    finally:
        # Unlinked while it is locked: a process that opened it meanwhile finds another inode, or none, and tries again.
        if lock.lock_counter == 1:
            lock_path.unlink(missing_ok=True)
        lock.release()


def check_output(
    path: str | Path, *, inputs: Iterable[str | Path | None] = (), folder: bool = False, whole: bool = False
) -> None:
    """Raise `OutputError`, before any work, unless `path` can be written: a file, or with `folder` a folder.

    `inputs` are the files and folders that are read; those that don't exist, such as the name of a packaged model, and
    None are skipped. None of them may be the output; a file that exists in an input folder is not written over. An
    output that is replaced or removed as a `whole` may not contain an input either, nor be inside an input folder. `-`
    means stdout, which only some verbs can write, and is rejected here.
    """
    with writing(path):
        _check_name(path, folder=folder)
        target = Path(os.path.realpath(path))  # of a loop of links, a link of it
        if target.is_symlink():
            raise OutputError(f"{path}: is a loop of symbolic links; choose another output")
        exists = target.exists()
        if exists and folder is not target.is_dir():
            is_, needed = ("a file", "a folder") if folder else ("a folder", "a file")
            raise OutputError(f"{path}: is {is_}, and {needed} is written; choose another output")
        if _is_device(target):
            return
        for source in inputs:
            _check_input(path, target, source, whole=whole)
        name_beside(target, "12345678.tmp").exists()  # raises for a name that is too long
        above = target if folder and exists and not whole else target.parent
        parent = next(place for place in (above, *above.parents) if os.path.lexists(place))
        if not parent.is_dir():
            raise OutputError(f"{path}: {parent} is not a folder; choose another output")
        try:
            with tempfile.TemporaryFile(dir=parent):
                pass
        except OSError as error:
            if error.errno in _FULL:
                raise
            raise OutputError(f"{path}: can't write into {parent}: {error.strerror}; choose another output") from error


def check_outputs(*paths: str | Path | None, inputs: Iterable[str | Path | None] = ()) -> None:
    """`check_output` for several files of one call, which must differ, by whatever name. None and `-` are skipped."""
    sources, targets = [*inputs], dict[str, str | Path]()
    for path in paths:
        if path is None or str(path) == "-":
            continue
        check_output(path, inputs=sources)
        target = os.path.realpath(path)
        if _is_device(Path(target)):
            continue
        for place, other in targets.items():
            if place == target or (Path(target).exists() and Path(place).exists() and Path(place).samefile(target)):
                raise OutputError(f"{path}: is the output {other} too; choose another name for one of them")
        targets[target] = path


def _check_name(path: str | Path, *, folder: bool) -> None:
    if "\0" in str(path):
        raise OutputError(f"{str(path)!r}: contains a NUL character; choose another name")
    if str(path) == "-":
        kind = "a folder" if folder else "this output"
        raise OutputError(f"-: {kind} can't be written to stdout; pass another name")


def _check_input(path: str | Path, target: Path, name: str | Path | None, *, whole: bool) -> None:
    with suppress(OSError, ValueError, RuntimeError):  # an invalid path
        if name is None or not Path(name).exists() or _is_device(Path(name)):
            return
        source = Path(name).resolve()
        if target == source or (target.exists() and target.samefile(source)):
            raise OutputError(f"{path}: is the input; choose another output")
        if source.is_dir() and target.is_relative_to(source) and (whole or target.is_file()):
            raise OutputError(f"{path}: lies in the input {name}; choose another output")
        if whole and source.is_relative_to(target):
            raise OutputError(f"{path}: contains the input {name}; choose another output")


def read_record(path: Path, keys: Iterable[str] = ()) -> dict[str, Any] | None:
    """The JSON object in a file that records what an output is or was made of; None without a file.

    Raises `OutputError` for anything else, and for an object without these keys, which another program wrote.
    """
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not record.keys() >= set(keys):
        raise OutputError(f"{path}: was not written by isoglot, or is damaged; move it away, or choose another output")
    return record


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write what `read_record` reads, as `atomic_write` does."""
    with atomic_write(path) as stream:
        json.dump(record, stream, ensure_ascii=False, indent=1)


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """The paths of the keys of one record whose values differ in another, such as `settings.dtype`."""
    as_read = json.loads(json.dumps(ours))  # tuples as JSON has them
    return [place for key, value in as_read.items() for place in _list_differences(value, theirs.get(key), key)]


def _list_differences(one: Any, other: Any, place: str) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(key, one.get(key), other.get(key)) for key in {**one, **other}]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(str(at), first, second) for at, (first, second) in enumerate(zip(one, other, strict=True))]
    else:
        return [] if one == other else [place]
    return [inner for key, first, second in pairs for inner in _list_differences(first, second, f"{place}.{key}")]


MARK = ".isoglot"  # in a folder of `work_folder`
_FILES = "files"  # next to the mark


@contextmanager
def work_folder(folder: Path, kind: str, *, keep: bool, inputs: Iterable[str | Path | None] = ()) -> Iterator[Path]:
    """A folder of intermediate files from which a killed run resumes; locked, and removed after success unless `keep`
    is set.

    It is `files` in `folder`, which has a mark of its `kind` and nothing else. Raises `OutputError` for any other
    folder, for one that is or contains an input, and while another run uses it.
    """
    check_output(folder, inputs=inputs, folder=True, whole=True)
    with exclusive(folder):
        mark, files = folder / MARK, folder / _FILES
        with writing(mark), writing(files):
            folder.mkdir(parents=True, exist_ok=True)
            content = mark.read_bytes() if mark.is_file() else None
            if is_ours := content == f"{kind}\n".encode():
                remove_temporary_folders(files)
            parts = {LOCK: True, MARK: content is not None, _FILES: files.is_dir() and not files.is_symlink()}
            foreign = {path.name for path in folder.iterdir()} - {name for name, is_part in parts.items() if is_part}
            if not is_ours:
                if content or foreign or parts[_FILES]:
                    problem = f"exists, and this version did not make it as {kind}; choose another folder"
                    raise OutputError(f"{folder}: {problem}, or empty it if nothing there is needed")
                mark.write_text(f"{kind}\n", encoding="utf-8")
            if foreign:
                raise OutputError(f"{folder}: contains {min(foreign)}, which is not part of {kind}; move it away")
            files.mkdir(exist_ok=True)
        done = False
        try:
            yield files
            done = not keep
        finally:
            if done or not any(path.is_file() and path.name[:1] != "." for path in files.rglob("*")):
                # Also after a run that failed before it kept anything. Renamed first: a part of it that a kill left
                # here would be taken for the whole.
                removed = files.replace(name_beside(files, f"{secrets.token_hex(4)}.tmp"))
                shutil.rmtree(removed)
                with suppress(OSError):  # what was added to it meanwhile stays
                    mark.unlink()
                    folder.rmdir()


def list_files(folder: Path) -> list[str]:
    """Paths in a folder of files, and of links to folders, besides the lock of `exclusive`."""
    entries = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in entries if path != folder / LOCK)


@contextmanager
def temporary_folder(path: str | Path) -> Iterator[Path]:
    """A folder next to the output `path`, locked with it, that is removed when the block ends or, after a kill, by the
    next call.
    """
    with exclusive(path), writing(path):
        target = Path(os.path.realpath(path))
        remove_temporary_folders(target)
        folder = name_beside(target, f"{secrets.token_hex(4)}.tmp")
        try:
            folder.mkdir(parents=True)
            yield folder
        finally:
            remove_temporary_folders(target)


@contextmanager
def atomic_folder(path: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """A new folder that is renamed to `path` only if the block ends without an exception; until then, and after any
    failure, what is there is untouched.

    There may be an empty folder, and with `replace` any, which is renamed first: if a process is killed between these
    two, there is none until the next call or `remove_temporary_folders` brings the old one back. An empty folder that
    is the current one is filled, since a shell would stay in the one that is replaced.
    """
    with temporary_folder(path) as temporary:
        new, target = temporary / "new", Path(os.path.realpath(path))
        new.mkdir()
        yield new
        if target == Path.cwd() and not any(target.iterdir()):
            for entry in [*new.iterdir()]:
                entry.replace(target / entry.name)
            return
        if replace and target.exists():
            target.replace(temporary / _OLD)
        new.replace(target)


def remove_temporary_folders(target: Path) -> None:
    """Remove what was left next to `target` of a `temporary_folder`, and bring an old folder back that was renamed and
    not replaced. Enter `exclusive` before.
    """
    beginning = name_beside(target, "").name
    for entry in list(target.parent.iterdir()) if target.parent.is_dir() else ():
        if entry.name.startswith(beginning) and _TEMPORARY.fullmatch(entry.name) and entry.is_dir():
            if (entry / _OLD).exists() and not os.path.lexists(target):
                (entry / _OLD).replace(target)
            shutil.rmtree(entry, ignore_errors=True)


def digest(path: str | Path) -> str:
    """SHA-256 of the file's bytes as they lie on disk, in hexadecimal. Raises `OSError` when it cannot be read."""
    checksum = hashlib.sha256()
    with Path(path).open("rb") as stream:
        while block := stream.read(_BLOCK):
            checksum.update(block)
    return checksum.hexdigest()


def content_digest(path: str | Path) -> str:
    """`digest`, computed once per process as long as `file_state` stays the same.

    For the keys of what is made from a file: its size and modification time are kept by tools that copy or restore
    files, also where the content differs. Raises `OSError` when it cannot be read.
    """
    state = file_state(path)
    if time() - state[-1] / 1e9 < _SETTLED:  # a change within one tick of the file system's clock leaves no trace
        return digest(path)
    return _digest_once(os.path.realpath(path), state)


def file_state(path: str | Path) -> tuple[int, ...]:
    """Device, inode, size and both times of a file: while they are the same, it need not be read again.

    Programs can set the modification time, but not the last number, the time of the last change.
    """
    status = Path(path).stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@lru_cache(maxsize=4096)
def _digest_once(path: str, _state: tuple[int, ...]) -> str:
    return digest(path)


@contextmanager
def collecting() -> Iterator[set[Path]]:
    """The files that the block opens through the readers of this module, and those that it passes to `collect`."""
    files: set[Path] = set()
    _collections.append(files)
    try:
        yield files
    finally:
        _collections[:] = [one for one in _collections if one is not files]


def collect(paths: Iterable[str | Path]) -> None:
    """Count files as read, for `collecting`: what depends on their content will be read from them, or from a copy."""
    for files in _collections:
        files.update(map(Path, paths))


def _open(path: str | Path) -> BinaryIO:
    """Open a regular file; most files are read twice, which a pipe does not allow."""
    collect([path])
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise CorpusError("is a folder; pass a file in it, or read it with the reader 'folder'", file=path)
        if not stat.S_ISREG(mode):
            raise CorpusError("is a pipe or a device, not a regular file; save its content to a file first", file=path)
        return Path(path).open("rb")
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise CorpusError(f"cannot be the name of a file ({error}); check it", file=path) from None
    except FileNotFoundError:
        if str(path) == "-":
            raise CorpusError("stdin can't be read here; pass the name of a file", file=path) from None
        raise CorpusError("no such file; check the name", file=path) from None
    except OSError as error:
        raise CorpusError(f"cannot be opened: {error.strerror or error}", file=path) from error


def decompress(file: BinaryIO) -> Iterator[bytes]:
    """The content of an open file, compressed or not, in blocks. Raises the errors of the file and the decompressor."""
    kind = find_compression(file)
    if kind == "xz":
        yield from _decompress_streams(file, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ), unit=4)
    elif kind == "bz2":
        yield from _decompress_streams(file, bz2.BZ2Decompressor, unit=1)
    else:
        # read1 returns what precedes the damage; read would lose it with the exception.
        stream = gzip.GzipFile(fileobj=file) if kind == "gz" else file
        yield from iter(partial(stream.read1, _BLOCK), b"")  # type: ignore[union-attr]


def find_compression(file: BinaryIO) -> str:
    """`gz`, `xz` or `bz2` by the first bytes of an open file; empty: none of these."""
    magic = file.read(10)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return "gz"
    return "xz" if magic.startswith(b"\xfd7zXZ\x00") else "bz2" if _BZ2.match(magic) else ""


def _decompress_streams(file: BinaryIO, start: Callable[[], Any], *, unit: int) -> Iterator[bytes]:
    """The content of compressed streams, one after the other, with zeros as padding up to a multiple of `unit` bytes.

    The classes of the standard library ignore whatever follows a stream, such as the rest of a file whose copy was
    damaged there; here it is an error of the decompressor.
    """
    decompressor = start()
    while True:
        block = b""
        if decompressor.eof:
            block = decompressor.unused_data.lstrip(b"\0")
            while not block and (following := file.read(_BLOCK)):
                block = following.lstrip(b"\0")
            if (file.tell() - len(block)) % unit:  # streams of .xz are multiples of four bytes too
                raise lzma.LZMAError("zeros that are not a multiple of four bytes follow the compressed data")
            if not block:
                return
            decompressor = start()
        elif decompressor.needs_input and not (block := file.read(_BLOCK)):
            raise EOFError
        if content := decompressor.decompress(block, _BLOCK):
            yield content


@contextmanager
def meter(progress: Callable[[int, int | None], None], total: int | None) -> Iterator[None]:
    """Call `progress` with (bytes on disk that were read, total) while files are read, by any thread."""
    done = 0

    def add(size: int) -> None:
        nonlocal done
        done += size
        progress(done if total is None else min(done, total), total)

    _meters.append(add)
    try:
        yield
    finally:
        _meters.remove(add)


def count_bytes(size: int) -> None:
    """Count bytes on disk as read, for `meter`; also those of a file whose content is read from a copy."""
    for add in _meters:
        add(size)


def _read(content: Iterator[bytes], path: str | Path, lines: int) -> bytes:
    """The next block of the content, empty at its end; `lines` precede it."""
    try:
        return next(content, b"")
    except EOFError:
        problem = "compressed data end too early"
    except (OSError, zlib.error, lzma.LZMAError) as error:
        problem = f"cannot be read further ({error})"
    where = f"after line {lines}" if lines else "before the first line end"
    raise CutShortError(f"{problem}, {where}; copy or make the file again", file=path)


def binary_format(block: bytes) -> tuple[str, str]:
    """The binary format that the first bytes indicate, and what to do with such a file; empty: unknown."""
    if block.startswith(_TAR, _TAR_AT):
        return "a tar archive", _UNPACK
    return next(((kind, advice) for mark, kind, advice in _SIGNATURES if block.startswith(mark)), ("", ""))


def _is_text(block: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(block)
    except UnicodeDecodeError:
        return False
    return b"\0" not in block


def _refuse_carriage_returns(text: bytes, path: str | Path, line: int) -> None:
    """Reject lines that end at CR alone, which would otherwise be one line."""
    if b"\r" in text and b"\n" not in text:
        problem = "ends its lines with CR alone (classic Mac); convert the file, for instance with: tr '\\r' '\\n'"
        raise CorpusError(problem, file=path, line=line)


def _decode(block: bytes, path: str | Path, first: int, *, carriage_returns: bool) -> list[str]:
    try:
        lines = block.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = first + block.count(b"\n", 0, error.start)
        column = error.start - (block.rfind(b"\n", 0, error.start) + 1)
        guess = "ENCODING"
        if first == 1 and block.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            guess = "UTF-32"
        elif first == 1 and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            guess = "UTF-16"
        problem = f"byte 0x{block[error.start]:02x} at position {column} is not UTF-8"
        problem += f"; convert the file with: iconv -f {guess} -t UTF-8"
        problem += ", such as LATIN1, WINDOWS-1252 or SHIFT_JIS" if guess == "ENCODING" else ""
        raise CorpusError(problem, file=path, line=line) from None
    if b"\0" in block:
        line = first + block.count(b"\n", 0, block.index(b"\0"))
        wide = first == 1 and max(block[0:64:2].count(0), block[1:64:2].count(0)) > max(4, len(block[:64]) // 4)
        problem = "seems to be UTF-16; convert the file, for instance with: iconv -f UTF-16LE -t UTF-8" if wide else (
            "contains a NUL byte, so the file is binary or damaged; pass text in UTF-8"
        )  # fmt: skip
        raise CorpusError(problem, file=path, line=line)
    if b"\r" in block:
        if not carriage_returns:
            line = first + block.count(b"\n", 0, block.index(b"\r"))
            raise CorpusError("has a carriage return; convert the file with dos2unix", file=path, line=line)
        return [line[:-1] if line.endswith("\r") else line for line in lines]
    return lines


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _json(text: str, kind: type[_Value], name: str, file: str | Path, line: int) -> _Value:
    """The value in a line of JSON lines, which must be of a kind."""
    try:
        value = _PARSE(text)
        # A name that stands twice has two colons, so lines with a colon for each name need no closer look.
        if text.count(":") != (len(value) if isinstance(value, dict) else 0):
            json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"is not JSON ({error}); write one {name} per line", file=file, line=line) from None
    if "\\ud" in text.lower() and (half := _HALF.search(json.dumps(value, ensure_ascii=False))):
        problem = f"contains {half.group()!r}, half of a surrogate pair; write the whole character"
        raise CorpusError(problem, file=file, line=line)
    if not isinstance(value, kind):
        raise CorpusError(f"contains a JSON {type(value).__name__}; write one {name} per line", file=file, line=line)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {max(names, key=names.count)!r} stands twice in one object")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_PARSE = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _create(path: Path, mode: str, *, binary: bool) -> IO[Any]:
    return path.open(f"{mode}b") if binary else path.open(mode, encoding="utf-8", newline="\n")
