"""The figure of a sweep is that of its folder; `tests/training/test_sweep.py` draws some."""

import json
import re
import warnings

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
        ticks = {place: str(place) for place in (8, 64, 512)}
        _panel(axes, {"": points}, ticks, {"a": [0.1], "b": [0.2], "c": [0.3]}, 100.0, numeric=True)
        x, y = axes.lines[0].get_data()
    assert [*x] == [8, 64, 512]
    assert [*y] == pytest.approx([10, 20, 30])


def test_true_and_false_are_words():
    """They were numbers, from False to True, with a line between them."""
    arms = [{"name": f"normalize={value}", "at": {"encoder.normalize": value == "true"}} for value in ("true", "false")]
    lines, ticks, _ = _lines(arms)
    assert ticks == ["true", "false"]
    assert lines == {"": [("true", "normalize=true"), ("false", "normalize=false")]}


def test_long_names_and_many_lines_leave_room_for_the_panels(tmp_path):
    """A name longer than the figure was cut off, with a warning that could be an error; six lines took half of it."""
    every = [{"n" * 200: {}, "b": {}}, {f"k={k}, lr={lr}": {"k": k, "lr": lr} for k in (1, 2) for lr in range(6)}]
    for number, at in enumerate(every):
        record = {
            "title": "words of a title " * 20, "arms": [{"name": name, "at": values} for name, values in at.items()],
            "columns": {"a": {"unit": "fraction", "lower_is_better": False}},
            "values": {"a": {name: [0.5] for name in at}},
        }  # fmt: skip
        (tmp_path / "sweep.json").write_text(json.dumps(record))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plot_sweep(tmp_path, tmp_path / "a.svg")
        drawn = (tmp_path / "a.svg").read_text()
        height = float(re.search(r'height="([\d.]+)pt"', drawn)[1])
        panel = [float(y) for y in re.findall(r" ([\d.]+) \n", drawn.split('id="patch_2"')[1].split("style")[0])]
        assert max(panel) - min(panel) > (0.35 if number else 0.2) * height
        assert drawn.count(">words of a title") > 1
