"""Nearest sentences: what an encoder finds for a query in a large corpus, for people to read.

The qualitative test of Wang, Zhao and Liu 2021, "Aligning Cross-lingual Sentence Representations with Dual Momentum
Contrast", whose corpus was a million random English sentences: plain cosine, the three nearest, the query itself left
out. There is no gold, so the number given only says how near the nearest is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages
from isoglot.evaluation.codes import among
from isoglot.evaluation.files import lines
from isoglot.evaluation.tasks.retrieval import first_places
from isoglot.evaluation.vectors import embed
from isoglot.search.exact import Floats, Ids, neighbours

Files = dict[str, Path]

_NAME = re.compile(r"(?P<role>queries|corpus)\.(?P<code>[^.]+)(?:\.txt)?(?:\.(?:gz|xz|bz2))?")
_ENGLISH = {"en", "eng", "eng_Latn"}
METRICS = (Metric("cosine/1", "cosine", main=True),)


@dataclass(frozen=True, slots=True)
class CorpusSearch:
    """The task `nearest`: queries of each language in the corpus of each language.

    `top` hits of the first `shown` queries are in the details. The vectors of one corpus and of all queries are in
    memory at a time (a million sentences of 384 values are 1.5 GB), the search itself is in blocks.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    top: int = 3
    shown: int = 50
    name: str = "nearest"

    @property
    def needs(self) -> str:
        """The files of queries and corpus."""
        return "files nearest/queries.<code>.txt and nearest/corpus.<code>.txt, one sentence a line"

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Language of the queries and of the corpus, `deu-eng`; one code, `eng`, where they are the same."""
        return tuple(_subset(query, corpus) for query, corpus in _pairs(data, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """The mean cosine of the nearest, `cosine/1`, of each pair of languages, with the hits; then the `mean`."""
        files = _files(data)
        scores: list[Score] = []
        corpora: dict[str, tuple[list[str], Floats]] = {}
        for query, corpus in _pairs(data, languages):
            if corpus not in corpora:
                corpora.clear()  # pairs come corpus by corpus
                corpora[corpus] = self._distinct(encode, files["corpus"][corpus], corpus)
            scores.append(self._search(encode, (query, corpus), files["queries"][query], *corpora[corpus]))
        return [*scores, *averages(scores, "mean")]

    def _distinct(self, encode: Encode, path: Path, code: str) -> tuple[list[str], Floats]:
        """The sentences of a corpus, each once, and their vectors."""
        where = f"{self.name}, corpus, language {code}"
        texts = list(lines(path, where=where))
        vectors = embed(encode, texts, where=where, place=lambda row: f"{path}:{row + 1}")
        kept = np.unique(first_places(texts))
        if len(kept) < len(texts):
            texts, vectors = [texts[place] for place in kept], vectors[kept]
        return texts, vectors

    def _search(self, encode: Encode, pair: tuple[str, str], path: Path, texts: list[str], vectors: Floats) -> Score:
        subset = _subset(*pair)
        where = f"{self.name} {subset}, queries, language {pair[0]}"
        queries = list(lines(path, where=where))
        table = embed(encode, queries, where=where, place=lambda row: f"{path}:{row + 1}")
        found = neighbours(table, vectors, self.top + 1, metric="cosine")
        hits = [
            _hits(query, texts, ids, cosines)[: self.top]
            for query, ids, cosines in zip(queries, found.forward_ids, found.forward_scores, strict=True)
        ]
        if not all(hits):
            line = [bool(row) for row in hits].index(False) + 1
            raise EvaluationError(f"{where}: {path}:{line}: the corpus holds nothing but this sentence; enlarge it")
        rows = tuple(
            (query, rank, text, cosine)
            for query, row in zip(queries[: self.shown], hits, strict=False)
            for rank, (text, cosine) in enumerate(row, 1)
        )
        items = np.array([row[0][1] for row in hits], np.float32)
        detail = Detail("hits", ("query", "rank", "found", "cosine"), rows)
        value = float(items.mean(dtype=np.float64))
        return METRICS[0].score(self.name, subset, value, len(items), items=items, details=(detail,))


def _hits(query: str, texts: Sequence[str], ids: Ids, cosines: Floats) -> list[tuple[str, float]]:
    """What was found but the query itself, which a corpus of distinct sentences holds once at most."""
    # Rounded to what float32 holds, so that a sentence with the vector of another has the cosine 1, not a bit more.
    found = ((texts[place], round(float(cosine), 6)) for place, cosine in zip(ids, cosines, strict=True))
    return [(text, cosine) for text, cosine in found if text != query]


def _files(data: Path) -> dict[str, Files]:
    """Role -> code -> path, in the order of the codes."""
    found: dict[str, Files] = {"queries": {}, "corpus": {}}
    # Reversed, so that of one text stored both ways the plain file, which sorts first, is the one kept.
    for path in sorted((data / "nearest").glob("*"), reverse=True):
        if name := _NAME.fullmatch(path.name):
            found[name["role"]][name["code"].replace("-", "_")] = path
    return {role: dict(sorted(files.items())) for role, files in found.items()}


def _pairs(data: Path, languages: Sequence[str]) -> list[tuple[str, str]]:
    """Languages of queries and corpus, corpus by corpus. English need not be named, but is not enough alone."""
    files = _files(data)
    pairs = [(query, corpus) for corpus in files["corpus"] for query in files["queries"]]
    return [
        pair
        for pair in pairs
        if any(among(code, languages) for code in pair)
        and all(code in _ENGLISH or among(code, languages) for code in pair)
    ]


def _subset(query: str, corpus: str) -> str:
    return query if query == corpus else f"{query}-{corpus}"
