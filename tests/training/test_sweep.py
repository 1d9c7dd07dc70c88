"""Sweeps: arms times seeds, one table, resumed and never repeated."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from test_loop import RECIPE, write_corpus

from conftest import build_tokenizer, permute, replace_unseen
from isoglot.core.errors import EvaluationError, OutputError, RecipeError
from isoglot.encoders import StaticEncoder
from isoglot.evaluation import TASKS
from isoglot.evaluation.compare import Comparison, Difference, Row, Table, Value
from isoglot.evaluation.scores import read_results
from isoglot.report.sweep_plot import plot_sweep
from isoglot.training import recipe as recipes
from isoglot.training import sweep as module
from isoglot.training.loop import ignore
from isoglot.training.recipe import tomllib
from isoglot.training.sweep import Arm, Sweep, arms_over, correct, parse_design, read_design, sweep


@pytest.fixture
def project(tmp_path, own_cache):
    write_corpus(tmp_path, pairs=50)
    shutil.copytree(tmp_path / "dev", tmp_path / "tatoeba")
    changes = {"checkpoint_every = 4\n": "", "steps = 14": "steps = 6", "dim = 16": "dim = 8", "every = 5": "every = 3"}
    text = RECIPE.replace("{size = 16, pool = 2}", "{size = 8}")
    for old, new in changes.items():
        text = text.replace(old, new)
    (tmp_path / "tiny.toml").write_text(text)
    return tmp_path


def swept(project, design=None, *, to="out", **settings):
    """A sweep of a table of arms, or over the project's recipe; of a single seed, unless asked for more."""
    plan = project / "tiny.toml" if design is None else parse_design(design)
    return sweep(plan, project / to, **{"data": project, "seeds": 1, "report": ignore, **settings})


def test_a_grid_of_settings_and_seeds_is_one_table(project):
    over = ["batching.size=4,16", "optimizer.lr=0.1,0.01"]
    made = swept(project, over=over, seeds=2, tasks=["tatoeba"], steps=1)
    names = ["size=4, lr=0.1", "size=4, lr=0.01", "size=16, lr=0.1", "size=16, lr=0.01"]
    assert [arm.name for arm in made.arms] == names
    assert made.columns == ("dev", "tatoeba mean")
    assert made.control == names[0]
    table = made.comparison.tables[0]
    for column, row in zip(made.columns, table.rows, strict=True):
        for name, value in zip(made.comparison.systems, row.values, strict=True):
            assert value.mean == pytest.approx(sum(made.values[column][name]) / 2)
    record = json.loads((project / "out" / "sweep.json").read_text())
    runs = sorted(path.parent.relative_to(project / "out").parts for path in (project / "out").glob("*/*/run.json"))
    assert len(runs) == 8
    seeds = {json.loads((project / "out" / a / b / "run.json").read_text())["seed"] for a, b in runs}
    assert seeds == {1, 2}
    sizes = {arm["name"]: arm["at"]["batching.size"] for arm in record["arms"]}
    assert [sizes[name] for name in names] == [4, 4, 16, 16]
    assert not list((project / "out").glob("*/*/model"))
    plot_sweep(project / "out", project / "out.svg")
    ElementTree.parse(project / "out.svg")


def test_length_multiplies_the_training_of_arms_of_different_lengths(project):
    """A setting of all arms, such as steps=12, would be overridden by that of an arm."""
    arms = [{"name": "six"}, {"name": "four", "set": ["steps=4", "optimizer.warmup=1", "evaluation.every=0"]}]
    swept(project, {"recipe": str(project / "tiny.toml"), "arms": arms}, length=2.5)
    recipe = json.loads((project / "out" / "design.json").read_text())["recipes"]
    lengths = [
        (stage["steps"], stage["optimizer"].get("warmup", 0), made["evaluation"][0].get("every", 0))
        for made in (recipe["six"], recipe["four"])
        for stage in made["stages"]
    ]
    assert lengths == [(15, 0, 8), (10, 2, 0)]


@pytest.mark.slow
def test_what_is_finished_is_not_repeated_and_what_was_killed_goes_on(project, monkeypatch):
    """The second call trains what the first did not; a table of both equals that of one call."""
    begun = []
    train = module.train

    def failing(plan, folder, **settings):
        begun.append(folder.name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return train(plan, folder, **settings)

    monkeypatch.setattr(module, "train", failing)
    settings = {"over": ["optimizer.lr=0.1,0.01"], "seeds": 2}
    with pytest.raises(KeyboardInterrupt):
        swept(project, **settings)
    made = swept(project, **settings)
    assert len(begun) == 2 + 3
    again, whole = swept(project, **settings), swept(project, to="other", **settings)
    assert len(begun) == 2 + 3 + 4
    assert made.values == again.values == whole.values
    with pytest.raises(EvaluationError, match="seed-1"):
        swept(project, overrides=["steps=7"], **settings)


@pytest.mark.slow
def test_arms_may_be_models_or_have_a_layer_fitted_and_columns_their_own_data(project):
    train = {"recipe": str(project / "tiny.toml")}
    swept(project, {"arms": [{"name": "a", **train}]}, to="first", keep=True)
    model, accuracy = project / "first" / "a" / "seed-1" / "model", {"subset": "mean", "metric": "accuracy/mean"}
    (project / "dev").rename(project / "files")  # no longer where the data sets are
    train["set"] = ["evaluation=[]"]
    design = {
        "arms": [
            {"name": "a", **train},
            {"name": "same", "model": str(model)},
            {"name": "white", **train, "fit": "whitening"},
            {"name": "flow", **train, "untrained": True, "fit": "flow"},
            {"name": "start", **train, "untrained": True},
        ],
        "columns": [{"name": "own", "task": "tatoeba", **accuracy, "data": "files"}],
    }
    made = swept(project, design, data=project / "none", files=project, seeds=2)
    values = made.values["own"]
    numbers = {"a": 2, "same": 1, "white": 2, "flow": 2, "start": 2}
    assert {name: len(every) for name, every in values.items()} == numbers
    assert values["same"][0] == values["a"][0]
    assert values["white"] != values["a"]
    for wrong in ({"model": "m", "untrained": True}, {"fit": "whiten", **train}):
        with pytest.raises(RecipeError, match="arms"):
            parse_design({"arms": [{"name": "a", **wrong}]})


@pytest.mark.slow
def test_runs_side_by_side_give_the_same(project):
    settings = {"over": ["optimizer.lr=0.1,0.01"], "seeds": 2}
    one, two = (swept(project, to=str(jobs), jobs=jobs, **settings) for jobs in (1, 2))
    assert one.values == two.values


@pytest.mark.slow
def test_the_precision_of_the_evaluation_is_part_of_a_run(project):
    settings = {"over": ["optimizer.lr=0.01"], "tasks": ["tatoeba"]}
    swept(project, to="half", precision="bf16", **settings)
    known = read_results(next((project / "half").glob("*/seed-1")))
    assert known.settings["precision"] == "bfloat16"
    with pytest.raises(EvaluationError, match="other"):
        swept(project, to="half", **settings)
    with pytest.raises(EvaluationError, match="float16"):
        swept(project, to="never", precision="float16", **settings)
    assert not (project / "never").exists()


@pytest.mark.slow
def test_arms_of_a_design(project):
    """The dev score of an untrained arm is that of the encoder before the first step, which is random here."""
    design = {
        "title": "T",
        "recipe": str(project / "tiny.toml"),
        "control": "low",
        "set": ["steps=1"],
        "arms": [{"name": "untrained", "untrained": True}, {"name": "high"},
                 {"name": "low", "set": ["optimizer.lr=1e-9"]}],
        "columns": [
            {"name": "Tatoeba", "task": "tatoeba", "subset": "deu-eng", "metric": "accuracy/mean", "languages": "deu"},
            {"name": "both", "of": [
                {"task": "tatoeba", "subset": "deu-eng", "metric": f"accuracy/{way}"} for way in ("en-xx", "xx-en")
            ]},
        ],
    }  # fmt: skip
    made = swept(project, design, seeds=2)
    assert made.columns == ("dev", "Tatoeba", "both")
    assert {name: len(values) for name, values in made.values["dev"].items()} == {"untrained": 2, "high": 2, "low": 2}
    assert made.comparison.systems[0] == "low"
    assert made.values["both"] == {name: pytest.approx(values) for name, values in made.values["Tatoeba"].items()}
    # Steps of 1e-9 change no nearest neighbour, so each seed is what it was before the first step.
    assert made.values["dev"]["low"] == made.values["dev"]["untrained"]
    assert [row[0] for row in made.grids()[0].rows] == ["untrained", "high", "low"]
    plot_sweep(project / "out", project / "out.png")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('kind="static"', True),
        ('kind="static", model="m"', False),
        ('kind="transformer", model="m"', False),
        ('kind="transformer", model="m", dim=8', True),
        ('kind="twins", model="m", head="kept"', True),
        ('kind="towers", towers=[{name="a", model="m"}, {name="b", model="m"}]', False),
        ('kind="towers", towers=[{name="a", model="m"}, {name="b", model="m", dim=8}]', True),
    ],
)
def test_an_untrained_arm_depends_on_the_seed_if_it_begins_with_new_weights(settings, expected):
    encoder = recipes.load("demo/pairs", [f"encoder={{{settings}}}"]).encoder
    assert Arm(name="a", untrained=True).depends_on_seed(encoder) == expected
    assert Arm(name="a").depends_on_seed(encoder)


@pytest.mark.slow
def test_the_dev_score_of_an_arm_is_that_of_its_last_layer(project):
    design = {
        "recipe": str(project / "tiny.toml"),
        "arms": [{"name": "plain"}, {"name": "white", "fit": "whitening"}, {"name": "flow", "fit": "flow"}],
    }
    made = swept(project, design, keep=True, tasks=["tatoeba"])
    assert made.values["dev"] == made.values["tatoeba mean"]  # which is on the same data here
    assert made.values["dev"]["white"] != made.values["dev"]["plain"]


def test_the_dev_score_has_the_unit_and_direction_of_its_metric(project):
    """A distance of 0.5 was shown as 50.0."""
    arms = [{"name": "new", "untrained": True}, {"name": "trained"}]
    change = {"task": "centroids", "metric": "distance", "data": "pairs.tsv", "subset": ""}
    overrides = [f"evaluation.{key}={json.dumps(value)}" for key, value in change.items()]
    made = swept(project, {"recipe": str(project / "tiny.toml"), "arms": arms}, overrides=overrides, steps=1)
    (row,) = made.comparison.tables[0].rows
    assert (row.subset, row.unit, row.lower_is_better) == ("dev", "plain", True)
    assert [cells[2] for cells in made.grids()[0].rows] == [f"{value.mean:.3f}" for value in row.values]


def test_dev_scores_on_different_data_are_not_compared(project):
    """Two recipes that name the same folder, each beside itself."""
    (project / "other").mkdir()
    shutil.copytree(project / "dev", project / "other" / "dev")
    for name in ("pairs.tsv", "tiny.toml"):
        shutil.copy(project / name, project / "other" / name)
    arms = [{"name": name, "recipe": str(project / name / "tiny.toml")} for name in (".", "other")]
    assert swept(project, {"arms": arms}, tasks=["tatoeba"], steps=1).columns == ("tatoeba mean",)


MEAN = {"name": "c", "task": "tatoeba", "subset": "mean", "metric": "accuracy/mean"}


@pytest.mark.parametrize("names", [("base-wide", "base"), ("base",)])
def test_the_control_of_a_grid_has_the_first_of_all_values(project, names):
    arms = [{"name": name, "untrained": True, "set": [f"seed={at}"]} for at, name in enumerate(names)]
    design = {"recipe": str(project / "tiny.toml"), "control": "base", "arms": arms}
    made = swept(project, design, over=["optimizer.lr=1.0,2.0"], tasks=["tatoeba"])
    assert made.control == made.comparison.systems[0] == ("base, lr=1.0" if len(names) > 1 else "lr=1.0")


def test_marks_are_corrected_for_the_number_of_arms():
    """p is the larger one of items and seeds, by Holm over the arms that have one."""

    def difference(p, p_seeds, value=0.1):
        return Difference(value, None, p, p, value > 0, p_seeds, None if p_seeds is None else 2.0)

    changes = [
        difference(0.001, 0.01), difference(0.001, 0.02, -0.1), difference(0.04, 0.001), difference(0.03, None),
        difference(None, None),
    ]  # fmt: skip
    made = correct(changes)
    assert [change.corrected for change in made] == pytest.approx([0.04, 0.06, 0.06, 0.06, None])
    assert [(change.p, change.p_seeds) for change in made] == [(change.p, change.p_seeds) for change in changes]
    names = ["base", "one", "two", "three", "four", "five"]
    values = (Value(0.5, 0.01, None),) * len(names)
    row = Row("Tatoeba", 10, (), True, values, made)
    compared = Comparison(tuple(names), (3,) * 6, 100, 0, (Table("columns", "", 100, (row,)),), ())
    arms = tuple(Arm(name=name) for name in names)
    every = {"Tatoeba": dict.fromkeys(names, (0.5, 0.49, 0.51))}
    means, tests = Sweep("T", arms, "base", (1, 2, 3), ("Tatoeba",), compared, every).grids()
    assert [cells[2][-1] in "▲▼" for cells in means.rows] == [False, True, False, False, False, False]
    notes = " ".join(means.notes)
    assert "degrees of freedom: 2)" in notes
    assert "Holm over the 5 arms" in notes
    assert "Tatoeba: two ▼ 0.020; Tatoeba: three ▲ 0.040; Tatoeba: four ▲ 0.030" in notes
    assert [cells[3:] for cells in tests.rows] == [
        ("0.001", "0.010", "2", "0.040"), ("0.001", "0.020", "2", "0.060"), ("0.040", "0.001", "2", "0.060"),
        ("0.030", "no spread", "–", "0.060"), ("", "no spread", "–", "–"),
    ]  # fmt: skip


def test_runs_of_another_arm_or_of_other_data_are_not_read(project):
    arm, column = {"name": "a", "recipe": str(project / "tiny.toml"), "untrained": True}, MEAN | {"data": "one"}
    for place in ("one", "two"):
        shutil.copytree(project / "dev", project / place)
    permute(project / "two" / "tatoeba.deu-eng.deu")
    swept(project, {"arms": [arm], "columns": [column]}, files=project)
    for other in ({"arms": [arm], "columns": [column | {"data": "two"}]}, {"arms": [arm | {"untrained": False}]}):
        with pytest.raises(EvaluationError, match=r"differs in (tasks\.tatoeba|untrained)"):
            swept(project, {"columns": [column], **other}, files=project)
    with pytest.raises(RecipeError, match="tatoeba"):
        swept(project, {"arms": [arm], "columns": [column]}, to="new", files=project, tasks=["tatoeba"])


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ("pairs.tsv", "text"),
        ("tatoeba/tatoeba.deu-eng.deu", "tasks"),
        ("dev/tatoeba.deu-eng.deu", "dev"),
        ("tokenizer.json", "files"),
        ("no tokenizer.json", "files"),
        ("test.eng", "text"),
    ],
)
@pytest.mark.slow
def test_a_finished_run_is_read_again_only_for_the_same_content(project, changed, part):
    """Each file is replaced by one of the same size and modification time, as by `rsync -a` or `tar`, or is gone."""
    build_tokenizer().save(str(project / "tokenizer.json"))
    (project / "test.eng").write_text("red cats\ngreen dog\n")
    settings = {
        "tasks": ["tatoeba"],
        "overrides": [f'encoder.tokenizer="{project / "tokenizer.json"}"', f'streams.0.leakage=["{project}/test.eng"]'],
    }  # fmt: skip
    design = {"arms": [{"name": "a", "recipe": str(project / "tiny.toml"), "untrained": True}]}
    first = swept(project, design, **settings)
    assert swept(project, design, **settings).values == first.values
    if changed.startswith("no "):
        (project / changed.removeprefix("no ")).unlink()
    elif changed.endswith(".json"):
        replace_unseen(project / changed, (project / changed).read_bytes().replace(b"<mask>", b"<MASK>"))
    elif changed == "test.eng":
        replace_unseen(project / changed, b"blue cat\nwhite dog\n")
    else:
        permute(project / changed)
    with pytest.raises(EvaluationError, match=f"differs in {part}"):
        swept(project, design, **settings)
    if not changed.startswith("no "):
        assert swept(project, design, to="new", **settings).columns == first.columns


def test_a_model_is_scored_again_when_its_weights_have_changed(project):
    for name, seed in (("model", 1), ("other", 2)):
        StaticEncoder.create(build_tokenizer(), 8, seed=seed).save(project / name)
    design = {"arms": [{"name": "a", "model": str(project / "model")}]}
    first = swept(project, design, tasks=["tatoeba"])
    assert swept(project, design, tasks=["tatoeba"]).values == first.values
    replace_unseen(project / "model" / "model.safetensors", (project / "other" / "model.safetensors").read_bytes())
    with pytest.raises(EvaluationError, match="differs in model"):
        swept(project, design, tasks=["tatoeba"])


@pytest.mark.parametrize("place", ["out/a/seed-1", "out/a/seed-1/model"])
def test_a_model_that_is_scored_is_not_removed(project, place):
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(project / place)
    before = {path: path.read_bytes() for path in (project / place).rglob("*") if path.is_file()}
    with pytest.raises(OutputError, match="input"):
        swept(project, {"arms": [{"name": "a", "model": str(project / place)}]}, tasks=["tatoeba"])
    assert {path: path.read_bytes() for path in (project / place).rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"control": "hihg"}, "high"),
        ({"arms": [{"name": "a", "recipe": "x"}, {"name": "a", "recipe": "y"}]}, "a"),
        ({"arms": []}, "arms"),
        ({"recipe": "", "arms": [{"name": "bare"}]}, "bare"),
        ({"columns": [{"name": "c", "task": "tatoeba"}]}, "columns.0"),
        ({"tilte": "x"}, "tilte"),
        ({"columns": [MEAN, MEAN]}, "'c'"),
        ({"columns": [MEAN, MEAN | {"name": "d", "data": "other"}]}, "columns of tatoeba name different data"),
        ({"columns": [MEAN, MEAN | {"name": "d", "languages": "deu"}]}, "different languages"),
    ],
)
def test_wrong_designs(changes, place):
    with pytest.raises(RecipeError, match=place):
        parse_design({"recipe": "cpu/mpcl", "arms": [{"name": "high"}], **changes})


def test_mistakes_are_found_before_the_first_run(project, monkeypatch):
    monkeypatch.setattr(module, "train", None)
    wrong = {"name": "second", "set": ['streams.0.objectives=[{name="info_nce", scale=1.0}]']}
    with pytest.raises(RecipeError, match=r"streams\.train\.objectives\.0\.scale"):
        swept(project, {"recipe": str(project / "tiny.toml"), "arms": [{"name": "first"}, wrong]})
    for settings, error, message in (
        ({"over": ["optimizer.lrr=1,2"]}, RecipeError, r"optimizer\.lrr"),
        ({"over": ["optimizer.lr"]}, RecipeError, "--over"),
        ({"over": ["optimizer.lr=1,1"]}, RecipeError, "same name"),
        ({"overrides": ["evaluation=[]"]}, RecipeError, "evaluation"),
        ({"tasks": ["sts17"]}, EvaluationError, "sts17"),
        ({"steps": -1}, ValueError, "steps"),  # fewer steps than none were none
        *((wrong, ValueError, next(iter(wrong))) for wrong in ({"jobs": 0}, {"seeds": 0}, {"seeds": [-1]})),
    ):
        with pytest.raises(error, match=message):
            swept(project, **settings)
    with pytest.raises(RecipeError, match="'dev'"):
        swept(
            project,
            {"recipe": str(project / "tiny.toml"), "arms": [{"name": "a"}], "columns": [MEAN | {"name": "dev"}]},
        )
    assert not (project / "out").exists()


def test_columns_of_equal_names_keep_their_own_values(project):
    column = {"name": "tatoeba mean", "task": "tatoeba", "subset": "mean", "metric": "f1/xx-en"}
    design = {"recipe": str(project / "tiny.toml"), "arms": [{"name": "a", "untrained": True}], "columns": [column]}
    made = swept(project, design, tasks=["tatoeba"])
    assert made.columns == ("dev", "tatoeba mean", "task tatoeba mean")
    (scores,) = (read_results(folder) for folder in (project / "out" / "a").iterdir())
    metrics = "f1/xx-en", "accuracy/mean"
    expected = [[scores["tatoeba", "mean", metric].value] for metric in metrics]
    assert [made.values[column]["a"] for column in made.columns[1:]] == expected
    assert expected[0] != expected[1]


def test_entries_of_a_file(tmp_path):
    path = tmp_path / "designs.toml"
    path.write_text('[one]\nrecipe = "cpu/mpcl"\narms = [{name = "a"}]\n')
    assert read_design(path, "one").arms[0].name == "a"
    with pytest.raises(RecipeError, match="one"):
        read_design(path, "on")
    with pytest.raises(RecipeError, match=r"designs\.toml.*--entry.*one"):
        read_design(path)
    column = '{name = "c", task = "tatoeba", subset = "mean", metric = "accuracy/mean"}'
    shared = f'[one]\nrecipe = "cpu/mpcl"\nset = ["steps=3"]\narms = [{{name = "a"}}]\ncolumns = [{column}]\n'
    path.write_text(f'{shared}[two]\nrecipe = "cpu/joint"\nset = "one"\ncolumns = "one"\narms = [{{name = "b"}}]\n')
    one, two = read_design(path, "one"), read_design(path, "two")
    assert (two.set, two.columns) == (one.set, one.columns) == (("steps=3",), one.columns)
    assert (two.recipe, two.arms[0].name) == ("cpu/joint", "b")
    for key in ("set", "columns"):
        path.write_text(f'{shared}[two]\nrecipe = "cpu/joint"\n{key} = "on"\narms = [{{name = "b"}}]\n')
        with pytest.raises(RecipeError, match=rf"two: {key}: .*one"):
            read_design(path, "two")
    (tmp_path / "recipe.toml").write_text('name = "a"\nsteps = 1\n')
    with pytest.raises(RecipeError, match=r"recipe\.toml: arms: missing"):
        read_design(tmp_path / "recipe.toml")
    with pytest.raises(RecipeError, match=r"missing\.toml"):
        read_design(tmp_path / "missing.toml")


def test_a_grid_has_no_models():
    """One was an arm for each value, with equal scores, by whose number p was corrected."""
    with pytest.raises(RecipeError, match="glove"):
        arms_over([Arm(name="a"), Arm(name="glove", model="glove-6b-50d")], ["optimizer.lr=0.1,0.2"])


def test_values_are_those_of_toml_or_bare_words():
    arms = arms_over([Arm(name="m", recipe="r")], ["a.tcm=paper,code", "b.size=[1, 2],[3]"])
    assert arms[0].set == ('a.tcm="paper"', "b.size=[1, 2]")
    assert [arm.set for arm in arms_over([Arm(name="m", recipe="r")], ["a.x=2,two"])] == [("a.x=2",), ('a.x="two"',)]
    assert [arm.name for arm in arms] == [f"tcm={t}, size={s}" for t in ("paper", "code") for s in ("[1, 2]", "[3]")]


@pytest.mark.parametrize("name", ["methods.toml", "papers.toml"])
def test_the_project_s_own_designs_are_valid(name):
    """Recipes, changes and tasks of a file in scripts, checked without their data."""
    path = Path(__file__).parents[2] / "scripts" / name
    for entry in tomllib.loads(path.read_text(encoding="utf-8")):
        design = read_design(path, entry)
        for arm in design.arms:
            if not arm.model:
                recipes.load(arm.recipe or design.recipe, (*design.set, *arm.set))
        for _, (task, _, metric) in design.scores:
            assert metric in {one.name for one in TASKS[task].metrics}, (entry, task)


KILLED = """
import sys
from isoglot.training.sweep import sweep

if __name__ == "__main__":
    sweep(sys.argv[1], sys.argv[2], over=["optimizer.lr=0.1,0.01"], seeds=1, jobs=2, report=lambda message: None)
"""


def _session(number: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            state, _, _, session, *_ = path.read_text().rpartition(")")[2].split()
            if int(session) == number and state != "Z":
                found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc on this system")
def test_runs_end_with_a_killed_parent(project):
    endless = project / "endless.toml"
    endless.write_text((project / "tiny.toml").read_text().replace("steps = 6", "steps = 100000000"))
    (project / "parent.py").write_text(KILLED)
    parent = subprocess.Popen([sys.executable, project / "parent.py", endless, project / "out"], start_new_session=True)
    try:
        _until(lambda: len([*project.glob("out/*/seed-1/log.jsonl")]) == 2)
        parent.kill()
        parent.wait()
        _until(lambda: not _session(parent.pid))
    finally:
        for process in _session(parent.pid):
            os.kill(process, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["error", "interrupt", "terminate"])
def test_no_run_begins_after_an_error_or_a_signal(project, end):
    """Those that train end, also with a parent that alone received SIGTERM; with `--quiet` stderr has the error
    alone."""
    endless = project / "endless.toml"
    endless.write_text((project / "tiny.toml").read_text().replace("steps = 6", "steps = 100000000"))
    rates, out = ["0.1", "0.2", "0.3"], project / "out"
    call = [sys.executable, "-m", "isoglot", "sweep", endless, "--over", f"optimizer.lr={','.join(rates)}"]
    call += ["--data", project, "--seeds", "1", "--jobs", "2", "--output", out, "--quiet"]
    broken = out / "lr=0.2" / "seed-1"
    if end == "error":
        broken.mkdir(parents=True)
        (broken / "results.json").write_text("{}")
    parent = subprocess.Popen(call, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        if end != "error":
            _until(lambda: len([log for log in out.glob("*/seed-1/log.jsonl") if log.stat().st_size]) == 2)
            os.killpg(parent.pid, signal.SIGINT) if end == "interrupt" else parent.terminate()
        _, errors = parent.communicate(timeout=120)
    finally:
        for process in _session(parent.pid):
            os.kill(process, signal.SIGKILL)
    assert parent.returncode == {"error": 1, "interrupt": 130, "terminate": 143}[end]
    assert len(errors.splitlines()) == 1, errors
    assert (str(broken) in errors) == (end == "error")
    assert not (out / "lr=0.3").exists()


def _until(true: Callable[[], bool], patience: float = 120) -> None:
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end
        time.sleep(0.2)
