"""The figure of a sweep is that of its folder; `tests/training/test_sweep.py` draws some."""

import pytest

from isoglot.core.errors import EvaluationError
from isoglot.report.sweep_plot import _lines, plot_sweep


def test_a_folder_without_a_sweep_is_refused(tmp_path):
    with pytest.raises(EvaluationError, match=r"sweep\.json"):
        plot_sweep(tmp_path, tmp_path / "a.svg")
    with pytest.raises(EvaluationError, match=r"a\.html"):
        plot_sweep(tmp_path, tmp_path / "a.html")


def test_arms_that_differ_in_a_list_are_points_of_one_line():
    """Commas in a value part no name: every arm was a line of its own."""
    arms = [{"name": f"mix={mix}, lr=0.1", "at": {"data.mix": mix, "optimizer.lr": 0.1}} for mix in ([1, 2], [3, 4])]
    lines, ticks, label = _lines(arms)
    assert [*lines] == ["lr=0.1"]
    assert (ticks, label) == (["[1, 2]", "[3, 4]"], "data.mix")
