"""Ranks that divide the weights of a transformer train the model of one process."""

import copy
import itertools

import pytest
import torch
from test_loop import RECIPE, log_of, run_tiny, state_of, write_corpus
from test_ranks import launch
from test_step import Given, run_two_ranks

from conftest import build_transformer
from isoglot.core.errors import RecipeError
from isoglot.encoders import load
from isoglot.encoders.layers import Dense
from isoglot.encoders.towers import Towers
from isoglot.encoders.twins import Twins
from isoglot.objectives import OBJECTIVES
from isoglot.training import optimizer
from isoglot.training.plan import make_plan
from isoglot.training.recipe import load as load_recipe
from isoglot.training.settings import OptimizerSettings
from isoglot.training.sharding import DividedRanks, divide, divide_state, gather, gather_state
from isoglot.training.step import OneRank, StepLimits, train_step
from toys import ToyEncoder

CPU = torch.device("cpu")
# A large eps: Adam would make a gradient that is zero but for rounding, as of a bias of keys, a step of full length.
SETTINGS = OptimizerSettings(lr=0.01, eps=1e-3, weight_decay=0.1, clip=0.01, precision="fp32")
CASES = {
    **{name: {"objective": name} for name, kind in OBJECTIVES.items() if not kind.follows},
    "one chunk and many": {"split": lambda group: (group == 5).long()},
    "a rank without rows": {"split": torch.zeros_like},
    "accumulated": {"accumulate": 2},
    "a last batch without a gradient": {"accumulate": 2, "every": 2},
    "an adapter": {"encoder": {"adapter": {"rank": 2}}},
    "frozen words": {"encoder": {"freeze_embeddings": True, "train_layers": "2"}},
    "xlm-roberta": {"encoder": {"family": "xlm-roberta"}},
    "distilbert": {"encoder": {"family": "distilbert"}},
    "bfloat16": {"precision": "bfloat16"},
}


def trained(rank, world, *, objective="info_nce", encoder=None, precision="float32", accumulate=1, every=1, split=None):
    """The whole weights and moments after two steps, the norms, and the numbers of all weights and of this rank's.

    Between the steps both are gathered and divided again, as for a checkpoint that is resumed.
    """
    copies = OBJECTIVES[objective].copies
    torch.manual_seed(0)
    layers = [Dense(16, 12) for _ in range(copies)]  # to the width of the toys' teacher
    parts = [build_transformer(dropout=0.0, projections=[layer], **(encoder or {})) for layer in layers]
    plain = Twins(*parts) if copies == 2 else parts[0]
    model = divide(plain, CPU) if world > 1 else plain
    limits, norms = StepLimits(16, 40, precision), []
    stream = Given(objective, plain, rank=rank, world=world, split=split, limits=limits)
    stream.waiting, calls, forward = itertools.cycle(stream.batches), itertools.count(), stream.objective.forward
    if every > 1:  # batch has a loss to learn from
        stream.objective.forward = lambda *given: {
            name: loss.detach() if next(calls) % every else loss for name, loss in forward(*given).items()
        }
    adam = optimizer.build([model.train(), stream.objective], SETTINGS, apart=True)

    def step():
        result = train_step(
            model, [stream], adam, limits, lr=0.01, clip=SETTINGS.clip, accumulate=accumulate,
            ranks=DividedRanks if world > 1 else OneRank,
        )  # fmt: skip
        norms.append(result.read()[1])

    step()
    if world > 1:  # resumed
        state = gather_state(adam.state_dict())
        model = divide(copy.deepcopy(gather(model, plain)), CPU).train()
        adam = optimizer.build([model, stream.objective], SETTINGS, apart=True)
        adam.load_state_dict(divide_state(state, adam))
    step()
    state = gather_state(adam.state_dict())
    weights = (gather(model, plain) if world > 1 else plain).state_dict()
    counts = [sum(part.numel() for part in parts) for parts in (
        plain.parameters(), (weight.to_local() if world > 1 else weight for weight in model.parameters())
    )]  # fmt: skip
    return {"weights": weights, "state": state["state"], "norms": norms, "counts": counts}


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    """What `trained` gives on each of two ranks, by case."""
    return run_two_ranks(compute_cases, tmp_path_factory.mktemp("ranks"))


def compute_cases(rank):
    return {name: trained(rank, 2, **case) for name, case in CASES.items()}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_ranks_with_a_part_of_the_weights_train_the_model_of_one(two_ranks, case):
    one = trained(0, 1, **CASES[case])
    near = {"atol": 2e-2, "rtol": 0.1} if case == "bfloat16" else {"atol": 2e-5, "rtol": 1e-4}
    for found in (each[case] for each in two_ranks):
        assert found["norms"] == pytest.approx(one["norms"], rel=1e-2 if case == "bfloat16" else 1e-4)
        for name, weight in one["weights"].items():
            torch.testing.assert_close(
                found["weights"][name], weight, **near, msg=lambda text, name=name: f"{name}: {text}"
            )
        assert found["state"].keys() == one["state"].keys()
        for number, moments in one["state"].items():
            torch.testing.assert_close(found["state"][number], moments, **near)
        count, own = found["counts"]
        assert 0.4 * count < own < 0.6 * count
    assert sum(each[case]["counts"][1] for each in two_ranks) == one["counts"][0]


@pytest.mark.slow
def test_a_run_divides_its_weights(tmp_path, own_cache):
    """With evaluations, checkpoints and a saved model; the ranks' log and model are those of one process."""
    write_corpus(tmp_path)
    build_transformer(dropout=0.0).save(tmp_path / "base")
    text = RECIPE.replace("vocabulary = 400\ndim = 16", 'model = "base"\ndropout = 0.0').replace(
        "static", "transformer"
    )
    text = text.replace("lr = 0.05", 'lr = 0.001\neps = 1e-4\nprecision = "fp32"').replace("steps = 14", "steps = 6")
    text += "[memory]\nchunk_tokens = 60\ngraph_tokens = 100\nshard_weights = true\n"
    (tmp_path / "tiny.toml").write_text(text)
    run_tiny(tmp_path, to="one")
    ended = launch(tmp_path, tmp_path / "two")
    assert [code for _, code in ended] == [0, 0], ended
    one, two = state_of(tmp_path / "one"), state_of(tmp_path / "two")
    for name, value in one["encoder"].items():
        torch.testing.assert_close(two["encoder"][name], value, atol=1e-4, rtol=1e-3)
    for number, moments in one["optimizer"]["state"].items():
        torch.testing.assert_close(two["optimizer"]["state"][number], moments, atol=1e-4, rtol=1e-2)
    assert one["optimizer"]["param_groups"] == two["optimizer"]["param_groups"]
    for mine, other in zip(log_of(tmp_path / "one"), log_of(tmp_path / "two"), strict=True):
        assert mine["step"] == other["step"]
        assert other.get("norm", 0.0) == pytest.approx(mine.get("norm", 0.0), rel=1e-3)
    texts = ["red cat runs", "blue dog"]
    vectors = [load(tmp_path / name / "model", device="cpu").encode(texts) for name in ("one", "two")]
    torch.testing.assert_close(*map(torch.from_numpy, vectors), atol=1e-3, rtol=0)


def test_what_cannot_be_divided_is_an_error_at_the_start(tmp_path, toy_static):
    towers = Towers({"a": build_transformer(), "b": build_transformer()}, {"b": ["CYRILLIC"]})
    for encoder in (toy_static, towers, build_transformer(sparse_embeddings=True), ToyEncoder()):
        with pytest.raises(RecipeError, match=r"memory\.shard_weights: .* cannot be divided"):
            divide(encoder, CPU)
    write_corpus(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE + "[memory]\nshard_weights = true\n")
    changes = ['streams.0.objectives=[{name = "dual_momentum"}]', "evaluation=[]"]
    with pytest.raises(RecipeError, match=r"objectives\.0: dual_momentum needs all weights .*memory\.shard_weights"):
        make_plan(load_recipe(tmp_path / "tiny.toml", changes), "tiny")
