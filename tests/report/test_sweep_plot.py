"""The figure of a sweep is that of its folder; `tests/training/test_sweep.py` draws some."""

import pytest

from isoglot.core.errors import EvaluationError
from isoglot.report.charts import canvas
from isoglot.report.sweep_plot import _lines, _panel, plot_sweep


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


def test_means_are_joined_in_the_order_of_the_axis():
    """They were joined in the order in which the values were passed: the line went back and forth."""
    points = [(64, "b"), (8, "a"), (512, "c")]
    with canvas(4, 3) as figure:
        axes = figure.subplots()
        _panel(axes, {"": points}, [8, 64, 512], {"a": [0.1], "b": [0.2], "c": [0.3]}, 100.0, numeric=True)
        x, y = axes.lines[0].get_data()
    assert [*x] == [8, 64, 512]
    assert [*y] == pytest.approx([10, 20, 30])


def test_true_and_false_are_words():
    """They were numbers, from False to True, with a line between them."""
    arms = [{"name": f"normalize={value}", "at": {"encoder.normalize": value == "true"}} for value in ("true", "false")]
    lines, ticks, _ = _lines(arms)
    assert ticks == ["true", "false"]
    assert lines == {"": [("true", "normalize=true"), ("false", "normalize=false")]}
