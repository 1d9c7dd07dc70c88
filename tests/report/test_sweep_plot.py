"""The figure of a sweep is that of its folder; `tests/training/test_sweep.py` draws some."""

import pytest

from isoglot.core.errors import EvaluationError
from isoglot.report.sweep_plot import plot_sweep


def test_a_folder_without_a_sweep_is_refused(tmp_path):
    with pytest.raises(EvaluationError, match=r"sweep\.json"):
        plot_sweep(tmp_path, tmp_path / "a.svg")
    with pytest.raises(EvaluationError, match=r"a\.html"):
        plot_sweep(tmp_path, tmp_path / "a.html")
