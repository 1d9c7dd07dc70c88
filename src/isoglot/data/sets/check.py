"""Compare the sets in a folder with the catalogue: missing and changed files.

A set without checksums in the catalogue is compared with the checksums of its first download, kept next to it in
`checksums.tsv`, and with the counts in the catalogue; the finding notes this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from isoglot.core.errors import CorpusError, MissingExtraError
from isoglot.data.files import COMPRESSED, locate
from isoglot.data.formats import open_parquet
from isoglot.data.sets.catalogue import Count, DataSet, read_manifest
from isoglot.data.sets.content import Content, measure

LOCK = "checksums.tsv"
DOWNLOADS = ".downloads"  # folder of the downloads of an incomplete set


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of checking one set.

    `state` is "ok", "absent" (no folder), "missing" (some files), "wrong" (some files differ) or "unknown" (nothing to
    compare with). `details` names each missing or wrong file.
    """

    name: str
    state: str
    details: tuple[str, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        """The finding as one line, with at most three of its details."""
        more = [f"and {len(self.details) - 3} more"] if len(self.details) > 3 else []
        details = "; ".join([*self.details[:3], *more, *([self.note] if self.note else [])])
        return f"{self.name}: {self.state}" + (f": {details}" if details else "")


def check(one: DataSet, data: Path) -> Finding:
    """Compare the files of a set below `data` with the recorded ones; every file is read completely."""
    folder = data / one.name
    if not folder.is_dir():
        return Finding(one.name, "absent")
    recorded, note = _find_record(one, folder)
    missing, wrong = count_files(one, folder)
    for path, content in recorded.items():
        if (file := locate(folder, path)) is None:
            missing.append(f"missing {path}")
        else:
            wrong += _measure(file, folder, content.lines, "lines", content)
    if not recorded and (folder / DOWNLOADS).is_dir():
        missing.append("the rest of a download that was interrupted")
    if wrong or missing:
        return Finding(one.name, "wrong" if wrong else "missing", (*wrong, *missing), note)
    if not recorded and not one.counts:
        return Finding(one.name, "unknown", note=note)
    return Finding(one.name, "ok", note="; ".join(filter(None, [f"{len(recorded):,} files" if recorded else "", note])))


def count_files(one: DataSet, folder: Path) -> tuple[list[str], list[str]]:
    """Problems with the numbers of files and lines in a folder of the set: too few files, and all others.

    Only counts recorded in the catalogue are checked.
    """
    few, others = list[str](), list[str]()
    for count in one.counts:
        files = _files(folder, count)
        problem = f"{len(files)} files {count.files}, {count.number} expected"
        few += [problem] if len(files) < count.number else []
        others += [problem] if len(files) > count.number else []
        others += [one for file in files for one in _measure(file, folder, count.lines, count.unit)]
    return few, others


def present(one: DataSet, data: Path) -> str:
    """Whether a set is present, "yes", "part" or "no", judged by file names; no file is read."""
    folder = data / one.name
    if not folder.is_dir():
        return "no"
    try:
        recorded, _ = _find_record(one, folder)
    except CorpusError:
        return "part"
    if not recorded:
        whole = all(len(_files(folder, count)) == count.number for count in one.counts)
        state = "yes" if whole and not (folder / DOWNLOADS).is_dir() else "part"
        return state if any(folder.iterdir()) else "no"
    presence = {locate(folder, path) is not None for path in recorded}
    return "yes" if presence == {True} else "part" if True in presence else "no"


def _find_record(one: DataSet, folder: Path) -> tuple[Mapping[str, Content], str]:
    if one.files:
        return one.files, ""
    lock = folder / LOCK
    if lock.is_file():
        try:
            text = lock.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(f"cannot be read ({error}); remove it and get the set again", file=lock) from None
        return read_manifest(text, lock), "as first downloaded; the catalogue records none"
    return {}, "checksums not recorded"


def _files(folder: Path, count: Count) -> list[Path]:
    """The files of a count, each once, whether compressed or not."""
    packed = {path for ending in ("", *COMPRESSED) for path in folder.glob(count.files + ending) if path.is_file()}
    names = {locate(folder, path.relative_to(folder).as_posix()) for path in packed}
    return sorted(filter(None, names))


def _measure(file: Path, folder: Path, lines: int, unit: str, expected: Content | None = None) -> Iterator[str]:
    """What is wrong with a file: its number of lines (rows of Parquet), or its content."""
    try:
        content = None if unit == "rows" else measure(file)
        number = content.lines if content else _rows(file)
    except CorpusError as error:
        yield str(error)
        return
    if number not in (lines, None):
        yield f"{file.relative_to(folder)} has {number:,} {unit}, {lines:,} expected"
    elif content and expected not in (None, content):
        yield f"{file.relative_to(folder)} has sha256 {content.sha256}, {expected.sha256} expected"


def _rows(path: Path) -> int | None:
    """The number of rows in a Parquet file's metadata; None if pyarrow is not installed."""
    try:
        with open_parquet(path) as file:
            return int(file.metadata.num_rows)
    except MissingExtraError:
        return None
