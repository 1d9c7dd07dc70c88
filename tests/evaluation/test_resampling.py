"""Resampling against scipy and plain loops: bootstrap, permutation test, the correction of many p-values."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.evaluation.resampling import bootstrap, holm, interval, p_value, permutation
from isoglot.evaluation.statistics import STATISTICS


def pairs(rng, n, *, strength=0.8):
    gold = rng.normal(size=n)
    return [np.stack([gold, strength * gold + rng.normal(size=n)], axis=1) for _ in range(2)]


def triples(rng, n):
    gold = rng.integers(0, 2, n)
    found = [rng.integers(0, 2, (2, n)) for _ in range(2)]
    return [np.stack([gold & a & b, a & b | (a & ~gold & 1), gold], axis=1) for a, b in found]


def corpora(rng, n):
    part = rng.integers(0, 2, n)
    return [np.column_stack([items, part]) for items in pairs(rng, n)]


SAMPLES = {
    "mean": lambda rng, n: list(rng.integers(0, 2, (2, n)).astype(float)),
    "pearson": pairs,
    "spearman": pairs,
    "f1": triples,
    "precision": triples,
    "recall": triples,
    "spearman/wmean": corpora,
    "pearson/mean": corpora,
}


def each(*fast):
    """The statistics; all but a few are for the slow tests, as they have the same path through the resampling."""
    return [pytest.param(name, marks=[] if name in fast else pytest.mark.slow) for name in sorted(SAMPLES)]


@pytest.mark.parametrize("name", each("mean", "spearman"))
def test_the_bootstrap_is_that_of_scipy(name):
    scipy_stats = pytest.importorskip("scipy.stats")
    a, b = SAMPLES[name](np.random.default_rng(7), 80)
    ours = bootstrap([a, b], name, resamples=1500, seed=[1])

    def difference(places):
        return STATISTICS[name](b[places]) - STATISTICS[name](a[places])

    theirs = scipy_stats.bootstrap(
        (np.arange(80),), difference, n_resamples=1500, vectorized=False, method="percentile", rng=1
    )
    spread = ours[1] - ours[0]
    assert interval(spread) == pytest.approx(tuple(theirs.confidence_interval), abs=0.15 * theirs.standard_error * 2)
    assert spread.std() == pytest.approx(theirs.standard_error, rel=0.08)


def loops(a, b, name):
    """Every way to swap items, in plain loops: the differences of the exact permutation test."""
    table = []
    for swaps in itertools.product([False, True], repeat=len(a)):
        left = np.array([b[i] if swap else a[i] for i, swap in enumerate(swaps)])
        right = np.array([a[i] if swap else b[i] for i, swap in enumerate(swaps)])
        table.append(STATISTICS[name](right) - STATISTICS[name](left))
    return np.array(table)


@pytest.mark.parametrize("name", each("mean", "f1", "spearman", "pearson/mean"))
def test_the_permutation_test_is_the_exact_one(name):
    rng = np.random.default_rng(11)
    a, b = SAMPLES[name](rng, 9)
    kind, _, way = name.partition("/")
    for table, part in itertools.product((a, b), (0, 1)):
        # Predictions are exchanged as ranks within their part; handing in ranks makes the plain loop the same test.
        rows = table[:, 2] == part if way else np.full(9, part == 0)
        if kind == "spearman":
            table[rows, 1] = table[rows, 1].argsort().argsort()
        if kind == "pearson" and rows.any():
            table[rows, 1] = (table[rows, 1] - table[rows, 1].mean()) / table[rows, 1].std()
    exact = loops(a, b, name)
    observed = STATISTICS[name](b) - STATISTICS[name](a)
    ours = permutation([a], [b], name, permutations=20_000, seed=[2])
    assert p_value(observed, ours) == pytest.approx(np.mean(np.abs(exact) >= abs(observed) - 1e-12), abs=0.015)
    assert ours.mean() == pytest.approx(0, abs=0.02)
    assert ours.std() == pytest.approx(exact.std(), rel=0.05)


def test_scales_do_not_matter_to_a_rank_correlation():
    """One encoder's cosines lie between 0.7 and 1, another's between 0 and 1: the test must not see that."""
    a, b = pairs(np.random.default_rng(9), 60)
    squeezed = np.stack([b[:, 0], np.tanh(b[:, 1]) * 0.1 + 0.8], axis=1)
    plain = permutation([a], [b], "spearman", permutations=200, seed=[0])
    assert permutation([a], [squeezed], "spearman", permutations=200, seed=[0]) == pytest.approx(plain)


def test_seeds_of_a_system_weigh_the_same():
    rng = np.random.default_rng(5)
    base, other = list(rng.random((2, 50))), list(rng.random((3, 50)))
    null = permutation(base, other, "mean", permutations=4000, seed=[0])
    expected = permutation([np.mean(base, axis=0)], [np.mean(other, axis=0)], "mean", permutations=4000, seed=[0])
    assert null.std() == pytest.approx(expected.std(), rel=0.05)
    assert p_value(0.0, null) == 1.0


def test_a_p_value_is_never_zero_and_counts_the_difference_seen():
    assert p_value(9.0, np.zeros(99)) == 0.01
    assert p_value(0.3, np.array([0.1 + 0.2, -0.3, 0.0])) == 0.75
    same = np.arange(5.0)
    assert p_value(0.0, permutation([same], [same], "mean", permutations=20, seed=[0])) == 1.0


@pytest.mark.parametrize("parts", [3, 10])
def test_items_of_thirds_and_tenths_have_the_p_value_of_the_exact_test(parts):
    """Kept in float32, sums that are equal on paper differ in their ninth digit, and must count as equal."""
    rng = np.random.default_rng(parts)
    for _ in range(5):
        a, b = (rng.integers(0, parts + 1, 11) for _ in range(2))
        steps = [abs(int(s @ (b - a))) for s in map(np.array, itertools.product([-1, 1], repeat=11))]
        exact = np.mean(np.array(steps) >= abs(int((b - a).sum())))
        a, b = (np.float32(side / parts) for side in (a, b))
        null = permutation([a], [b], "mean", permutations=20_000, seed=[3])
        assert p_value(b.mean(dtype=np.float64) - a.mean(dtype=np.float64), null) == pytest.approx(exact, abs=0.015)


def test_shared_units_are_drawn_alike_whatever_is_asked_about_them():
    """The mean over languages is then, in every draw, that of the items' mean outcome."""
    rng = np.random.default_rng(12)
    base, other = rng.random((2, 3, 40)).round(1)  # systems, languages, units
    settings = {"statistic": "mean", "seed": [4], "shared": True}
    values = [bootstrap([a], resamples=50, **settings)[0] for a in base]
    assert np.mean(values, axis=0) == pytest.approx(bootstrap([base.mean(axis=0)], resamples=50, **settings)[0])
    null = [permutation([a], [b], permutations=50, **settings) for a, b in zip(base, other, strict=True)]
    together = permutation([base.mean(axis=0)], [other.mean(axis=0)], permutations=50, **settings)
    assert np.mean(null, axis=0) == pytest.approx(together)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.6, None, 0.7]) == [1.0, None, 1.0]


@given(
    # Exact as floats, times eight too.
    st.lists(st.integers(0, 64).map(lambda number: Fraction(number, 64)), max_size=8),
    st.sampled_from([Fraction(1, 64), Fraction(1, 16), Fraction(1, 2)]),
)
def test_holm_rejects_what_its_steps_reject(p_values, level):
    """As Holm's paper has it: the smallest p is compared with level / n, the next one with level / (n - 1), …"""
    remaining, rejected = list(range(len(p_values))), set()
    while remaining:
        smallest = remaining[0]
        for place in remaining:
            if p_values[place] < p_values[smallest]:
                smallest = place
        if p_values[smallest] > level / len(remaining):
            break
        rejected.add(smallest)
        remaining.remove(smallest)
    # Equal p-values are rejected together: once one is, the other's threshold is higher.
    assert {place for place, p in enumerate(holm(p_values)) if p <= level} == rejected


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others():
    a, b = pairs(np.random.default_rng(1), 30)
    first, again, other = (bootstrap([a, b], "spearman", resamples=20, seed=[s, 8]) for s in (0, 0, 1))
    assert first.tobytes() == again.tobytes() != other.tobytes()
    first, again, other = (permutation([a], [b], "spearman", permutations=20, seed=[s, 8]) for s in (0, 0, 1))
    assert first.tobytes() == again.tobytes() != other.tobytes()
