"""The script of the table of known models: what a run with fewer tasks left is completed, never taken for the whole."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from isoglot.report.scores import read_results

PATH = Path(__file__).parents[2] / "scripts" / "known_models.py"


@pytest.fixture
def script(monkeypatch):
    spec = importlib.util.spec_from_file_location("known_models", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SUBJECTS", {"toy": None})
    return module


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for side in ("kor", "eng"):
        (folder / f"tatoeba.kor-eng.{side}").write_text("".join(f"{side} {i}\n" for i in range(5)))
    rows = "".join(f"one {i}\tother {i}\t{i}\n" for i in range(5))
    (folder / "sts.tsv").write_text(f"sentence1\tsentence2\tscore\n{rows}")
    return folder


def test_tasks_that_an_earlier_run_left_out_are_added(script, data, tmp_path, monkeypatch):
    asked, folder = [], tmp_path / "out"

    def opened(fingerprint):
        def encode(texts):
            asked.extend(texts)
            return np.random.default_rng(len(texts)).standard_normal((len(texts), 4))

        monkeypatch.setattr(script, "open_subject", lambda _: ("toy", encode))
        monkeypatch.setattr(script, "described", lambda _: ("toy", {"encoder": fingerprint}))

    def run(*tasks):
        asked.clear()
        results = script.score("toy", folder, data=data, tasks=tasks, cache=None)
        assert results == read_results(folder)
        return [*dict.fromkeys(score.task for score in results)], {text.split()[0] for text in asked}

    opened("a")
    assert run("tatoeba") == (["tatoeba"], {"kor", "eng"})
    assert run("sts", "tatoeba") == (["tatoeba", "sts"], {"one", "other"})
    assert run("tatoeba", "sts") == (["tatoeba", "sts"], set())
    assert run("sts") == (["tatoeba", "sts"], set())
    opened("b")
    assert run("tatoeba", "sts") == (["tatoeba", "sts"], set())
    (folder / "results.json").unlink()
    assert run("sts") == (["sts"], {"one", "other"})
    opened("c")
    assert run("sts", "tatoeba") == (["sts", "tatoeba"], {"kor", "eng", "one", "other"})
