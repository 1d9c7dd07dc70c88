"""Clustering: how well k-means on the vectors recovers the classes of the texts.

The protocol of EASE (Nishikawa et al. 2022, "EASE: Entity-Aware Contrastive Learning of Sentence Embedding") with the
purity of mSimCSE (Wang et al. 2022, "English Contrastive Learning Can Learn Universal Cross-lingual Sentence
Embeddings"). Vectors are clustered as the encoder gives them, not normalised, into as many clusters as there are
classes, by Lloyd's algorithm from the best of `RESTARTS` starts, once for each of `SEEDS`; every value is the mean
over the seeds. The number of restarts is stated since scikit-learn's default has changed from ten to one.

Several threads add up the centres in the order in which they finish, so the last bit, and then a text, may differ
between runs. Each seed therefore has one thread, and the seeds run in parallel.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EvaluationError
from isoglot.evaluation.base import Detail, Encode, Metric, Score
from isoglot.evaluation.sets import SetTask, Source, words
from isoglot.evaluation.vectors import embed_rows
from isoglot.search.best import Ids

SEEDS = (0, 1, 2)
RESTARTS = 10

METRICS = Metric("accuracy", main=True), Metric("purity/micro"), Metric("purity/macro"), Metric("v-measure")


class Clustering(SetTask):
    """A clustering task: which set its texts come from; the protocol is the same for all."""

    metrics: ClassVar[tuple[Metric, ...]] = METRICS

    def score(self, encode: Encode, subsets: dict[str, Source]) -> Iterator[Score]:
        """Accuracy, both purities and v-measure. Raises `EvaluationError` for texts that all have the same label."""
        for subset, source in subsets.items():
            where = f"{self.name} {subset}"
            rows = source.read(where)
            if len(classes := sorted(set(rows.labels))) < 2:
                raise EvaluationError(f"{where}: all texts have the label {classes}; check the file of labels")
            vectors = embed_rows(encode, rows, where=where)
            yield from score(vectors, rows.labels, task=self.name, subset=subset)


def score(vectors: NDArray[np.float32], labels: Sequence[str], *, task: str, subset: str) -> list[Score]:
    """The four scores of vectors (n, D) with their labels (n); see `compare` for what they are.

    `n` is the number of texts; for `purity/macro`, of clusters. Accuracy has a table of its classes, the largest first,
    whose first share is the accuracy of assigning every text to the largest class.
    """
    classes, gold = np.unique(np.asarray(labels, dtype=object), return_inverse=True)
    parts = [compare(gold, clusters) for clusters in kmeans(vectors, len(classes))]
    matched, pure, macro, v_measure = (np.mean(values, axis=0) for values in zip(*parts, strict=True))
    return [
        METRICS[0].mean_of(task, subset, matched, details=(_table(matched, labels),)),
        METRICS[1].mean_of(task, subset, pure),
        METRICS[2].score(task, subset, float(macro), len(classes)),
        METRICS[3].score(task, subset, float(v_measure), len(labels)),
    ]


def compare(gold: Ids, clusters: Ids) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    """Compare classes (n,) with clusters (n,), both any whole numbers: (matched, majority, macro purity, v-measure).

    `matched` (n,) is 1 where a text's cluster is matched with its class, in the one-to-one matching of clusters with
    classes under which most texts are (Hungarian method); its mean is the accuracy. `majority` (n,) is 1 where a
    text's class is the most frequent of its cluster, the first in the order of labels among equals; its mean is the
    usual purity. The macro purity is the mean over clusters of the share of their most frequent class, small clusters
    weighing as much as large ones. The v-measure is the harmonic mean of homogeneity and completeness.
    """
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import v_measure_score
    from sklearn.metrics.cluster import contingency_matrix

    table = contingency_matrix(gold, clusters)  # (classes, clusters), both in ascending order
    _, row = np.unique(gold, return_inverse=True)
    _, column = np.unique(clusters, return_inverse=True)
    matching = np.full(table.shape[1], -1)  # fewer classes than clusters leave some without
    rows, columns = linear_sum_assignment(table, maximize=True)
    matching[columns] = rows
    return (
        (matching[column] == row).astype(np.float64),
        (table.argmax(axis=0)[column] == row).astype(np.float64),
        float((table.max(axis=0) / table.sum(axis=0)).mean()),
        float(v_measure_score(gold, clusters)),
    )


def kmeans(vectors: NDArray[np.float32], count: int) -> list[Ids]:
    """The cluster (n,) of each vector (n, D), for each of `SEEDS`. The same vectors always give the same clusters.

    Where fewer than `count` vectors differ, fewer clusters are found. Their unit of length makes no difference.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # A power of two changes no digit, and keeps squares of very great or small values within the range of float32.
    vectors = np.ldexp(vectors, -int(np.frexp(np.abs(vectors).max(initial=0.0))[1]))

    def cluster(seed: int) -> Any:
        with threadpool_limits(1, user_api="openmp"):  # this limit holds for the thread that sets it
            model = KMeans(count, n_init=RESTARTS, random_state=seed, algorithm="lloyd")
            return model.fit(vectors).labels_.astype(np.int64)

    workers = min(len(SEEDS), os.cpu_count() or 1)
    with warnings.catch_warnings(), threadpool_limits(1), ThreadPoolExecutor(workers) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)
        return list(pool.map(cluster, SEEDS))


def _table(matched: NDArray[np.float64], labels: Sequence[str]) -> Detail:
    label_of_row = np.asarray(labels, dtype=object)
    rows = tuple(
        (label, count, count / len(labels), float(matched[label_of_row == label].mean()))
        for label, count in sorted(Counter(labels).items(), key=lambda entry: (-entry[1], entry[0]))
    )
    return Detail("classes", ("label", "texts", "share", "accuracy"), rows)


MEWSC_LANGUAGES = words("ar ca cs de en eo es fa fr ja ko pl pt ru sv tr")
_SHORT_TEXTS = words("agnews biomedical googlenews_s googlenews_t googlenews_ts searchsnippets stackoverflow tweet")

CLUSTERING: tuple[Clustering, ...] = (
    Clustering("mewsc-16", ("mewsc16",), {"ease-16": MEWSC_LANGUAGES}),
    Clustering("stc", ("short-text-clustering",), {"ease-8": tuple(f"eng-{name}" for name in _SHORT_TEXTS)}),
    Clustering("tnews", ("tnews",)),
    Clustering("clustering", ("own/clusters",)),
)
