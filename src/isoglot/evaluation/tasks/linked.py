"""Whether the nearest sentence of another language links to the same entity: the task `linked`.

EASE (Nishikawa et al. 2022) pulls sentences of all languages to the entities that they link to, so sentences that link
to one entity should be near each other in any language. Other sentences than those of training show it: hold some pages
out (`docs/tasks/retrieval.md`). Sentences that link to one entity are about it and do not mean the same, so this is a
test of topics, as clustering is, and not of translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.data.files import COMPRESSED, read_lines
from isoglot.data.readers.entities import SENTENCES, read_entities
from isoglot.errors import CorpusError, EvaluationError
from isoglot.evaluation.base import Encode, Metric, Score, averages
from isoglot.evaluation.sets import among
from isoglot.evaluation.tasks.retrieval import ENGLISH
from isoglot.evaluation.vectors import embed
from isoglot.search.exact import Floats, neighbours

ACCURACY = Metric("accuracy", main=True)


@dataclass(frozen=True, slots=True)
class _Language:
    """The distinct sentences of a language, the line of each, and the entities that it links to, rows of the table."""

    texts: list[str]
    lines: list[int]
    entities: list[set[int]]


@dataclass(frozen=True, slots=True)
class Linked:
    """The task `linked`: for each sentence the nearest by cosine of another language, right if they share an entity.

    Queries are the sentences that link to an entity to which a sentence of the other language links.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    name: str = "linked"
    needs: str = "a folder that `isoglot wikipedia` wrote, or one that contains it as `wikipedia`"

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Language of the queries and language searched, `deu-eng`; those with a query."""
        return tuple("-".join(pair) for pair in self._pairs(self._read(data), languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """The accuracy of each pair of languages, then the `mean`. Raises `EvaluationError`."""
        read, file = self._read(data), _file(data)
        vectors: dict[str, Floats] = {}
        scores: list[Score] = []
        for pair, queries in self._pairs(read, languages).items():
            for code in pair:
                if code not in vectors:
                    where, place = f"{self.name}, language {code}", partial(_place, file, read[code].lines)
                    vectors[code] = embed(encode, read[code].texts, where=where, place=place)
            source, target = (read[code] for code in pair)
            found = neighbours(vectors[pair[0]][queries], vectors[pair[1]], 1, metric="cosine").forward_ids[:, 0]
            hits = [
                not source.entities[query].isdisjoint(target.entities[place])
                for query, place in zip(queries, found, strict=True)
            ]
            scores.append(ACCURACY.mean_of(self.name, "-".join(pair), np.array(hits, np.float32)))
        return [*scores, *averages(scores, "mean")]

    def _read(self, data: Path) -> dict[str, _Language]:
        """The sentences by language. A sentence with several links is there once, with all its entities."""
        file = _file(data)
        if file is None:
            return {}
        found: dict[str, dict[str, tuple[int, set[int]]]] = {}
        try:
            numbers = (number for number, _ in read_lines(file))
            for number, group in zip(numbers, read_entities(file.parent, hard=0), strict=True):
                known = found.setdefault(group.langs[0], {})
                known.setdefault(group.texts[0], (number, set()))[1].add(int(group.extras["entity"]))  # type: ignore[arg-type]
        except CorpusError as error:
            raise EvaluationError(f"{self.name}: {error}") from error
        return {
            code: _Language(list(texts), [line for line, _ in texts.values()], [own for _, own in texts.values()])
            for code, texts in sorted(found.items())
        }

    def _pairs(self, read: dict[str, _Language], languages: Sequence[str]) -> dict[tuple[str, str], list[int]]:
        """The queries of each pair of the wanted languages and English."""
        wanted = [code for code in read if code in ENGLISH or among(code, languages)]
        every = {code: set[int]().union(*read[code].entities) for code in wanted}
        pairs = {
            (a, b): [place for place, own in enumerate(read[a].entities) if not own.isdisjoint(every[b])]
            for a, b in permutations(wanted, 2)
        }
        return {pair: queries for pair, queries in pairs.items() if queries}


def _file(data: Path) -> Path | None:
    """The file of sentences in a folder or in its folder `wikipedia`."""
    names = [folder / f"{SENTENCES}{ending}" for folder in (data, data / "wikipedia") for ending in ("", *COMPRESSED)]
    return next((path for path in names if path.is_file()), None)


def _place(file: Path | None, lines: Sequence[int], row: int) -> str:
    return f"{file}:{lines[row]}"
