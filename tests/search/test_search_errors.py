"""Wrong arguments of every function of `search` are one ValueError that names the value."""

import numpy as np
import pytest

from isoglot.search import choose, estimate, hard_negatives, margins, mine, neighbours, search_binary, tune
from isoglot.search.pairs import Pairs

ONES, ROWS, EYE = np.ones((2, 3)), np.random.default_rng(0).standard_normal((10, 4)), np.eye(2)
CODES, BITS = np.zeros((4, 1), np.uint8), np.ones((4, 8), np.float32)
HUGE = np.full((2, 1), 1e30)
ALONE, TWO = neighbours(ROWS, ROWS, 1), neighbours(ROWS, ROWS, 2)
PAIRS = Pairs(np.arange(2), np.arange(2), np.array([0.5, 0.4]))


@pytest.mark.parametrize(
    ("function", "arguments", "options", "message"),
    [
        (neighbours, (ONES, np.ones((2, 4)), 1), {}, "must be"),
        (neighbours, (np.ones(3), ONES, 1), {}, "must be"),
        (neighbours, (np.ones((2, 0)), np.ones((2, 0)), 1), {}, "must be"),
        (neighbours, (ONES, ONES, 0), {}, "k is 0"),
        (neighbours, (ONES, ONES, 1), {"metric": "euclid"}, "euclid"),
        (neighbours, (ONES, ONES, 1), {"budget": 10}, "too small"),
        (neighbours, (np.array([[1.0], [np.nan]]), np.ones((2, 1)), 1), {}, "row 1"),
        (neighbours, (np.ones((2, 1)), np.array([[1.0], [np.inf]]), 1), {}, "row 1"),
        (neighbours, (HUGE, HUGE, 1), {}, "float32"),
        (neighbours, (HUGE, -HUGE, 1), {}, "float32"),
        (neighbours, (HUGE + np.eye(2), np.float32([[-1, 0], [0, 0]]) * HUGE, 1), {}, "float32"),
        (mine, (EYE, EYE), {"direction": "both"}, r"'both'.*max, forward, backward, intersection"),
        (mine, (EYE, EYE), {"margin": "cos"}, r"margin is 'cos'.*absolute, distance, ratio"),
        (mine, (EYE, EYE), {"k": 0}, "k is 0"),
        (mine, (EYE, EYE), {"k": 1, "threshold": np.nan}, "threshold: is NaN"),
        (margins, (EYE, np.zeros((2, 2), np.int64), EYE), {"margin": "cosine"}, "'cosine'"),
        (margins, (EYE, np.zeros((1, 2), np.int64), EYE), {}, "scores and whole ids"),
        (margins, (EYE, np.full((2, 2), 2), EYE), {}, "ids must be rows of other_scores, 0 to 1"),
        (hard_negatives, (EYE, EYE, ([0], [0]), 0), {}, "count is 0"),
        (hard_negatives, (EYE, EYE, ([2], [0]), 1), {}, "outside the tables of 2 and 2"),
        (hard_negatives, (EYE, EYE, ([0], [-1]), 1), {}, "outside"),
        (estimate, (choose(ALONE), ALONE), {}, "k of at least 2"),
        (estimate, (choose(TWO), TWO), {"margin": "cos"}, "margin is 'cos'"),
        (tune, (PAIRS, set()), {}, "gold is empty"),
        (search_binary, (BITS, np.zeros((4, 2), np.uint8), BITS, 1), {}, r"need codes \(N, 1\)"),
        (search_binary, (BITS, CODES, BITS[:3], 1), {}, r"vectors must be \(4, 8\)"),
        (search_binary, (BITS, CODES, BITS.astype(np.int8), 1), {}, "ranges belong to"),
        (search_binary, (BITS, CODES, BITS, 0), {}, "k is 0"),
        (search_binary, (BITS, CODES, BITS, 1), {"oversampling": 0}, "oversampling is 0"),
        (search_binary, (BITS, CODES, BITS, 1), {"metric": "euclid"}, "euclid"),
        (search_binary, (BITS, CODES, BITS, 1), {"centre": np.ones(3)}, "centre must be"),
    ],
)
def test_wrong_arguments_are_named(function, arguments, options, message):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        function(*arguments, **options)
