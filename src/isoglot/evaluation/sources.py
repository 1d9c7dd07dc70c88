"""The sources of each task's data: its sets in the catalogue, and the command that downloads one.

A task may have several sets. The first one is the default, with checksums in the catalogue if possible; the others add
languages or replace it, as documented on the page of the task. A set in the folder of `data get` is read before other
copies of it (`docs/data.md`). Tasks on the user's own files have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from isoglot.data.sets import DataSet, command, find, present
from isoglot.evaluation.codes import among

_GROUPS = ("ntrex-128", "flores-200", "sib-200", "tico-19", "multi30k")
_ANALYSES = ("similarity", "centroids", "map")  # which read one set only, that with the most of the languages
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
    """What to type to get data of the task of that name, or more of them, into the folder `data`.

    It is the first of the task's sets that is not there whole and, where `languages` are given, may have one of them;
    it may have all of `beside` too, the languages that are there already, if the task would read it in place of them.
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
