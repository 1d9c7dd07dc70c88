"""What can be compared: scores of the same data, on the page and in tables as in the command `compare`."""

from itertools import chain

import numpy as np
import pytest
from page_results import cells

from isoglot.evaluation.base import Score
from isoglot.evaluation.scores import Scores
from isoglot.report.comparable import alike
from isoglot.report.page import page
from isoglot.report.tables import side_by_side


def run(model, gold, value, *, over=("deu", "kor"), item_set=""):
    """Similarity in two languages, with `gold` in the second, and the mean `over` some of them."""
    random = np.random.default_rng(3)
    parts = []
    for subset, first in (("deu", np.arange(30.0)), ("kor", gold)):
        items = np.stack([first, random.random(30)], 1).astype(np.float32)
        parts.append(Score("sts", subset, "spearman", value, 30, items=items, statistic="spearman", item_set=item_set))
    return Scores((*parts, Score("sts", "mean", "spearman", value, len(over), tuple(over))), model)


def stressed(*runs):
    grid = side_by_side({found.model: found for found in runs}, task="sts", metric="spearman")
    return {grid.rows[row][0] for row, _ in grid.bold}


SAME = np.arange(30.0)


def test_the_same_data_are_compared():
    a, b = run("a", SAME, 0.5), run("b", SAME, 0.75)
    assert stressed(a, b) == {"deu", "kor", "mean"}
    row = ["sts spearman", "mean over deu, kor", "50.0", "75.0 +25.0", "2 subsets"]
    assert cells(page([a, b]), "summary")[1] == row
    assert "mean change +25.0" in page([a, b])


@pytest.mark.parametrize(
    ("other", "kept"),
    [(run("b", SAME[::-1], 0.75), {"deu"}), (run("b", SAME, 0.75, over=("deu", "fra")), {"deu", "kor"})],
)
def test_other_data_are_not_even_where_their_numbers_agree(other, kept):
    base = run("a", SAME, 0.5)
    assert stressed(base, other) == kept
    row = cells(page([base, other]), "summary")[1]
    assert row[2:] == ["50.0", "75.0", "2 subsets (other data)"]
    assert f"{len(kept)} subset{'s' if len(kept) > 1 else ''}, mean change +25.0" in page([base, other])


def test_item_sets_differ_and_a_system_that_lacks_a_subset_hinders_nobody():
    base, same, other = (run("a", SAME, 0.5, item_set=item_set) for item_set in "uuv")

    def rows(*runs):
        tables = [{score.subset: score for score in scores} for scores in runs]
        return {name: [table.get(name) for table in tables] for name in dict.fromkeys(chain(*tables))}

    assert alike(rows(base, same)) == {"deu", "kor", "mean"}
    assert alike(rows(base, same, other)) == set()
    assert alike(rows(base, same[:1])) == {"deu", "kor", "mean"}
    assert alike(rows(base[2:])) == {"mean"}
