"""Whether the nearest sentence of another language links to the same entity: the task `linked`.

EASE (Nishikawa et al. 2022) pulls sentences of all languages to the entities that they link to, so sentences that link
to one entity should be near each other in any language. Other sentences than those of training show it: hold some pages
out (`docs/tasks/retrieval.md`). Sentences that link to one entity are about it and do not mean the same, so this is a
test of topics, as clustering is, and not of translation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.data.files import locate, read_lines
from isoglot.data.readers.entities import SENTENCES, read_entities
from isoglot.evaluation.base import BaseTask, Encode, Metric, Score
from isoglot.evaluation.sets import among, is_english, reading
from isoglot.evaluation.vectors import embed
from isoglot.search.best import Floats
from isoglot.search.exact import neighbours

ACCURACY = Metric("accuracy", main=True)


# A language and its sentences: each with its place and the entities that it links to, rows of the table.
Side = tuple[str, dict[str, tuple[str, set[int]]]]


@dataclass(frozen=True, slots=True)
class Linked(BaseTask):
    """The task `linked`: for each sentence the nearest by cosine of another language, right if they share an entity.

    Queries are the sentences that link to an entity to which a sentence of the other language links.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    reads: ClassVar[tuple[str, ...]] = ()
    name: str = "linked"
    needs: ClassVar[str] = "a folder that `isoglot wikipedia` wrote, or one that contains it as `wikipedia`"

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[Side, list[int], Side]]:
        """The sentences of the first language, the queries among them, and the sentences of the second language.

        Those pairs of the requested languages, or of one and English, that have a query.
        """
        sentences = self._read(data)
        codes = [code for code in sorted(sentences) if is_english(code) or among(code, languages)]
        entities = {code: set[int]().union(*(links for _, links in sentences[code].values())) for code in codes}
        pairs: dict[str, tuple[Side, list[int], Side]] = {}
        for a, b in permutations(codes, 2):
            links_of = [links for _, links in sentences[a].values()]
            if queries := [place for place, links in enumerate(links_of) if not links.isdisjoint(entities[b])]:
                pairs[f"{a}-{b}"] = (a, sentences[a]), queries, (b, sentences[b])
        return pairs

    def score(self, encode: Encode, subsets: dict[str, tuple[Side, list[int], Side]]) -> Iterator[Score]:
        """The accuracy of each pair of languages."""
        vectors: dict[str, Floats] = {}
        links: dict[str, list[set[int]]] = {}
        for subset, (source, queries, target) in subsets.items():
            for code, sentences in (source, target):
                if code not in vectors:
                    places, links[code] = map(list, zip(*sentences.values(), strict=True))
                    where = f"{self.name}, language {code}"
                    vectors[code] = embed(encode, [*sentences], where=where, place=places.__getitem__)
            a, b = source[0], target[0]
            nearest = neighbours(vectors[a][queries], vectors[b], 1, metric="cosine").forward_ids[:, 0]
            pairs = zip(queries, nearest, strict=True)
            hits = [not links[a][query].isdisjoint(links[b][place]) for query, place in pairs]
            yield ACCURACY.mean_of(self.name, subset, np.array(hits, np.float32))

    def _read(self, data: Path) -> dict[str, dict[str, tuple[str, set[int]]]]:
        """The sentences by language. A sentence with several links is there once, with all its entities."""
        if (file := locate(data, SENTENCES) or locate(data / "wikipedia", SENTENCES)) is None:
            return {}
        sentences: dict[str, dict[str, tuple[str, set[int]]]] = {}
        with reading(self.name):
            numbers = (number for number, _ in read_lines(file))
            for number, group in zip(numbers, read_entities(file.parent, hard=0), strict=True):
                of_language = sentences.setdefault(group.langs[0], {})
                _, links = of_language.setdefault(group.texts[0], (f"{file}:{number}", set()))
                links.add(int(group.extras["entity"]))  # type: ignore[arg-type]
        return sentences
