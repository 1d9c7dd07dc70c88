"""Clustering: the measures against loops and brute force, the same result twice, and the files with their traps."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cases import by_last_word, by_text
from cases_clustering import TEXTS, mewsc_data, short_text_data, table_data, tnews_data
from folders import write
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.errors import EvaluationError
from isoglot.evaluation.tasks.clustering import RESTARTS, SEEDS, compare, kmeans, score
from isoglot.evaluation.tasks.clustering_sets import MEWSC_16, MEWSC_LANGUAGES, STC, TABLES, TNEWS

partitions = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2)])
)


def values(scores, subset):
    return {one.metric: one.value for one in scores if one.subset == subset}


def best_assignment(gold, clusters):
    """The most texts right under any one-to-one naming of clusters, by trying all of them."""
    classes, groups = sorted(set(gold)), sorted(set(clusters))
    names = [*classes, *[None] * len(groups)]
    return max(
        sum(
            dict(zip(groups, chosen, strict=True))[cluster] == label
            for label, cluster in zip(gold, clusters, strict=True)
        )
        for chosen in set(itertools.permutations(names, len(groups)))
    )


def entropy(counts):
    return -sum(count / sum(counts) * math.log(count / sum(counts)) for count in counts if count)


def conditional(first, second):
    """The entropy of `first` when `second` is known."""
    total = 0.0
    for value, count in Counter(second).items():
        total += (
            count / len(second) * entropy(Counter(a for a, b in zip(first, second, strict=True) if b == value).values())
        )
    return total


def v_measure(gold, clusters):
    of_gold, of_clusters = entropy(Counter(gold).values()), entropy(Counter(clusters).values())
    homogeneity = 1 - conditional(gold, clusters) / of_gold if of_gold else 1.0
    completeness = 1 - conditional(clusters, gold) / of_clusters if of_clusters else 1.0
    both = homogeneity + completeness
    return 2 * homogeneity * completeness / both if both else 0.0


@settings(deadline=None, max_examples=60)
@given(partitions)
def test_measures_equal_loops_and_brute_force(pair):
    gold, clusters = pair
    found = compare(np.array(gold), np.array(clusters))
    groups = [
        Counter(label for label, c in zip(gold, clusters, strict=True) if c == cluster)
        for cluster in sorted(set(clusters))
    ]
    assert found.matched.sum() == best_assignment(gold, clusters)
    assert found.majority.sum() == sum(max(group.values()) for group in groups)
    assert found.macro == pytest.approx(sum(max(g.values()) / sum(g.values()) for g in groups) / len(groups))
    assert found.v_measure == pytest.approx(v_measure(gold, clusters), abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(partitions, st.permutations(range(5)), st.permutations(range(5)))
def test_names_of_classes_and_of_clusters_do_not_matter(pair, of_classes, of_clusters):
    gold, clusters = (np.array(side) for side in pair)
    first = compare(gold, clusters)
    second = compare(np.array(of_classes)[gold], np.array(of_clusters)[clusters])
    assert first.matched.sum() == second.matched.sum()
    assert first.majority.sum() == second.majority.sum()
    assert (first.macro, first.v_measure) == pytest.approx((second.macro, second.v_measure))


@pytest.mark.parametrize("count", [1, 2, 9])
def test_as_many_clusters_as_texts_are_pure(count):
    found = compare(np.arange(count) % 2, np.arange(count))
    assert found.majority.mean() == found.macro == 1
    assert found.matched.sum() == min(count, 2)


def test_purity_weighs_texts_or_clusters():
    """A pure cluster of one and a cluster of four that is half pure."""
    found = compare(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 1, 1]))
    assert found.majority.mean() == 3 / 5
    assert found.macro == 3 / 4


def test_vectors_are_taken_as_they_are():
    """Two classes in one direction, told apart by length alone: normalised they would be one."""
    vectors = np.array([[1, 1], [2, 2], [50, 50], [51, 51]], np.float32)
    assert values(score(vectors, ["a", "a", "b", "b"], task="t", subset="s"), "s")["accuracy"] == 1


def test_equals_scikit_learn_called_by_hand():
    from sklearn.cluster import KMeans

    vectors = np.random.default_rng(1).standard_normal((300, 8)).astype(np.float32)
    assert (SEEDS, RESTARTS) == ((0, 1, 2), 10)
    for seed, clusters in zip((0, 1, 2), kmeans(vectors, 5), strict=True):
        assert np.array_equal(clusters, KMeans(5, n_init=10, random_state=seed).fit(vectors).labels_)


def test_the_mean_is_over_the_seeds():
    vectors = np.random.default_rng(2).standard_normal((200, 8)).astype(np.float32)
    labels = [str(number % 3) for number in range(200)]
    found = [compare(np.arange(200) % 3, clusters) for clusters in kmeans(vectors, 3)]
    scores = score(vectors, labels, task="t", subset="s")
    assert values(scores, "s") == pytest.approx(
        {
            "accuracy": np.mean([one.matched.mean() for one in found]),
            "purity/micro": np.mean([one.majority.mean() for one in found]),
            "purity/macro": np.mean([one.macro for one in found]),
            "v-measure": np.mean([one.v_measure for one in found]),
        }
    )
    assert set(np.round(scores[0].items * 3, 5)) <= {0, 1, 2, 3}


def test_vectors_that_are_all_the_same_name_every_text_after_the_largest_class(recwarn):
    labels = ["a"] * 6 + ["b"] * 3 + ["c"]
    found = values(score(np.ones((10, 4), np.float32), labels, task="t", subset="s"), "s")
    assert found == pytest.approx({"accuracy": 0.6, "purity/micro": 0.6, "purity/macro": 0.6, "v-measure": 0})
    assert not recwarn.list


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
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "4")
    ]
    assert len(set(found)) == 1


@pytest.mark.parametrize("data", [mewsc_data, short_text_data, tnews_data, table_data])
def test_perfect_vectors_are_perfect_and_random_ones_near_chance(tmp_path, data):
    task = {mewsc_data: MEWSC_16, short_text_data: STC, tnews_data: TNEWS, table_data: TABLES}[data]
    data(tmp_path)
    assert {one.value for one in task.run(by_last_word, tmp_path)} == {1.0}
    for one in task.run(by_text, tmp_path):
        if one.metric == "accuracy" and not one.over:
            assert 0.25 <= one.value <= 0.42  # an even share of four classes, and what matching adds with 120 texts
            assert one.n == len(one.items) == TEXTS


@pytest.mark.slow
def test_averages_of_the_papers_need_all_their_sets(tmp_path):
    mewsc_data(tmp_path)
    assert {one.subset for one in MEWSC_16.run(by_text, tmp_path) if one.over} == {"mean"}
    for code in MEWSC_LANGUAGES:
        write(tmp_path / "mewsc16" / f"{code}_sentences.txt", "a x\nb x\nc y\n")
        write(tmp_path / "mewsc16" / f"{code}_categories.txt", "1\n1\n2\n")
    (everything,) = (
        one for one in MEWSC_16.run(by_text, tmp_path) if one.subset == "ease-16" and one.metric == "accuracy"
    )
    assert everything.n == 16
    short_text_data(tmp_path)
    assert {one.n for one in STC.run(by_text, tmp_path) if one.subset == "ease-8"} == {8}


def test_short_texts_are_english_and_named_by_set(tmp_path):
    short_text_data(tmp_path)
    assert STC.subsets(tmp_path)[:3] == ("eng-agnews", "eng-biomedical", "eng-googlenews_s")
    assert STC.subsets(tmp_path, languages=["en"]) == STC.subsets(tmp_path)
    assert STC.subsets(tmp_path, languages=["de"]) == ()
    tnews_data(tmp_path)
    assert TNEWS.subsets(tmp_path, languages=["zh"]) == TNEWS.subsets(tmp_path, languages=["cmn"]) == ("zho",)
    assert TNEWS.subsets(tmp_path, languages=["de"]) == ()


@pytest.mark.parametrize("layout", ["", "mewsc16", "data/mewsc16", "downstreams/text-clustering/data/mewsc16"])
@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_places_and_compressions(tmp_path, layout, ending):
    write(tmp_path / layout / f"de_sentences.txt{ending}", "a 1\nb 2")
    write(tmp_path / layout / f"de_categories.txt{ending}", "1\n2")
    assert MEWSC_16.subsets(tmp_path) == ("de",)
    assert MEWSC_16.run(by_last_word, tmp_path)[0].n == 2


def test_a_folder_of_another_name_needs_more_than_a_file_that_any_set_has(tmp_path):
    write(tmp_path / "t.txt", "some text\n")
    write(tmp_path / "dev.json", "{}\n")
    assert STC.subsets(tmp_path) == TNEWS.subsets(tmp_path) == ()
    write(tmp_path / "agnews.txt", "1\ta\n2\tb\n")
    write(tmp_path / "labels.json", "{}\n")
    assert STC.subsets(tmp_path) == ("eng-agnews", "eng-googlenews_t")
    assert TNEWS.subsets(tmp_path) == ("zho",)


def test_empty_sentences_of_mewsc_are_left_out_with_their_category(tmp_path):
    write(tmp_path / "de_sentences.txt", "a 1\n \nb 2\n\nc 1")
    write(tmp_path / "de_categories.txt", "1\n2\n2\n1\n1")
    found = MEWSC_16.run(by_last_word, tmp_path)
    assert (found[0].n, found[0].value) == (3, 1)


def test_marks_and_tabs_belong_where_they_are(tmp_path):
    seen = []
    write(tmp_path / "agnews.txt", "1\ta\tb\n2\tc\n")
    write(tmp_path / "searchsnippets.txt", b"\xef\xbb\xbfone\ntwo\tthree\n")
    write(tmp_path / "searchsnippets_label.txt", "1\n2\n")
    STC.run(lambda texts: seen.extend(texts) or by_text(texts), tmp_path)
    assert seen == ["a\tb", "c", "one", "two\tthree"]


@pytest.mark.parametrize(
    ("task", "files", "message"),
    [
        (
            MEWSC_16,
            {"de_sentences.txt": "a\nb", "de_categories.txt": "1\n2\n1"},
            r"mewsc-16 de: .*sentences.txt has 2 lines and .*categories.txt has 3, so from line 3 on",
        ),
        (MEWSC_16, {"de_sentences.txt": "a\nb"}, r"mewsc-16 de: .* has no partner de_categories.txt"),
        (
            MEWSC_16,
            {"de_sentences.txt": "a\nb\nc", "de_categories.txt": "1\n\n2"},
            r"mewsc-16 de: .*categories.txt:2: the line is empty",
        ),
        (MEWSC_16, {"de_sentences.txt": "a\r\nb", "de_categories.txt": "1\n2"}, r"mewsc-16 de: .*:1: .*carriage"),
        (
            MEWSC_16,
            {"de_sentences.txt": "a\nb", "de_categories.txt": "1\n1"},
            r"mewsc-16 de: the texts have no two labels, only \['1'\]",
        ),
        (STC, {"agnews.txt": "1\ta\nb\n"}, r"stc eng-agnews: .*agnews.txt:2: 1 cells"),
        (STC, {"agnews.txt": "1\ta\n2\t \n"}, r"stc eng-agnews: .*agnews.txt:2: .*empty"),
        (STC, {"agnews.txt": "1\ta\n2\tb\n", "biomedical.txt": "a\n"}, r"stc eng-biomedical: .*biomedical_label.txt"),
        (
            STC,
            {"agnews.txt": "1\ta\n2\tb\n", "tweet.txt": '{"text": "a", "cluster": 1}\n{"text": 7, "cluster": 2}\n'},
            r"stc eng-tweet: .*tweet.txt:2: text 7",
        ),
        (STC, {"agnews.txt": "1\ta\n2\tb\n", "tweet.txt": '{"text": "a"}\n'}, r"stc eng-tweet: .*:1: lacks cluster"),
        (TNEWS, {"tnews/dev.json": '{"label": "1", "sentence": "a"}\n{\n'}, r"tnews zho: .*dev.json:2: is not JSON"),
        (TABLES, {"clustering/x.deu.tsv": "1\ta\n\tb\n"}, r"clustering deu-x: .*x.deu.tsv:2: the label or the text"),
    ],
)
def test_unusable_files_are_refused_with_task_set_and_line(tmp_path, task, files, message):
    for name, text in files.items():
        write(tmp_path / name, text)
    with pytest.raises(EvaluationError, match=message):
        task.run(by_text, tmp_path)


def test_the_line_of_a_vector_that_is_not_finite_counts_sentences_left_out(tmp_path):
    write(tmp_path / "de_sentences.txt", "a\n\nb\nc")
    write(tmp_path / "de_categories.txt", "1\n1\n2\n2")
    with pytest.raises(EvaluationError, match=r"^mewsc-16 de: \S*de_sentences.txt:3: .*NaN or infinity for 'b'"):
        MEWSC_16.run(lambda texts: [[np.nan if text == "b" else 1.0] for text in texts], tmp_path)


def shared_data():
    places = [os.environ.get("ISOGLOT_DATA", ""), str(Path(__file__).parents[4] / "shared" / "data")]
    return next((Path(place) for place in places if place and (Path(place) / "mewsc16").is_dir()), None)


@pytest.mark.slow
@pytest.mark.data
def test_the_published_files_have_their_texts_and_classes():
    data = shared_data()
    if data is None:
        pytest.skip("the data sets are not beside the checkout and ISOGLOT_DATA does not name them")
    found = {name: read() for task in (MEWSC_16, STC, TNEWS) for name, read in task.find(data, ()).items()}
    assert {name: (len(one.texts), len(set(one.labels))) for name, one in found.items() if len(one.texts) > 8000} == {
        "en": (12892, 13),
        "fr": (10697, 13),
        "pt": (8921, 11),
        "eng-biomedical": (20000, 20),
        "eng-googlenews_s": (11108, 152),
        "eng-googlenews_t": (11108, 152),
        "eng-googlenews_ts": (11109, 152),
        "eng-searchsnippets": (12340, 8),
        "eng-stackoverflow": (20000, 20),
    }
    assert sum(len(found[code].texts) for code in MEWSC_LANGUAGES) == 65_429  # four empty sentences left out
    assert len(set(found["zho"].labels)) == 15
    assert found["eng-searchsnippets"].texts[0].startswith("turtlesoft")
    assert sum("\t" in text for text in found["eng-stackoverflow"].texts) == 1
