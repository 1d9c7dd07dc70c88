"""Every packaged recipe: it parses, and every reader, objective and task it names exists and takes its options.

No data file is opened: paths lead into an empty folder, where a reader that took its options can only miss its file.
"""

import pytest

from isoglot import objectives
from isoglot.core.errors import CorpusError
from isoglot.data.readers import READERS, read
from isoglot.evaluation import TASKS
from isoglot.objectives import build
from isoglot.training import recipe as recipes
from isoglot.training.plan import corpus_of
from toys import TOY_LANGUAGES, TOY_SIZES, ToyEncoder

NAMES = list(recipes.names())
PAPER = [name for name in NAMES if name.startswith("paper/")]
FILES = ("vectors", "entities")  # options that are paths
MISSING = "no such file|no such folder|not a folder|no pair|no files? |two files are needed"


def streams(recipe):
    return [stream for stage in recipe.stages for stream in stage.streams]


@pytest.mark.parametrize("name", NAMES)
def test_all_that_it_names_exists_and_takes_its_options_and_it_is_shown_whole(name, tmp_path):
    recipe, shown = recipes.load(name), recipes.show(name)
    assert shown.startswith("# ")
    whole = recipes.tomllib.loads(shown)
    assert not {"extends", "variants"} & set(whole)
    assert recipes.parse(whole, folder=recipe.folder) == recipe
    assert recipes.describe(name) == recipe.description
    assert recipe.description
    assert recipes.text(name).startswith("# ")
    assert all(evaluation.task in TASKS for evaluation in recipe.evaluation)
    data = recipes.text(name)
    assert not any(word in data for word in ("/home", "/" + "work/", "/" + "root/", "http"))
    for stream in streams(recipe):
        corpus_of(recipe, stream)  # names that tell the sources apart
        for source in stream.sources:
            READERS.check(source.reader, source.options)
            with pytest.raises(CorpusError, match=MISSING):
                next(read(source.reader, tmp_path / "nothing" / "here", **source.options))
        for objective in stream.objectives:
            objectives.OBJECTIVES.check(objective.name, objective.options)
            options = {key: value for key, value in objective.options.items() if key not in FILES}
            if options.get("missing") == "error":
                options["missing"] = "random"
            if "priority" in options:
                assert len(options.pop("priority")) > 1  # names languages of the corpus, which is not there
            build(objective.name, options, ToyEncoder(), languages=TOY_LANGUAGES, sizes=TOY_SIZES)


def parts(name):
    """What stands in a recipe, without what only says what it is."""
    data = recipes.tomllib.loads(recipes.show(name))
    return {key: value for key, value in data.items() if key not in ("name", "description")}


@pytest.mark.parametrize("name", [name for name in PAPER if f"{name}-single" in PAPER])
def test_a_control_of_mpcl_differs_in_rows_and_loss_alone(name):
    """The paper: the same sentences, "the only difference being their structure"."""
    method, control = parts(name), parts(f"{name}-single")
    main, other = (recipe.get("stages", [recipe])[-1]["streams"][0] for recipe in (method, control))
    assert (main.pop("batching"), other.pop("batching")) == ({"size": 128}, {"size": 128, "rows": "matching"})
    assert main.pop("objectives")[0]["name"] == "multi_positive"
    assert other.pop("objectives") == [{"name": "info_nce", "temperature": 0.05}]
    assert method == control


SOFT = [name for name in NAMES if name.startswith(("paper/soft-contrastive-", "cpu/soft-contrastive"))]


@pytest.mark.parametrize("name", SOFT)
def test_the_slots_of_soft_contrastive_alignment_are_languages(name):
    """Or TCM, the similarities within a language, would be of sentences in both."""
    assert {stream.batching.anchor for stream in streams(recipes.load(name))} == {"first"}


@pytest.mark.parametrize("pair", ["en-ko", "en-fr", "en-ja", "en-ru"])
@pytest.mark.parametrize("control", ["hard", "mse"])
def test_a_control_of_soft_contrastive_alignment_differs_in_the_objective_alone(control, pair):
    method, other = parts(f"paper/soft-contrastive-{pair}"), parts(f"paper/soft-contrastive-{control}-{pair}")
    assert method["streams"][0].pop("objectives") != other["streams"][0].pop("objectives")
    teacher = method["streams"][0].pop("teacher")
    assert other["streams"][0].pop("teacher", None) == (None if control == "hard" else teacher)
    assert method == other


def test_simcse_keeps_its_layer_where_its_scripts_do():
    heads = {name: recipes.load(name).encoder.head for name in NAMES if name.startswith("paper/simcse-")}
    assert {name.split("-")[1]: head for name, head in heads.items()} == {"unsupervised": "tanh", "supervised": "kept"}


def test_every_paper_of_the_project_has_its_recipes():
    for method in ("mpcl", "dual-momentum", "msimcse", "soft-contrastive", "ease"):
        assert any(name.startswith(f"paper/{method}") for name in NAMES), method
        assert any(method in recipes.text(name).lower().replace(" ", "-") for name in NAMES if name.startswith("cpu/"))
