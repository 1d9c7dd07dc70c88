"""`isoglot.train` on data in memory: what it accepts, what it leaves alone, and that a recipe is the same call."""

import copy
import io
import json
import os
import signal
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from command_line import as_function
from rich.console import Console
from test_loop import RECIPE, assert_same, log_of, rows, state_of, write_corpus

import isoglot
from isoglot.cli.training import train as verb
from isoglot.core.errors import CheckpointError, CorpusError, EvaluationError, IsoglotError, OutputError, RecipeError
from isoglot.encoders import load
from isoglot.encoders.base import Encoder
from isoglot.encoders.layers import Dense, WithLayer
from isoglot.model import encode
from isoglot.objectives import OBJECTIVES, Distillation, InfoNCE, MultiPositive, SoftContrastive, Sum
from isoglot.training import loop
from isoglot.training.progress import Display, Status
from isoglot.training.recipe import load as load_recipe

pytestmark = pytest.mark.usefixtures("own_cache")
TEXTS = ["red cat runs here", "won sgnis"]


def test_pairs_in_memory_give_a_better_encoder_and_leave_the_given_one(toy_static):
    pairs, weights = rows(), copy.deepcopy(toy_static.state_dict())
    better = isoglot.train(toy_static, pairs[:90], dev=pairs[90:], epochs=8, batch_size=16, evaluate_every=24)
    assert isinstance(better, Encoder)
    assert not any(module.training for module in better.modules())
    assert_same(toy_static.state_dict(), weights)
    first, second = (encode(better, side, normalize_embeddings=True) for side in zip(*pairs[90:], strict=True))
    found = (first @ second.T).argmax(1) == np.arange(30)
    before = encode(toy_static, pairs[90][0])
    assert found.mean() > 0.5
    assert not np.array_equal(before, encode(better, pairs[90][0]))


def test_results_do_not_call_a_model_by_a_temporary_folder(toy_static, tmp_path):
    toy_static.name = "toy"
    better = isoglot.train(toy_static, rows(8), steps=1)
    assert better.name == "toy-trained"
    assert isoglot.train(better, rows(8), steps=1).name == "toy-trained"
    assert isoglot.evaluate(better, pairs=rows(4)).model == "toy-trained"
    assert isoglot.train(toy_static, rows(8), steps=1, output=tmp_path / "run").name == "run"
    write_corpus(tmp_path)
    (tmp_path / "mine.toml").write_text(RECIPE, encoding="utf-8")
    changes = ["steps=1", "evaluation=[]"]
    assert isoglot.train(tmp_path / "mine.toml", overrides=changes).name == "mine"
    assert isoglot.train(load_recipe(tmp_path / "mine.toml", changes)).name == "tiny"


@pytest.mark.slow
def test_how_an_encoder_was_opened_is_part_of_the_run(toy_transformer, tmp_path):
    toy_transformer().save(tmp_path / "model")
    settings = {"data": rows(40), "batch_size": 8, "steps": 1, "output": tmp_path / "run"}
    isoglot.train(load(tmp_path / "model"), **settings)
    for change in ({"train_layers": "1"}, {"freeze_embeddings": True}, {"dropout": 0.3}):
        with pytest.raises(CheckpointError, match="differs in model;"):
            isoglot.train(load(tmp_path / "model", **change), **settings)


def test_an_adapter_trains_nothing_around_the_backbone(toy_transformer, tmp_path):
    """Nor does it lie beside a model whose layers no folder has."""
    toy_transformer().save(tmp_path / "model")
    layer = Dense(16, 4, activation="Identity")
    encoder = WithLayer(load(tmp_path / "model"), layer)
    better = isoglot.train(encoder, rows(40), adapter={"rank": 2}, batch_size=8, steps=2, lr=0.1)
    torch.testing.assert_close(better.projections[-1].linear.weight, layer.linear.weight)
    better.save(tmp_path / "better")
    assert not list((tmp_path / "better").rglob("adapter_config.json"))
    kept = load(tmp_path / "model", pooling="cls", head="kept")
    with pytest.raises(ValueError, match="head"):
        isoglot.train(kept, rows(40), adapter={"rank": 2}, batch_size=8, steps=2)


def test_an_adapter_in_memory_leaves_the_encoder_and_returns_a_merged_one(toy_transformer, tmp_path):
    encoder = toy_transformer()
    before = copy.deepcopy(encoder.state_dict())
    better = isoglot.train(encoder, rows(40), adapter={"rank": 2}, train_layers="2", batch_size=8)
    assert_same(encoder.state_dict(), before)
    assert all(weight.requires_grad for weight in encoder.backbone.encoder.parameters())
    after = better.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert after.keys() == before.keys()
    assert changed == {name for name in before if ".layer.1." in name and before[name].ndim == 2}
    assert better.origin == "", "its folder was temporary"


def test_a_recipe_is_the_same_call_written_down(tmp_path, toy_static):
    write_corpus(tmp_path)
    toy_static.save(tmp_path / "base")
    text = RECIPE.replace('kind = "static"\nvocabulary = 400\ndim = 16', 'kind = "static"\nmodel = "base"')
    text = text.replace("checkpoint_every = 4\n", "").replace('"info_nce", direction = "two-way"', '"multi_positive"')
    text = text.replace("size = 16, pool = 2", "size = 16").partition("[evaluation]")[0]
    (tmp_path / "tiny.toml").write_text(text)
    written = isoglot.train(tmp_path / "tiny.toml", output=tmp_path / "run", seed=3)
    lines = [line.split("\t") for line in (tmp_path / "pairs.tsv").read_text().splitlines()[1:]]
    called = isoglot.train(
        tmp_path / "base", [tuple(line) for line in lines], languages=["eng", "deu"], steps=14, batch_size=16, lr=0.05,
        seed=3, output=tmp_path / "call",
    )  # fmt: skip
    assert_same(written.state_dict(), called.state_dict())
    assert [r["losses"] for r in log_of(tmp_path / "run") if r["kind"] == "step"] == [
        {"multi_positive": r["losses"]["multi_positive"]} for r in log_of(tmp_path / "call") if r["kind"] == "step"
    ]


def test_the_same_call_again_returns_the_finished_model_and_another_is_one_error(toy_static, tmp_path, monkeypatch):
    call = {"data": rows(40), "batch_size": 8, "output": tmp_path / "run"}
    first = isoglot.train(toy_static, **call)
    monkeypatch.setattr(loop.Run, "train", lambda *_: pytest.fail("trained again"))
    assert_same(first.state_dict(), isoglot.train(toy_static, **call).state_dict())
    for change, place in (
        ({"resume": False}, "already contains a run"),
        ({"lr": 1.0}, "in lr;"),
        ({"batch_size": 5}, "in batch_size;"),
        ({"data": rows(39)}, "in data;"),
        ({"objective": InfoNCE(temperature=0.5)}, "in objective;"),
        ({"seed": 5}, "in seed;"),
        ({"dev": rows(10)}, "in dev"),
    ):
        with pytest.raises(CheckpointError, match=place):
            isoglot.train(toy_static, **call | change)


@pytest.mark.parametrize("kind", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_an_interrupted_call_is_continued_by_the_same_call(toy_static, tmp_path, kind):
    """The signal comes during step 4: the step is finished and saved, and nothing of it is made twice."""

    def call(output, **more):
        return isoglot.train(toy_static, rows(48), dev=rows(4), batch_size=8, output=output, **more)

    straight = call(tmp_path / "straight")
    said = []

    def interrupt(done, _):
        if done == 4:
            os.kill(os.getpid(), kind)

    before = signal.getsignal(kind)
    with pytest.raises(KeyboardInterrupt if kind == signal.SIGINT else SystemExit):
        call(tmp_path / "broken", progress=interrupt, report=said.append)
    assert signal.getsignal(kind) is before
    assert state_of(tmp_path / "broken")["state"]["step"] == 4
    assert "interrupted at step 4" in said[-1]
    assert "resumes" in said[-1]
    continued = call(tmp_path / "broken")
    assert_same(straight.state_dict(), continued.state_dict())
    assert log_of(tmp_path / "straight") == log_of(tmp_path / "broken")


class Scaled(isoglot.Objective):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8))

    def forward(self, vectors, batch):
        return {"scaled": (vectors * self.weight).square().sum()}


def test_objectives_may_be_weighted_and_an_object_is_left_as_it_was(toy_static):
    own = Scaled()
    for objective in (["info_nce", (0.5, own)], (2.0, "multi_positive"), own):
        isoglot.train(toy_static, rows(20), objective=objective, steps=2)
    assert own.weight.tolist() == [1.0] * 8
    assert own.weight.grad is None


def test_what_a_recipe_differs_in_is_named_as_in_the_recipe(tmp_path):
    write_corpus(tmp_path)
    (tmp_path / "mine.toml").write_text(RECIPE, encoding="utf-8")
    call = {"output": tmp_path / "run", "overrides": ["steps=1", "evaluation=[]"]}
    isoglot.train(tmp_path / "mine.toml", **call)
    call["overrides"] += ["optimizer.lr=0.5", "streams.0.batching.size=3"]
    with pytest.raises(CheckpointError, match=r"differs in streams\.0\.batching\.size, optimizer\.lr;"):
        isoglot.train(tmp_path / "mine.toml", **call)


@pytest.mark.parametrize(
    ("objective", "warned"), [("multi_positive", True), ("pair_softmax", False), (Scaled(), False)]
)
def test_labels_that_no_objective_reads_are_named(toy_static, caplog, objective, warned):
    columns = {"sentence1": [a for a, _ in rows(8)], "sentence2": [b for _, b in rows(8)]}
    isoglot.train(toy_static, columns | {"score": [0.5, 1.5] * 4}, objective="multi_positive", steps=1)
    assert not caplog.records  # as that of mined pairs
    name = "is_duplicate" if objective == "multi_positive" else "label"
    isoglot.train(toy_static, columns | {name: [0, 1] * 4}, objective=objective, steps=1)
    assert len([one for one in caplog.records if f"column {name}" in one.getMessage()]) == warned


@pytest.mark.parametrize(
    ("objective", "warned"), [("info_nce", False), ("dual_momentum", True), (["dual_momentum", "info_nce"], False)]
)
def test_hard_negatives_that_no_objective_reads_are_named(toy_static, caplog, objective, warned):
    pairs, words = rows(8), [b for _, b in rows(16)[8:]]
    columns = {"anchor": [a for a, _ in pairs], "positive": [b for _, b in pairs], "negative": words}
    isoglot.train(toy_static, columns, objective=objective, steps=1)
    assert ("no objective reads the column hard_negatives" in caplog.text) == warned


def test_a_run_that_learns_nothing_says_so(toy_static, caplog):
    isoglot.train(toy_static, [("a", "b"), ("c", "d")], batch_size=1, steps=2)
    assert "no loss has had a gradient" in caplog.text


def test_rows_of_dev_that_are_also_in_data_are_counted(toy_static, caplog):
    data, dev = rows(8), [(a.upper(), f"{b}!") for a, b in rows(10)[5:]]
    isoglot.train(toy_static, data[:5], dev=[*dev, (data[0][0], "another")], steps=1)
    assert not caplog.records
    isoglot.train(toy_static, data, dev=dev, steps=1)
    assert "3 of 5 rows of dev are also in data" in caplog.text


HARD = {"name": "soft_contrastive", "labels": "hard"}


@pytest.mark.parametrize(
    ("objective", "warned"), [("info_nce", True), ("soft_contrastive", False), (HARD, True), (Scaled(), False)]
)
def test_a_teacher_that_no_objective_reads_is_named(toy_static, caplog, objective, warned):
    isoglot.train(toy_static, rows(8), teacher=toy_static, objective=objective, steps=1)
    assert len([one for one in caplog.records if "teacher" in one.getMessage()]) == warned


@pytest.mark.parametrize(
    ("objective", "anchor"),
    [("distillation", "first"), (["info_nce", Distillation()], "first"), ("info_nce", "random")],
)
def test_the_order_of_rows_is_kept_where_the_first_sentence_is_the_source(toy_static, tmp_path, objective, anchor):
    """Both sentences are pulled to the teacher's vector of the first: a teacher may read its language alone."""
    toy_static.save(tmp_path / "teacher")
    teacher = isoglot.load(tmp_path / "teacher")  # a model without torch
    isoglot.train(toy_static, rows(20), objective=objective, teacher=teacher, steps=1, output=tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["recipe"]["stages"][0]["streams"][0]["batching"]["anchor"] == anchor


def test_the_code_of_an_objective_is_a_part_of_the_run(toy_static, tmp_path, monkeypatch):
    """A cell of a notebook that is changed and run again does not return the model that the old one trained."""

    def forward(self, vectors, batch):
        return {"loss": vectors.sum()}

    class Scaled(MultiPositive):
        pass

    call = {"data": rows(8), "batch_size": 4, "steps": 1, "output": tmp_path / "run"}
    isoglot.train(toy_static, objective=Scaled(), **call)
    isoglot.train(toy_static, objective=Scaled(), **call)
    monkeypatch.setattr(Scaled, "forward", forward)
    with pytest.raises(CheckpointError, match="in objective;"):
        isoglot.train(toy_static, objective=Scaled(), **call)
    monkeypatch.setitem(sys.modules, __name__, ModuleType(__name__))  # of no file
    monkeypatch.setitem(OBJECTIVES, "mine", Scaled)
    isoglot.train(toy_static, objective="mine", **call | {"output": tmp_path / "named"})
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, __name__, ModuleType(__name__))
    monkeypatch.setitem(OBJECTIVES, "mine", Scaled)
    with pytest.raises(CheckpointError, match="in objective;"):
        isoglot.train(toy_static, objective="mine", **call | {"output": tmp_path / "named"})


class Listing(MultiPositive):
    """Has a setting in a list, and another list that has another text in every process."""

    def __init__(self, setting):
        super().__init__()
        self.setting, self.others = setting, [object()]


def test_options_of_a_named_objective_are_those_of_a_recipe(toy_static, tmp_path):
    def trained(*priority, **more):
        objective = {"name": "soft_contrastive", "priority": list(priority), **more}
        arguments = {"objective": objective, "teacher": toy_static, "languages": ("en", "de"), "steps": 2}
        return isoglot.train(toy_static, rows(20), **arguments, output=tmp_path / "-".join(priority))

    english, german = trained("eng", "deu"), trained("deu", "eng")
    assert not torch.equal(english.table, german.table)  # the teacher reads another side
    with pytest.raises(CheckpointError):
        trained("eng", "deu", temperature=0.2)
    for wrong in ({"name": "info_nce", "heat": 1}, {"priority": []}):
        with pytest.raises((ValueError, TypeError)):
            isoglot.train(toy_static, rows(20), objective=wrong)


@pytest.mark.parametrize(
    ("make", "setting", "other"),
    [
        (lambda heat: SoftContrastive(labels="hard", temperature=heat), 0.1, 0.2),
        (lambda order: SoftContrastive(priority=order, languages=("eng", "deu")), ("eng", "deu"), ("deu", "eng")),
        (lambda weight: Sum((weight, MultiPositive())), 1.0, 0.5),
        (Listing, [1.0], [2.0]),
    ],
)
def test_equal_objectives_are_one_run_and_others_another(toy_static, tmp_path, make, setting, other):
    arguments = {"teacher": toy_static, "languages": ("en", "de"), "steps": 1, "output": tmp_path / "run"}
    for _ in range(2):
        isoglot.train(toy_static, rows(20), objective=[make(setting)], **arguments)
    with pytest.raises(CheckpointError):
        isoglot.train(toy_static, rows(20), objective=[make(other)], **arguments)


def test_a_precision_has_the_names_that_encode_takes(toy_static):
    for name in ("float32", "fp32", "bfloat16", "bf16"):
        assert isoglot.train(toy_static, rows(4), steps=1, precision=name).dim == toy_static.dim


@pytest.mark.parametrize("name", ["info_nce", "contrastive_tension"])
def test_sentences_alone_have_two_views_or_two_copies_of_the_encoder(toy_transformer, tmp_path, name):
    run = tmp_path / "run"
    trained = isoglot.train(toy_transformer(), [a for a, _ in rows(12)], objective=name, steps=2, output=run)
    assert trained.dim == 16
    assert all(record["losses"][name] > 0 for record in log_of(run))


def test_dev_may_be_tasks(toy_static, tmp_path):
    write_corpus(tmp_path)
    isoglot.train(toy_static, rows(20), dev="tatoeba", dev_data=tmp_path / "dev", steps=2, output=tmp_path / "run")
    found = [record for record in log_of(tmp_path / "run") if record["kind"] == "evaluation"]
    assert [record["step"] for record in found] == [1, 2]
    assert found[0]["scores"][0]["subset"] == "deu-eng"


@pytest.mark.parametrize(
    ("arguments", "error", "what"),
    [
        (({"name": "x"},), TypeError, r"recipe\.parse"),
        ((3, [("a", "b")]), TypeError, "isoglot.load"),
        (("ENCODER",), TypeError, "pass data"),
        (("multilingual-e5-small",), TypeError, "is a model"),
        (("tiny.toml", [("a", "b")]), TypeError, "is a recipe"),
        (("ENCODER", "pairs.tsv"), TypeError, "data is a string"),
        (("ENCODER", []), ValueError, "no sentences"),
        (("ENCODER", [("a", 3)]), TypeError, "row 1"),
        (("ENCODER", [("a", "")]), CorpusError, "row 1"),
    ],
)
def test_wrong_arguments_are_one_sentence(toy_static, arguments, error, what):
    arguments = [toy_static if value == "ENCODER" else value for value in arguments]
    with pytest.raises(error, match=what) as caught:
        isoglot.train(*arguments)
    assert "\n" not in str(caught.value)


class Unread:
    """Data that must not be read."""

    def __iter__(self):
        raise AssertionError("the data were read")


@pytest.mark.parametrize(
    ("arguments", "error", "what"),
    [
        ({"objective": "info_nc"}, ValueError, "did you mean 'info_nce'"),
        ({"objective": MultiPositive}, TypeError, "objective must be"),
        ({"objective": []}, ValueError, "empty list"),
        ({"objective": [(-1.0, "info_nce")]}, ValueError, "weight"),
        ({"objective": ["info_nce", "contrastive_tension"]}, ValueError, "two copies"),
        ({"dev": "tatoba"}, EvaluationError, "did you mean 'tatoeba'"),
        ({"dev": ["paws-x/finetune"]}, IsoglotError, "vectors only"),
        ({"dev": ["single sentence", "of data"]}, EvaluationError, "single sentence"),
        ({"dev": [("a", "b")], "epochs": 1, "steps": 1}, ValueError, "not both"),
        ({"lr": -1.0}, ValueError, "lr"),
        ({"lr": 0}, ValueError, r"^lr: must be at least 1e-30 \(value 0\)$"),
        ({"adapter": {"rnk": 2}}, ValueError, "rnk: no such setting .* did you mean 'rank'"),
        ({"steps": 0}, ValueError, "steps"),
        ({"steps": 2.0}, TypeError, "steps"),
        ({"teacher": 3}, TypeError, "teacher"),
        ({"precision": "float16"}, ValueError, "precision"),
        ({"objective": {"name": "info_nce", "weight": 0}}, ValueError, "weight"),
        ({"overrides": ["steps=1"]}, TypeError, "overrides"),
        ({"device": "quantum"}, IsoglotError, "quantum"),
        ({"teacher": "no-such-model"}, IsoglotError, "no-such-model"),
        ({"patience": 2}, ValueError, "patience"),
        ({"dev_data": "folder"}, ValueError, "dev_data"),
        ({"dev_data": "folder", "dev": [("a", "b")]}, ValueError, "dev_data"),
        ({"adapter": {"rank": 2}}, ValueError, "transformers"),
    ],
)
def test_mistakes_are_found_before_the_data_are_read(toy_static, arguments, error, what):
    with pytest.raises(error, match=what) as caught:
        isoglot.train(toy_static, Unread(), **arguments)
    assert "\n" not in str(caught.value)


def test_what_is_frozen_is_checked_before_the_data_are_read(toy_static, toy_transformer):
    for arguments, what in (({"adapter": {"rank": 0}}, "rank"), ({"train_layers": "7"}, "train_layers")):
        with pytest.raises(ValueError, match=what):
            isoglot.train(toy_transformer(), Unread(), **arguments)
    toy_static.requires_grad_(False)
    with pytest.raises(ValueError, match="can't be trained"):
        isoglot.train(toy_static, Unread())


def test_a_recipe_takes_no_settings_of_a_call(tmp_path):
    (tmp_path / "tiny.toml").write_text(RECIPE)
    with pytest.raises(TypeError, match="lr is set in the recipe"):
        isoglot.train(tmp_path / "tiny.toml", lr=0.1)
    with pytest.raises(TypeError, match="overrides"):  # not ignored
        isoglot.train(load_recipe(tmp_path / "tiny.toml"), overrides=["steps=1"])


def test_nothing_is_printed_unless_asked(toy_static, capfd, tmp_path):
    isoglot.train(toy_static, rows(4), steps=2)
    assert capfd.readouterr() == ("", "")
    isoglot.train(toy_static, rows(4), steps=2, show_progress_bar=True)
    assert "2/2" in capfd.readouterr().err


def test_a_bar_is_drawn_on_a_terminal(toy_static):
    shown = io.StringIO()
    with Display(Console(file=shown, force_terminal=True, width=200)) as display:
        display.update(Status("main", 3, 10, {"loss": 1.5}, 0.1, 1.0, 100.0, 1000.0, 0.1, 31.0, 65.0))
        display.report("a message")
    assert "3/10" in shown.getvalue()
    assert "ETA 1:05" in shown.getvalue()
    assert "a message" in shown.getvalue()


def test_the_cli_and_the_call_write_the_same_record(tmp_path):
    """A run that the command line began is continued by a call."""
    run = as_function(verb)
    write_corpus(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    run(str(tmp_path / "tiny.toml"), output=tmp_path / "run", overrides=["steps=2"], seeds=1, device="cpu")
    done = json.loads((tmp_path / "run" / "run.json").read_text())["finished"]
    assert done["steps"] == 2
    model = isoglot.train(tmp_path / "tiny.toml", overrides=["steps=2"], output=tmp_path / "run", device="cpu")
    assert np.array_equal(encode(model, TEXTS), encode(load(tmp_path / "run" / "model"), TEXTS))


@pytest.mark.parametrize("output", ["m", "m/run", "link"])
@pytest.mark.parametrize("opened", [True, False])
def test_the_model_that_training_begins_from_or_learns_from_is_no_output(tmp_path, toy_static, opened, output):
    toy_static.save(tmp_path / "m")
    (tmp_path / "link").symlink_to("m")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    start = load(tmp_path / "m") if opened else tmp_path / "m"
    for model, settings in ((start, {}), (toy_static, {"teacher": start, "objective": "distillation"})):
        with pytest.raises(OutputError, match="m"):
            isoglot.train(model, rows(20), steps=1, output=tmp_path / output, **settings)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_model_of_a_run_is_not_trained_further_in_its_place(tmp_path, toy_static):
    isoglot.train(toy_static, rows(20), steps=1, output=tmp_path / "run")
    with pytest.raises(IsoglotError, match="run"):
        isoglot.train(tmp_path / "run" / "model", rows(20), steps=2, output=tmp_path / "run")
    assert load(tmp_path / "run" / "model").dim == toy_static.dim


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ({"precision": "fp16"}, ValueError, r"^precision: .*'float32', 'bfloat16'.*\(value 'fp16'\)"),
        ({"objective": "distillation"}, RecipeError, r"^distillation .*teacher="),
    ],
)
def test_settings_are_named_as_the_call_has_them(toy_static, setting, error, message):
    with pytest.raises(error, match=message):
        isoglot.train(toy_static, rows(4), steps=1, **setting)
