"""Trackers get the numbers of the log, once each; the real ones without a network, where they are installed."""

import json
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest
from test_loop import RECIPE, log_of, rows, write_corpus

import isoglot
from isoglot.core.errors import RecipeError
from isoglot.training.trackers import choose_trackers, flatten

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def fake(request, monkeypatch):
    """A package that records its calls: `numbers` by step, and the `runs` that are begun and ended."""
    made = ModuleType(request.param)
    made.__spec__ = ModuleSpec(request.param, None)
    made.numbers, made.runs, made.settings, made.run, made.active = {}, [], {}, None, None

    def log(values, step):
        made.numbers.setdefault(step, {}).update(values)

    def begin(id):
        made.runs.append(["begun", id])
        return id or "new"

    def init(*, project, name, config, id, resume):
        assert (project, resume) == ("isoglot", "allow")
        made.settings.update(config | {"name": name})
        return SimpleNamespace(log=log, finish=lambda: made.runs.append(["ended"]), id=begin(id))

    def start_run(*, run_id, run_name):
        made.settings.update(name=run_name)
        return SimpleNamespace(info=SimpleNamespace(run_id=begin(run_id)))

    made.init, made.start_run, made.log_metrics = init, start_run, log
    made.end_run = lambda: made.runs.append(["ended"])
    made.active_run = lambda: made.active
    made.log_params = lambda values: made.settings.update({name: json.loads(text) for name, text in values.items()})
    monkeypatch.setitem(sys.modules, request.param, made)
    return made


BOTH = pytest.mark.parametrize("fake", ["wandb", "mlflow"], indirect=True)


def train(model, output, track, **settings):
    pairs = rows(24)
    settings |= {"steps": 4, "batch_size": 4, "evaluate_every": 2, "output": output, "track": track}
    return isoglot.train(model, pairs[:16], dev=pairs[16:], **settings)


def logged(folder):
    """The numbers of `log.jsonl` as trackers get them."""
    found = {}
    for line in log_of(folder):
        kind, step = line["kind"], line["step"]
        values = {f"losses/{name}": value for name, value in line.get("losses", {}).items()}
        values |= {name: line[name] for name in ("lr", "norm", "padding", "negatives", "score", "best") if name in line}
        found.setdefault(step, {}).update({f"{kind}/{name}": value for name, value in values.items()})
    return found


@BOTH
def test_a_tracker_gets_the_numbers_and_the_settings_and_a_resumed_run_continues_there(
    fake, toy_static, tmp_path, monkeypatch
):
    def stop(step, _):
        if step == 3:
            raise InterruptedError

    with suppress(InterruptedError):
        train(toy_static, tmp_path / "run", fake.__name__, progress=stop)
    assert fake.runs == [["begun", None], ["ended"]]
    assert sorted(fake.numbers) == [1, 2, 3]
    train(toy_static, tmp_path / "run", [fake.__name__])
    assert fake.runs[2:] == [["begun", "new"], ["ended"]]
    expected = logged(tmp_path / "run")
    assert {"evaluation/score", "step/lr"} <= expected[4].keys()
    for step, values in expected.items():
        assert {name: fake.numbers[step][name] for name in values} == values
    assert fake.settings["name"] == "run"
    record = json.loads((tmp_path / "run" / "run.json").read_text())["recipe"]
    assert {**dict(flatten(record)), "name": "run"}.items() <= {**fake.settings, "name": "run"}.items()
    assert (fake.settings["seed"], fake.settings["stages.0.steps"]) == (0, 4)


@BOTH
def test_a_tracker_gets_the_scores_of_each_evaluation_by_its_name(fake, tmp_path):
    """Two that are due at one step would be one number otherwise."""
    write_corpus(tmp_path)
    text = RECIPE.replace("steps = 14", "steps = 4").replace("[evaluation]", '[[evaluation]]\nname = "one"')
    text += '[[evaluation]]\nname = "two"\ndata = "dev"\nmetric = "accuracy/en-xx"\nevery = 5\n'
    (tmp_path / "tiny.toml").write_text(text)
    isoglot.train(tmp_path / "tiny.toml", output=tmp_path / "run", track=fake.__name__, device="cpu")
    scores = {line["name"]: line["score"] for line in log_of(tmp_path / "run") if line["kind"] == "evaluation"}
    numbers = fake.numbers[4]
    assert scores == {name: numbers[f"evaluation/{name}/score"] for name in ("one", "two")}
    assert "evaluation/score" not in numbers


@BOTH
def test_a_run_of_the_caller_is_used_and_left_open(fake, toy_static, tmp_path):
    fake.run = SimpleNamespace(log=fake.log_metrics)
    fake.active = object()
    train(toy_static, tmp_path / "run", fake.__name__)
    assert sorted(fake.numbers) == [1, 2, 3, 4]
    assert fake.runs == []
    assert not (tmp_path / "run" / "trackers.json").exists()


@pytest.mark.parametrize("fake", ["mlflow"], indirect=True)
def test_a_tracker_that_fails_does_not_end_the_training(fake, toy_static, tmp_path, caplog):
    def fail(values, step):
        raise ConnectionError("no server")

    fake.log_metrics = fail
    train(toy_static, tmp_path / "run", "mlflow")
    assert [line["step"] for line in log_of(tmp_path / "run") if line["kind"] == "step"] == [1, 2, 3, 4]
    assert [message for message in caplog.messages if "no server" in message] == [
        "warning: mlflow failed and gets no more numbers: no server"
    ]


def test_wrong_and_missing_trackers_are_found_before_anything_is_written(toy_static, tmp_path, monkeypatch):
    with pytest.raises(RecipeError, match=r"unknown tracker 'wanb'.*'wandb'"):
        train(toy_static, tmp_path / "run", "wanb")
    monkeypatch.setattr("isoglot.training.trackers.find_spec", lambda name: None)
    with pytest.raises(RecipeError, match="track: mlflow is not installed: pip install mlflow"):
        train(toy_static, tmp_path / "run", ["mlflow"])
    assert not (tmp_path / "run").exists()
    assert choose_trackers(()) == ()


@pytest.mark.skipif(find_spec("tensorboard") is None, reason="TensorBoard is not installed")
def test_tensorboard_is_used_where_nothing_is_named():
    assert choose_trackers(()) == choose_trackers("tensorboard") == ("tensorboard",)


@pytest.mark.slow
def test_the_real_weights_and_biases_offline(toy_static, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="wandb is not installed: pip install wandb")
    for name, value in {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true"}.items():
        monkeypatch.setenv(name, value)
    train(toy_static, tmp_path / "run", "wandb")
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    name = json.loads((tmp_path / "run" / "trackers.json").read_text())["wandb"]
    assert file.name == f"run-{name}.wandb"
    assert b"evaluation/score" in file.read_bytes()


@pytest.mark.slow
def test_the_real_mlflow_in_a_file(toy_static, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # without the packages of a database
    mlflow.set_tracking_uri(str(tmp_path / "store"))
    train(toy_static, tmp_path / "run", "mlflow")
    name = json.loads((tmp_path / "run" / "trackers.json").read_text())["mlflow"]
    history = mlflow.MlflowClient().get_metric_history(name, "step/lr")
    rates = {step: values["step/lr"] for step, values in logged(tmp_path / "run").items()}
    assert {one.step: one.value for one in history} == rates
    assert mlflow.get_run(name).data.params["seed"] == "0"
    assert mlflow.active_run() is None
