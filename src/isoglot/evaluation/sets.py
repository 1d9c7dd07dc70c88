"""The sets that tasks read: their parts below the data folder, the requested languages, and the command that downloads
a set.

Tasks use sets and splits; `isoglot.data.sets` handles files and layouts. Test sets and users write codes of languages
in different systems.

A task may have several sets. The first one is the default, with checksums in the catalogue if possible; the others add
languages or replace it, as documented on the page of the task. A set in the folder of `data get` is read before other
copies of it (`docs/data.md`). Tasks on the user's own files have none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from isoglot.core.errors import CorpusError, EvaluationError
from isoglot.data.files import collect
from isoglot.data.languages import among as among  # for the tasks
from isoglot.data.languages import canonical, is_language
from isoglot.data.sets import DataSet, catalogue, command, find, present
from isoglot.data.sets.importers import find_parts
from isoglot.data.sets.normal import Part, Rows, read
from isoglot.evaluation.base import BaseTask, Task


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Raise `EvaluationError`, opened by `where` (task, subset), for files that cannot be used."""
    try:
        yield
    except CorpusError as error:
        raise EvaluationError(f"{where}: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A part of a set, whose errors are those of a task."""

    part: Part

    def read(self, where: str) -> Rows:
        """Its rows, at least one. Raises `EvaluationError`; `where` (task, subset) opens the message."""
        with reading(where):
            return read(self.part)


def in_memory(subset: str, rows: Rows) -> Source:
    """Rows that were not read from a file, in the place of those of a set."""
    return Source(Part("test", subset, (), (), lambda: rows))


def sources(task: str, names: Sequence[str], data: Path, *, merge: bool = False) -> dict[tuple[str, str], Source]:
    """(split, subset) -> source, of the first of the sets that is there; with `merge` the others add what it lacks.

    Raises `EvaluationError`, opened by the task, for a copy that cannot be used.
    """
    parts_of_sets: dict[tuple[str, str], Source] = {}
    for name in names:
        if parts_of_sets and not merge:
            break
        with reading(task):
            for key, part in find_parts(name, data).items():
                parts_of_sets.setdefault(key, Source(part))
                collect(part.files)
    return parts_of_sets


@dataclass(frozen=True, slots=True)
class SetTask(BaseTask):
    """A protocol on published sets; with other sets, or another split, it is another task.

    `split` is the part that is scored: `test`, or `dev` to choose by. A subset belongs to the languages of its texts,
    English only if it is the only one. `merges` is whether further sets add subsets that the first one lacks.
    """

    merges: ClassVar[bool] = False
    name: str
    reads: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    split: str = "test"
    sets: tuple[str, ...] = ()

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, Any]:
        """The subsets of the split, each with its source, whose languages are requested.

        English need not be requested beside another language.
        """
        selection = {}
        for (split, subset), source in sources(self.name, self.reads, data, merge=self.merges).items():
            if self.wants(split, source.part.languages, languages):
                selection[subset] = source
        return selection

    def wants(self, split: str, codes: Collection[str], languages: Sequence[str]) -> bool:
        """Whether it scores this split, and the languages of its texts, English only if alone, are all requested."""
        return split == self.split and all(among(code, languages) for code in {*codes} - {"eng"} or codes)


def list_sets(task: Task) -> tuple[str, ...]:
    """The catalogue's sets of a task, each of which gives it subsets on its own; none for tasks on the user's files."""
    names = getattr(task, "sets", ()) or getattr(task, "reads", ())
    return tuple(name for name in names if name in catalogue())


def get_command(
    task: Task, *, data: str | Path = "DIR", languages: Sequence[str] = (), beside: Sequence[str] = ()
) -> str:
    """The command that downloads data, or more data, of a task into the folder `data`.

    It is the first of the task's sets that is not there whole and, where `languages` are given, may have one of them;
    it may have all of `beside` too, the languages that are there already, if the task would read it instead of them.
    For a set that must be downloaded manually, the command prints the instructions. Empty if no set of the catalogue
    would add anything: all are present, none has the languages, or the task is on the user's own files. If `data` is a
    file, the folder is left to the user. Raises `CorpusError` for an unknown language.
    """
    folder = "DIR" if Path(data).is_file() else data
    for name in list_sets(task):
        data_set, required = find(name), beside if getattr(task, "reads_one_set", False) else ()
        may_add = _may_have(data_set, languages) and all(_may_have(data_set, [language]) for language in required)
        if may_add and present(data_set, Path(folder)) != "yes":
            return command(name, data=folder)
    return ""


def _may_have(one: DataSet, languages: Sequence[str]) -> bool:
    """Whether a set has one of the languages; one whose languages the catalogue does not know is taken to have any."""
    codes = one.language_codes
    return not codes or any(among(code, languages) for code in codes)


def is_english(code: str) -> bool:
    """Whether a code of any system is one of English."""
    return is_language(code) and canonical(code) == "eng"


def words(text: str) -> tuple[str, ...]:
    """The names in a text, separated by spaces: how long lists of codes are written."""
    return tuple(text.split())
