"""An index finds what an exact search finds when it looks everywhere, and `recall` tells what it misses."""

import numpy as np
import pytest

from isoglot.search import approximate, neighbours, recall
from isoglot.search.faiss_index import candidates, create, factory, train

faiss = pytest.importorskip("faiss", reason="FAISS is not installed")


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((900, 16), np.float32)
    return x, np.concatenate([x + 0.3 * rng.standard_normal((900, 16), np.float32), x[:300] - 1])


@pytest.mark.parametrize("index", ["ivf", "hnsw", "Flat"])
@pytest.mark.slow
def test_looking_everywhere_is_exact(tables, index):
    found, exact = approximate(*tables, 3, index=index, probes=2000), neighbours(*tables, 3, metric="cosine")
    for a, b in zip(found[1::2], exact[1::2], strict=True):
        assert (a == b).mean() > 0.998
    for a, b in zip(found[::2], exact[::2], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    assert recall(*tables, found) > 0.998


def test_recall_is_the_share_a_loop_counts(tables):
    found = approximate(*tables, 3, index="ivf", probes=1, spare=0)
    exact = neighbours(*tables, 3, metric="cosine")
    shares = [
        np.mean([len(set(a) & set(b)) / 3 for a, b in zip(one.tolist(), other.tolist(), strict=True)])
        for one, other in zip(found[1::2], exact[1::2], strict=True)
    ]
    assert recall(*tables, found, sample=5000) == pytest.approx(np.mean(shares))
    assert np.mean(shares) < 0.98
    assert recall(*tables, found, sample=300) == pytest.approx(np.mean(shares), abs=0.06)


def test_a_hit_that_scores_as_the_last_true_one_counts(tables):
    """Which of equal rows is found does not matter; a row that is repeated counts once."""
    x, y = tables[0][:40], np.repeat(tables[1][:20], 4, axis=0)
    true = neighbours(x, y, 2, metric="cosine")
    same, copy = true.forward_ids // 4 * 4, true.forward_ids % 4
    found = true._replace(forward_ids=same + (copy + 2) % 4)  # of four equal rows others than those that were found
    assert (found.forward_ids != true.forward_ids).all()
    assert recall(x, y, found) == 1
    once = true._replace(forward_ids=true.forward_ids[:, [0, 0]])
    assert recall(x, y, once) == pytest.approx(0.75)
    further = true._replace(forward_ids=(true.forward_ids + np.array([0, 4])) % len(y))  # one is of another four
    assert recall(x, y, further) == pytest.approx(0.75)


@pytest.mark.parametrize("kind", ["HNSW4,Flat", "RR16,HNSW4,Flat", "HNSW4,Flat,RFlat", "RR16,IVF30,Flat,RFlat"])
def test_effort_reaches_the_index_behind_a_transform(tables, kind):
    rows = tables[1] / np.linalg.norm(tables[1], axis=1, keepdims=True)
    index, exact = create(kind, *rows.shape), np.argsort(-(rows[:200] @ rows.T), axis=1)[:, :5]
    train(index, rows.__getitem__, len(rows))
    index.add(rows)
    little, much = (
        (candidates(index, rows[:200], 5, effort=effort)[:, :, None] == exact[:, None]).sum() / exact.size
        for effort in (1, 1200)
    )
    assert little < 0.9 < 0.97 < much


@pytest.mark.slow
def test_product_quantisation_works_and_is_the_same_again(tables):
    one, two = (approximate(*tables, 3, index="ivf-pq", spare=20) for _ in range(2))
    assert (one.forward_ids == two.forward_ids).all()
    assert recall(*tables, one) > 0.6


def test_descriptions():
    assert factory("ivf", 1_000_000, 384) == "IVF4000,Flat"
    assert factory("ivf-pq", 1_000_000, 384) == "IVF4000,PQ96x8np"
    assert factory("hnsw", 10, 384) == "HNSW32,Flat"
    assert factory("IVF7,SQ8", 10, 384) == "IVF7,SQ8"


def test_refused(tables):
    with pytest.raises(ValueError, match="nonsense"):
        approximate(*tables, 3, index="nonsense")
    with pytest.raises(ValueError, match="at least 512 rows"):
        approximate(tables[0][:100], tables[1], 3)
    for options in ({"k": 0}, {"k": 3, "spare": -2}, {"k": 3, "probes": 0}):
        with pytest.raises(ValueError, match=f"{[*options][-1]} is .*; it must be at least"):
            approximate(*tables, **options)
