"""Get a set: download, unpack, convert and verify its files, then rename them to their final names.

To resume after an interruption, make the same call again. Files with the right content are kept. Downloads stay in the
hidden folder `.downloads` of the set until the set is complete; a download with the wrong content is deleted and
fetched again by the next call. Files that are not in the catalogue are never touched.

Most files are kept as published, or compressed as `.xz`. The steps that change content, named in `catalogue.toml`, are
those that produced the recorded checksums:

    lf              line ends CR LF become LF
    column NAME     one column of a file with a header, without the header
    unleaked        of two aligned files, the lines whose pair shares no sentence with the set tatoeba-laser
"""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from isoglot.core.errors import CorpusError
from isoglot.data.files import atomic_write, check_output, content_digest, exclusive, find_compression, locate
from isoglot.data.filters import normalise, test_sentences
from isoglot.data.sets.catalogue import DataSet, Hub, command, find, manifest
from isoglot.data.sets.check import DOWNLOADS, LOCK, check, count_files
from isoglot.data.sets.content import Content, Measure, blocks, extract, measure, safe
from isoglot.data.sets.download import Network, Transfer, download

_HUB = "https://huggingface.co"
_LISTED = 1000  # maximum entries in a page of a listing, which does not state the total
_TEXT = (".jsonl", ".json", ".parquet", ".tsv", ".csv", ".txt", ".gz", ".xz", ".bz2")


@dataclass(frozen=True, slots=True)
class _Fetch:
    """State of one call of `get`: the set, its folder and the network settings."""

    one: DataSet
    data: Path
    network: Network
    progress: Transfer | None

    @property
    def folder(self) -> Path:
        return self.data / self.one.name

    @property
    def downloads(self) -> Path:
        return self.folder / DOWNLOADS

    def raw(self, address: str) -> Path:
        """The published file of an address, `archive!member` included; downloads and unpacks it when needed."""
        outer, _, member = address.partition("!")
        target = self.downloads / sha256(outer.encode()).hexdigest()[:16]
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            download(outer, target, network=self.network, progress=self.progress)
        if "!" not in address:
            return target
        with self.blaming(target, outer):
            unpacked = target.with_name(f"{target.name}.d")
            if not unpacked.exists():
                extract(target, unpacked)
            inner = unpacked / safe(member, target) if member else unpacked
            if not inner.exists():
                raise CorpusError(f"does not contain {member}; the published archive has changed", file=target)
            return inner

    @contextmanager
    def blaming(self, raw: Path, address: str) -> Iterator[None]:
        """Delete the download that contains `raw` when its content is wrong, and name the address in the error."""
        try:
            yield
        except CorpusError as error:
            if raw.is_relative_to(self.downloads):
                name = raw.relative_to(self.downloads).parts[0].removesuffix(".d")
                (self.downloads / name).unlink(missing_ok=True)
                shutil.rmtree(self.downloads / f"{name}.d", ignore_errors=True)
            raise CorpusError(str(error).replace(str(raw), address)) from error


def get(name: str, data: Path, *, network: Network | None = None, progress: Transfer | None = None) -> Path:
    """Download the set `name` into the folder `data/name` and return that folder. Correct files are kept.

    Raises `CorpusError` for a set that is not in the catalogue or whose licence requires a manual download (the
    message explains how), for a network failure after all attempts, and for a file that differs from the recorded one
    or from the expected number of lines.
    """
    one = find(name)
    job = _Fetch(one, data, network or Network(), progress)
    if one.manual:
        problem = f"{name} needs a manual download (licence: {one.licence})"
        raise CorpusError(f"{problem}; {one.manual}; put it into {job.folder}")
    check_output(job.folder, folder=True)
    with exclusive(job.folder):
        changed = [_fetch_file(job, *file) for file in one.files.items()] if one.files else [_fetch_all(job)]
        if any(changed) or not (job.folder / "SOURCE").exists():
            with atomic_write(job.folder / "SOURCE") as stream:
                stream.write(source(one))
        shutil.rmtree(job.downloads, ignore_errors=True)
    return job.folder


def source(one: DataSet) -> str:
    """The text of a set's file SOURCE: its origin, its licence and the changes made here."""
    lines = {"address": one.address, "licence as stated": one.licence, "what": one.what, "changes here": one.changes}
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def _fetch_file(job: _Fetch, path: str, expected: Content) -> bool:
    """Fetch the file if needed; return whether it was. Wrong copies in another compression are deleted."""
    target, copy = job.folder / path, locate(job.folder, path)
    if copy and _holds(copy, expected):
        return False
    address, name = job.one.source(path)
    raw, partner = job.raw(address), None
    if name == "unleaked":  # the file aligned with it is the other one of its folder
        beside = (other for other in job.one.files if PurePosixPath(other).parent == PurePosixPath(path).parent)
        partner = job.raw(job.one.source(next(other for other in beside if other != path))[0])
    with job.blaming(raw, address):
        put(raw, target, step(name, raw, partner=partner, data=job.data), expected=expected, where=address)
    while (copy := locate(job.folder, path)) not in (None, target) and not _holds(copy, expected):
        copy.unlink()
    return True


def _holds(path: Path, expected: Content) -> bool:
    try:
        return measure(path) == expected
    except CorpusError:
        return False


def _fetch_all(job: _Fetch) -> bool:
    """Fetch a set without recorded checksums, check its counts, and write its checksums to `checksums.tsv`.

    Returns whether it was fetched. A set that matches its `checksums.tsv` is kept; for one that does not, the user has
    to decide.
    """
    if (job.folder / LOCK).is_file():
        finding = check(job.one, job.data)
        if finding.state == "ok":
            return False
        if finding.state == "wrong":
            raise CorpusError(f"{finding}; move the folder {job.folder} away to download the set again")
    staged = job.downloads / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    contents: dict[str, Content] = {}
    for path, raw in _list_files(job):
        with job.blaming(raw, f"{job.one.address}: {path}"):
            contents[path] = put(raw, staged / path, blocks(raw), expected=None, where=path)
    few, wrong = count_files(job.one, staged) if contents else (["no files"], [])
    if problems := [*few, *wrong]:
        shutil.rmtree(job.downloads)
        problem = f"{job.one.address}: does not match the catalogue: {'; '.join(problems[:3])}; nothing was kept"
        raise CorpusError(f"{problem}: run the command again, or download it manually into {job.folder}")
    for path in contents:
        (job.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (staged / path).replace(job.folder / path)
    with atomic_write(job.folder / LOCK) as stream:
        stream.write(manifest(contents))
    return True


def _list_files(job: _Fetch) -> Iterator[tuple[str, Path]]:
    """Path below the set's folder and raw file, for every file of an unrecorded set."""
    if job.one.hub:
        yield from _hub(job, job.one.hub)
    for end, target in job.one.unpacked:
        raw = job.raw(job.one.address + end)
        if raw.is_file():
            yield target, raw
        for path in sorted(raw.rglob("*")) if raw.is_dir() else []:
            if path.is_file():
                yield (PurePosixPath(target) / path.relative_to(raw).as_posix()).as_posix(), path


def _hub(job: _Fetch, hub: Hub) -> Iterator[tuple[str, Path]]:
    """The data files of a repository. Its listing has their sizes, and checksums of those that the hub stores as large
    files.
    """
    tree = "/".join(filter(None, (hub.revision, hub.folder)))
    listing = job.raw(f"{_HUB}/api/datasets/{hub.repository}/tree/{tree}?recursive=true")
    try:
        entries = json.loads(listing.read_text(encoding="utf-8"))
        files = [row for row in entries if row["type"] == "file" and row["path"].endswith(_TEXT)]
        rows = [(row["path"], row.get("size"), row.get("lfs", {}).get("oid")) for row in files]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        listing.unlink()
        raise CorpusError(f"{job.one.address}: the listing of its files cannot be read; try again later") from error
    if len(entries) >= _LISTED:
        listing.unlink()
        problem = f"{job.one.address}: the hub lists only the first {_LISTED:,} of its files at once"
        raise CorpusError(f"{problem}; download it with the hub's own tools and pass their cache as the data folder")
    for path, size, digest in rows:
        target = safe(path, listing).as_posix()
        address = f"{_HUB}/datasets/{hub.repository}/resolve/{hub.revision}/{quote(path)}"
        raw = job.raw(address)
        with job.blaming(raw, address):
            if size not in (None, raw.stat().st_size) or (digest and sha256(raw.read_bytes()).hexdigest() != digest):
                listed = f"{size} bytes, sha256 {digest}" if digest else f"{size} bytes"
                raise CorpusError(f"is not the file the hub lists ({listed}); run the command again", file=raw)
        yield target, raw


def put(raw: Path, target: Path, content: Iterator[bytes], *, expected: Content | None, where: str) -> Content:
    """Write `content` to the file `target`, compressed if its name ends in `.xz`, and return its measures.

    If `raw`, the source of the content, is already compressed, its bytes are kept instead. Raises `CorpusError`, which
    begins with `where`, if the content differs from `expected`; then nothing is written.
    """
    total = Measure()
    with atomic_write(target, binary=True) as stream, raw.open("rb") as source:
        is_packed = bool(find_compression(source))
        is_to_pack = target.name.endswith(".xz") and not is_packed
        with lzma.open(stream, "wb") if is_to_pack else nullcontext(stream) as output:
            for block in content:
                total.add(block)
                output.write(b"" if is_packed else block)
        if is_packed:
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
        return _drop_leaks(raw, partner, data)
    lines = _lines(raw)
    changed = _column(lines, option, raw) if verb == "column" else [line.removesuffix(b"\r") for line in lines]  # lf
    return iter([b"\n".join(changed)])


def _column(lines: list[bytes], name: str, raw: Path) -> list[bytes]:
    header = lines[0].rstrip(b"\r").split(b"\t")
    if name.encode() not in header:
        raise CorpusError(f"has no column {name}; the published file has changed", file=raw, line=1)
    place = header.index(name.encode())
    # The last, empty element stands for the line feed at the end.
    return [line.rstrip(b"\r").split(b"\t")[place] if line else line for line in lines[1:]]


def _drop_leaks(raw: Path, partner: Path, data: Path) -> Iterator[bytes]:
    folder = data / "tatoeba-laser"
    files = find("tatoeba-laser").files
    missing = [path for path in files if locate(folder, path) is None]
    if missing:
        how = command("tatoeba-laser", data=data)
        raise CorpusError(f"{folder / missing[0]}: missing; needed to exclude its sentences. Run: {how}")
    test_files = sorted(path for path in (folder / "v1").iterdir() if path.is_file())
    tests = _tests(folder / "v1", tuple(map(content_digest, test_files)))
    lines, partner_lines = _lines(raw), _lines(partner)
    if len(lines) != len(partner_lines):
        raise CorpusError(f"has {len(lines)} lines and {partner} has {len(partner_lines)}; get both again", file=raw)
    for line, aligned in zip(lines[:-1], partner_lines[:-1], strict=True):
        if tests.isdisjoint((normalise(line.decode()), normalise(aligned.decode()))):
            yield line + b"\n"


@lru_cache(maxsize=1)
def _tests(folder: Path, _content: tuple[str, ...]) -> frozenset[str]:
    """The test sentences, read once for all files of a set, and again when one of them has changed."""
    return test_sentences(folder)


def _lines(path: Path) -> list[bytes]:
    return b"".join(blocks(path)).split(b"\n")
