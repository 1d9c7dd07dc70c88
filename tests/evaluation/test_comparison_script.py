"""scripts/comparison.py: earlier results are kept, a changed model is evaluated again, and the page has all models."""

import argparse

import pytest
from folders import numbered, tatoeba

from conftest import load_script
from isoglot.core.errors import EncoderError
from isoglot.evaluation.scores import read_results
from isoglot.model import card

COLUMN = {"task": "tatoeba", "metric": "accuracy/mean"}


@pytest.fixture
def script(monkeypatch):
    module = load_script("comparison")
    monkeypatch.setattr(module, "LEAST", 0.01)
    monkeypatch.setattr(module, "SPEED_LANGUAGES", ["kor", "deu"])
    return module


@pytest.fixture
def data(tmp_path):
    words = {"kor": "one two three four five", "deu": "six seven eight nine ten"}
    pairs = {code: [(f"{code} {word}", f"eng {word}") for word in of.split()] for code, of in words.items()}
    return tatoeba(tmp_path / "data", pairs)


def saved(encoder, folder, sentences):
    encoder.save(folder)
    card.describe(folder, data=[{"name": "text", "sentences": sentences}, {"name": "words", "sentences": {"kor": 99}}])
    return {"name": folder.name, "model": str(folder), "what": "toy"}


@pytest.mark.slow
def test_a_run_keeps_what_is_there_and_writes_the_page(script, data, toy_static, tmp_path, monkeypatch):
    evaluated, lines = [], []
    original = script.evaluate
    monkeypatch.setattr(
        script, "evaluate", lambda model, tasks, **more: evaluated.append(tasks) or original(model, tasks, **more)
    )
    models = [saved(toy_static, tmp_path / name, {"deu": 50}) for name in ("base", "other")]
    design = {
        "base": "base",
        "models": [*models, {"name": "isoglot-absent", "what": "none"}],
        "columns": [COLUMN | {"name": "Tatoeba", "subset": "mean"}],
        "levels": {"model": "base", "words": ["words"], "bounds": [1, 10], "columns": [COLUMN | {"name": "By level"}]},
        "quoted": {"Paper": {"Tatoeba": 12.3, "from": "somewhere"}},
    }
    words = argparse.Namespace(data=data, output=tmp_path / "out", cache=None, models="", tasks="", page=None)
    script.run(words, design, lines.append)
    page = (words.output / "comparison.md").read_text()
    (value,) = [s.value for s in read_results(words.output / "base" / "tatoeba") if s.over and s.subset == "mean"]
    assert page.count(f"| {100 * value:.1f} ± ") == 2  # two equal models
    assert "By level: none (1 languages)" in page  # Korean has words alone
    assert "By level: 10 or more (1 languages)" in page
    assert "isoglot-absent" in page
    assert "12.3" in page
    assert len(evaluated) == 2

    script.run(words, design, lines.append)
    assert (words.output / "comparison.md").read_text() == page
    assert len(evaluated) == 2
    toy_static.table.data += 1  # the model is another one
    toy_static.save(tmp_path / "other")
    script.run(words, design, lines.append)
    assert len(evaluated) == 3
    tatoeba(data, {"fra": numbered("fra", 2)})  # the data are others
    script.run(words, design, lines.append)
    assert len(evaluated) == 5
    words.models = "othr"
    with pytest.raises(EncoderError, match="'othr' is not in the design; did you mean 'other'"):
        script.run(words, design, lines.append)
