"""Named models: our own, which are part of this package, and those with weights in other Python packages.

Our own are packed folders with cards in `isoglot/models`, opened in place; one that shares the word table of another is
completed once in the user's cache folder. Other packages are not imported: their files are found through the metadata
of the installation, checked against a known SHA-256, converted once into the cache folder, and are then an ordinary
local model. A manifest records what a cached folder was made from and the SHA-256 of its files; a folder that disagrees
is created again. To use a new version of a package, change its pin in
pyproject.toml and the digests in packaged.toml together.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from isoglot.core import environment
from isoglot.core.errors import EncoderError, OutputError, nearest
from isoglot.core.plugins import torch_half
from isoglot.core.toml import tomllib
from isoglot.data.files import content_digest, digest, exclusive, file_state
from isoglot.model import card, layout, shared


@dataclass(frozen=True, slots=True)
class Package:
    """A package of the Python index, a folder inside it, and the SHA-256 of the files used there."""

    name: str
    folder: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a model, and how they are converted to a model folder: see `_convert`."""

    packages: tuple[Package, ...]
    what: str
    dim: int
    licence: str
    convert: str


def _convert(how: str, files: Mapping[str, Path], folder: Path) -> None:
    """Make a model folder by copying the files, or by a function or class of `encoders.converters`."""
    if how == "copy":
        for name, path in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, folder / name)
    elif how == "UseEncoder":
        torch_half("encoders.converters").UseEncoder().save(folder)
    else:
        getattr(torch_half("encoders.converters"), how)(*files.values(), folder)


_TABLES = tomllib.loads((Path(__file__).parent / "packaged.toml").read_text(encoding="utf-8"))
SOURCES: Mapping[str, Source] = {
    name: Source(**{**table, "packages": tuple(Package(**package) for package in table["packages"])})
    for name, table in _TABLES.items()
}

DEFAULT = "isoglot-base"  # the default model
INCLUDED = Path(__file__).parent.parent / "models"  # our own models, a folder each
_FIRST = ("isoglot-base", "isoglot-small", "isoglot-static")  # the order in which they are listed
MANIFEST = "isoglot.json"
_WAIT = 600.0  # seconds for another process that converts the same model
CONVERTER = 2  # raised when a conversion changes, so that cached folders are created again


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """One line of `isoglot models list`: a model's name, its origin, and whether it is installed.

    `size` is that of its files in bytes and `languages` the number it was trained on; both are 0 if unknown.
    """

    name: str
    package: str
    what: str
    dim: int
    licence: str
    installed: bool
    cached: bool
    size: int = 0
    languages: int = 0


def list_models() -> list[str]:
    """The names of our own models."""
    folders = [path.name for path in INCLUDED.iterdir() if path.is_dir()] if INCLUDED.is_dir() else []
    return sorted(folders, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))


def names() -> list[str]:
    """The names of all packaged models, our own first."""
    return [*list_models(), *SOURCES]


def models() -> list[PackagedModel]:
    """Every named model, our own first, whether its packages are installed, and whether it has been converted."""
    listed = []
    for name in list_models():
        facts = card.read(INCLUDED / name) or card.Card()
        size = sum(path.stat().st_size for path in (INCLUDED / name).rglob("*") if path.is_file())
        languages = len(facts.languages.keys() | facts.count_trained().keys())
        about = (facts.summary, facts.dim, facts.licence)
        listed.append(
            PackagedModel(name, "isoglot", *about, installed=True, cached=True, size=size, languages=languages)
        )
    for name, source in SOURCES.items():
        packages = [package.name for package in source.packages]
        about = (source.what, source.dim, source.licence)
        is_installed, is_cached = all(map(_distribution, packages)), _is_valid(place(name), _list_sources(source))
        listed.append(PackagedModel(name, " + ".join(packages), *about, installed=is_installed, cached=is_cached))
    return listed


def get(name: str) -> Path:
    """The local folder of a named model: our own in place if it is complete, others made in the cache on first use.

    Raises EncoderError if the name is unknown, its package is not installed, a file is not the expected one, or the
    cache can't be written.
    """
    if name in list_models():
        folder = INCLUDED / name
        if (lacking := shared.read_shared(folder)) is None:
            return folder
        other = INCLUDED / lacking.model
        parts = {each.name: digest(each / card.FILE) for each in (folder, other)}  # cards have checksums of all weights
        return _make(name, parts, lambda new: shared.complete(folder, other, lacking, new))
    if name not in SOURCES:
        raise EncoderError(f"unknown packaged model {name!r}; {nearest(name, names())}")
    source = SOURCES[name]
    sources = _list_sources(source)
    files = {} if _is_valid(place(name), sources) else _locate_files(name, source)  # an error leaves no cache behind
    return _make(name, sources, lambda new: _convert(source.convert, files, new))


def _make(name: str, sources: Mapping[str, Any], make: Callable[[Path], None]) -> Path:
    """The folder of a model in the cache, made by `make` unless it was made from these sources before."""
    folder = place(name)
    if _is_valid(folder, sources):
        return folder
    try:
        with exclusive(folder, wait=_WAIT):
            if _is_valid(folder, sources):  # another process has made it meanwhile
                return folder
            shutil.rmtree(folder, ignore_errors=True)  # of another converter, or damaged
            with layout.replacing(folder) as new:
                make(new)
                written = [path for path in new.rglob("*") if path.is_file() and path.name != layout.FILES]
                contents = {str(path.relative_to(new)): [digest(path), file_state(path)] for path in written}
                manifest = {"converter": CONVERTER, "sources": sources, "contents": contents}
                layout.write_json(new / MANIFEST, manifest)
    except OutputError as error:
        raise EncoderError(f"{name}: {error}; set ISOGLOT_CACHE to a folder that can be written") from error
    return folder


def _list_sources(source: Source) -> dict[str, dict[str, str]]:
    return {package.name: dict(package.files) for package in source.packages}


def place(name: str) -> Path:
    """The folder of a model in the cache."""
    return environment.cache_folder() / "models" / name


def _is_valid(folder: Path, sources: Mapping[str, Any]) -> bool:
    """Whether the folder was converted from these sources by this version, and no file has changed since."""
    try:
        manifest = layout.read_json(folder / MANIFEST)
        is_ours = manifest["converter"] == CONVERTER and manifest["sources"] == sources
        return is_ours and all(
            list(file_state(folder / name)) == state or content_digest(folder / name) == checksum
            for name, (checksum, state) in manifest["contents"].items()
        )
    except (EncoderError, OSError, KeyError, TypeError, ValueError, AttributeError):
        return False


def _distribution(package: str) -> metadata.Distribution | None:
    return next(iter(metadata.distributions(name=package)), None)


def _locate_files(name: str, source: Source) -> dict[str, Path]:
    """The installed files of a source, with verified content."""
    paths: dict[str, Path] = {}
    for package in source.packages:
        distribution = _distribution(package.name)
        if distribution is None:
            raise EncoderError(f'{name} needs the package {package.name}: pip install "isoglot[models]"')
        for file, expected in package.files.items():
            path = paths[file] = Path(str(distribution.locate_file(f"{package.folder}/{file}")))
            if not path.is_file() or digest(path) != expected:
                raise EncoderError(
                    f"{path}: is not the file that {name} is made from, but damaged or of another version of "
                    f'{package.name}: pip install --force-reinstall "isoglot[models]"'
                )
    return paths
