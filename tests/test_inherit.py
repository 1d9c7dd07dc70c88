"""Recipes that extend others: the rules of merging, families in one file, paths, and errors that name the file."""

from pathlib import Path

import pytest

from isoglot.core.errors import RecipeError
from isoglot.training.recipe import DEEPEST, PACKAGED, load, merge, names, parse, show, text

BASE = """
# What all of them share.
name = "base"
epochs = 1
[encoder]
kind = "static"
tokenizer = "tokenizer.json"
[[streams]]
sources = [{reader = "tsv", path = "pairs.tsv"}, {reader = "tsv", path = "data:more.tsv", name = "more"}]
leakage = ["test.txt", "bundled:dev"]
deduplicate = false # repetitions count
objectives = [{name = "info_nce", temperature = 0.05}]
[optimizer]
lr = 0.01 # the highest
[[evaluation]]
name = "one"
data = "dev.tsv"
[[evaluation]]
name = "two"
data = "data:dev"
[variants.wide] # four times as wide
encoder.dim = 1024
[variants.wide-slow]
extends = "base-wide.toml"
optimizer.lr = 0.001
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "base.toml").write_text(BASE)
    return tmp_path


def write(folder, text, name="mine.toml"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("base", "new", "merged"),
    [
        ({"a": 1, "t": {"b": 2, "c": 3}}, {"t": {"c": 4, "d": 5}}, {"a": 1, "t": {"b": 2, "c": 4, "d": 5}}),
        ({"l": [1, 2]}, {"l": [3]}, {"l": [3]}),
        ({"e": {"kind": "x", "a": 1}}, {"e": {"kind": "y", "b": 1}}, {"e": {"kind": "y", "b": 1}}),
        ({"e": {"kind": "x", "a": 1}}, {"e": {"kind": "x", "b": 1}}, {"e": {"kind": "x", "a": 1, "b": 1}}),
        ({"l": [{"name": "p", "v": 1}, {"v": 2}]}, {"l": {"p": {"v": 3}}}, {"l": [{"name": "p", "v": 3}, {"v": 2}]}),
        ({"l": [{"v": 1}, {"v": 2}]}, {"l": {"1": {"v": 3}}}, {"l": [{"v": 1}, {"v": 3}]}),
        ({"l": [{"v": 1}]}, {"l": {"1": {"v": 3}}}, {"l": [{"v": 1}, {"v": 3}]}),
        ({"l": [{"v": 1}, {"v": 2}, {"v": 3}]}, {"l": {"0": False, "2": {"v": 4}}}, {"l": [{"v": 2}, {"v": 4}]}),
        ({"streams": [{"v": 1}]}, {"streams": {"train": {"v": 2}}}, {"streams": [{"v": 2}]}),
        ({"a": 1, "t": {"b": 2}}, {"a": False, "t": False}, {}),
        ({"a": True}, {"a": False, "b": False}, {"a": False, "b": False}),
    ],
)
def test_what_is_written_is_merged_over_the_base(base, new, merged):
    kept = repr((base, new))
    assert merge(base, new, "here") == merged
    assert repr((base, new)) == kept


@pytest.mark.parametrize("name", ["three", "2x", "9", "task"])
def test_an_element_that_is_not_there_is_named_with_those_that_are(folder, name):
    mine = write(folder, f'extends = "base.toml"\nevaluation.{name}.every = 5')
    with pytest.raises(RecipeError, match=rf"mine\.toml: evaluation\.{name}: .*\(one, two, 0, 1\)"):
        load(mine)


def test_differences_and_overrides_are_over_the_base(folder):
    mine = write(
        folder, 'extends = "base.toml"\nname = "mine"\nstreams.train.batching.size = 8\nevaluation.two = false'
    )
    recipe = load(mine, ["optimizer.lr=0.5"])
    assert recipe.name == "mine"
    stage = recipe.stages[0]
    assert (stage.streams[0].batching.size, stage.streams[0].deduplicate, stage.optimizer.lr) == (8, False, 0.5)
    assert [evaluation.name for evaluation in recipe.evaluation] == ["one"]
    assert recipe.folder == folder
    assert load(folder / "base.toml").stages[0].streams[0].batching.size == 128


def test_a_variant_extends_its_file_or_what_it_names(folder):
    assert load(folder / "base-wide.toml").encoder.dim == 1024
    slow = load(folder / "base-wide-slow.toml")
    assert (slow.encoder.dim, slow.stages[0].optimizer.lr) == (1024, 0.001)
    assert load(folder / "base.toml").encoder.dim == 256


def test_a_recipe_extends_a_packaged_one_whose_files_are_beside_it(tmp_path):
    mine = write(tmp_path, 'extends = "paper/mpcl-labse"\nstages.main.optimizer.lr = 1e-4')
    recipe = load(mine)
    assert recipe.stages[0].optimizer.lr == 1e-4
    assert recipe.resolve(recipe.stages[0].streams[0].sources[0].path) == tmp_path / "XNLI-MT-1.0" / "multinli"


def test_settings_from_python_extend_too(folder):
    recipe = parse({"extends": "base.toml", "seed": 3}, folder=folder)
    assert (recipe.seed, recipe.name) == (3, "base")


def test_paths_stay_relative_to_the_file_that_wrote_them(folder):
    (folder / "model").mkdir()
    write(folder, BASE.replace('kind = "static"', 'kind = "transformer"\nmodel = "model"').replace("tokenizer", "#"))
    near = load(write(folder, 'extends = "../base.toml"\nstreams.0.sources.more.path = "own.tsv"', "sub/mine.toml"))
    stream = near.stages[0].streams[0]
    assert [near.resolve(source.path) for source in stream.sources] == [
        folder / "pairs.tsv",
        folder / "sub" / "own.tsv",
    ]
    assert near.resolve(stream.leakage[0]) == folder / "test.txt"
    assert stream.leakage[1] == "bundled:dev"
    assert near.resolve(near.encoder.tokenizer) == folder / "tokenizer.json"
    assert near.resolve(near.evaluation[0].data) == folder / "dev.tsv"
    assert near.evaluation[1].data == "data:dev"
    model = load(write(folder, 'extends = "../mine.toml"', "sub/next.toml")).encoder.model
    assert Path(model) == folder / "model"
    write(folder, (folder / "mine.toml").read_text().replace('model = "model"', 'model = "a/hub-id"'))
    assert load(folder / "sub" / "next.toml").encoder.model == "a/hub-id"


@pytest.mark.parametrize(
    ("own", "where", "what"),
    [
        ("optimizer.lr = -2", "mine.toml: optimizer.lr", "-2"),
        ("streams.0.sizes = 4", "mine.toml: streams.0.sizes", "no such setting"),
        ("seed = 3", "base.toml: variants.wide: encoder.dim", "-1"),
        ("encoder.dim = 3", "base.toml: evaluation.every", "'x'"),
        ("encoder.dim = 3\nevaluation = false\nvariants.x = {}\nsteps = 3", "mine.toml: ", "exactly one of epochs"),
    ],
)
def test_an_error_names_the_file_that_wrote_the_value(folder, own, where, what):
    base = BASE.replace("1024", "-1").replace('data = "dev.tsv"', 'data = "dev.tsv"\nevery = "x"')
    write(folder, base, "base.toml")
    with pytest.raises(RecipeError) as caught:
        load(write(folder, f'extends = "base-wide.toml"\n{own}'))
    assert where in str(caught.value)
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"mine": 'extends = "mine.toml"'}, ["mine.toml"]),
        ({"mine": 'extends = "a.toml"', "a": 'extends = "b.toml"', "b": 'extends = "mine.toml"'}, ["a.toml", "b.toml"]),
        ({"mine": 'extends = "mine-x.toml"\n[variants.x]'}, ["variants.x", "mine.toml"]),
        ({"mine": 'extends = "nosuch.toml"'}, ["mine.toml", "nosuch.toml"]),
        ({"mine": 'extends = "paper/mpcl-labs"'}, ["mine.toml", "did you mean 'paper/mpcl-labse'"]),
        ({"mine": 'extends = "bass.toml"'}, ["mine.toml", "did you mean 'base.toml'"]),
        ({"mine": 'extends = "base-wild.toml"'}, ["mine.toml", "did you mean 'base-wide.toml'"]),
        ({"mine": 'extends = "bad.toml"', "bad": "lr = = 3"}, ["bad.toml", "line 1"]),
        ({"mine": "extends = 3"}, ["mine.toml", "extends", "3"]),
        ({"mine": "variants = 3"}, ["mine.toml", "variants"]),
        ({"mine": "epochs = 3\n[variants.a]\n[variants.b]"}, ["mine-a.toml", "mine-b.toml"]),
        (
            {"mine": 'extends = "d0.toml"'} | {f"d{n}": f'extends = "d{n + 1}.toml"' for n in range(DEEPEST + 1)},
            ["mine.toml", f"d{DEEPEST - 2}.toml"],
        ),
    ],
)
def test_bases_that_lead_nowhere_are_one_error_with_the_files(folder, files, named):
    for name, words in files.items():
        write(folder, words, f"{name}.toml")
    with pytest.raises(RecipeError) as caught:
        load(folder / "mine.toml")
    assert all(word in str(caught.value) for word in named)


def test_what_is_shown_begins_with_the_comments_of_its_files(folder):
    write(folder, '# Mine.\nextends = "base-wide.toml"\noptimizer.lr = 0.5\nseed = 3 # of three\n')
    shown = show(folder / "mine.toml").splitlines()
    assert shown[0] == "# Mine."
    assert {"# What all of them share.", "seed = 3", "lr = 0.5"} <= {*shown}


def test_the_file_itself_can_be_had(folder):
    assert text(folder / "base-wide.toml") == BASE
    assert show("demo/pairs") == text("demo/pairs")


def test_a_family_is_listed_by_its_recipes():
    known = [*names()]
    assert len(known) == len(set(known))
    assert {"paper/mpcl-labse", "paper/mpcl-xlm-r-single", "cpu/soft-contrastive", "cpu/soft-contrastive-code"} <= {
        *known
    }
    assert "paper/mpcl" not in known
    assert (PACKAGED / "paper" / "mpcl.toml").is_file()
    with pytest.raises(RecipeError, match="paper/mpcl-labse"):
        load("paper/mpcl")


def test_paths_in_options_of_objectives_stay_relative_to_the_file_that_wrote_them(tmp_path):
    (tmp_path / "bases" / "wikipedia").mkdir(parents=True)
    base = tmp_path / "bases" / "base.toml"
    base.write_text(
        'name = "base"\nsteps = 1\nencoder = { kind = "static" }\noptimizer = { lr = 1.0 }\n[[streams]]\n'
        'sources = [{ reader = "entities", path = "wikipedia" }]\n'
        'objectives = [{ name = "entity_contrast", entities = "wikipedia", vectors = "elsewhere.npy" }]\n'
    )
    (tmp_path / "mine.toml").write_text('extends = "bases/base.toml"\nname = "mine"\n')
    (objective,) = load(tmp_path / "mine.toml").stages[0].streams[0].objectives
    assert objective.options["entities"] == str(tmp_path / "bases" / "wikipedia")
    assert objective.options["vectors"] == "elsewhere.npy"
    assert objective.name == "entity_contrast"
