"""scripts/methods.py: an interrupted split of the sentences with links is made again."""

import importlib.util
from pathlib import Path

import pytest

from isoglot.core.errors import CorpusError
from isoglot.data.readers.entities import SENTENCES
from isoglot.training.sweep import parse_design

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("methods", SCRIPTS / "methods.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("done", [(), ("wikipedia-test",)])
def test_an_interrupted_split_is_made_again(script, monkeypatch, tmp_path, done):
    for name in done:
        (tmp_path / name).mkdir()
        (tmp_path / name / SENTENCES).touch()
    calls = []
    monkeypatch.setattr(script, "link_sentences", lambda *arguments: calls.append(arguments))
    column = {"name": "linked", "task": "linked", "subset": "mean", "metric": "accuracy", "data": "wikipedia"}
    design = parse_design({"arms": [{"name": "m", "model": "isoglot-small"}], "columns": [column]})
    script.prepare(design, tmp_path / "data", tmp_path)
    assert calls == [(tmp_path / "data", tmp_path)]


def test_sentences_without_their_test_are_an_error(script, tmp_path):
    (tmp_path / "wikipedia").mkdir()
    (tmp_path / "wikipedia" / SENTENCES).touch()
    column = {"name": "linked", "task": "linked", "subset": "mean", "metric": "accuracy", "data": "wikipedia-test"}
    design = parse_design({"arms": [{"name": "m", "model": "isoglot-small"}], "columns": [column]})
    with pytest.raises(CorpusError, match="no test sentences"):
        script.prepare(design, tmp_path / "data", tmp_path)
