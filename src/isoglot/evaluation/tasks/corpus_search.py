"""The results of an encoder for queries in a large corpus, for people to read: the task `nearest`.

As in Wang, Zhao and Liu 2021 ("Aligning Cross-lingual Sentence Representations with Dual Momentum Contrast"): plain
cosine, the three nearest, without the query itself. Without gold, the score is only the cosine of the nearest sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import BaseTask, Detail, Encode, Metric, Score
from isoglot.evaluation.sets import Source, among, is_english, sources
from isoglot.evaluation.tasks.retrieval import first_places
from isoglot.evaluation.vectors import embed_rows
from isoglot.search.best import Floats
from isoglot.search.exact import neighbours

NEAREST = Metric("cosine/1", "cosine", main=True)


@dataclass(frozen=True, slots=True)
class CorpusSearch(BaseTask):
    """The task `nearest`: queries of each language in the corpus of each language.

    `top` hits of the first `shown` queries are in the details. The vectors of one corpus and of all queries are in
    memory at a time (a million sentences of 384 values are 1.5 GB), the search itself is in blocks.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (NEAREST,)
    top: int = 3
    shown: int = 50
    name: str = "nearest"
    reads: ClassVar[tuple[str, ...]] = ("own/search",)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[Source, Source]]:
        """Each language of the queries and of the corpus, `deu-eng`, corpus by corpus; `eng` where they are the same.

        English need not be requested, but is not enough alone.
        """
        files = sources(self.name, self.reads, data).values()
        corpora, queries = ([file for file in files if file.part.split == role] for role in ("corpus", "queries"))
        subsets = {}
        for corpus, query in product(corpora, queries):
            codes = query.part.subset, corpus.part.subset
            requested = [code for code in codes if among(code, languages)]
            if requested and all(code in requested or is_english(code) for code in codes):
                subsets["-".join(dict.fromkeys(codes))] = query, corpus
        return subsets

    def score(self, encode: Encode, subsets: dict[str, tuple[Source, Source]]) -> Iterator[Score]:
        """The mean cosine of the nearest, `cosine/1`, of each pair of languages, with the hits."""
        for corpus, pairs in groupby(subsets.items(), lambda item: item[1][1]):  # one corpus in memory at a time
            where = f"{self.name}, corpus, language {corpus.part.subset}"
            rows = corpus.read(where)
            vectors, distinct = embed_rows(encode, rows, where=where), np.unique(first_places(rows.texts()))
            texts, vectors = [rows[at].texts[0] for at in distinct], vectors[distinct]
            for subset, (queries, _) in pairs:
                where = f"{self.name} {subset}, queries, language {queries.part.subset}"
                yield self._search(encode, subset, queries.read(where), texts, vectors, where=where)

    def _search(
        self, encode: Encode, subset: str, queries: Rows, texts: list[str], vectors: Floats, *, where: str
    ) -> Score:
        """The score of queries in a corpus of distinct sentences."""
        near = neighbours(embed_rows(encode, queries, where=where), vectors, self.top + 1, metric="cosine")
        # Without the query itself. Rounded to what float32 holds, so that a sentence with the vector of another has the
        # cosine 1, not a bit more.
        hits = [
            [(texts[at], round(float(cosine), 6)) for at, cosine in zip(*columns, strict=True) if texts[at] != text]
            for text, *columns in zip(queries.texts(), near.forward_ids, near.forward_scores, strict=True)
        ]
        if not all(hits):
            place = queries.place()([bool(row) for row in hits].index(False))
            raise EvaluationError(f"{where}: {place}: the corpus contains only this sentence; enlarge it")
        table = tuple(
            (row.texts[0], rank, text, cosine)
            for row, best in zip(queries[: self.shown], hits, strict=False)
            for rank, (text, cosine) in enumerate(best[: self.top], 1)
        )
        items = np.array([row[0][1] for row in hits], np.float32)
        detail = Detail("hits", ("query", "rank", "found", "cosine"), table)
        return NEAREST.mean_of(self.name, subset, items, details=(detail,))
