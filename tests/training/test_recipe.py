"""Recipes: what is accepted, and what an error says."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from conftest import replace_unseen
from isoglot.core.errors import IsoglotError, RecipeError
from isoglot.data.batching import Mixing
from isoglot.evaluation.tasks.retrieval import AVERAGES
from isoglot.training.plan import corpus_of, make_plan
from isoglot.training.recipe import dumps, load, parse, tomllib

MINIMAL = """
name = "mine"
epochs = 1
[encoder]
kind = "static"
[[streams]]
sources = [{reader = "tsv", path = "pairs.tsv", languages = ["eng", "deu"]}]
objectives = [{name = "info_nce", temperature = 0.05}]
[optimizer]
lr = 0.01
"""

STREAM = '{sources = [{reader = "tsv", path = "x"}], objectives = [{name = "info_nce"}]}'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL)
    return path


def test_one_stage_is_written_at_the_top(file):
    recipe = load(file)
    assert recipe.stages[0].epochs == 1
    assert recipe.stages[0].optimizer.lr == 0.01
    source = recipe.stages[0].streams[0].sources[0]
    assert source.options == {"languages": ["eng", "deu"]}
    assert recipe.resolve(source.path) == file.parent / "pairs.tsv"
    assert recipe.resolve("bundled:x").parent.name == "bundled"


def test_a_recipe_may_begin_with_a_byte_order_mark(file):
    content = file.read_text(encoding="utf-8")
    expected = load(str(file))
    file.write_text(content, encoding="utf-8-sig")
    assert load(str(file)) == expected


def test_a_set_of_the_catalogue_is_a_source_by_its_name(file):
    source = '{set = "xcopa", cap = 9, most = 3, sample = 5, seed = 2, weight = 0.5, language = "vie"}'
    recipe = load(file, [f"streams.0.sources.0={source}", f'data="{file.parent}"'])
    (found,) = corpus_of(recipe, recipe.stages[0].streams[0]).sources
    assert (found.name, found.reader, found.path) == ("xcopa", "jsonl", file.parent / "xcopa" / "groups.jsonl")
    assert found.options == {"language": "vie", "on_unknown_language": "error"}
    assert found.mixing == Mixing(weight=0.5, cap=9, most=3, sample=5, seed=2)
    with pytest.raises(RecipeError, match=r"xcopa.*isoglot data get xcopa"):
        make_plan(recipe)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('sources.0={set = "xcopas"}', r"sources\.0\.set.*xcopas.*xcopa"),
        ('sources.0={set = "tatoeba-laser"}', r"sources\.0\.set.*tatoeba-laser"),
        ('sources.0={set = "xcopa", path = "x"}', r"sources\.0.*either set"),
        ('sources.0={reader = "tsv"}', r"sources\.0.*either set"),
        ('sources.0={set = "xcopa", sample = -1}', r"sources\.0\.sample.*-1"),
        ('teacher={model="any", pivot="klingon"}', r"teacher\.pivot: .*klingon"),
    ],
)
def test_a_source_is_a_set_or_files_and_a_pivot_a_language(file, change, message):
    with pytest.raises(RecipeError, match=message):
        make_plan(load(file, [f"streams.0.{change}", f'data="{file.parent}"']))


def write_tatoeba(folder, sentences):
    """Files of the set: a sentence for each code and its English side."""
    (folder / "tatoeba-laser").mkdir()
    for code, sides in sentences.items():
        for side, text in zip((code, "eng"), sides, strict=True):
            (folder / "tatoeba-laser" / f"tatoeba.{code}-eng.{side}").write_text(f"{text}\n", encoding="utf-8")


def corpus_without(file, *leakage):
    recipe = load(file, [f"streams.0.leakage={list(leakage)}", f'data="{file.parent}"'])
    return corpus_of(recipe, recipe.stages[0].streams[0])


def first_texts(corpus):
    return [group.texts[0] for _, groups in corpus.source_groups() for group in groups]


def test_tasks_are_kept_out_of_training_by_their_names(file, tmp_path):
    foreign = dict(zip(AVERAGES["xtreme-36"], map("{}?".format, AVERAGES["xtreme-36"]), strict=True))
    foreign |= {"deu": "Hallo!", "ang": "Hwæt!"}
    write_tatoeba(tmp_path, {code: (sentence, f"Hello, {code}.") for code, sentence in foreign.items()})
    (tmp_path / "pairs.tsv").write_text("hello DEU\tneu\nalt\thwæt\nHello!\tHallo\nnew\tneu\n", encoding="utf-8")
    (tmp_path / "more.txt").write_text("New.\n")

    digests = set()
    for names, kept in (
        ([], ["hello DEU", "alt", "Hello!", "new"]),
        (["tatoeba"], ["new"]),
        (["tatoeba-36"], ["alt", "new"]),  # without Old English
        (["tatoeba", "more.txt"], []),
    ):
        corpus = corpus_without(file, *names)
        assert first_texts(corpus) == kept
        assert corpus.counts["pairs.tsv"]["leaked"] == 4 - len(kept)
        digests.add(corpus.digest())
    assert len(digests) == 4


def test_a_test_set_that_changes_is_kept_out_as_it_is_now(file, tmp_path):
    """In one process too, where a file of the same size and time replaces one that was read."""
    write_tatoeba(tmp_path, {"deu": ("alt", "one")})
    (tmp_path / "pairs.tsv").write_text("alt\told\nneu\tnew\n", encoding="utf-8")
    assert first_texts(corpus_without(file, "tatoeba")) == ["neu"]
    replace_unseen(tmp_path / "tatoeba-laser" / "tatoeba.deu-eng.deu", b"neu\n")
    assert first_texts(corpus_without(file, "tatoeba")) == ["alt"]


@pytest.mark.parametrize("name, part", [("tatobea", "tatoeba"), ("sts17", "sts17")])
def test_a_task_that_is_not_there_is_no_leak(file, name, part):
    (file.parent / "pairs.tsv").write_text("a\tb\n")
    with pytest.raises(IsoglotError, match=rf"leakage.*{part}"):
        corpus_without(file, name).check()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("optimizer.lrr=1", r"optimizer\.lrr: no such setting \(value 1\); did you mean 'lr'\?"),
        ("streams.0.batching.sise=4", r"streams\.0\.batching\.sise.*did you mean 'size'\?"),
        ("encoder.dims=4", r"encoder\.dims: no such setting.*did you mean 'dim'\?"),
        ("encoder.kind=Statik", r"encoder\.kind: unknown kind 'Statik'; did you mean 'static'"),
        ("optimizer.lr=-1", r"optimizer\.lr: must be at least 1e-30 \(value -1\)"),
        ("optimizer.schedule=cosin", r"optimizer\.schedule.*'cosine'.*\(value 'cosin'\)"),
        (f"streams=[{STREAM}, {STREAM}]", r"two streams have the same name; use different names"),
        ("extend=x", r"extend: no such setting \(value 'x'\); did you mean 'extends'\?"),
        ("optimiser.lr=4", r"optimiser: no such setting.*did you mean 'optimizer'\?"),
        ("streams={name='a'}", r"streams: must be a list.*\[\[streams\]\]"),
        ("sede=4", r"sede: no such setting \(value 4\); did you mean 'seed'\?"),
        ("evaluation.every=4", r"evaluation\.data: missing"),
        ("batching={size=4, rows='matching', most=2}", "most"),
        ("streams.0.largest=4", "largest is of joined groups"),
        ("evaluation={data='dev', patience=2}", "patience counts evaluations"),
        ("encoder={kind='twins', model='base', dropout=0.1}", "twins are trained without dropout"),
    ],
)
def test_errors_name_key_value_and_what_is_near(file, change, message):
    with pytest.raises(RecipeError, match=message) as caught:
        load(file, [change])
    assert str(file) in str(caught.value)


def test_a_base_in_another_folder_names_its_own_files_and_any_task(file):
    base = file.parent / "base"
    base.mkdir()
    (base / "test.txt").write_text("a\n", encoding="utf-8")
    for written, wanted in (
        ('"test.txt"', (str(base / "test.txt"),)),
        ('["sts17", "test.txt"]', ("sts17", str(base / "test.txt"))),
    ):
        (base / "base.toml").write_text(
            MINIMAL.replace("[[streams]]", f"[[streams]]\nleakage = {written}"), encoding="utf-8"
        )
        file.write_text('extends = "base/base.toml"\nname = "x"\n', encoding="utf-8")
        assert load(file).stages[0].streams[0].leakage == wanted


def test_overrides_take_toml_values_and_reach_the_only_stream(file):
    recipe = load(
        file, ["optimizer.lr=1e-4", "name=other", "batching.size=64", "streams.0.join=true", "teacher.model=x"]
    )
    (stream,) = recipe.stages[0].streams
    assert (recipe.stages[0].optimizer.lr, recipe.name) == (1e-4, "other")
    assert (stream.batching.size, stream.join, stream.teacher.model) == (64, True, "x")
    stage = load("cpu/mpcl", ["batching.most=2"]).stages[0]
    assert (stage.streams[0].batching.most, stage.streams[0].batching.size) == (2, 32)
    with pytest.raises(RecipeError, match="--set batching"):
        load("cpu/mpcl-warmup", ["batching.size=64"])


def test_an_error_of_a_packaged_recipe_or_of_settings_has_its_name_and_the_keys():
    with pytest.raises(RecipeError, match=r"^demo/pairs: optimizer\.lr: "):
        load("demo/pairs", ["optimizer.lr=fast"])
    with pytest.raises(RecipeError, match="optimizer can't be combined with stages"):
        parse({"name": "x", "encoder": {"kind": "static"}, "stages": [], "optimizer": {"lr": 1}})
    with pytest.raises(RecipeError) as caught:
        parse({"name": "x", "encoder": {"dim": 8}})
    found = [line.split(": ")[1] for line in str(caught.value).split("; ")]
    assert found == ["encoder.kind", "streams"]


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab. =#\"'[é", max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["name", "streams", "stages", "a b", "x"]), VALUES))
def test_what_is_written_is_read_back(data):
    assert tomllib.loads(dumps(data)) == data


def test_long_values_are_broken_and_tables_have_headers():
    stream = {"sources": [{"path": f"file-{number}"} for number in range(9)], "batching": {"size": 8}}
    written = dumps({"streams": [stream], "optimizer": {"lr": 1e-5}, "name": "x"})
    assert max(map(len, written.splitlines())) <= 120
    assert written.startswith('name = "x"\n\n[[streams]]\n')
    assert {"batching = { size = 8 }", "[optimizer]", "lr = 1e-5"} <= set(written.splitlines())


def test_an_override_of_one_length_replaces_the_other(file):
    for overrides, length in ((["steps=3"], (3, None)), (["steps=3", "epochs=2"], (None, 2))):
        (stage,) = load(file, overrides).stages
        assert (stage.steps, stage.epochs) == length
    file.write_text(f"steps = 4\n{MINIMAL}")
    with pytest.raises(RecipeError, match="exactly one of epochs and steps"):
        load(file)
