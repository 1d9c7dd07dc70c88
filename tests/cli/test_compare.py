"""`isoglot compare` as a function: names, seeds, tables on the terminal, files."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import as_function

from isoglot.cli.evaluation import compare as compare_verb
from isoglot.core.errors import EvaluationError, OutputError
from isoglot.evaluation.base import Score
from isoglot.evaluation.compare import compare
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.scores import Scores, write_results

run = as_function(compare_verb)

SETTINGS = {"resamples": 200}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    rng = np.random.default_rng(0)
    for place, (name, share) in enumerate({"before": 0.4, "after": 0.8, "runs/1": 0.7, "runs/2": 0.6}.items()):
        items = (rng.random(100) < share).astype(np.float32)
        value = float(items.mean(dtype=np.float64))
        scores = (
            Score("tatoeba", "[red]-eng", "accuracy/mean", value, 100, items=items),
            Score("tatoeba", "mean", "accuracy/mean", value, 1, ("[red]-eng",)),
            Score("tatoeba", "only-eng", "accuracy/mean", 0.5, 10 + place),
        )
        write_results(tmp_path / name, Scores(scores, f"model {name}"))
    return tmp_path


def test_tables_lines_and_files(folder, capsys):
    run(["before", "after/results.json"], **SETTINGS | {"output": folder / "out", "page": folder / "page.html"})
    out, err = capsys.readouterr()
    for part in ("tatoeba accuracy/mean", "[red]-eng", "before", "after", "mean", "▲", "paired bootstrap"):
        assert part in out
    assert "after against before: better in 1 (1 significantly), worse in 0 (0 significantly), equal in 0" in out
    assert "skipped: tatoeba only-eng accuracy/mean: before has n = 10 and after has 11" in err
    assert "compare.md" in err
    assert 'id="comparison"' in (folder / "page.html").read_text(encoding="utf-8")
    assert json.loads((folder / "out" / "compare.json").read_text())["systems"] == ["before", "after"]
    assert "## tatoeba accuracy/mean" in (folder / "out" / "compare.md").read_text(encoding="utf-8")
    latex = (folder / "out" / "compare.tex").read_text(encoding="utf-8")
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 1
    assert {line.count(" & ") for line in latex.splitlines() if line.endswith(r"\\")} == {5}
    assert r"$\blacktriangle$" in latex


def test_names_and_seeds(folder, capsys):
    found = compare("before", "runs/1", "runs/2/results.json", names=["base", "runs", "runs"], resamples=10)
    assert dict(zip(found.systems, found.seeds, strict=True)) == {"base": 1, "runs": 2}
    models = [[run.model for run in runs] for runs in found.runs]
    assert models == [["model before"], ["model runs/1", "model runs/2"]]
    run(["base=before", "runs=runs/1", "runs=runs/2"], **SETTINGS)
    named = capsys.readouterr().out
    assert "±" in named
    run(["base=before", "runs"], **SETTINGS)  # a folder of seeds
    assert capsys.readouterr().out == named


def test_folders_of_one_name_are_no_seeds(folder):
    (folder / "other").mkdir()
    (folder / "after").rename(folder / "other" / "before")
    assert compare("before", "other/before", resamples=10).systems == ("before", "other/before")
    (folder / "a=b").mkdir()
    (folder / "before").rename(folder / "a=b" / "c")
    run(["a=b/c", "other/before"], **SETTINGS | {"output": folder / "out"})
    assert json.loads((folder / "out" / "compare.json").read_text())["systems"] == ["c", "before"]


def test_examples_are_pairs_of_the_results_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"a {place}\tb {place}\t{place}\n" for place in range(8))
    Path("sts.eng.tsv").write_text(f"sentence1\tsentence2\tscore\n{rows}", encoding="utf-8")
    for name, turn in (("before", -1), ("after", 1)):

        def encode(texts, turn=turn):
            angles = [turn * int(text[2:]) / 8 if text[0] == "b" else turn for text in texts]
            return np.stack([np.cos(angles), np.sin(angles)], axis=1)

        evaluate(encode, ["sts"], data=".", output=name)
    run(["before", "after"], **SETTINGS | {"tasks": ["sts"], "examples": 2, "data": Path()})
    assert "sts eng: after is better than before" in capsys.readouterr().out
    with pytest.raises(EvaluationError, match="two systems"):
        run(["before"], **SETTINGS | {"tasks": ["sts"], "examples": 2, "data": Path()})
    with pytest.raises(EvaluationError, match="--json"):
        run(["before", "after"], **SETTINGS | {"tasks": ["sts"], "examples": 2, "data": Path(), "as_json": True})


def test_nothing_is_printed_before_an_error_of_examples(folder, capsys):
    with pytest.raises(EvaluationError, match="similarity tasks, not 'tatoeba'"):
        run(["before", "after"], **SETTINGS | {"tasks": ["tatoeba"], "examples": 2, "data": Path()})
    assert not capsys.readouterr().out


def test_a_page_is_a_file(folder, capsys):
    """It became a file of the name -."""
    with pytest.raises(OutputError, match="--page"):
        run(["before", "after"], **SETTINGS | {"page": Path("-")})
    assert not Path("-").exists()
    assert not capsys.readouterr().out
