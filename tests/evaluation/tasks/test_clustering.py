"""Clustering: the measures against loops and brute force, the same result twice, and the files with their traps."""

import itertools
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cases import value
from cases_clustering import short_text_data, tnews_data
from hypothesis import given
from hypothesis import strategies as st

from isoglot.evaluation.tasks.clustering import CLUSTERING, RESTARTS, SEEDS, compare, kmeans, score

MEWSC_16, STC, TNEWS, TABLES = CLUSTERING


partitions = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2)])
)


def best_assignment(gold, clusters):
    """The most texts right under any one-to-one naming of clusters, by trying all of them."""
    classes, groups = sorted(set(gold)), sorted(set(clusters))
    names, pairs = [*classes, *[None] * len(groups)], Counter(zip(gold, clusters, strict=True))
    return max(
        sum(pairs[pair] for pair in zip(chosen, groups, strict=True))
        for chosen in set(itertools.permutations(names, len(groups)))
    )


def entropy(counts):
    return -sum(count / sum(counts) * math.log(count / sum(counts)) for count in counts if count)


def conditional(first, second):
    """The entropy of `first` when `second` is known."""
    total = 0.0
    for known, count in Counter(second).items():
        inside = Counter(a for a, b in zip(first, second, strict=True) if b == known)
        total += count / len(second) * entropy(inside.values())
    return total


def v_measure(gold, clusters):
    of_gold, of_clusters = entropy(Counter(gold).values()), entropy(Counter(clusters).values())
    homogeneity = 1 - conditional(gold, clusters) / of_gold if of_gold else 1.0
    completeness = 1 - conditional(clusters, gold) / of_clusters if of_clusters else 1.0
    both = homogeneity + completeness
    return 2 * homogeneity * completeness / both if both else 0.0


@given(partitions)
def test_measures_equal_loops_and_brute_force(pair):
    gold, clusters = pair
    matched, majority, macro, v = compare(np.array(gold), np.array(clusters))
    groups = [
        Counter(label for label, c in zip(gold, clusters, strict=True) if c == cluster)
        for cluster in sorted(set(clusters))
    ]
    assert matched.sum() == best_assignment(gold, clusters)
    assert majority.sum() == sum(max(group.values()) for group in groups)
    assert macro == pytest.approx(sum(max(g.values()) / sum(g.values()) for g in groups) / len(groups))
    assert v == pytest.approx(v_measure(gold, clusters), abs=1e-9)


def test_vectors_are_taken_as_they_are():
    """Two classes in one direction, told apart by length alone: normalised they would be one."""
    vectors = np.array([[1, 1], [2, 2], [50, 50], [51, 51]], np.float32)
    assert value(score(vectors, [*"aabb"], task="t", subset="s"), "s", "accuracy") == 1


def test_equals_scikit_learn_called_by_hand():
    from sklearn.cluster import KMeans

    vectors = np.random.default_rng(1).standard_normal((300, 8)).astype(np.float32)
    assert (SEEDS, RESTARTS) == ((0, 1, 2), 10)
    for seed, clusters in zip((0, 1, 2), kmeans(vectors, 5), strict=True):
        assert np.array_equal(clusters, KMeans(5, n_init=10, random_state=seed).fit(vectors).labels_)


def test_the_mean_is_over_the_seeds():
    vectors = np.random.default_rng(2).standard_normal((200, 8)).astype(np.float32)
    labels = [str(number % 3) for number in range(200)]
    parts = [compare(np.arange(200) % 3, clusters) for clusters in kmeans(vectors, 3)]
    scores = score(vectors, labels, task="t", subset="s")
    means = [np.mean(values) for values in zip(*parts, strict=True)]
    assert [one.value for one in scores] == pytest.approx(means)
    assert set(np.round(scores[0].items * 3, 5)) <= {0, 1, 2, 3}


def test_the_table_of_classes_begins_with_the_majority():
    labels = ["b"] * 2 + ["a"] * 6 + ["c"] * 2
    detail = score(np.eye(3, dtype=np.float32)[[1] * 2 + [0] * 6 + [2] * 2], labels, task="t", subset="s")[0].details[0]
    assert detail.columns == ("label", "texts", "share", "accuracy")
    assert detail.rows == (("a", 6, 0.6, 1.0), ("b", 2, 0.2, 1.0), ("c", 2, 0.2, 1.0))


@pytest.mark.slow
def test_runs_are_the_same_to_the_byte_with_any_number_of_threads():
    """Vectors without clusters, where the last bit of a centre decides where a text goes."""
    code = """
import hashlib
import numpy as np
from isoglot.evaluation.tasks.clustering import kmeans
vectors = np.random.default_rng(0).standard_normal((3000, 24)).astype(np.float32)
print(hashlib.sha256(b"".join(found.tobytes() for found in kmeans(vectors, 12))).hexdigest())
"""
    source = str(Path(__file__).parents[3] / "src")

    def digest(threads):
        settings = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": source}
        return subprocess.check_output([sys.executable, "-c", code], env=os.environ | settings, text=True)

    assert digest("1") == digest("4") != ""


def test_short_texts_are_english_and_named_by_set(tmp_path):
    short_text_data(tmp_path)
    assert STC.subsets(tmp_path)[:3] == ("eng-agnews", "eng-biomedical", "eng-googlenews_s")
    assert STC.subsets(tmp_path, languages=["en"]) == STC.subsets(tmp_path)
    assert STC.subsets(tmp_path, languages=["de"]) == ()
    tnews_data(tmp_path)
    assert TNEWS.subsets(tmp_path, languages=["zh"]) == TNEWS.subsets(tmp_path, languages=["cmn"]) == ("zho",)
    assert TNEWS.subsets(tmp_path, languages=["de"]) == ()
