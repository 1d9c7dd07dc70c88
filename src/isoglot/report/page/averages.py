"""What averages are over: a few words beside the name, and a list that has every subset once.

What is special here: a mean over all pairs of 60 languages is told by the 60 languages, not by 1,770 pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations, permutations

from isoglot.data.languages import is_language
from isoglot.evaluation.base import Score
from isoglot.report.page.facts import called, labels
from isoglot.report.page.markup import Html, element, folded, join, text
from isoglot.report.scores import Results

_NAMED = 3  # subsets that are named beside an average; of more, their number
_FEW = 4  # averages into one language each up to which all are named

Over = tuple[str, ...]
Known = dict[Over, list[tuple[str, str]]]  # what an average is over -> the models and metrics that have it so


def beside(scores: Sequence[Score | None]) -> str:
    """Words behind an average's name: "of deu-eng, kor-eng" or "of 112 pairs".

    Nothing for what is no average, or where models or metrics have it over different subsets: the list tells them.
    """
    every = {score.over for score in scores if score}
    if len(every) != 1 or every == {()}:
        return ""
    over = every.pop()
    return f"of {', '.join(map(called, over))}" if len(over) <= _NAMED else f"of {len(over):,} {_noun(over)}"


def listed(results: Sequence[Results]) -> Html:
    """A folded list of what each average is over, but for those whose few subsets stand beside their name."""
    averages: dict[tuple[str, str], Known] = {}
    for name, result in zip(labels(results), results, strict=True):
        for score in result.scores:
            if score.over:
                known = averages.setdefault((score.task, score.subset), {})
                known.setdefault(tuple(sorted(score.over)), []).append((name, score.metric))
    lines = [_line(kind, names, members) for (kind, names, _), members in _grouped(averages).items()]
    return folded(text("What the averages are of"), join(lines)) if lines else Html("")


def _grouped(averages: dict[tuple[str, str], Known]) -> dict[tuple[str, Over, str], dict[str, str]]:
    """All averages over the same, each with its target; those of a task into one language each stand together."""
    groups: dict[tuple[str, Over, str], dict[str, str]] = {}
    for (task, subset), known in averages.items():
        for over in known:
            if len(known) > 1 or len(over) > _NAMED:
                kind, names, target = _told(over)
                members = groups.setdefault((kind, names, task if target else ""), {})
                members[f"{task} {_label(subset, known, over)}"] = target
    return groups


def _line(kind: str, names: Over, members: dict[str, str]) -> Html:
    labels, targets = list(members), set(members.values())
    alike = len(labels) > _FEW and len(targets) > 1  # one into each language
    head = f"{labels[0]} … {labels[-1]} ({len(labels)} averages)" if alike else ", ".join(labels)
    if kind == "into" and len(targets) == 1:
        names = tuple(name for name in names if name not in targets)
        kind = f"{len(names)} pairs into {targets.pop()}, from"
    elif kind == "into":
        kind = f"{len(names) - 1} pairs each, into one language from all others of"
    return element("p", element("b", text(head)), text(f": {kind} {', '.join(names)}"), class_="quiet")


def _told(over: Over) -> tuple[str, Over, str]:
    """How to tell a list of subsets: words, the names behind them, and for pairs into one language that language."""
    pairs = {pair for name in over if len(pair := tuple(name.split("-"))) == 2}
    if len(over) > _NAMED and len(pairs) == len(over):
        codes = tuple(sorted({code for pair in pairs for code in pair}))
        targets = {pair[1] for pair in pairs}
        if len(targets) == 1 and len(codes) == len(over) + 1:
            return "into", codes, targets.pop()
        if pairs == set(permutations(codes, 2)):
            return f"all {len(over):,} pairs, in both directions, of", codes, ""
        if {frozenset(pair) for pair in pairs} == set(map(frozenset, combinations(codes, 2))):
            return f"all {len(over):,} pairs of", codes, ""
    return f"{len(over):,} {_noun(over) if len(over) > 1 else 'subset'}:", over, ""


def _label(subset: str, known: Known, over: Over) -> str:
    """The name of an average; where it is not always over the same, with the models, or else metrics, it is so for."""
    if len(known) == 1:
        return subset
    models = [{model for model, _ in rows} for rows in known.values()]
    apart = sum(map(len, models)) == len(set().union(*models))
    words = dict.fromkeys(model if apart else f"{model} {metric}" for model, metric in known[over])
    return f"{subset} ({', '.join(words)})"


def _noun(over: Collection[str]) -> str:
    parts = [name.split("-") for name in over]
    if all(len(part) == 2 and is_language(part[1]) and (part[0] == "xx" or is_language(part[0])) for part in parts):
        return "means" if all(part[0] == "xx" for part in parts) else "pairs"
    return "languages" if all(map(is_language, over)) else "subsets"
