"""Suites: the main table of each paper as columns over scores, so that one command gives it for any model.

A column is the mean of the scores it lists, or of other columns. If one of them is missing, the column has no value and
names it: a mean over fewer languages would look like the paper's number without being comparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

from isoglot.data.languages import is_language
from isoglot.errors import IsoglotError
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Score
from isoglot.evaluation.sets import get_command
from isoglot.evaluation.tasks.retrieval import LASER_112, XTREME_36
from isoglot.evaluation.tasks.sts import TRACKS_5
from isoglot.report.tables import Grid, counted, shown
from isoglot.score import Unit

Key = tuple[str, str, str]  # task, subset, metric


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a table: the plain mean of scores, or of columns, each weighing once however many scores it has."""

    label: str
    of: tuple[Key | Column, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """All scores that it needs."""
        nested = (part.keys if isinstance(part, Column) else (part,) for part in self.of)
        return tuple(key for keys in nested for key in keys)

    @property
    def note(self) -> str:
        """What it is the mean of, in one line."""
        columns = [part.label for part in self.of if isinstance(part, Column)]
        return f"{self.label}: {'mean of the columns ' + ', '.join(columns) if columns else listed(self.keys)}"

    def mean(self, values: Mapping[Key, Any]) -> Any:
        """Its value, or, of arrays or samples, that of its values. Raises KeyError for a score that is not there."""
        parts = [part.mean(values) if isinstance(part, Column) else values[part] for part in self.of]
        return sum(parts[1:], parts[0]) / len(parts)


@dataclass(frozen=True, slots=True)
class Cell:
    """A column's value, or None with the missing scores; `unit`, that of its first score, selects the number format."""

    label: str
    value: float | None
    lacking: tuple[Key, ...]
    unit: Unit


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite: description, columns, and the languages of tasks that are not run on all."""

    about: str
    columns: tuple[Column, ...]
    languages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that its columns need, in their order."""
        return tuple(dict.fromkeys(key[0] for column in self.columns for key in column.keys))

    def table(self, scores: Sequence[Score]) -> list[Cell]:
        """The value of each column."""
        by_key: dict[Key, Score] = {(score.task, score.subset, score.metric): score for score in scores}
        values = {key: score.value for key, score in by_key.items()}
        cells = []
        for column in self.columns:
            lacking, first = tuple(key for key in column.keys if key not in by_key), by_key.get(column.keys[0])
            value, unit = None if lacking else column.mean(values), first.unit if first else "fraction"
            cells.append(Cell(column.label, value, lacking, unit))
        return cells


def listed(keys: Iterable[Key]) -> str:
    """Scores in one line for people, tasks and subsets of one metric together: `sts17 deu-eng fra-eng spearman`."""
    subsets: dict[tuple[str, str], list[str]] = {}
    for task, subset, metric in keys:
        subsets.setdefault((task, metric), []).append(subset)
    tasks: dict[tuple[str, str], list[str]] = {}
    for (task, metric), names in subsets.items():
        tasks.setdefault((counted(names, between=" "), metric), []).append(task)
    return ", ".join(f"{' '.join(names)} {subset} {metric}" for (subset, metric), names in tasks.items())


def _column(label: str, task: str, subsets: str, metric: str) -> Column:
    return Column(label, tuple((task, subset, metric) for subset in subsets.split()))


def _english(label: str, way: str) -> Column:
    """The mean of the seven English STS sets."""
    return Column(label, tuple((name, "eng", f"spearman/{way}") for name in _SEVEN))


_SEVEN = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
_LANGUAGES_OF_EASE = "ara cat ces deu epo fra ita jpn kor nld pol por rus spa swe tur"
# The 18 languages of EASE's training without English, and without Persian, which its code skipped.
_EASE_16 = tuple(_LANGUAGES_OF_EASE.split())
# All others of LASER's except Persian: 95, although the paper states 94.
_EASE_95 = tuple(code for code in LASER_112 if code not in (*_EASE_16, "pes"))
_QUICK = ("deu", "fra", "jpn", "kor", "swh", "amh", "tha")

_QUICK_SUITE = Suite(
    "a first look: Tatoeba in seven languages, STS17, one topic probe",
    (
        _column("Tatoeba-7", "tatoeba", " ".join(f"{code}-eng" for code in _QUICK), "accuracy/mean"),
        _column("STS17, 5 tracks", "sts17", "tracks-5", "spearman"),
        _column("SIB-200, 3 languages", "sib-200", "deu_Latn kor_Hang swh_Latn", "accuracy"),
    ),
    {"tatoeba": _QUICK, "sib-200": ("deu", "kor", "swh")},
)

_TATOEBA_OF_XTREME = (
    _column("Tatoeba-14", "tatoeba", "xtreme-14", "accuracy/en-xx"),
    _column("Tatoeba-36", "tatoeba", "xtreme-36", "accuracy/en-xx"),
)

_MPCL = (
    _column("BUCC", "bucc/xtreme", "de-en fr-en ru-en zh-en", "f1"),
    *_TATOEBA_OF_XTREME,
    _column("STS17", "sts17", "mteb-11", "spearman"),
    _column("STS22", "sts22/v1", "mpcl-17", "spearman"),  # the paper is older than revision 2
    _column("MTOP", "mtop", "mtop-6", "accuracy"),
)

_MOCO = (
    _column("Tatoeba zh-en", "tatoeba", "cmn-eng", "accuracy/xx-en"),
    _column("Tatoeba en-zh", "tatoeba", "cmn-eng", "accuracy/en-xx"),
    _column("BUCC zh-en", "bucc/moco", "zh-en", "f1"),
    _english("STS wmean", "wmean"),
    _english("STS all", "all"),
)

_MSIMCSE = (
    _column("BUCC", "bucc/oracle", "de-en fr-en ru-en zh-en", "f1"),
    *_TATOEBA_OF_XTREME,  # which its paper follows; its code prints both directions
    _column("Tatoeba-14 both ways", "tatoeba", "xtreme-14", "accuracy/mean"),
    _column("Tatoeba-36 both ways", "tatoeba", "xtreme-36", "accuracy/mean"),
    *(_column(f"STS17 {name}", "sts17", name, "spearman") for name in TRACKS_5),
    _column("TNEWS purity", "tnews", "zho", "purity/macro"),
    _column("PAWS-X", "paws-x/finetune", "xtreme-7", "accuracy"),
    _column("language id en de fr hi", "language-id", "en-de-fr-hi", "accuracy"),
    _column("language id en tr ar bg", "language-id", "en-tr-ar-bg", "accuracy"),
)

_SOFTCL_TATOEBA = tuple(
    _column(f"Tatoeba {code}", "tatoeba", f"{code}-eng", "accuracy/mean") for code in ("kor", "fra", "jpn", "rus")
)
_SOFTCL_BUCC = tuple(_column(f"BUCC {pair}", "bucc/mteb", pair, "accuracy") for pair in ("fr-en", "ru-en"))
_SOFTCL_FLORES = ("eng_Latn", "kor_Hang", "fra_Latn", "jpn_Jpan", "rus_Cyrl")

_SOFTCL = (
    *_SOFTCL_TATOEBA,
    Column("Tatoeba mean", _SOFTCL_TATOEBA),
    # The paper states both directions, its code has one.
    _column("Tatoeba mean xx-en", "tatoeba", "kor-eng fra-eng jpn-eng rus-eng", "accuracy/xx-en"),
    *_SOFTCL_BUCC,
    Column("BUCC mean", _SOFTCL_BUCC),
    _column("xSIM", "xsim/flores-devtest", " ".join(map("-".join, permutations(_SOFTCL_FLORES, 2))), "error/ratio"),
    Column(
        "STS en",
        (
            *((f"sts{year}", "eng", "spearman/all") for year in range(12, 17)),
            ("sts17", "eng-eng", "spearman"),
            ("sts22/v1", "eng", "spearman"),  # the paper is older than revision 2
            ("sts-b/mteb", "eng", "spearman/all"),
        ),
    ),
    _column("STS ko", "sts17", "kor-kor", "spearman"),
    _column("STS fr", "sts22/v1", "fra", "spearman"),
    _column("STS ru", "sts22/v1", "rus", "spearman"),
    _column("STS en-fr", "sts17", "fra-eng", "spearman"),
)

_EASE = (
    _english("STS, 7 sets", "all"),
    _column("STC, 8 sets", "stc", "ease-8", "accuracy"),
    _column("STS17", "sts17", "extended-10", "spearman"),
    _column("MewsC-16", "mewsc-16", "ease-16", "accuracy"),
    _column("Tatoeba-16", "tatoeba", " ".join(f"{code}-eng" for code in _EASE_16), "accuracy/mean"),
    _column("Tatoeba-95", "tatoeba", " ".join(f"{code}-eng" for code in _EASE_95), "accuracy/mean"),
    _column("MLDoc", "mldoc", "mldoc-7", "accuracy"),
    _column("BUCC", "bucc/ease", "de-en fr-en ru-en zh-en", "f1"),
)

_SEARCH = (
    _column("nDCG@10, one language", "retrieval/questions", "monolingual", "ndcg@10"),
    _column("nDCG@10, two languages", "retrieval/questions", "crosslingual", "ndcg@10"),
    _column("recall@10", "retrieval/questions", "mean", "recall@10"),
)

SUITES: dict[str, Suite] = {
    "quick": _QUICK_SUITE,
    "mpcl": Suite(
        "MPCL, the main table: its six columns and their mean", (*_MPCL, Column("mean", _MPCL)), {"tatoeba": XTREME_36}
    ),
    "moco": Suite("dual momentum contrast: Chinese and English", _MOCO, {"tatoeba": ("zho",), "bucc/moco": ("zho",)}),
    "msimcse": Suite(
        "mSimCSE: retrieval, STS17, clustering, PAWS-X (which fine-tunes the model), language neutrality",
        _MSIMCSE,
        {"tatoeba": XTREME_36},
    ),
    "softcl": Suite(
        "soft contrastive alignment: Korean, French, Japanese and Russian with English",
        _SOFTCL,
        {
            "tatoeba": ("kor", "fra", "jpn", "rus"),
            "bucc/mteb": ("fra", "rus"),
            "xsim/flores-devtest": ("kor", "fra", "jpn", "rus", "eng"),
        },
    ),
    "ease": Suite("EASE: English and multilingual", _EASE),
    "search": Suite("questions and paragraphs: in one language, and from eight African languages", _SEARCH),
}


def by_suite(models: Mapping[str, Sequence[Score]], *, suite: str) -> Grid:
    """The main table of a paper, transposed: a row for each number of the paper's table, a column for each model.

    A dash stands where a model lacks one of the scores that a number is the mean of; see `lacking`. The notes list
    the scores behind each number. Errors have two decimals, since good models are below 0.1 percent.
    """
    tables = [SUITES[suite].table(scores) for scores in models.values()]
    rows = tuple(
        (column.label, *(shown(cell.value, cell.unit, digits=2 if cell.unit == "error" else 1) for cell in cells))
        for column, *cells in zip(SUITES[suite].columns, *tables, strict=True)
    )
    notes = tuple(column.note for column in SUITES[suite].columns)
    return Grid(f"Suite {suite}: {SUITES[suite].about}", ("", *models), rows, notes=notes)


def lacking(
    scores: Sequence[Score], *, suite: str, data: Path | None = None, languages: Sequence[str] = ()
) -> list[str]:
    """One line for each column without a value: the scores it needs that are missing.

    With `data`, the folder that was evaluated, also which of them `languages` left out although they are there, and,
    once for each set, the command that downloads it.
    """
    lines, shown = list[str](), set[str]()
    cells = [cell for cell in SUITES[suite].table(scores) if cell.lacking]
    tasks = dict.fromkeys(key[0] for cell in cells for key in cell.lacking)
    available = {task: _found(task, data, languages) for task in tasks}
    for cell in cells:
        narrowed = [key for key in cell.lacking if _narrowed(key[1], *available[key[0]])]
        absent = dict.fromkeys(key[0] for key in cell.lacking if key not in narrowed)
        commands = dict.fromkeys(get_command(TASKS[task], data=data) for task in absent) if data else {}
        new = [command for command in commands if command and command not in shown]
        shown.update(new)
        why = f"; of these, --languages left out {listed(narrowed)}" if narrowed else ""
        why = "; left out by --languages" if len(narrowed) == len(cell.lacking) else why
        how = f"; get it with: {' and '.join(new)}" if new else ""
        lines.append(f"{cell.label}: no {listed(cell.lacking)}{why}{how}")
    return lines


def _found(task: str, data: Path | None, languages: Sequence[str]) -> tuple[set[str], set[str]]:
    """The subsets of a task that are in `data`, and those of the languages; nothing without languages."""
    if data is None or not languages:
        return set(), set()
    try:
        return set(TASKS[task].subsets(data)), set(TASKS[task].subsets(data, languages=languages))
    except IsoglotError:  # already reported by the evaluation
        return set(), set()


def _narrowed(subset: str, available: set[str], asked: set[str]) -> bool:
    """Whether the requested languages left out this subset although it is there, or part of this average."""
    return subset in available - asked or (asked < available and not any(map(is_language, subset.split("-"))))
