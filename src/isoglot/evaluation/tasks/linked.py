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
from typing import ClassVar, NamedTuple

import numpy as np

from isoglot.data.files import locate, read_lines
from isoglot.data.readers.entities import SENTENCES, read_entities
from isoglot.evaluation.base import BaseTask, Encode, Metric, Score
from isoglot.evaluation.sets import among, is_english, reading
from isoglot.evaluation.vectors import embed
from isoglot.search.best import Floats
from isoglot.search.exact import neighbours

ACCURACY = Metric("accuracy", main=True)


class _Language(NamedTuple):
    """The distinct sentences of a language, the place of each, and the entities that it links to, rows of the table."""

    code: str
    texts: list[str]
    places: list[str]
    entities: list[set[int]]


@dataclass(frozen=True, slots=True)
class Linked(BaseTask):
    """The task `linked`: for each sentence the nearest by cosine of another language, right if they share an entity.

    Queries are the sentences that link to an entity to which a sentence of the other language links.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    reads: ClassVar[tuple[str, ...]] = ()
    name: str = "linked"
    needs: ClassVar[str] = "a folder that `isoglot wikipedia` wrote, or one that contains it as `wikipedia`"

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[_Language, list[int], _Language]]:
        """The sentences of the first language, the queries among them, and the sentences of the second language.

        Those pairs of the requested languages, or of one and English, that have a query.
        """
        languages_read = self._read(data)
        codes = [code for code in languages_read if is_english(code) or among(code, languages)]
        entities = {code: set[int]().union(*languages_read[code].entities) for code in codes}
        pairs: dict[str, tuple[_Language, list[int], _Language]] = {}
        for a, b in permutations(codes, 2):
            source, target = languages_read[a], languages_read[b]
            queries = [place for place, links in enumerate(source.entities) if not links.isdisjoint(entities[b])]
            if queries:
                pairs[f"{a}-{b}"] = source, queries, target
        return pairs

    def score(self, encode: Encode, subsets: dict[str, tuple[_Language, list[int], _Language]]) -> Iterator[Score]:
        """The accuracy of each pair of languages."""
        vectors: dict[str, Floats] = {}
        for subset, (source, queries, target) in subsets.items():
            for side in (source, target):
                if side.code not in vectors:
                    where = f"{self.name}, language {side.code}"
                    vectors[side.code] = embed(encode, side.texts, where=where, place=side.places.__getitem__)
            rows = vectors[source.code][queries]
            nearest = neighbours(rows, vectors[target.code], 1, metric="cosine").forward_ids[:, 0]
            pairs = zip(queries, nearest, strict=True)
            hits = [not source.entities[query].isdisjoint(target.entities[place]) for query, place in pairs]
            yield ACCURACY.mean_of(self.name, subset, np.array(hits, np.float32))

    def _read(self, data: Path) -> dict[str, _Language]:
        """The sentences by language. A sentence with several links is there once, with all its entities."""
        if (file := locate(data, SENTENCES) or locate(data / "wikipedia", SENTENCES)) is None:
            return {}
        sentences: dict[str, dict[str, tuple[str, set[int]]]] = {}
        with reading(self.name):
            numbers = (number for number, _ in read_lines(file))
            for number, group in zip(numbers, read_entities(file.parent, hard=0), strict=True):
                texts_of = sentences.setdefault(group.langs[0], {})
                _, links = texts_of.setdefault(group.texts[0], (f"{file}:{number}", set()))
                links.add(int(group.extras["entity"]))  # type: ignore[arg-type]
        languages = {}
        for code, texts in sorted(sentences.items()):
            places, links_of = zip(*texts.values(), strict=True)
            languages[code] = _Language(code, [*texts], [*places], [*links_of])
        return languages
