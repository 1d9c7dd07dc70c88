"""The input files of a build, and the digest that identifies a set of them."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from isoglot.errors import IsoglotError, RecipeError
from isoglot.wikipedia.sentences import Limits

_FORMAT = 1  # of the files in the work folder
_PARSERS = ("mwparserfromhell", "sentencex")


@dataclass(frozen=True, slots=True)
class Sources:
    """The files: dumps as `FILE` or `CODE=FILE`, and either a Wikidata dump or a table of titles; types as a table."""

    dumps: tuple[str, ...]
    wikidata: Path | None = None
    titles: Path | None = None
    types: Path | None = None
    limits: Limits = field(default_factory=Limits)


def check(sources: Sources, output: Path) -> None:
    """Raises `IsoglotError` if `output` exists or a library is missing, `RecipeError` for missing input files."""
    if output.exists():
        raise IsoglotError(f"{output}: already exists; remove it or choose another folder")
    if not sources.dumps:
        raise RecipeError("no dump; pass at least one")
    if (sources.wikidata is None) == (sources.titles is None):
        raise RecipeError(
            "pass either a Wikidata dump (--wikidata) or a table of titles (--titles: language, title, id), not both"
        )
    missing = [name for name, found in versions().items() if not found]
    if missing:
        raise IsoglotError(f'needs {" and ".join(missing)}: pip install "isoglot[wikipedia]"')


def versions() -> dict[str, str]:
    """Versions of the libraries that read wikitext and split sentences; empty: not installed."""
    found = {}
    for name in _PARSERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def digest(sources: Sources) -> str:
    """Digest of the files' names, sizes and times, and of the settings on which the passes before sampling depend."""
    facts: list[Any] = [_FORMAT, version("isoglot"), asdict(sources.limits), versions(), sources.dumps]
    dumps = [name if Path(name).exists() else name.partition("=")[2] for name in sources.dumps]
    for name in [*dumps, sources.wikidata, sources.titles, sources.types]:
        path = Path(os.path.realpath(name)) if name else None  # resolve() raises RuntimeError for a link to itself
        facts.append([str(path), path.stat().st_size, path.stat().st_mtime_ns] if path and path.exists() else None)
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
