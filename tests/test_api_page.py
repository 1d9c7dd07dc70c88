"""docs/api.md is made from the docstrings, and the tour runs from its first cell to its last."""

import ast
import json
from pathlib import Path

import pytest

from conftest import load_script

ROOT = Path(__file__).parent.parent


def test_the_page_is_made_from_the_docstrings():
    script = load_script("api")
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "run: python scripts/api.py"


@pytest.mark.slow
def test_the_tour_runs(monkeypatch, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    cells = json.loads((ROOT / "docs" / "tour.ipynb").read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(sources) == 10
    names = {}
    for source in sources:
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "tour", "exec"), names)
        if last is not None:  # what a notebook shows
            value = eval(compile(ast.Expression(last.value), "tour", "eval"), names)
            assert value is None or (getattr(value, "_repr_html_", value.__repr__)())
    before, after = (
        names["isoglot"].evaluate(names[name], pairs=names["test"]).main[-1] for name in ("model", "better")
    )
    assert after.value > before.value + 0.02
    true = {group.texts for group in names["test"]}
    assert sum((pair.source, pair.target) in true for pair in names["found"]) > 200
