"""Which encoder is kept: one for each named choice, by the mean of its tasks, from the best of an encoder's parts."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from test_loop import RECIPE, assert_resumed_equals_straight, log_of, write_corpus
from torch import Tensor, nn

from isoglot.core import machine
from isoglot.core.errors import EvaluationError, RecipeError
from isoglot.data.tokens import Tokens
from isoglot.encoders import load
from isoglot.encoders.base import Encoder
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Metric
from isoglot.training import best
from isoglot.training.best import Selector, choices_of
from isoglot.training.recipe import load as load_recipe
from isoglot.training.recipe import parse
from isoglot.training.record import Outcome
from isoglot.training.train import summarize
from runs import train

MINIMAL = {
    "name": "any",
    "steps": 1,
    "encoder": {"kind": "static"},
    "streams": [{"sources": [{"reader": "tsv", "path": "none"}], "objectives": [{"name": "info_nce"}]}],
    "optimizer": {"lr": 1.0},
}


class Fixed(Encoder):
    """Every text has the vector (value, 0), so that a task can read the value back."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.dim, self.max_length = 2, 8
        self.value = nn.Parameter(torch.tensor(value))

    def tokenize(self, texts):
        return Tokens(np.ones(len(texts), np.int64), np.ones(len(texts), np.int64))

    def forward(self, tokens: Tokens) -> Tensor:
        return torch.stack([self.value, self.value * 0]).expand(len(tokens), 2)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "value").write_text(str(round(self.value.item(), 6)))


class Several(Fixed):
    """An encoder that may leave behind any of its parts."""

    def __init__(self, *values: float) -> None:
        super().__init__(values[0])
        self.parts = nn.ModuleList(map(Fixed, values))

    def exports(self):
        return list(self.parts)


class Reads:
    """A task whose score is the encoder's value times a factor: the name of the data folder."""

    name, needs = "reads", "nothing"
    metrics = (
        Metric("accuracy/mean", main=True),
        Metric("accuracy"),
        Metric("error", "error", lower_is_better=True),
        Metric("unheard"),
    )

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.odd: dict[float, float] = {}  # values in the place of which the score is another

    def subsets(self, data, *, languages=()):
        return tuple(languages) or ("all",)

    def run(self, encode, data, *, languages=()):
        self.asked.append(tuple(languages))
        value = float(encode(["text"])[0, 0]) * float(Path(data).name)
        value = self.odd.get(value, value)
        values = {"mean": value, "all": value / 2, "wrong": value}
        named = zip(self.metrics, values.items(), (1, 3, 1), strict=False)
        return [metric.score("reads", subset, number, n) for metric, (subset, number), n in named]


@pytest.fixture
def reads(monkeypatch) -> Reads:
    task = Reads()
    monkeypatch.setitem(TASKS, "reads", task)
    return task


def selector(output: Path, *evaluations: dict) -> Selector:
    recipe = parse({**MINIMAL, "evaluation": [{"task": "reads", **e} for e in evaluations]})
    return Selector(choices_of(recipe), output)


def kept(folder: Path) -> float:
    return float((folder / "value").read_text())


def test_the_best_is_kept_and_a_tie_is_no_better(reads, tmp_path):
    chooser = selector(tmp_path, {"data": "1"})
    (choice,) = chooser.choices
    assert chooser.best is None
    for value, best_so_far, since in ((0.5, 0.5, 0), (0.2, 0.5, 1), (0.5, 0.5, 2), (0.7, 0.7, 0), (0.6, 0.7, 1)):
        if value == 0.5 and choice.best is not None:
            (tmp_path / "model" / "value").write_text("9")  # would be written over if a tie were saved
        chooser.judge(chooser.choices, Fixed(value))
        assert choice.latest == pytest.approx(value)
        assert (choice.best, choice.since) == (pytest.approx(best_so_far), since)
        assert kept(tmp_path / "model") == (9 if since == 2 else best_so_far)
    assert chooser.best == pytest.approx(0.7)
    assert not (tmp_path / "best").exists()


def test_each_name_keeps_its_own_best(reads, tmp_path):
    """Swapped dev tasks: what is good by one is bad by the other. The first name is model/."""
    chooser = selector(tmp_path, {"name": "sts22", "data": "1"}, {"name": "sts17", "data": "-1"})
    for value in (0.5, 0.9, 0.1, 0.4):
        chooser.judge(chooser.choices, Fixed(value))
    assert kept(tmp_path / "model") == 0.9
    assert kept(tmp_path / "best" / "sts17") == 0.1
    assert [path.name for path in (tmp_path / "best").iterdir()] == ["sts17"]
    assert [choice.best for choice in chooser.choices] == pytest.approx([0.9, -0.1])
    assert chooser.best == pytest.approx(0.9)  # that of the first


def test_equal_names_choose_by_the_mean(reads, tmp_path):
    """Not next to each other in the recipe, and each by its own subset and metric."""
    chooser = selector(
        tmp_path,
        {"name": "a", "data": "1"},
        {"name": "b", "data": "-1"},
        {"name": "a", "data": "3", "subset": "all", "metric": "accuracy"},
    )
    assert [choice.name for choice in chooser.choices] == ["a", "b"]
    chooser.judge(chooser.choices, Fixed(0.4))
    a, b = chooser.choices
    assert a.best == pytest.approx((0.4 + 3 * 0.4 / 2) / 2)
    assert b.best == pytest.approx(-0.4)
    assert [record["task"] for record in a.records] == ["reads"] * 6
    assert [sorted(record) for record in b.records] == [["metric", "n", "subset", "value"]] * 3
    assert [round(record["value"], 6) for record in a.records] == [0.4, 0.2, 0.4, 1.2, 0.6, 1.2]


def test_of_several_exports_each_choice_takes_its_better_one(reads, tmp_path):
    """The order of the parts decides nothing; the mean of a choice's tasks does."""
    mixed = [{"name": "mixed", "data": factor} for factor in ("2", "-3")]
    chooser = selector(tmp_path, {"data": "1"}, {"name": "low", "data": "-1"}, *mixed)
    chooser.judge(chooser.choices, Several(0.3, 0.8, 0.6))
    assert kept(tmp_path / "model") == 0.8
    assert kept(tmp_path / "best" / "low") == 0.3
    assert kept(tmp_path / "best" / "mixed") == 0.3  # (2 - 3) / 2 of the value
    assert chooser.choices[0].latest == pytest.approx(0.8)
    chooser.judge(chooser.choices[:1], Several(0.9, 0.1))
    assert kept(tmp_path / "model") == 0.9
    assert kept(tmp_path / "best" / "low") == 0.3  # was not asked


def test_only_the_choices_that_are_due_are_judged(reads, tmp_path):
    chooser = selector(tmp_path, {"name": "a", "data": "1", "every": 2}, {"name": "b", "data": "1", "every": 3},
                       {"name": "end", "data": "1"})  # fmt: skip
    due = [[choice.name for choice in chooser.list_due(step, last=step == 7)] for step in range(1, 8)]
    assert due == [[], ["a"], ["b"], ["a"], [], ["a", "b"], ["a", "b", "end"]]
    chooser.judge(chooser.list_due(3, last=False), Fixed(0.5))
    assert [choice.best for choice in chooser.choices] == [None, 0.5, None]


def test_patience_ends_when_that_of_all_has_ended(reads, tmp_path):
    chooser = selector(
        tmp_path,
        {"name": "a", "data": "1", "patience": 1, "every": 1},
        {"name": "b", "data": "-1", "patience": 2, "every": 1},
    )
    ended = []
    for value in (0.5, 0.4, 0.5, 0.6):  # b: better once, then twice not
        chooser.judge(chooser.choices, Fixed(value))
        ended.append((chooser.choices[0].is_exhausted, chooser.choices[1].is_exhausted, chooser.is_exhausted))
    assert ended == [(False, False, False), (True, False, False), (True, False, False), (False, True, False)]
    chooser.judge(chooser.choices, Fixed(0.55))
    assert chooser.is_exhausted


def test_the_state_goes_through_a_checkpoint(reads, tmp_path):
    settings = ({"data": "1", "patience": 2, "every": 1}, {"name": "low", "data": "-1", "patience": 2, "every": 1})
    chooser = selector(tmp_path, *settings)
    for value in (0.5, 0.4):
        chooser.judge(chooser.choices, Fixed(value))
    torch.save(chooser.snapshot(), tmp_path / "state.pt")
    again = selector(tmp_path, *settings)
    again.restore(torch.load(tmp_path / "state.pt", weights_only=True))
    assert again.best == chooser.best
    for both in (chooser, again):
        both.judge(both.choices, Fixed(0.45))
    assert again.snapshot() == chooser.snapshot() == {
        "": {"best": pytest.approx(0.5), "since": 2}, "low": {"best": pytest.approx(-0.4), "since": 1}
    }  # fmt: skip


def test_languages_reach_the_task_and_a_score_that_it_does_not_give_is_named(reads, tmp_path):
    chooser = selector(tmp_path, {"data": "1", "languages": ["deu", "zho"], "subset": "xtreme-36"})
    with pytest.raises(
        RecipeError, match="reads has no score of subset 'xtreme-36' and metric 'accuracy/mean'; its scores: all"
    ):
        chooser.judge(chooser.choices, Fixed(0.5))
    assert reads.asked == [("deu", "zho")]
    assert not (tmp_path / "model").exists()


ERROR = {"data": "1", "subset": "wrong", "metric": "error"}


def test_of_an_error_the_lowest_is_kept(reads, tmp_path):
    chooser = selector(tmp_path, {**ERROR, "patience": 2, "every": 1})
    for value in (0.5, 0.7, 0.2, 0.2):
        chooser.judge(chooser.choices, Fixed(value))
    assert chooser.lower_is_better
    assert chooser.best == pytest.approx(0.2)
    assert kept(tmp_path / "model") == 0.2
    assert not chooser.is_exhausted  # only the last, a tie, was no better
    chooser.judge(chooser.choices, Several(0.9, 0.1, 0.3))
    assert kept(tmp_path / "model") == 0.1
    for value in (0.3, 0.4):
        chooser.judge(chooser.choices, Fixed(value))
    assert chooser.is_exhausted


@pytest.mark.parametrize("evaluation", [{"data": "1"}, ERROR])
@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_a_number_is_never_the_best(reads, tmp_path, evaluation, odd):
    chooser = selector(tmp_path, evaluation)
    reads.odd[9.0] = odd
    chooser.judge(chooser.choices, Fixed(9.0))
    assert (chooser.best, chooser.choices[0].since) == (None, 1)
    assert not (tmp_path / "model").exists()
    chooser.judge(chooser.choices, Several(9.0, 0.5, 9.0))
    assert kept(tmp_path / "model") == 0.5
    chooser.judge(chooser.choices, Fixed(9.0))
    assert (chooser.best, chooser.choices[0].since) == (0.5, 1)
    json.dumps([choice.records for choice in chooser.choices], allow_nan=False)


@pytest.mark.parametrize(
    ("evaluation", "key"),
    [
        ([{"task": "tatoba"}], r"evaluation\.task: .*'tatoba'.*did you mean 'tatoeba'"),
        ([{"metric": "spearman"}], r"evaluation\.metric: reads .*'spearman'.*accuracy/mean"),
        ([{}, {"task": "xsim/own", "name": "b"}], r"evaluation\.1\.metric: xsim/own .*'accuracy/mean'.*error/ratio"),
        ([{}, ERROR], r"evaluation\.1: lower is better for reads error and higher for reads accuracy/mean"),
        ([{"subset": "kor-eng"}], r"evaluation\.subset: reads .*'kor-eng'"),
        ([{"task": "paws-x/finetune", "metric": "accuracy"}], r"evaluation\.task: paws-x/finetune"),
    ],
)
def test_mistakes_are_found_before_a_run_begins(reads, tmp_path, evaluation, key):
    recipe = parse({**MINIMAL, "evaluation": [{"task": "reads", "data": "1", **one} for one in evaluation]})
    with pytest.raises(RecipeError, match=key):
        train(recipe, tmp_path / "run")  # whose corpus is not there
    assert not (tmp_path / "run").exists()
    assert reads.asked == []


def test_lacking_dev_data_are_found_before_a_run_begins(tmp_path):
    with pytest.raises(EvaluationError, match="tatoeba: no data in"):
        train(parse({**MINIMAL, "evaluation": [{"data": str(tmp_path)}]}), tmp_path / "run")


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "../model", "a\\b"])
def test_names_of_further_choices_must_be_names_of_folders(reads, tmp_path, name):
    """An unnamed second choice would be saved to best/ itself, over the folders of the others."""
    with pytest.raises(RecipeError, match=r"evaluation\.name: .* cannot be a folder in best/"):
        selector(tmp_path, {"name": "first/of all", "data": "1"}, {"name": name, "data": "1"})


def test_ranks_but_the_first_neither_score_nor_save(reads, tmp_path, monkeypatch):
    """They are told the score, and decide alike."""
    monkeypatch.setattr(best.ranks, "rank", lambda: 1)
    monkeypatch.setattr(best.ranks, "from_first", lambda own: None if own is None else 0.75)  # no texts to encode
    chooser = selector(tmp_path, {"data": "1"})
    chooser.judge(chooser.choices, Several(0.3, 0.8))
    assert (chooser.best, chooser.choices[0].since) == (0.75, 0)
    chooser.judge(chooser.choices, Several(0.3, 0.8))
    assert (chooser.best, chooser.choices[0].since) == (0.75, 1)
    assert reads.asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def project(tmp_path, own_cache):
    """The recipe of the training loop with two choices: `pairs`, and `both`, the mean of two scores."""
    write_corpus(tmp_path)
    choices = [
        {"name": "pairs", "data": "dev", "every": 5},
        {"name": "both", "data": "dev", "every": 3},
        {"name": "both", "data": "dev", "every": 3, "metric": "accuracy/xx-en"},
    ]
    lines = [f"{key} = {json.dumps(value)}" for choice in choices for key, value in [("", ""), *choice.items()]]
    text = "\n".join(line if not line.startswith(" =") else "[[evaluation]]" for line in lines)
    (tmp_path / "tiny.toml").write_text(RECIPE.partition("[evaluation]")[0] + text)
    return tmp_path


@pytest.mark.slow
def test_a_run_keeps_several_and_resumes(project):
    outcome = assert_resumed_equals_straight(load_recipe(project / "tiny.toml"), project, 7)
    told = [(r["name"], r["step"]) for r in log_of(project / "straight") if r["kind"] == "evaluation"]
    assert [step for name, step in told if name == "pairs"] == [5, 10, 14]
    assert [step for name, step in told if name == "both"] == [3, 6, 9, 12, 14]
    scores = [r["score"] for r in log_of(project / "straight") if r.get("name") == "pairs"]
    assert outcome.best == max(scores)
    assert load(project / "straight" / "best" / "both").dim == 16


def test_a_run_minimises_an_error_and_says_so(project):
    """`error/ratio` of the dev pairs: the kept encoder is that of the lowest score in the log."""
    text = (project / "tiny.toml").read_text().partition("[[evaluation]]")[0]
    (project / "xsim").mkdir()
    for code in ("deu", "eng"):
        shutil.copy(next((project / "dev").glob(f"*.{code}")), project / "xsim" / f"{code}.txt")
    keys = 'task = "xsim/own"\ndata = "."\nmetric = "error/ratio"\nevery = 3\n'
    (project / "tiny.toml").write_text(f"{text}[evaluation]\n{keys}")
    said = []
    outcome = train(load_recipe(project / "tiny.toml", ["steps=8"]), project / "run", watch=said.append)
    found = [record for record in log_of(project / "run") if record["kind"] == "evaluation"]
    assert (outcome.best, outcome.lower_is_better) == (min(record["score"] for record in found), True)
    assert all(record["lower_is_better"] for record in found)
    assert any("lower is better" in line for line in said if isinstance(line, str))


def test_without_a_finite_score_the_last_encoder_is_kept_and_the_log_is_json(project, monkeypatch):
    monkeypatch.setattr(best.Dev, "deciding", lambda *_: float("nan"))
    outcome = train(load_recipe(project / "tiny.toml", ["steps=4"]), project / "run")
    assert outcome.best is None
    assert load(outcome.model).dim
    assert {record["score"] for record in log_of(project / "run") if record["kind"] == "evaluation"} == {None}


def test_a_table_that_does_not_fit_into_memory_is_one_recipe_error(project, tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemAvailable:   1 kB\n")
    monkeypatch.setattr(machine, "MEMORY", tmp_path / "meminfo")
    with pytest.raises(RecipeError, match=r"encoder\.dim, encoder\.vocabulary: .* GB of memory are free"):
        train(load_recipe(project / "tiny.toml"), project / "run")


@pytest.mark.parametrize(("lower", "best_of_all"), [(False, 0.75), (True, 0.25)])
def test_the_summary_of_seeds_has_the_best_by_direction(tmp_path, lower, best_of_all):
    outcomes = [Outcome(tmp_path, score, 1, 1.0, lower) for score in (0.5, 0.25, 0.75, None)]
    summary = summarize(outcomes)
    assert (summary["best"], summary["lower_is_better"], summary["n"]) == (best_of_all, lower, 3)
    assert summarize(outcomes[2:])["standard_deviation"] is None  # of a single score
    assert summarize(outcomes[3:]) == {}
