"""Any value in the place of any other, in every packaged recipe: it validates, or it is one RecipeError.

What validates is also built: objectives on a toy encoder, and dev tasks looked up. Nothing is read and nothing trained.
"""

import copy
import math
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isoglot import objectives
from isoglot.core.errors import CorpusError, RecipeError
from isoglot.data.readers import READERS
from isoglot.training import recipe as recipes
from isoglot.training.best import choices_of
from toys import TOY_LANGUAGES, TOY_SIZES, ToyEncoder

RECIPES = {name: recipes.tomllib.loads(recipes.text(name)) for name in recipes.names()}
ODD = (math.nan, math.inf, -math.inf)
EXTREME = [*ODD, 0, -1, 1, 0.0, -0.0, 1e-300, 1e300, 5e-324, 2**31, 2**63, -(2**63), 2**64, 10**400, -(10**400), True]
EXTREME += ["", "\0", "a" * 5000, "nan", "3", "../..", [], {}, [[]], [0], [""], {"a": 1}, {"": ""}, [{}], [math.nan]]

values = st.recursive(
    st.sampled_from(EXTREME) | st.integers() | st.floats() | st.booleans() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def places(data, start=()):
    """The path of every value, tables and lists included."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield (*start, key)
        yield from places(value, (*start, key))


PLACES = [(name, path) for name, data in RECIPES.items() for path in places(data)]
SETTINGS = ["encoder.max_length", "encoder.scale", "optimizer.eps", "optimizer.weight_decay", "optimizer.betas"]
SETTINGS += ["optimizer.clip", "optimizer.stairs", "optimizer.stair", "optimizer.warmup", "optimizer.accumulate"]
SETTINGS += ["encoder.dim", "encoder.vocabulary", "seed", "epochs", "steps", "checkpoint_every", "memory.chunk_tokens"]
SETTINGS += [f"streams.0.batching.{name}" for name in ("size", "tokens", "pool", "most", "hard_negatives", "views")]
SETTINGS += [f"streams.0.{name}" for name in ("batching.temperature", "largest", "join", "name", "languages")]
SETTINGS += ["streams.0.objectives.0.weight", "streams.0.objectives.0.temperature", "streams.0.sources.0.weight"]
SETTINGS += ["streams.0.sources.0.languages", "streams.0.objectives.0.hard_negative_weight", "optimizer.lr"]
SETTINGS += [f"encoder.{name}" for name in ("layers", "train_layers", "adapter")] + ["name", "folder"]
SETTINGS += [f"evaluation.{name}" for name in ("every", "patience", "task", "languages")]
DEFAULT = recipes.tomllib.loads(recipes.text("demo/pairs"))


def built(data):
    """Whether a recipe is one that can be begun; False for a RecipeError, and any other error is a fault."""
    try:
        recipe = recipes.parse(data)
        for stream in (stream for stage in recipe.stages for stream in stage.streams):
            for source in stream.sources:
                READERS.check(source.reader, source.options)
            for one in stream.objectives:
                objectives.build(one.name, one.options, ToyEncoder(), languages=TOY_LANGUAGES, sizes=TOY_SIZES)
        choices_of(recipe)
    except (RecipeError, CorpusError) as error:  # a CorpusError: a file of vectors that is not there
        found = str(error)
    else:
        return True
    assert len(found) < 2000
    return False


def replaced(data, path, value):
    data = copy.deepcopy(data)
    *parents, last = path
    inner = data
    for part in parents:
        inner = inner[part] if isinstance(inner, list) else inner.setdefault(part, {})
    inner[last] = copy.deepcopy(value)
    return data


def finite(value):
    if isinstance(value, dict | list):
        return all(map(finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


@given(place=st.sampled_from(PLACES), value=values)
@example(place=("demo/pairs", ("streams", 0, "objectives", 0, "temperature")), value=1e-300)
def test_any_value_anywhere_validates_or_is_a_recipe_error(place, value):
    name, path = place
    data = RECIPES[name]
    if built(replaced(data, path, value)):
        assert finite(value), f"{path} of {name} took {value!r}"


def whole(place):
    return tuple(int(part) if part.isdigit() else part for part in place.split("."))


@pytest.mark.parametrize("place", SETTINGS)
def test_extremes_of_each_setting(place):
    assert built(DEFAULT)
    for value in EXTREME:
        if built(replaced(DEFAULT, whole(place), value)):
            assert finite(value), f"{place} took {value!r}"
            assert isinstance(value, bool) == place.endswith("join"), f"{place} took {value!r}"
            assert not isinstance(value, int) or value < 2**33, f"{place} took {value!r}"


OPTIONS = {
    "info_nce": {"temperature": 1e-5, "hard_negative_weight": math.nan},
    "additive_margin": {"temperature": 1e9, "margin": -1},
    "contrastive_tension": {"negatives": 10**9},
    "dual_momentum": {"momentum": 1.5, "queue": 0, "seed": -1},
    "entity_contrast": {"dim": 10**6, "own_hard_weight": math.inf, "temperature": 0},
    "multi_positive": {"temperature": -1, "rescale": True},
    "pair_softmax": {"layers": 10**6, "hidden": 0, "dropout": 1.0, "classes": 10**9, "seed": 2**40},
    "soft_contrastive": {"tcm_lambda": 0, "teacher_temperature": math.nan, "priority": "eng"},
    "distillation": {"student": 1},
}


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, given in OPTIONS.items() for option in given])
def test_an_option_out_of_range_names_its_key(name, option):
    with pytest.raises(RecipeError, match=f"here.*{option}"):
        objectives.build(
            name, {option: OPTIONS[name][option]}, ToyEncoder(), languages=TOY_LANGUAGES, sizes=TOY_SIZES, where="here"
        )


@pytest.mark.parametrize("name", objectives.OBJECTIVES)
def test_no_objective_takes_what_is_not_a_value(name):
    options = objectives.OBJECTIVES.options_of(name)
    assert options
    for option in options:
        with pytest.raises(RecipeError, match=f"here.*{option}"):
            objectives.OBJECTIVES.check(name, {option: math.nan}, where="here")


@pytest.mark.parametrize(
    ("reader", "option", "value"),
    [
        ("tsv", "languages", 3),
        ("moses", "skip_empty", "yes"),
        ("xnli", "mode", "all"),
        ("entities", "seed", 2**63),
        ("dataset", "columns", {"eng": 1}),
    ],
)
def test_a_reader_option_of_a_wrong_type_names_its_key(reader, option, value):
    with pytest.raises(RecipeError, match=rf"streams\.x\.{option}: .* is not "):
        READERS.check(reader, {option: value}, where="streams.x")


words = st.text(alphabet="abstreamoizlr01.=-_\"[]{}', \n\0é", max_size=30)
PATHS = ["streams.-1.name", "a..b", "streams.999999999.x", "streams.０.name", ".", "", "optimizer.", "name.x", "folder"]


@given(
    path=st.sampled_from([*PATHS, *SETTINGS]) | words,
    word=words | st.sampled_from(["nan", "1e400", "1\nx=2", "[" * 9999]),
)
def test_any_override_validates_or_is_a_recipe_error(path, word):
    with suppress(RecipeError):
        assert recipes.load("demo/pairs", [f"{path}={word}"]).stages


STRANGE_VALUES = ["1\nother = 2", "9" * 5000, "[" * 5000, "0x" + "f" * 9000]


@pytest.mark.parametrize(
    "override",
    [*(f"{path}=1" for path in [*PATHS, "a" + ".a" * 5000]), *(f"seed={word}" for word in STRANGE_VALUES)],
    ids=lambda override: override[:20],
)
def test_strange_paths_and_values_are_refused(override):
    with pytest.raises(RecipeError):
        recipes.load("demo/pairs", [override])


@pytest.mark.parametrize(
    "content",
    [
        b"name = '\xff'",
        b"a = " + b"[" * 20000,
        b"[" + b"a." * 3000 + b"a]",
        b"seed = " + b"9" * 5000,
        b"seed = 0x" + b"f" * 9000,
        b"name = 1979-99-99",
        b"# a comment\n" * 100_000,
        b"\x00",
    ],
    ids=["not UTF-8", "deep lists", "deep tables", "huge number", "huge hex", "a date", "large", "NUL"],
)
def test_a_file_that_is_no_recipe_is_one_line_with_its_name(tmp_path, content):
    (tmp_path / "odd.toml").write_bytes(content)
    with pytest.raises(RecipeError, match=r"odd\.toml: ") as caught:
        recipes.load(tmp_path / "odd.toml")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000, "", "\n"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(RecipeError, match="neither a file nor a packaged recipe"):
        recipes.load(name)
