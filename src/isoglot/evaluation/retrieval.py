"""Finding each sentence's translation among all sentences of the other language, both ways.

`nearest` is the core that `tatoeba` shares. `Retrieval` is the task on any groups of sentences that mean the same,
such as a part of the training data held out: the dev score of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from isoglot.data.records import Group
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode, Score
from isoglot.evaluation.codes import among
from isoglot.evaluation.vectors import embed
from isoglot.search.neighbours import neighbours
from isoglot.search.top import Floats, Ids

_SUFFIXES = ("jsonl", "tsv", "tmx")
_ENDINGS = ("", ".gz", ".xz", ".bz2")


def nearest(
    encode: Encode,
    sides: tuple[Sequence[str], Sequence[str]],
    *,
    task: str,
    languages: tuple[str, str],
    names: tuple[str, str] = ("xx", "yy"),
    unit: str = "line",
) -> list[Score]:
    """Three accuracies of N aligned pairs: first language to second, second to first, and their mean.

    A sentence counts when the sentence of greatest cosine on the other side is its own partner, told by place and not
    by text: where a text stands twice on the other side, the first of them is the one found. `names` are the two
    sides in the metrics (`accuracy/xx-en`). Raises `EvaluationError`, see `embed`.
    """
    subset = "-".join(languages)
    tables = [
        embed(encode, side, where=f"{task} {subset}, language {language}", unit=unit)
        for side, language in zip(sides, languages, strict=True)
    ]
    found = neighbours(tables[0], tables[1], 1, metric="cosine")
    there = _hits(found.forward_ids[:, 0], sides[1])
    back = _hits(found.backward_ids[:, 0], sides[0])
    ways: dict[str, Floats] = {
        f"{names[0]}-{names[1]}": there,
        f"{names[1]}-{names[0]}": back,
        "mean": np.divide(there + back, 2, dtype=np.float32),
    }
    return [
        Score(task, subset, f"accuracy/{way}", float(hits.mean(dtype=np.float64)), len(hits), items=hits)
        for way, hits in ways.items()
    ]


def averages(scores: Sequence[Score], subset: str, *, over: Iterable[str] | None = None) -> list[Score]:
    """The plain mean of each metric over subsets, `n` being their number; nothing unless all of `over` are there."""
    chosen = set(over) if over is not None else {score.subset for score in scores}
    if not chosen or not chosen <= {score.subset for score in scores}:
        return []
    table: dict[str, dict[str, float]] = {}
    for score in scores:
        if score.subset in chosen:
            table.setdefault(score.metric, {})[score.subset] = score.value
    return [
        Score(scores[0].task, subset, metric, sum(values.values()) / len(values), len(values), tuple(values))
        for metric, values in table.items()
    ]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Retrieval within groups, for each pair of languages that occur together.

    Without `groups` they are read from the data: a file `.jsonl`, `.tsv` or `.tmx`, or a folder that holds one named
    `retrieval`, or a folder `retrieval` of line-aligned files. Of a language that a group has twice, the first
    sentence counts. Hard negatives are not searched. In the subset `kor-eng`, English is last, otherwise the order is
    the alphabet's.
    """

    groups: tuple[Group, ...] | None = None
    name: str = "retrieval"

    @property
    def needs(self) -> str:
        """Where groups are looked for."""
        return "a file retrieval.jsonl, .tsv or .tmx (or .gz, .xz), or a folder retrieval/ with line-aligned files"

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Pairs of languages that occur together in a group."""
        return tuple("-".join(pair) for pair in self._pairs(data, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """The three accuracies of each pair of languages, then the `mean`."""
        scores: list[Score] = []
        for pair, sides in self._pairs(data, languages).items():
            scores += nearest(encode, sides, task=self.name, languages=pair, names=_names(pair), unit="pair")
        return scores + averages(scores, "mean")

    def _pairs(self, data: Path, languages: Sequence[str]) -> dict[tuple[str, str], tuple[list[str], list[str]]]:
        pairs: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
        for group in self.groups if self.groups is not None else _read(data):
            firsts = dict(zip(reversed(group.langs), reversed(group.texts), strict=True))
            known = sorted(firsts, key=lambda language: (language == "eng", language))
            for pair in combinations(known, 2):
                if all(language == "eng" or among(language, languages) for language in pair):
                    sides = pairs.setdefault(pair, ([], []))
                    for side, language in zip(sides, pair, strict=True):
                        side.append(firsts[language])
        return dict(sorted(pairs.items()))


def _names(pair: tuple[str, str]) -> tuple[str, str]:
    return ("xx", "en") if pair[1] == "eng" else ("xx", "yy")


def _hits(found: Ids, texts: Sequence[str]) -> Floats:
    # Equal texts have equal vectors, but a product may round them apart by their place in it; so the tie is
    # settled here, by text.
    first: dict[str, int] = {}
    firsts = np.array([first.setdefault(text, place) for place, text in enumerate(texts)], np.int64)
    return np.equal(firsts[found], np.arange(len(found))).astype(np.float32)


def _read(data: Path) -> Iterator[Group]:
    from isoglot.data.readers import read

    path = _file(data)
    if path is None:
        return iter(())
    if path.is_dir():
        return read("folder", path)
    suffix = next((suffix for suffix in _SUFFIXES if f".{suffix}" in path.suffixes[-2:]), None)
    if suffix is None:
        raise EvaluationError(f"{path}: retrieval reads files named .{', .'.join(_SUFFIXES)}; rename or convert it")
    return read(suffix, path)


def _file(data: Path) -> Path | None:
    if data.is_file():
        return data
    names = [f"retrieval.{suffix}{ending}" for suffix in _SUFFIXES for ending in _ENDINGS]
    return next((data / name for name in [*names, "retrieval"] if (data / name).exists()), None)
