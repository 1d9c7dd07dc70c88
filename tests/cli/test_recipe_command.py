"""`isoglot recipe check` and the words of `isoglot train` for files that are not there."""

from pathlib import Path

import pytest
from command_line import as_function

from isoglot.cli.training import check, train
from isoglot.core.errors import EvaluationError, RecipeError
from isoglot.training import recipe as recipes
from isoglot.training import train as training
from isoglot.training.plan import check_files
from isoglot.training.record import Outcome


def both(name, folder, words):
    """The error of `check`, which `train` must give too, before it writes anything."""
    with pytest.raises(RecipeError, match=words):
        check(name)
    with pytest.raises(RecipeError, match=words):
        as_function(train)(name, output=folder / "run")
    assert not (folder / "run").exists()


def test_a_packaged_recipe_cannot_know_the_users_files(tmp_path):
    both("cpu/ease", tmp_path, r"cpu/ease: .*wikipedia.*isoglot recipe show cpu/ease > mine\.toml")


@pytest.mark.parametrize("there", [False, True])
def test_a_data_set_that_is_not_there_is_told_with_what_to_do(tmp_path, monkeypatch, there):
    monkeypatch.setenv("ISOGLOT_DATA", str(tmp_path / "sets"))
    if there:
        (tmp_path / "sets" / "other").mkdir(parents=True)
    both("cpu/mpcl", tmp_path, r"cpu/mpcl: data:xtreme-xnli: there is no xtreme-xnli in .*sets, .*set ISOGLOT_DATA")


def test_a_data_set_that_is_there_is_looked_into(tmp_path, monkeypatch):
    monkeypatch.setenv("ISOGLOT_DATA", str(tmp_path))
    for name in ("xtreme-xnli", "tatoeba-laser", "sts17-official"):
        Path(tmp_path, name).mkdir()
    for path in ("data:xtreme-xnli", "data:xtreme", "data:*/dev", "data:**/dev"):
        check_files(recipes.load("cpu/mpcl", [f"streams.0.sources.0.path={path}"]), "")
    with pytest.raises(RecipeError, match=r"there is no xnli\* in"):
        check_files(recipes.load("cpu/mpcl", ["streams.0.sources.0.path=data:xnli*"]), "")


def test_dev_data_that_are_not_there_are_found_by_the_check():
    with pytest.raises(EvaluationError, match=r"retrieval.*nowhere\.tsv"):
        check("demo/pairs", ["evaluation={task='retrieval', data='nowhere.tsv'}"])


@pytest.mark.parametrize(
    ("overrides", "reason"), [([], "no dev score was a finite number"), (["evaluation=[]"], "has no [evaluation]")]
)
def test_seeds_without_a_score_are_explained(tmp_path, monkeypatch, capsys, overrides, reason):
    monkeypatch.setattr(training, "train_seeds", lambda *_, **__: [Outcome(tmp_path, None, 3, 1.0)] * 2)
    as_function(train)("demo/pairs", output=tmp_path / "run", seeds=2, overrides=overrides)
    assert reason in capsys.readouterr().err
