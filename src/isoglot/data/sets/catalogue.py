"""The catalogue of data sets: where each is published, its licence, and the checksums of its files.

`catalogue.toml` has one table for each set. `files/<set>.tsv` has a line for each file, `sha256 TAB bytes TAB lines TAB
path`, all of the decompressed content. For a set without such a file, the checksums of the first download are kept
next to the data instead (`check.LOCK`).

A file's address is made from its path by the first of the set's `rules` whose pattern matches the whole path, and
appended to the set's `address`. `archive!member` names a file inside a published archive.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from isoglot.core.errors import CorpusError, nearest
from isoglot.core.toml import tomllib
from isoglot.data.files import locate
from isoglot.data.languages import is_language
from isoglot.data.sets.content import Content

FILES = Path(str(resources.files(__package__)))


@dataclass(frozen=True, slots=True)
class Rule:
    """How the address of a file follows from its path, and the step applied to the published file (`get.step`).

    `address` is appended to the one of the set unless it begins with `https:`; groups of the pattern may be named in
    it.
    """

    pattern: str
    address: str
    step: str = ""


@dataclass(frozen=True, slots=True)
class Count:
    """Expected counts for files without recorded checksums: how many match a pattern, and their lines each.

    For Parquet, rows are counted instead.
    """

    files: str
    number: int
    lines: int

    @property
    def unit(self) -> str:
        """What is counted in each file."""
        return "rows" if self.files.endswith(".parquet") else "lines"

    def __str__(self) -> str:
        return f"{self.number:,} × {self.files} with {self.lines:,} {self.unit}"


@dataclass(frozen=True, slots=True)
class Hub:
    """A data repository of the Hugging Face hub, whose listing has its files and their checksums.

    With `folder`, only that folder is fetched. A repository or folder of a thousand files or more is rejected.
    """

    repository: str
    revision: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class DataSet:
    """One entry of `isoglot data list`, used by `get` and `check`.

    `rows` are counted in `unit`; 0 means unknown. `redistribution` is a reading of the stated terms, not legal advice.
    `manual` explains how to get a set that must be downloaded manually; empty for all others. `changes` describes the
    differences from the published files. `unpacked` are archives (or files) of a set without recorded files, as pairs
    of address and folder (or path) below the set's own folder.
    `training` is how training text is read: reader, path in the set's folder, options of the reader; empty for sets
    that are only evaluated on. `codes` is a pattern of the paths of recorded files, whose groups are languages, where
    `languages` is more than a list of codes.
    """

    name: str
    use: str
    what: str
    languages: str
    rows: int
    unit: str
    licence: str
    redistribution: str
    address: str
    changes: str = "none"
    manual: str = ""
    rules: tuple[Rule, ...] = ()
    unpacked: tuple[tuple[str, str], ...] = ()
    hub: Hub | None = None
    counts: tuple[Count, ...] = ()
    codes: str = ""
    training: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> Mapping[str, Content]:
        """The recorded content of each file, by path; empty if none is recorded."""
        return _read_record(self.name)

    @property
    def language_codes(self) -> tuple[str, ...]:
        """The codes of the languages that a set states or that its recorded files name; empty when neither does."""
        matches = filter(None, (re.fullmatch(self.codes, path) for path in self.files))
        if named := sorted({code for match in matches for code in match.groups()}):
            return tuple(named)
        stated = tuple(re.split("[ -]", self.languages))
        return stated if all(map(is_language, stated)) else ()

    def source_in(self, data: Path) -> tuple[str, Path, dict[str, str]]:
        """Reader, path and options that read the training text of the set in its folder below `data`.

        Raises `CorpusError` for a set without training text.
        """
        if not self.training:
            names = ", ".join(name for name, one in catalogue().items() if one.training)
            raise CorpusError(f"{self.name} contains no parallel text to train on; sets that do: {names}")
        options = dict(self.training)
        reader, path = options.pop("reader"), options.pop("path", "")
        folder = data / self.name
        return reader, locate(folder, path) or folder / path if path else folder, options

    def source(self, path: str) -> tuple[str, str]:
        """The address of one recorded file and the step applied to the published file."""
        for rule in self.rules:
            if match := re.fullmatch(rule.pattern, path):
                address = match.expand(rule.address)
                return (address if address.startswith("https:") else self.address + address), rule.step
        return self.address + path, ""


@cache
def catalogue() -> Mapping[str, DataSet]:
    """Every set of the catalogue, by name, in the order of the file."""
    with (FILES / "catalogue.toml").open("rb") as stream:
        tables = tomllib.load(stream)
    return MappingProxyType({name: _entry(name, table) for name, table in tables.items()})


def find(name: str) -> DataSet:
    """The set of that name. Raises `CorpusError` with the nearest names otherwise."""
    sets = catalogue()
    if name not in sets:
        raise CorpusError(f"unknown data set {name!r}; {nearest(name, sets)} `isoglot data list` shows all")
    return sets[name]


def command(name: str, *, data: str | Path = "DIR") -> str:
    """The command line that downloads a set into the folder `data`, for error messages. Raises as `find`."""
    return f"isoglot data get {find(name).name} --data {shlex.quote(str(data))}"


def read_manifest(text: str, file: str | Path) -> dict[str, Content]:
    """Path -> content, of lines `sha256 TAB bytes TAB lines TAB path`. Raises `CorpusError` with file and line."""
    contents: dict[str, Content] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        match = re.fullmatch(r"([0-9a-f]{64})\t(\d+)\t(\d+)\t(\S[^\t]*)", line)
        if match is None:
            raise CorpusError("not a line of checksums; delete the file and get the set again", file=file, line=number)
        contents[match[4]] = Content(match[1], int(match[2]), int(match[3]))
    return contents


def manifest(files: Mapping[str, Content]) -> str:
    """What `read_manifest` reads, one line for each file, sorted by path."""
    lines = (f"{content.sha256}\t{content.size}\t{content.lines}\t{path}\n" for path, content in sorted(files.items()))
    return "".join(lines)


@cache
def _read_record(name: str) -> Mapping[str, Content]:
    path = FILES / "files" / f"{name}.tsv"
    return MappingProxyType(read_manifest(path.read_text(encoding="utf-8"), path) if path.is_file() else {})


def _entry(name: str, table: Mapping[str, Any]) -> DataSet:
    parts: dict[str, Any] = {"hub": Hub(*table["hub"])} if "hub" in table else {}
    for key, kind in (("rules", Rule), ("counts", Count), ("unpacked", lambda *pair: pair)):
        parts[key] = tuple(kind(*values) for values in table.get(key, ()))
    return DataSet(name, **{**table, **parts})
