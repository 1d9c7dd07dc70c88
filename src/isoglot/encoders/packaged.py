"""Named models whose weights ship inside ordinary Python packages, so that a machine without a network has real ones.

The packages are never imported for this: their files are found through the installation's own records, checked against
a known SHA-256, converted once into the user's cache folder, and from then on are an ordinary local model. A manifest
says what a cached folder was made from and how large its files are; a folder that disagrees is made anew.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from isoglot import environment
from isoglot.data.files import digest, exclusive
from isoglot.encoders import layout
from isoglot.encoders.sources import SOURCES, Source
from isoglot.errors import EncoderError

MANIFEST = "isoglot.json"
_WAIT = 600.0  # seconds for another process that converts the same model
CONVERTER = 1  # raised when a conversion changes, so that cached folders are made anew


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """One line of `isoglot models list`: a model's name, where it comes from, and whether it is here."""

    name: str
    package: str
    what: str
    dim: int
    licence: str
    installed: bool
    cached: bool


NAMES: tuple[str, ...] = tuple(SOURCES)


def models() -> list[PackagedModel]:
    """Every named model, whether its packages are installed, and whether it has been converted already."""
    return [
        PackagedModel(
            name,
            " + ".join(package.name for package in source.packages),
            source.what,
            source.dim,
            source.licence,
            installed=all(_distribution(package.name) for package in source.packages),
            cached=_valid(_place(name), source),
        )
        for name, source in SOURCES.items()
    ]


def get(name: str) -> Path:
    """The local folder of a named model, converted into the cache on first use.

    Raises EncoderError if the name is unknown, its package is not installed, or a file is not the expected one.
    """
    if name not in SOURCES:
        raise EncoderError(f"no packaged model is called {name!r}; there are {', '.join(NAMES)}")
    source, folder = SOURCES[name], _place(name)
    if _valid(folder, source):
        return folder
    files = _located(name, source)
    with exclusive(folder, wait=_WAIT):
        if _valid(folder, source):  # another process has converted it meanwhile
            return folder
        shutil.rmtree(folder, ignore_errors=True)  # of another converter, or damaged
        with layout.replacing(folder) as new:
            source.convert(files, new)
            written = [path for path in new.rglob("*") if path.is_file() and path.name != layout.FILES]
            sizes = {str(path.relative_to(new)): path.stat().st_size for path in written}
            manifest = {"converter": CONVERTER, "sources": _plain(source), "sizes": sizes}
            layout.write_json(new / MANIFEST, manifest)
    return folder


def _plain(source: Source) -> dict[str, dict[str, str]]:
    return {package.name: dict(package.files) for package in source.packages}


def _place(name: str) -> Path:
    return environment.cache_folder() / "models" / name


def _valid(folder: Path, source: Source) -> bool:
    """Whether the folder was made from these sources by this converter, and every file is of the size it had then."""
    try:
        manifest = layout.read_json(folder / MANIFEST)
        known = manifest["converter"] == CONVERTER and manifest["sources"] == _plain(source)
        return known and all((folder / name).stat().st_size == size for name, size in manifest["sizes"].items())
    except (EncoderError, OSError, KeyError, TypeError):
        return False


def _distribution(package: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return None


def _located(name: str, source: Source) -> dict[str, Path]:
    """Each file of a source where the installation has it, its content checked."""
    found: dict[str, Path] = {}
    for package in source.packages:
        distribution = _distribution(package.name)
        if distribution is None:
            raise EncoderError(f'{name} needs the package {package.name}: pip install "isoglot[models]"')
        for file, expected in package.files.items():
            path = found[file] = Path(str(distribution.locate_file(f"{package.folder}/{file}")))
            if not path.is_file() or digest(path) != expected:
                raise EncoderError(
                    f"{path}: is not the file that {name} is made from, but damaged or of another version of "
                    f'{package.name}: pip install --force-reinstall "isoglot[models]"'
                )
    return found
