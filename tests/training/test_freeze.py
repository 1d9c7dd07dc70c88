"""A frozen run or sweep can be repeated by what is in the archive, with the same weights, scores and logs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch
from test_loop import RECIPE, write_corpus

import isoglot
from isoglot.core.errors import CheckpointError, OutputError
from isoglot.training import recipe as recipes
from isoglot.training.best import choices_of
from isoglot.training.freeze import settings_of
from isoglot.training.settings import Recipe
from isoglot.training.sweep import read_design, sweep
from isoglot.training.train import train_seeds


@pytest.fixture
def project(tmp_path, monkeypatch, own_cache):
    monkeypatch.setenv("ISOGLOT_DATA", str(tmp_path / "sets"))
    write_corpus(tmp_path)
    (tmp_path / "sets").mkdir()
    (tmp_path / "dev").rename(tmp_path / "sets" / "dev")
    (tmp_path / "base.toml").write_text(RECIPE.replace('data = "dev"', 'data = "data:dev"'))
    (tmp_path / "tiny.toml").write_text('extends = "base.toml"\nsteps = 6\nevaluation.every = 3\n')
    return tmp_path


def train(project, **settings):
    recipe = recipes.load(project / "tiny.toml")
    return train_seeds(recipe, project / "run", name="tiny", device=torch.device("cpu"), **settings)


def unpack(archive, place, sources):
    """The archive in a new folder, with the files that its README.md asks for."""
    with ZipFile(archive) as file:
        file.extractall(place)
    (folder,) = place.iterdir()
    for line in (folder / "files.sha256").read_text().splitlines():
        shutil.copyfile(sources / line.split("  ")[1], folder / line.split("  ")[1])
    return folder


def repeat(folder, tmp_path, data):
    """Run `repeat.sh` with an `isoglot` of this interpreter."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "isoglot"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m isoglot "$@"\n')
    program.chmod(0o755)
    source = str(Path(isoglot.__file__).parents[1])
    variables = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": source, "ISOGLOT_DATA": str(data)}
    variables |= {"ISOGLOT_CACHE": str(tmp_path / "another cache")}
    words = ["sh", folder / "repeat.sh"]
    return subprocess.run(words, env=os.environ | variables, capture_output=True, text=True, cwd=tmp_path, check=False)


def test_the_archive_has_what_was_recorded_and_each_thing_once(project):
    train(project)
    isoglot.freeze(project / "run", project / "mine.zip")
    isoglot.freeze(project / "run", project / "mine")
    with ZipFile(project / "mine.zip") as file:
        content = {name.removeprefix("mine/"): file.read(name) for name in file.namelist()}
    files = [path for path in (project / "mine").rglob("*") if path.is_file()]
    assert content == {path.relative_to(project / "mine").as_posix(): path.read_bytes() for path in files}
    assert set(content) == {
        *("README.md", "recipe.toml", "requirements.txt", "repeat.sh", "files.sha256", "data.sha256"),
        *("results.sha256", "results/run.json", "results/data.json", "results/log.jsonl"),
    }
    frozen, loaded = recipes.load(project / "mine" / "recipe.toml"), recipes.load(project / "tiny.toml")
    assert frozen.model_dump(exclude={"folder"}) == loaded.model_dump(exclude={"folder"})
    assert [line.split()[1] for line in content["files.sha256"].decode().splitlines()] == ["pairs.tsv"]
    assert content["data.sha256"].decode().count("dev/tatoeba.deu-eng.") == 2
    assert f"torch=={torch.__version__.partition('+')[0]}\n" in content["requirements.txt"].decode()
    best = json.loads(content["results/run.json"])["finished"]["best"]
    assert f"Dev scores: {best:.6f}." in content["README.md"].decode()
    before = (project / "mine.zip").read_bytes()
    isoglot.freeze(project / "run", project / "mine.zip")
    assert (project / "mine.zip").read_bytes() == before


def test_what_cannot_be_repeated_is_rejected(project, toy_static):
    with pytest.raises(CheckpointError, match="not a finished run or sweep"):
        isoglot.freeze(project / "dev", project / "x.zip")
    isoglot.train(toy_static, [("a cat", "eine Katze"), ("a dog", "ein Hund")], steps=1, output=project / "memory")
    with pytest.raises(CheckpointError, match="data in memory"):
        isoglot.freeze(project / "memory", project / "x.zip")
    train(project)
    record = json.loads((project / "run" / "run.json").read_text())
    with pytest.raises(OutputError):
        isoglot.freeze(project / "run", project / "run")
    del record["finished"]
    (project / "run" / "run.json").write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match="not a finished run"):
        isoglot.freeze(project / "run", project / "x.zip")
    assert not (project / "x.zip").exists()


@pytest.mark.parametrize("name", ["paper/mpcl-labse", "cpu/mpcl", "models/base", "demo/pairs", "start/adapter"])
def test_the_settings_of_a_recipe_give_the_same_recipe(name):
    recipe = recipes.load(name)
    text = recipes.dumps(settings_of(recipe))
    again = recipes.parse(recipes.tomllib.loads(text), folder=recipe.folder)
    assert again == recipe
    recorded = json.loads(json.dumps(recipe.model_dump(mode="json", exclude={"folder", "data"})))
    assert Recipe(**recorded, folder=recipe.folder) == recipe


def test_a_frozen_recipe_selects_by_the_main_metric_too():
    """Its name is "", since TOML has no None; left out, it would be that of another task."""
    stream = {"sources": [{"set": "a"}], "objectives": [{"name": "info_nce"}]}
    data = {"name": "x", "encoder": {"kind": "static"}, "steps": 1, "streams": [stream], "optimizer": {"lr": 0.1}}
    recipe = recipes.parse({**data, "evaluation": {"task": "xsim/own", "data": "d", "metric": ""}})
    again = recipes.parse(recipes.tomllib.loads(recipes.dumps(settings_of(recipe))))
    assert again == recipe
    assert [choice.devs[0].metric.main for choice in choices_of(again)] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 2])
def test_a_repeated_run_has_the_same_weights_and_scores(project, seeds):
    train(project, seeds=seeds)
    isoglot.freeze(project / "run", project / "mine.zip")
    folder = unpack(project / "mine.zip", project / "elsewhere", project)
    done = repeat(folder, project, project / "sets")
    assert done.returncode == 0, done.stdout + done.stderr
    weights = "model/model.safetensors" if seeds == 1 else "seed-43/model/model.safetensors"
    assert f"{weights}: OK" in done.stdout
    assert done.stdout.count("log.jsonl: OK") == seeds
    assert (folder / "repeated" / weights).read_bytes() == (project / "run" / weights).read_bytes()
    (folder / "pairs.tsv").write_text("eng\tdeu\na\tb\n")
    shutil.rmtree(folder / "repeated")
    shutil.rmtree(project / "bin")
    done = repeat(folder, project, project / "sets")
    assert done.returncode != 0
    assert "pairs.tsv: FAILED" in done.stdout
    assert not (folder / "repeated").exists()


@pytest.mark.slow
def test_a_repeated_sweep_has_the_same_scores(project):
    (project / "arms.toml").write_text(
        'title = "Sizes"\nrecipe = "%s"\ncontrol = "small"\n'
        % (project / "tiny.toml")
        + 'arms = [{ name = "none", untrained = true }, { name = "small", set = ["batching.size=4"] },'
        ' { name = "large", set = ["batching.size=16"] }]\n'
        'columns = [{ name = "Tatoeba", task = "tatoeba", subset = "mean", metric = "accuracy/mean" }]\n'
    )
    shutil.copytree(project / "sets" / "dev", project / "sets" / "tatoeba")
    sweep(read_design(project / "arms.toml"), project / "out", seeds=2, device="cpu", report=lambda _: None)
    isoglot.freeze(project / "out", project / "mine.zip")
    folder = unpack(project / "mine.zip", project / "elsewhere", project)
    done = repeat(folder, project, project / "sets")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("log.jsonl: OK") == 4
    before, after = (json.loads((place / "sweep.json").read_text()) for place in (project / "out", folder / "repeated"))
    assert before["values"] == after["values"]
    assert before["comparison"] == after["comparison"]
