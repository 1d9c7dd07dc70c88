"""The sets that tasks read: their parts below the data folder, the requested languages, and the command that downloads
a set.

Tasks use sets and splits; `isoglot.data.sets` handles files and layouts. Imported sets are kept in the cache folder, so
a set is imported once. Test sets and users write codes of languages in different systems.

A task may have several sets. The first one is the default, with checksums in the catalogue if possible; the others add
languages or replace it, as documented on the page of the task. A set in the folder of `data get` is read before other
copies of it (`docs/data.md`). Tasks on the user's own files have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isoglot.data.files import collect
from isoglot.data.languages import canonical, canonical_list, is_language, matches
from isoglot.data.sets import DataSet, catalogue, command, find, present
from isoglot.data.sets.importers import IMPORTERS, find_parts
from isoglot.data.sets.normal import Part, Rows, read
from isoglot.environment import cache_folder
from isoglot.errors import CorpusError, EvaluationError


def cache() -> Path:
    """The cache folder of imported sets."""
    return cache_folder() / "sets"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A part of the set called `name`."""

    name: str
    part: Part

    def read(self, where: str) -> Rows:
        """Its rows, at least one. Raises `EvaluationError`; `where` (task, subset) opens the message."""
        try:
            return read(self.name, self.part, cache=cache())
        except CorpusError as error:
            raise EvaluationError(f"{where}: {error}") from error


def in_memory(subset: str, rows: Rows) -> Source:
    """Rows that were not read from a file, in the place of those of a set."""
    return Source("", Part("test", subset, (), (), lambda: rows))


def sources(task: str, names: Sequence[str], data: Path, *, merge: bool = False) -> dict[tuple[str, str], Source]:
    """(split, subset) -> source, of the first of the sets that is there; with `merge` the others add what it lacks.

    Raises `EvaluationError`, opened by the task, for a copy that cannot be used.
    """
    found: dict[tuple[str, str], Source] = {}
    for name in names:
        if found and not merge:
            break
        try:
            for key, part in find_parts(name, data).items():
                found.setdefault(key, Source(name, part))
                collect(part.files)
        except CorpusError as error:
            raise EvaluationError(f"{task}: {error}") from error
    return found


def needs(*names: str) -> str:
    """The files of the sets and their sources, for the message that they are missing."""
    return ", or ".join(IMPORTERS[name].needs for name in names)


_ANALYSES = ("similarity", "centroids", "map")  # these read only one set, the one with the most of the languages


def sets_of(task: str) -> tuple[str, ...]:
    """The catalogue's sets of a task, each of which gives it subsets on its own; none for tasks on the user's files."""
    from isoglot.evaluation import TASKS  # which imports this module

    names: tuple[str, ...] = getattr(TASKS[task], "sets", ()) if task in TASKS else ()
    return tuple(name for name in names if name in catalogue())


def get_command(
    task: str, *, data: str | Path = "DIR", languages: Sequence[str] = (), beside: Sequence[str] = ()
) -> str:
    """The command that downloads data, or more data, of a task into the folder `data`.

    It is the first of the task's sets that is not there whole and, where `languages` are given, may have one of them;
    it may have all of `beside` too, the languages that are there already, if the task would read it instead of them.
    For a set that must be downloaded manually, the command prints the instructions. Empty if no set of the catalogue
    would add anything: all are present, or none has the languages, or the task is on the user's own files or not in
    `TASKS`. If `data` is a file, the folder is left to the user. Raises `CorpusError` for an unknown language.
    """
    folder = "DIR" if Path(data).is_file() else data
    for name in sets_of(task):
        one, kept = find(name), beside if task in _ANALYSES else ()
        fits = _may_have(one, languages) and all(_may_have(one, [language]) for language in kept)
        if fits and present(one, Path(folder)) != "yes":
            return command(name, data=folder)
    return ""


def _may_have(one: DataSet, languages: Sequence[str]) -> bool:
    """Whether a set has one of the languages; one whose languages the catalogue does not know is taken to have any."""
    codes = one.language_codes
    return not codes or any(among(code, languages) for code in codes)


def among(code: str, languages: Sequence[str]) -> bool:
    """Whether the code that a test set uses names one of `languages`; without any, every one does.

    A test set that names no script (`cmn`) answers for all of them (`zho_Hans`). Raises `CorpusError` for a language
    that does not exist and that the test set does not use either.
    """
    if not languages or code in languages:
        return True
    wanted = canonical_list(languages)
    return is_language(code) and matches(canonical(code), {*wanted, *(name.partition("_")[0] for name in wanted)})


def words(text: str) -> tuple[str, ...]:
    """The names in a text, separated by spaces: how long lists of codes are written."""
    return tuple(text.split())
