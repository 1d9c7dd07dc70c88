"""Converts a published file to the file of a set: recompression, and the few steps that change content.

Most files are kept as published, or compressed as `.xz`. The steps, named in `catalogue.toml`, are those that produced
the recorded checksums:

    lf              line ends CR LF become LF
    columns N       the first N cells between tabs
    column NAME     one column of a file with a header, without the header
    unleaked        of two aligned files, the lines whose pair shares no sentence with the set tatoeba-laser
"""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.files import atomic_write, content_digest, stored
from isoglot.data.filters import normalise, test_sentences
from isoglot.data.sets.catalogue import command, find
from isoglot.data.sets.content import Content, Measure, blocks, is_compressed


def put(raw: Path, target: Path, content: Iterator[bytes], *, expected: Content | None, where: str) -> Content:
    """Write `content` to the file `target`, compressed if its name ends in `.xz`, and return its measures.

    If `raw`, the source of the content, is already compressed, its bytes are kept instead. Raises `CorpusError`, which
    begins with `where`, if the content differs from `expected`; then nothing is written.
    """
    total = Measure()
    with atomic_write(target, binary=True) as stream:
        kept = is_compressed(raw)
        with lzma.open(stream, "wb") if target.name.endswith(".xz") and not kept else nullcontext(stream) as output:
            for block in content:
                total.add(block)
                output.write(b"" if kept else block)
        if kept:
            with raw.open("rb") as source:
                shutil.copyfileobj(source, stream)
        if expected not in (None, measured := total.content):
            problem = f"{where}: does not match the catalogue: expected {expected}, got {measured}"
            raise CorpusError(f"{problem}; try again, or pass another mirror with --base-url")
    return measured


def step(name: str, raw: Path, *, partner: Path | None, data: Path) -> Iterator[bytes]:
    """The content of a published file after a step; the name `""` leaves it as it is.

    `partner` is the aligned file that `unleaked` needs, `data` the folder with the set it compares with. Raises
    `CorpusError` for a file that the step does not fit.
    """
    verb, _, option = name.partition(" ")
    if verb == "":
        return blocks(raw)
    if verb == "unleaked":
        assert partner is not None
        return _unleaked(raw, partner, data)
    lines = _lines(raw)
    if verb == "column":
        lines = _column(lines, option, raw)
    elif verb == "columns":
        lines = [b"\t".join(line.split(b"\t")[: int(option)]) for line in lines]
    else:  # lf
        lines = [line.removesuffix(b"\r") for line in lines]
    return iter([b"\n".join(lines)])


def _column(lines: list[bytes], name: str, raw: Path) -> list[bytes]:
    header = lines[0].rstrip(b"\r").split(b"\t")
    if name.encode() not in header:
        raise CorpusError(f"has no column {name}; the published file has changed", file=raw, line=1)
    place = header.index(name.encode())
    # The last, empty element stands for the line feed at the end.
    return [line.rstrip(b"\r").split(b"\t")[place] if line else line for line in lines[1:]]


def _unleaked(raw: Path, partner: Path, data: Path) -> Iterator[bytes]:
    folder = data / "tatoeba-laser"
    files = find("tatoeba-laser").files
    missing = [path for path in files if stored(folder, path) is None]
    if missing:
        how = command("tatoeba-laser", data=data)
        raise CorpusError(f"{folder / missing[0]}: missing; needed to exclude its sentences. Run: {how}")
    test_files = sorted(path for path in (folder / "v1").iterdir() if path.is_file())
    tests = _tests(folder / "v1", tuple(map(content_digest, test_files)))
    own, other = _lines(raw), _lines(partner)
    if len(own) != len(other):
        raise CorpusError(f"has {len(own)} lines and {partner} has {len(other)}; get both again", file=raw)
    for line, aligned in zip(own[:-1], other[:-1], strict=True):
        if tests.isdisjoint((normalise(line.decode()), normalise(aligned.decode()))):
            yield line + b"\n"


@lru_cache(maxsize=1)
def _tests(folder: Path, _content: tuple[str, ...]) -> frozenset[str]:
    """The test sentences, read once for all files of a set, and again when one of them has changed."""
    return test_sentences(folder)


def _lines(path: Path) -> list[bytes]:
    return b"".join(blocks(path)).split(b"\n")
