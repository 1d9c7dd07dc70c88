"""Cosines of translations by pairs of languages, pairs with English beside all others (MPCL, figure 5).

Training on pairs with English alone aligns other languages with each other only through English; how much that costs
shows in the pairs without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EvaluationError
from isoglot.evaluation.scores import Scores, read_results
from isoglot.evaluation.sets import is_english
from isoglot.evaluation.tasks.analysis import TRANSLATIONS, Similarity, language_of
from isoglot.report.charts import canvas, heat_cells, image_kind, matrix, plain, save
from isoglot.report.comparable import make_key

_SIDE = 3.2  # inches of a heat map


@dataclass(frozen=True, slots=True)
class Split:
    """Mean cosines of the pairs of languages with English and of the others.

    `codes` of the table, those of English first: several if there are paraphrases (`eng:2`) or varieties (`eng_GB`).
    Pairs of one language are in neither mean.
    """

    codes: tuple[str, ...]
    table: NDArray[np.float64]
    english: float
    others: float

    def __str__(self) -> str:
        """`with English 0.93, others 0.88`."""
        return f"with English {self.english:.3f}, others {self.others:.3f}"


def split_similarity(scores: Scores) -> Split:
    """The table of the task `similarity` and its means.

    Raises `EvaluationError` without that task, and without a cosine of English and another language or of two others.
    """
    key = Similarity.name, "mean", TRANSLATIONS.name
    details = [one for score in scores if make_key(score) == key for one in score.details if one.kind == "similarity"]
    if not details:
        raise EvaluationError(f"{scores.model}: has no table of similarities; evaluate it with --tasks {key[0]}")
    codes, values = list(details[0].columns[1:]), matrix(details[0], scores.model)
    languages = np.array([language_of(code) for code in codes])
    others = np.array([not is_english(language) for language in languages])
    valid = np.isfinite(values) & (languages[:, None] != languages)
    parts = [values[valid & pairs] for pairs in (others[:, None] ^ others, others[:, None] & others)]
    if not all(map(len, parts)):
        raise EvaluationError(f"{scores.model}: {', '.join(codes)}: expected English and two or more other languages")
    order, means = np.argsort(others, kind="stable"), (float(part.mean()) for part in parts)
    return Split(tuple(codes[place] for place in order), values[np.ix_(order, order)], *means)


def plot_similarity(
    results: Sequence[Scores | str | Path], output: str | Path, *, names: Sequence[str] = ()
) -> Mapping[str, Split]:
    """Draw a heat map of each of the results, on one scale, English apart from the other languages.

    results  scores with the task `similarity`, or folders of them
    output   ends in .svg, .png or .pdf
    names    of the results; none: their own

    Returns the means by name. Raises `EvaluationError` as `split_similarity` does, for another ending, and for results
    of the same name.
    """
    output = Path(output)
    image_kind(output)  # before the work
    all_scores = [one if isinstance(one, Scores) else read_results(one) for one in results]
    splits = dict(zip(names or [one.model for one in all_scores], map(split_similarity, all_scores), strict=True))
    if len(splits) < len(all_scores) or not all_scores:
        raise EvaluationError("results need different names; pass names, NAME=FOLDER on the command line")
    cosines = np.concatenate([one.table[np.triu_indices(len(one.codes), 1)] for one in splits.values()])
    limits = (float(np.nanmin(cosines)), float(np.nanmax(cosines)))
    with canvas((_SIDE + 0.9) * len(splits) + 0.6, _SIDE + 1.3) as figure:
        grid = figure.subplots(1, len(splits), squeeze=False)
        for axes, (name, one) in zip(grid[0], splits.items(), strict=True):
            table = one.table.copy()
            np.fill_diagonal(table, np.nan)
            image = heat_cells(axes, [plain(code)[:14] for code in one.codes], table, limits=limits, side=_SIDE)
            border = sum(is_english(language_of(code)) for code in one.codes) - 0.5
            axes.axhline(border, color="white", linewidth=3)
            axes.axvline(border, color="white", linewidth=3)
            axes.set_title(f"{plain(name)[:40]}\n{one}", fontsize=9)
        figure.colorbar(image, ax=list(grid[0]), fraction=0.05).outline.set_visible(False)
        save(figure, output)
    return splits
