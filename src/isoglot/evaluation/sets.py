"""The sets that tasks read: their parts below the data folder, the requested languages, and the command that downloads
a set.

Tasks use sets and splits; `isoglot.data.sets` handles files and layouts. Imported sets are kept in the cache folder, so
a set is imported once. Test sets and users write codes of languages in different systems.

A task may have several sets. The first one is the default, with checksums in the catalogue if possible; the others add
languages or replace it, as documented on the page of the task. A set in the folder of `data get` is read before other
copies of it (`docs/data.md`). Tasks on the user's own files have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from isoglot.data.languages import canonical, canonical_list, is_language, matches
from isoglot.data.sets import DataSet, command, find, present
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
        except CorpusError as error:
            raise EvaluationError(f"{task}: {error}") from error
    return found


def needs(*names: str) -> str:
    """The files of the sets and their sources, for the message that they are missing."""
    return ", or ".join(IMPORTERS[name].needs for name in names)


_GROUPS = ("ntrex-128", "flores-200", "sib-200", "tico-19", "multi30k")
_ANALYSES = ("similarity", "centroids", "map")  # these read only one set, the one with the most of the languages
_SENTEVAL = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sts-b/dev", "sick-r", "sick-r/dev", "alignment")

# Task -> the sets, each of which alone gives it subsets when it lies in a folder of its name below the data folder.
SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "tatoeba": ("tatoeba-laser",),
        "xsim/flores-devtest": ("flores-200",),
        "xsim/flores-dev": ("flores-200",),
        **dict.fromkeys(("xsim/ntrex", "xsim/ntrex-dev", "xsim/ntrex-test"), ("ntrex-128",)),
        "xsim/sib": ("sib-200",),
        "xsim/tico": ("tico-19",),
        **dict.fromkeys(("bucc/oracle", "bucc/dev-split"), ("xtreme-bucc2018", "bucc2018")),
        **dict.fromkeys(("bucc/xtreme", "bucc/moco", "bucc/ease", "bucc/mteb", "bucc/mteb-v2"), ("bucc2018",)),
        **dict.fromkeys(_SENTEVAL, ("senteval-en",)),
        "sts-b/mteb": ("stsbenchmark-sts",),
        "sick-r/mteb": ("sickr-sts",),
        **dict.fromkeys(("sts17", "alignment/sts17"), ("sts17-official", "sts17-crosslingual-sts")),
        "sts22": ("sts22-crosslingual-sts",),
        "sts22/v1": ("STS22",),
        **dict.fromkeys(("sts-b-multi", "sts-b-multi/dev"), ("stsb-multi-mt",)),
        "mewsc-16": ("mewsc16",),
        "stc": ("short-text-clustering",),
        "tnews": ("tnews",),
        "mtop": ("MTOPDomainClassification",),
        "mtop/dev": ("MTOPDomainClassification",),
        **dict.fromkeys(("sib-200", "sib-200/zero-shot"), ("sib-200",)),
        **dict.fromkeys(("mldoc", "mldoc/raw"), ("mldoc",)),
        **dict.fromkeys(("xnli", "language-id"), ("xtreme-xnli",)),
        "paws-x": ("xtreme-pawsx", "pawsx"),
        "paws-x/finetune": ("pawsx",),
        "language-id/lingua": ("lingua-langid",),
        **dict.fromkeys(_ANALYSES, _GROUPS),
    }
)


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
    for name in SETS.get(task, ()):
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
