"""Whole runs on a few sentences: they learn, they resume bit for bit, they stop early, they refuse to overwrite."""

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import build_tokenizer
from isoglot.core.errors import CheckpointError, CorpusError, RecipeError
from isoglot.data.sets import catalogue
from isoglot.encoders import StaticEncoder, load
from isoglot.model import encode
from isoglot.objectives import OBJECTIVES
from isoglot.training import best, checkpoint, loop
from isoglot.training.loop import Signals, tokenize_corpus
from isoglot.training.plan import make_plan
from isoglot.training.progress import Status
from isoglot.training.recipe import load as load_recipe
from isoglot.training.settings import Recipe
from isoglot.training.train import train_seeds
from runs import train

WORDS = ["red", "green", "blue", "black", "white", "cat", "dog", "horse", "bird", "fish"]
WORDS += ["runs", "eats", "sleeps", "sings", "here", "there", "now"]

RECIPE = """
name = "tiny"
checkpoint_every = 4
steps = 14
[encoder]
kind = "static"
vocabulary = 400
dim = 16
[[streams]]
sources = [{reader = "tsv", path = "pairs.tsv"}]
batching = {size = 16, pool = 2}
objectives = [{name = "info_nce", direction = "two-way"}]
[optimizer]
lr = 0.05
[evaluation]
data = "dev"
every = 5
"""


def rows(number: int = 120) -> list[tuple[str, str]]:
    """English-like sentences, and the same with every word spelled backwards."""
    generator = torch.Generator().manual_seed(0)
    found = {}
    while len(found) < number:
        words = [WORDS[i] for i in torch.randint(0, len(WORDS), (4,), generator=generator)]
        found[" ".join(words)] = " ".join(word[::-1] for word in words)
    return list(found.items())


def write_corpus(folder: Path, pairs: int = 120) -> None:
    """A corpus of `rows`, and a dev set of the next thirty."""
    made = rows(pairs + 30)
    (folder / "pairs.tsv").write_text("eng\tdeu\n" + "".join(f"{a}\t{b}\n" for a, b in made[:pairs]))
    (folder / "dev").mkdir()
    for column, code in ((0, "eng"), (1, "deu")):
        (folder / "dev" / f"tatoeba.deu-eng.{code}").write_text("".join(row[column] + "\n" for row in made[pairs:]))


@pytest.fixture
def project(tmp_path, own_cache):
    write_corpus(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path


@pytest.fixture
def transformer_recipe(project, toy_transformer):
    """A transformer with dropout and a training head, by two objectives with gradient caching."""
    toy_transformer().save(project / "base")
    text = RECIPE.replace(
        'kind = "static"\nvocabulary = 400\ndim = 16',
        'kind = "transformer"\nmodel = "base"\npooling = "cls"\nhead = "tanh"',
    )
    text = text.replace('two-way"}]', 'two-way"}, {name = "multi_positive", weight = 0.5}]').replace(
        "lr = 0.05", "lr = 0.001"
    )
    (project / "tiny.toml").write_text(text + "\n[memory]\nchunk_tokens = 60\ngraph_tokens = 0\n")
    return project


class StoppedError(Exception):
    pass


def stop_after(step):
    def watch(event):
        if isinstance(event, Status) and event.step == step:
            raise StoppedError

    return watch


def run_tiny(project: Path, *changes: str, to: str = "run", **settings):
    """A run by the recipe in the project with changes, to one of its folders."""
    return train(load_recipe(project / "tiny.toml", changes), project / to, **settings)


def state_of(folder: Path):
    return checkpoint.load(folder / "checkpoints")[0]


def assert_same(left, right):
    if isinstance(left, torch.Tensor):
        assert torch.equal(left, right)
    elif isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            assert_same(a, b)
    else:
        assert left == right


def assert_resumed_equals_straight(
    recipe, project: Path, stop: int, *, straight: Path | None = None, between=loop.ignore, watch=loop.ignore
):
    """A run that is stopped after a step and resumed equals an uninterrupted one; gives its outcome.

    `between` is called with the folder of the stopped run, and `watch` sees the resumed one. The uninterrupted run is
    made in `project`, unless its folder is given.
    """
    if straight is None:
        straight = train(recipe, project / "straight").model.parent
    with pytest.raises(StoppedError):
        train(recipe, project / "broken", watch=stop_after(stop))
    between(project / "broken")
    resumed = train(recipe, project / "broken", resume=True, watch=watch)
    assert_same_runs(straight, project / "broken")
    return resumed


def assert_same_runs(left: Path, right: Path):
    """All that two runs leave is the same, bit for bit."""
    assert_same(state_of(left), state_of(right))
    assert log_of(left) == log_of(right)
    weights = [
        {path.relative_to(run): path.read_bytes() for path in run.rglob("*.safetensors")} for run in (left, right)
    ]
    assert weights[0] == weights[1] != {}


def log_of(folder: Path):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The folder of an uninterrupted run by the recipe."""
    folder = tmp_path_factory.mktemp("straight")
    write_corpus(folder)
    (folder / "tiny.toml").write_text(RECIPE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISOGLOT_CACHE", str(folder / "cache"))
        return run_tiny(folder).model.parent


def name_cuda(folder):
    """Checkpoints of older versions name CUDA's generator as new ones do, by the type of the device."""
    state = state_of(folder)
    state["random"] = [{**state["random"][0], "cuda": torch.zeros(16, dtype=torch.uint8)}]
    checkpoint.save(folder / "checkpoints", state["state"]["step"], state)


def truncate(folder):
    newest = sorted((folder / "checkpoints").glob("*.pt"))[-1]
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])


@pytest.mark.parametrize(
    ("stop", "between", "resumed_at"), [(2, loop.ignore, None), (13, name_cuda, 12), (13, truncate, 8)]
)
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(project, straight, stop, between, resumed_at):
    """Stopped before the first checkpoint, and just before the end; the newest checkpoint may be damaged."""
    told = []
    recipe = load_recipe(project / "tiny.toml")
    assert_resumed_equals_straight(recipe, project, stop, straight=straight, between=between, watch=told.append)
    told = [event for event in told if isinstance(event, str)]
    assert (f"resumed at step {resumed_at}" in told) == (resumed_at is not None)
    assert any("damaged" in event and "the checkpoint before it" in event for event in told) == (between is truncate)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [2, 13])
def test_a_transformer_with_dropout_resumes(transformer_recipe, stop):
    assert_resumed_equals_straight(load_recipe(transformer_recipe / "tiny.toml"), transformer_recipe, stop)


@pytest.mark.slow
@pytest.mark.parametrize(
    "restriction", ['encoder.adapter={rank=2, targets=["query", "value"]}', 'encoder.train_layers="2"']
)
def test_a_run_with_frozen_weights_resumes_and_leaves_them(restriction, transformer_recipe):
    recipe = load_recipe(transformer_recipe / "tiny.toml", [restriction, "encoder.head=none"])
    assert_resumed_equals_straight(recipe, transformer_recipe, 6)
    state = state_of(transformer_recipe / "straight")
    before = load(transformer_recipe / "base").state_dict()
    same = {name for name in before if torch.equal(before[name], state["encoder"][name])}
    if "adapter" in restriction:
        assert same == before.keys()
        adapter = transformer_recipe / "straight" / "model" / "adapter"
        merged, alone = (encode(load(folder), ["red cat runs here"]) for folder in (adapter.parent, adapter))
        assert abs(merged - alone).max() < 1e-3
    else:
        assert {name for name in before if ".layer.1." not in name} <= same < before.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_every_objective_resumes(name, transformer_recipe):
    """By registration alone: stopped between two checkpoints, with dropout, and taken up again."""
    pairs = [line.split("\t") for line in (transformer_recipe / "pairs.tsv").read_text().splitlines()[1:]]
    extras = ({"label": at % 3, "entity": at % 5, "hard_entities": [at % 7, -1]} for at in range(len(pairs)))
    records = [{"texts": pair, "langs": ["aaa", "bbb"], "extras": next(extras)} for pair in pairs]
    (transformer_recipe / "all.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    changes = [
        f'streams.0.objectives=[{{name="{name}"}}]',
        'streams.0.sources=[{reader="jsonl", path="all.jsonl"}]',
        f'streams.0.teacher={{model="{transformer_recipe / "base"}"}}',
    ]
    if OBJECTIVES[name].copies == 2:
        changes += ["encoder.kind=twins", "encoder.head=none"]
    if OBJECTIVES[name].ordered:
        changes += ["streams.0.batching.anchor=first"]
    assert_resumed_equals_straight(load_recipe(transformer_recipe / "tiny.toml", changes), transformer_recipe, 6)


def test_a_run_learns_and_keeps_the_best(straight):
    scores = [record["score"] for record in log_of(straight) if record["kind"] == "evaluation"]
    assert len(scores) == 3  # every five steps, and at the end
    assert json.loads((straight / "run.json").read_text())["finished"]["best"] == max(scores) > 0.9
    assert scores[0] < max(scores)
    assert (straight / "model" / "modules.json").exists()


def test_the_card_names_the_sources_of_joined_text(project):
    """With their licences, and apart from those of another stream, which is "joined" too."""
    stream = '{{name="{0}", join=true, sources=[{{reader="tsv", path="pairs.tsv", name="{0}"}}, {{reader="tsv", path="pairs.tsv", name="{1}"}}], objectives=[{{name="info_nce"}}]}}'  # fmt: skip  # noqa: E501
    streams = f"streams=[{stream.format('xcopa', 'mine')}, {stream.format('bible', 'xcopa')}]"
    data = load(run_tiny(project, streams, "steps=1").model).card.data
    sets = catalogue()
    licences = [sets["xcopa"].licence, f"{sets['bible'].licence} and {sets['xcopa'].licence}"]
    assert [(entry.name, entry.licence) for entry in data] == [
        ("xcopa, mine", licences[0]),
        ("bible, xcopa", licences[1]),
    ]


def test_a_run_without_its_best_encoder_is_not_finished_again(project):
    shutil.rmtree(run_tiny(project, "steps=2").model)
    with pytest.raises(CheckpointError, match="the best encoder is missing"):
        run_tiny(project, "steps=2", resume=True)


def test_a_run_that_learns_nothing_warns(project):
    """Single sentences without views have no positive: the loss is 0, and the model would be what it was."""
    (project / "lines.txt").write_text("".join(f"red cat {n}\n" for n in range(40)))
    source = 'streams.0.sources=[{reader="lines", path="lines.txt", language="eng"}]'
    for views in (1, 2):
        messages: list[Status | str] = []
        changes = (source, f"streams.0.batching.views={views}", "steps=2", "evaluation=[]")
        run_tiny(project, *changes, to=f"run{views}", watch=messages.append)
        warnings = [each for each in messages if isinstance(each, str) and "no loss has had a gradient" in each]
        logged = [line["warning"] for line in log_of(project / f"run{views}") if line["kind"] == "warning"]
        assert (len(warnings), logged) == ((1, ["no gradient"]) if views == 1 else (0, []))


def test_objectives_that_a_stream_cannot_serve_are_refused(project):
    """A premise and a hypothesis that change places at random have the labels of other pairs. A second objective with
    momentum would overwrite the keys of the first.
    """
    for names, message in (
        ('{name="pair_softmax"}', r"objectives\.0: pair_softmax .*batching\.anchor"),
        ('{name="dual_momentum"}, {name="dual_momentum", momentum=0.5}', "dual_momentum is there twice"),
    ):
        with pytest.raises(RecipeError, match=message):
            run_tiny(project, f"streams.0.objectives=[{names}]")
    with pytest.raises(RecipeError, match=r"pair_softmax .*batching\.anchor"):  # a teacher knows no hypothesis
        run_tiny(project, 'streams.0.objectives=[{name="pair_softmax"}]', 'streams.0.teacher={model="another"}')
    ordered = ['streams.0.objectives=[{name="pair_softmax"}]', "batching.anchor=first"]
    make_plan(load_recipe(project / "tiny.toml", ordered))


def test_an_evaluation_that_no_stage_runs_is_an_error(project):
    recipe = load_recipe(project / "tiny.toml")
    stages = [stage.model_dump() | {"select": False} for stage in recipe.stages]
    with pytest.raises(ValueError, match="no stage has select"):
        Recipe.model_validate(recipe.model_dump() | {"stages": stages})
    Recipe.model_validate(recipe.model_dump() | {"stages": stages, "evaluation": ()})


def write_stages(project, *each):
    """The recipe with stages of other names, steps, `select` and rates."""
    stage = RECIPE.split("[[streams]]\n")[1].split("[optimizer]")[0]
    stages = "".join(
        f'[[stages]]\nname = "{name}"\nsteps = {steps}\nselect = {select}\n[[stages.streams]]\n{stage}'
        f"[stages.optimizer]\nlr = {lr}\n"
        for name, steps, select, lr in each
    )
    text = RECIPE.replace("steps = 14\n", "").replace(f"[[streams]]\n{stage}", stages)
    (project / "tiny.toml").write_text(text.replace("[optimizer]\nlr = 0.05\n", ""))


@pytest.mark.parametrize("stop", [pytest.param(6, marks=pytest.mark.slow), 7, pytest.param(8, marks=pytest.mark.slow)])
def test_patience_ends_its_stage_alone(project, stop):
    """Stopped before the evaluation that ends the first stage, after it, and after a checkpoint of the last stage."""
    write_stages(project, ("first", 8, "true", 1e-20), ("between", 7, "false", 1e-20), ("main", 8, "true", 0.05))
    recipe = load_recipe(project / "tiny.toml", ["evaluation.patience=2", "evaluation.every=2"])
    outcome = assert_resumed_equals_straight(recipe, project, stop)
    log = log_of(project / "straight")
    names = [record["stage"] for record in log if record["kind"] == "step"]
    assert names == ["first"] * 6 + ["between"] * 7 + ["main"] * 8
    scores = {record["step"]: record["score"] for record in log if record["kind"] == "evaluation"}
    assert [*scores] == [2, 4, 6, 15, 17, 19, 21]  # none of the stage between, whose encoders are not selected
    assert outcome.best == max(scores.values()) > scores[2]


def test_stages_follow_each_other(project):
    text = RECIPE.replace("steps = 14\n", "").replace(
        "[[streams]]", '[[stages]]\nname = "warm-up"\nsteps = 5\n[[stages.streams]]'
    )
    text = text.replace("[optimizer]\nlr = 0.05", """[stages.optimizer]
lr = 0.05
[[stages]]
epochs = 1
[[stages.streams]]
sources = [{reader = "tsv", path = "pairs.tsv"}]
batching = {size = 40, rows = "matching"}
objectives = [{name = "multi_positive"}]
[[stages.streams]]
name = "second"
sources = [{reader = "tsv", path = "pairs.tsv"}]
batching = {size = 8, views = 2}
objectives = [{name = "info_nce", weight = 0.1}]
[stages.optimizer]
lr = 0.01
""")  # fmt: skip
    (project / "tiny.toml").write_text(text)
    # Stopped in the first stage, without a checkpoint yet.
    outcome = assert_resumed_equals_straight(load_recipe(project / "tiny.toml"), project, 3)
    assert outcome.steps == 5 + 3
    steps = [record for record in log_of(project / "straight") if record["kind"] == "step"]
    assert [record["stage"] for record in steps] == ["warm-up"] * 5 + ["main"] * 3
    assert set(steps[-1]["losses"]) == {"train/multi_positive", "second/info_nce"}


@pytest.mark.parametrize(
    ("kind", "message"),
    [("transformer_recipe", "nothing is left to train on; groups: 120 read, 120 of other languages"),
     ("project", "stream train: no text is left")],
)  # fmt: skip
def test_a_corpus_that_filters_emptied_is_refused(kind, message, request):
    project = request.getfixturevalue(kind)
    with pytest.raises(CorpusError, match=message):
        run_tiny(project, 'streams.0.languages=["fra"]')


def test_a_seed_changes_the_run_and_shares_the_tokens_and_the_tokenizer(project):
    first, second = (run_tiny(project, "steps=1", to=f"run{seed}", seed=seed) for seed in (1, 2))
    texts = ["red cat"]
    assert (encode(load(first.model), texts) != encode(load(second.model), texts)).any()
    assert len(list((project / "cache" / "tables").glob("*/table.json"))) == 1
    (file,) = (project / "cache" / "tokenizers").iterdir()
    whole, told = file.read_bytes(), []
    file.write_bytes(whole[:-100])  # reported, and trained again
    run_tiny(project, "steps=1", to="again", watch=told.append)
    assert [event for event in told if isinstance(event, str) and str(file) in event and "damaged" in event]
    assert file.read_bytes() == whole


def test_settings_of_a_tokenizer_that_is_not_trained_are_named(project, caplog):
    build_tokenizer().save(str(project / "tokenizer.json"))
    run_tiny(project, 'encoder.tokenizer="tokenizer.json"', "steps=1")
    assert "vocabulary of [encoder] change nothing" in caplog.text


EXTREMES = ["size=2147483647", "size=1", "pool=2147483647", "tokens=1", "tokens=2147483647", "most=1"]
EXTREMES += ["most=2147483647", "hard_negatives=2147483647", "temperature=0.1", "temperature=1e9", "views=64"]


@pytest.mark.parametrize(
    "override",
    [
        *(f"streams.0.batching.{name}" for name in EXTREMES),
        "streams.0.objectives.0.weight=1e-30",
        "streams.0.objectives.0.temperature=1e-4",
        "streams.0.objectives.0.temperature=1e6",
        "streams.0.sources.0.weight=1e-30",
        "optimizer.lr=1e-30",
        "optimizer.lr=1000",
        "optimizer.warmup=2147483647",
        "optimizer.clip=1e-30",
        "optimizer.eps=1e-30",
        "optimizer.betas=[0.0, 0.9999999]",
        "optimizer.weight_decay=1e9",
        "encoder.scale=1e-30",
        "encoder.scale=1e9",
        "encoder.max_length=1",
        "evaluation.every=2147483647",
        "evaluation.patience=2147483647",
        "memory.chunk_tokens=1",
        "memory.graph_tokens=2147483647",
        "seed=4294967295",
    ],
)
@pytest.mark.slow
def test_what_settings_allow_at_their_bounds_can_be_trained(project, override):
    outcome = run_tiny(project, "steps=2", override)
    assert outcome.steps == 2
    assert load(outcome.model).dim


def test_what_a_killed_run_left_is_removed_and_its_model_comes_back(project):
    run_tiny(project, "steps=2")
    model = {path.name: path.read_bytes() for path in (project / "run" / "model").glob("*.*")}
    (project / "run" / ".model.0123abcd.tmp").mkdir()
    # Killed between the two renames.
    (project / "run" / "model").rename(project / "run" / ".model.0123abcd.tmp" / "old")
    for name in (".step-00000002.pt.0123abcd.tmp", ".step-00000009.pt.0123abcd.tmp", ".notes.0123abcd.tmp"):
        (project / "run" / "checkpoints" / name).write_text("half")
    (project / "run" / "checkpoints" / "step-plan.json").write_text("mine")
    run_tiny(project, "steps=2", resume=True)
    assert {path.name: path.read_bytes() for path in (project / "run" / "model").glob("*.*")} == model
    hidden = [path.name for path in (project / "run").rglob(".*")]
    assert hidden == [".notes.0123abcd.tmp"]
    assert (project / "run" / "checkpoints" / "step-plan.json").read_text() == "mine"


@pytest.mark.parametrize("pays", [True, False])
@pytest.mark.slow
def test_auto_is_bfloat16_where_the_hardware_multiplies_it(project, monkeypatch, pays):
    used = []

    def watched(*given, **named):
        used.append(given[3].precision)
        return step(*given, **named)

    step = loop.train_step
    monkeypatch.setattr("isoglot.encoders.device.bf16_pays", lambda device: pays)
    monkeypatch.setattr(loop, "train_step", watched)
    for precision in ("auto", "bf16", "fp32"):
        run_tiny(project, "steps=1", f"optimizer.precision={precision}", to=precision)
    assert used == ["bfloat16" if pays else "float32", "bfloat16", "float32"]


def test_tf32_without_a_device_that_has_it_is_an_error_before_anything_is_written(project):
    recipe = load_recipe(project / "tiny.toml", ["optimizer.precision=tf32"])
    with pytest.raises(RecipeError, match=r"optimizer\.precision.*tf32.*cpu"):
        train_seeds(recipe, project / "run", device=torch.device("cpu"))
    assert not (project / "run").exists()


@pytest.mark.parametrize("collapsed", [True, False])
def test_collapsed_vectors_are_warned_of_once(project, toy_static, collapsed):
    with torch.no_grad():
        if collapsed:
            toy_static.table.copy_(1 + 1e-4 * torch.rand_like(toy_static.table))
    toy_static.save(project / "base")
    text = RECIPE.replace('kind = "static"\nvocabulary = 400\ndim = 16', 'kind = "static"\nmodel = "base"')
    (project / "tiny.toml").write_text(text.replace("lr = 0.05", "lr = 1e-9"))
    told = []
    run_tiny(project, "steps=11", "evaluation=[]", watch=told.append)
    warned = [event for event in told if isinstance(event, str) and "collapsed" in event]
    assert len(warned) == collapsed
    assert all("pooling" in event and "\n" not in event for event in warned)
    records = [record for record in log_of(project / "run") if record["kind"] == "warning"]
    assert [record["step"] for record in records] == [10] * collapsed
    assert all("pooling" in record["cause"] for record in records)


def test_a_handler_of_a_signal_is_called_after_the_step(project):
    """It may return, and the run goes to its end; a checkpoint is there whenever it is called."""
    handled = []
    before = signal.signal(signal.SIGTERM, lambda *_: handled.append(state_of(project / "run")["state"]["step"]))
    try:
        run_tiny(
            project, "steps=2", watch=lambda event: isinstance(event, Status) and signal.raise_signal(signal.SIGTERM)
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert handled == [1, 2]


def test_sigterm_may_arrive_twice_before_the_end_of_a_step():
    """A sweep passes on what the group of its processes has received too; a second Ctrl-C does not wait."""
    obeyed = []
    numbers = signal.SIGTERM, signal.SIGINT
    before = [signal.signal(number, lambda number, _: obeyed.append(number)) for number in numbers]
    try:
        for number in numbers:
            with Signals() as signals, signals.defer():
                for _ in range(2):
                    signal.raise_signal(number)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert obeyed == [signal.SIGINT]


def test_a_signal_during_an_evaluation_ends_the_run_at_once(project, straight, monkeypatch):
    """The last checkpoint is kept, and the continued run is the uninterrupted one."""
    judge = best.Selector.judge

    def interrupted(self, choices, encoder):
        os.kill(os.getpid(), signal.SIGINT)
        judge(self, choices, encoder)

    told = []
    with monkeypatch.context() as patch:
        patch.setattr(best.Selector, "judge", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_tiny(project, watch=told.append)
    assert "interrupted at step 5; step 4 is kept" in told[-1]
    run_tiny(project, resume=True)
    assert_same_runs(straight, project / "run")


def test_encoders_of_one_tokenizer_have_tables_of_their_own(project, toy_transformer):
    """A transformer adds special tokens, and a static encoder does not."""
    transformer = toy_transformer(max_length=20)
    static = StaticEncoder.create(transformer.tokenizer.backend_tokenizer, 8, seed=1)
    static.max_length = 20
    assert static.fingerprint == transformer.fingerprint
    (corpus,) = make_plan(load_recipe(project / "tiny.toml")).text
    tables = [tokenize_corpus(corpus, encoder, print) for encoder in (transformer, static)]
    counts = [len(table.tokens(np.arange(table.sentences))[0]) for table in tables]
    assert counts[0] > counts[1]


def test_a_run_begins_from_the_model_that_it_began_from(transformer_recipe, toy_transformer):
    """A folder whose files are others is another model."""
    changes = ("steps=1", "evaluation=[]")
    run_tiny(transformer_recipe, *changes)
    run_tiny(transformer_recipe, *changes, resume=True)
    toy_transformer(seed=5).save(transformer_recipe / "base")
    with pytest.raises(CheckpointError, match="models"):
        run_tiny(transformer_recipe, *changes, resume=True)
