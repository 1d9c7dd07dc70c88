"""What a score means: percentages from 0 to 100, by the scores that unrelated sentences of an index have.

Cosines of unrelated sentences are around 0 with one model and around 0.8 with another, and the greatest of many is
greater in a large index than in a small one. `measure` draws sentences of the index and finds the nearest other one of
each in its own language: translations that were indexed as entries of their own are thus no neighbours. If no language
has enough sentences, it encodes sentences that come with this package instead.

The percentage of a cosine c is 99 / (1 + exp(-ln 19 (c - high) / (high - middle))), and 100 for equal vectors. `middle`
is the median of the neighbours' cosines, with 5 %, and `high`, with 50 %, their 90th percentile, but at most as far
above `middle` as the 5th percentile is below it: near copies, of which a memory may have many, are not unrelated, and
they are all above the median.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import as_file, files
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import check_fields
from isoglot.core.errors import SearchError
from isoglot.data.files import read_lines
from isoglot.index.origin import encode_sentences
from isoglot.index.table import Rows, Table
from isoglot.model import Model

_DRAWN = 16_384  # rows among which neighbours are searched
_SAMPLE = 1024  # rows whose neighbours are searched
_LEAST = 64  # sentences of a language, or of this package
_EQUAL = 1e-6  # of cosines: rounding
_FROM_MIDDLE_TO_HIGH = math.log(19)  # in logits: from 5 % to 50 %


@check_fields
@dataclass(frozen=True, slots=True)
class Scale:
    """Percentages of cosines.

    size    sentences of the index when this was measured
    middle  cosine of 5 %
    high    cosine of 50 %
    """

    size: int
    middle: float
    high: float

    def percent(self, cosines: NDArray[Any]) -> NDArray[np.float64]:
        """The percentage (N,) of each cosine (N,), which never decreases with it."""
        steepness = _FROM_MIDDLE_TO_HIGH / (self.high - self.middle)
        distances = np.clip((np.asarray(cosines, np.float64) - self.high) * steepness, -50, 50)
        return np.asarray(np.where(cosines > 1 - _EQUAL, 100, 99 / (1 + np.exp(-distances))).round(2))

    def as_json(self) -> str:
        """The scale as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str, name: str) -> Scale:
        """A scale from what `as_json` wrote in an index of this name. Raises `SearchError` for anything else."""
        try:
            scale = cls(**json.loads(text))
            is_right = 0 < scale.high - scale.middle < math.inf
        except (ValueError, TypeError, RecursionError):
            is_right = False
        if not is_right:
            raise SearchError(f"{name}: does not say what its scores mean; make the index again")
        return scale


def measure(
    table: Table,
    languages: NDArray[np.int32],
    contents_of: Callable[[Sequence[int]], dict[int, int]],
    encoder: Model | None,
) -> Scale | None:
    """The scale of an index with these vectors; None if it has too few sentences and there is no encoder.

    languages    number of the language of each row, -1 where it is deleted
    contents_of  maps rows to numbers, which are equal for sentences that mean the same
    encoder      encodes other sentences where the index has too few
    """
    live, rng = np.flatnonzero(languages >= 0), np.random.default_rng(0)
    rows = np.sort(rng.choice(live, min(_DRAWN, len(live)), replace=False))
    contents = contents_of(rows.tolist())
    keys = np.array([contents.get(row, -1 - row) for row in rows.tolist()], np.int64)
    cosines = _neighbours(table, rows, languages[rows], keys, rng)
    if len(cosines) < _LEAST and encoder is not None:
        vectors = encode_sentences(encoder, _sentences())
        kinds = np.zeros(len(vectors), np.int32)
        cosines = _neighbours(Table(vectors), np.arange(len(vectors)), kinds, np.arange(len(vectors)), rng)
    if len(cosines) < _LEAST:
        return None
    low, middle, high = np.quantile(cosines, [0.05, 0.5, 0.9])
    high = max(min(high, 2 * middle - low), middle + 1e-3)
    return Scale(len(live), round(float(middle), 4), round(float(high), 4))


def _neighbours(
    table: Table, rows: Rows, languages: NDArray[np.int32], contents: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Cosines of some rows with the nearest row of other content, among those of their language if these are many."""
    drawn = np.sort(rng.permutation(len(rows))[:_SAMPLE])
    cosines = []
    for language in np.unique(languages):
        others, sample = np.flatnonzero(languages == language), drawn[languages[drawn] == language]
        if len(others) < _LEAST or not len(sample):
            continue
        scores, is_same = table[rows[sample]] @ table[rows[others]].T, contents[sample][:, None] == contents[others]
        nearest = np.where(is_same | (scores > 1 - _EQUAL), -1, scores).max(axis=1)
        cosines.append(nearest[nearest > -1])  # without rows that have no other content beside them
    return np.concatenate(cosines) if cosines else np.empty(0, np.float32)


@cache
def _sentences() -> list[str]:
    with as_file(files("isoglot") / "bundled/dev/tatoeba.deu-eng.eng.xz") as path:
        return [text for _, text in islice(read_lines(path), _LEAST)]
