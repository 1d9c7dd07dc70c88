"""Filters parallel text: removes sentences from groups that are not translations, as judged by a model.

The first sentence of a group is compared with each other one. Its score is a margin (Artetxe and Schwenk 2019,
"Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings"): the cosine of the two against the mean
cosine of each with its k nearest sentences on the other side, among the sentences of the same two languages in a block
of the text. Deviation: known translations of a sentence and its own text are not among these, or the translations of a
sentence would compete with each other. So 1 (ratio) and 0 (distance) mean: as near as unrelated sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from isoglot.core.arguments import PositiveInt, Range, check_arguments
from isoglot.core.progress import Progress
from isoglot.data import Group
from isoglot.data.files import atomic_write, check_outputs
from isoglot.data.groups import Languages, groups_of
from isoglot.data.readers.jsonl import json_line
from isoglot.data.tmx import tmx_writer
from isoglot.mining.negatives import open_pairs
from isoglot.model import Model, load
from isoglot.search.best import Floats, Ids
from isoglot.search.blocks import Margin
from isoglot.search.exact import neighbours
from isoglot.search.pairs import MARGINS, Doubles

BLOCK = 100_000  # sentences compared with each other at a time
THRESHOLDS = {"ratio": 1.0, "distance": 0.0}
_SPARE = 8  # further neighbours that are looked at first, instead of known translations

# By pair of languages, such as eng-deu: numbers of sentences kept, dropped and not judged.
Counts = dict[str, Counter[str]]
Parts = tuple[Group | None, Group | None]  # what is kept of a group, and what is dropped


@dataclass
class Filtered:
    """The kept and the dropped parts of the groups, and the counts of `judge`."""

    kept: list[Group] = field(default_factory=list)
    dropped: list[Group] = field(default_factory=list)
    counts: Counts = field(default_factory=dict)


@check_arguments()
def filter_pairs(
    model: Model | str | Path | None, pairs: Any, *, languages: Languages = None, **settings: Any
) -> Filtered:
    """Drop the sentences of pairs, or of larger groups, that are not translations, as judged by a model.

    `pairs` are Groups or any data that `groups_of` takes; `settings` are those of `judge`.
    """
    result = Filtered()
    for retained, dropped in judge(model, groups_of(pairs, languages, name="pairs"), counts=result.counts, **settings):
        result.kept += [retained] if retained else []
        result.dropped += [dropped] if dropped else []
    return result


def filter_file(
    model: Model | str | Path | None,
    pairs: Path,
    output: Path,
    *,
    dropped: Path | None = None,
    languages: str = "",
    columns: Mapping[str, str] | None = None,
    **settings: Any,
) -> Counts:
    """`filter_pairs` from a file (.tsv, .csv, .xlsx, .jsonl, .parquet, .tmx, .po, .xliff) or a folder of aligned files
    to JSON lines, or to TMX if the name of the output ends in .tmx; gives the counts.

    Kept in memory: a block. `dropped` is the file for what is dropped; `columns` of a table as in `read_tsv`.
    """
    check_outputs(output, dropped, inputs=[pairs])
    counts: Counts = {}
    with ExitStack() as opened:
        writers = [opened.enter_context(_writer(path)) if path else None for path in (output, dropped)]
        for parts in judge(model, open_pairs(pairs, languages=languages, columns=columns), counts=counts, **settings):
            for write, part in zip(writers, parts, strict=True):
                if write is not None and part is not None:
                    write(part)
    return counts


@contextmanager
def _writer(path: Path) -> Iterator[Callable[[Group], object]]:
    """A function that writes a group to a new file, TMX by its name, else JSON lines."""
    if path.suffix.lower() == ".tmx":
        with tmx_writer(path) as unit:

            def write(group: Group) -> None:
                numbers = {name: f"{value:.6f}" for name, value in group.extras.items() if isinstance(value, float)}
                unit(numbers, [*zip(group.langs, group.texts, strict=True)])

            yield write
    else:
        with atomic_write(path) as stream:
            yield lambda group: stream.write(json_line(group))


@check_arguments()
def judge(
    model: Model | str | Path | None,
    groups: Iterable[Group],
    *,
    margin: Margin = "ratio",
    threshold: float | None = None,
    k: PositiveInt = 4,
    block: Annotated[int, Range(2)] = BLOCK,
    counts: Counts | None = None,
    progress: Progress | None = None,
) -> Iterator[Parts]:
    """For each group, in order, the kept and the dropped part, each with the first sentence; None for an empty part.

    model      an encoder, or what `isoglot.load` opens
    margin     margin of a pair: "ratio", "distance", or "absolute" (the cosine itself)
    threshold  minimum score; None: 1 for ratio, 0 for distance
    k          number of neighbours per sentence
    block      number of sentences per block that are compared with each other. They are in memory, with their vectors;
               the last block has up to half more
    counts     filled with the numbers of sentences "kept", "dropped" and "not judged" (kept, because there is nothing
               to compare them with), by pair of languages; of groups of one sentence by its language
    progress   called with the distinct sentences of a block that are encoded, and their number

    Raises `ValueError` for an unknown margin, for "absolute" without a threshold, for a k below 1 or a block below 2.
    """
    if threshold is None and margin not in THRESHOLDS:
        raise ValueError(f"margin {margin!r} has no default threshold; pass one, such as threshold=0.6")
    minimum, numbers = THRESHOLDS[margin] if threshold is None else threshold, {} if counts is None else counts
    encoder = model if isinstance(model, Model) else load(model)
    return (
        parts
        for members in _blocks(groups, block)
        for parts in _split(members, _scores(encoder, members, margin, k, progress), minimum, numbers)
    )


def _split(
    groups: list[Group], scores: dict[tuple[int, int], float], minimum: float, counts: Counts
) -> Iterator[Parts]:
    for number, group in enumerate(groups):
        passed = [True]
        if len(group.texts) == 1:
            counts.setdefault(group.langs[0], Counter())["not judged"] += 1
        for place, code in enumerate(group.langs[1:], 1):
            score = scores[number, place]
            verdict = "not judged" if np.isnan(score) else "kept" if score >= minimum else "dropped"
            counts.setdefault(f"{group.langs[0]}-{code}", Counter())[verdict] += 1
            passed.append(verdict != "dropped")
        if all(passed):
            yield group, None
            continue
        failed = _part(group, [place == 0 or not good for place, good in enumerate(passed)])
        yield _part(group, passed) if any(passed[1:]) else None, replace(failed, hard_negatives=(), hard_langs=())


def _blocks(groups: Iterable[Group], size: int) -> Iterator[list[Group]]:
    """The groups in lists of about `size` sentences; what is less than half of that at the end is in the last one."""
    ready, block, sentences = list[Group](), list[Group](), 0
    for group in groups:
        block.append(group)
        sentences += len(group.texts)
        if ready and 2 * sentences >= size:
            yield ready
            ready = []
        if sentences >= size:
            ready, block, sentences = block, [], 0
    if ready or block:
        yield ready + block


def _part(group: Group, is_in: list[bool]) -> Group:
    places = np.flatnonzero(is_in).tolist()
    return replace(group, texts=tuple(group.texts[at] for at in places), langs=tuple(group.langs[at] for at in places))


def _scores(
    encoder: Model, groups: list[Group], margin: Margin, k: int, progress: Progress | None
) -> dict[tuple[int, int], float]:
    """The score of each sentence but the first, by number of the group and place in it; NaN if none can be computed."""
    rows: dict[str, int] = {}
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}  # by languages, places of the sentences
    for number, group in enumerate(groups):
        for text in group.texts:
            rows.setdefault(text, len(rows))
        for place, code in enumerate(group.langs[1:], 1):
            pairs.setdefault((group.langs[0], code), []).append((number, place))
    vectors = np.asarray(encoder.encode(list(rows), normalize_embeddings=True, progress=progress), np.float32)
    scores: dict[tuple[int, int], float] = {}
    for places in pairs.values():
        first = np.array([rows[groups[number].texts[0]] for number, _ in places])
        other = np.array([rows[groups[number].texts[place]] for number, place in places])
        margins = _margins(vectors, first, other, margin, k, str(encoder.device))
        scores.update(zip(places, margins.tolist(), strict=True))
    return scores


def _margins(vectors: Floats, first: Ids, other: Ids, margin: Margin, k: int, device: str) -> Doubles:
    """The margins (P,) of P pairs of rows; NaN where a sentence has no others to be compared with."""
    sources, source = np.unique(first, return_inverse=True)
    targets, target = np.unique(other, return_inverse=True)
    x, y = vectors[sources], vectors[targets]
    cosine = np.einsum("pd,pd->p", x[source], y[target], dtype=np.float64)
    if margin == "absolute":
        return MARGINS[margin](cosine, cosine)
    near = neighbours(x, y, k + _SPARE, device=device)
    equal = np.intersect1d(sources, targets, return_indices=True)[1:]  # a text is as near to itself as a translation
    forward = np.concatenate([source, equal[0]]) * len(y) + np.concatenate([target, equal[1]])
    backward = forward % len(y) * len(x) + forward // len(y)
    source_means = _average_others(x, y, near.forward_scores, near.forward_ids, np.unique(forward), k, device)
    target_means = _average_others(y, x, near.backward_scores, near.backward_ids, np.unique(backward), k, device)
    return np.asarray(MARGINS[margin](cosine, (source_means[source] + target_means[target]) / 2))


def _average_others(x: Floats, y: Floats, scores: Floats, ids: Ids, translations: Ids, k: int, device: str) -> Doubles:
    """Mean (N,) of the k greatest scores of each row of `x` with rows of `y` that don't translate it; NaN for none.

    scores, ids   (N, n) the nearest rows of `y`; for rows with so many translations that fewer than k are left, further
                  ones are searched
    translations  places in the table of `x` by `y`
    """
    means, rows = np.full(len(x), np.nan), np.arange(len(x))
    while len(rows):
        is_other = ~np.isin(rows[:, None] * len(y) + ids, translations)
        is_counted = is_other & (np.cumsum(is_other, axis=1) <= k)
        count = is_counted.sum(axis=1)
        total = np.where(is_counted, scores, 0).sum(axis=1, dtype=np.float64)
        means[rows] = np.where(count, total / np.maximum(count, 1), np.nan)
        rows = rows[count < k] if ids.shape[1] < len(y) else rows[:0]
        if len(rows):
            scores, ids = neighbours(x[rows], y, 4 * ids.shape[1], device=device)[:2]
    return means
