"""How scores are read and written: which of a task's metrics stand for it, and how many digits a value has.

What a value is counted in, which direction is better and which number is the main one, each score says itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from isoglot.evaluation.base import Score, Unit

# Subsets of a task up to which each is shown and compared; of more (60 languages have 3540 pairs) the averages are.
MANY = 200
NOTHING = "–"  # in place of a value

_OLD_AVERAGES = ("mean", "xtreme-14", "xtreme-36", "laser-112")


def main_metrics(scores: Iterable[Score]) -> dict[str, list[str]]:
    """The metrics that stand for each task, in the order of the scores; all of a task that marks none of them."""
    every: dict[str, dict[str, bool]] = {}
    for score in scores:
        known = every.setdefault(score.task, {})
        known[score.metric] = known.get(score.metric, False) or score.main
    return {task: [name for name, main in known.items() if main] or list(known) for task, known in every.items()}


def scale(unit: Unit) -> float:
    """What values of a unit are multiplied with to be shown: 1 for plain numbers such as distances, else 100."""
    return 1.0 if unit == "plain" else 100.0


def shown(value: float | None, unit: Unit, *, sign: bool = False, digits: int = 1) -> str:
    """A value as tables show it: percent with one decimal, a plain number with two more; a dash for None."""
    if value is None:
        return NOTHING
    digits += 2 * (unit == "plain")
    rounded = round(value * scale(unit), digits) + 0.0  # never "-0.0"
    return f"{rounded:{'+' if sign and rounded else ''}.{digits}f}"


def is_average(score: Score) -> bool:
    """Whether a score is an average of others. Results of version 0.1 do not say so, and name it by its list."""
    return bool(score.over) or (score.items is None and score.subset in _OLD_AVERAGES)
