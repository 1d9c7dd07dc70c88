"""The flow: invertible, its volume known, its likelihood the loops', and saved to the bit."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from isoglot.encoders import layout
from isoglot.encoders.layers import Flow, read_flow
from isoglot.errors import EncoderError


def drawn(dim, seed=0, rows=24):
    draw = torch.Generator().manual_seed(seed)
    mixing = torch.randn(dim, dim, generator=draw, dtype=torch.float64)
    return torch.randn(rows, dim, generator=draw, dtype=torch.float64) @ mixing + 3


def disturbed(dim, seed=0, **sizes):
    """A flow in float64 whose actnorms are set and whose every parameter has moved from its first value."""
    flow = Flow(dim, seed=seed, **sizes).double()
    flow.train()(drawn(dim, seed))
    draw = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for weight in flow.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=draw, dtype=weight.dtype)
    return flow.eval()


sizes = st.fixed_dictionaries(
    {
        "levels": st.integers(1, 3),
        "depth": st.integers(1, 3),
        "width": st.integers(1, 5),
        "permutation": st.sampled_from(["random", "reversed"]),
    }
)


@settings(max_examples=12, deadline=None)
@given(dim=st.integers(5, 11), seed=st.integers(0, 99), chosen=sizes)
def test_inverse_volume_and_likelihood(dim, seed, chosen):
    flow, x = disturbed(dim, seed, **chosen), drawn(dim, seed + 7, rows=2)
    with torch.no_grad():
        torch.testing.assert_close(flow.inverse(flow(x)), x, rtol=1e-8, atol=1e-8)
        likelihood = flow.log_likelihood(x)
    for row, value in zip(x, likelihood, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda v: flow(v[None])[0], row)
        z = flow(row[None])[0].tolist()
        expected = oracle.normal_log_density(z) + float(jacobian.det().abs().log())
        assert float(value) == pytest.approx(expected, rel=1e-9)


def test_it_is_the_loops():
    flow, x = disturbed(7, levels=2, depth=2, width=3), drawn(7, 5, rows=4)
    weights = {name: value.tolist() for name, value in flow.state_dict().items()}
    for row, value in zip(x.tolist(), flow.log_likelihood(x).tolist(), strict=True):
        assert value == pytest.approx(oracle.glow_log_likelihood(row, weights, levels=2, depth=2), rel=1e-9)


def test_the_first_batch_sets_the_norms_and_no_other():
    flow, first = Flow(8, levels=1, depth=1).double(), drawn(8)
    z = flow.train()(first)
    torch.testing.assert_close(z.mean(0), torch.zeros(8, dtype=z.dtype), atol=1e-6, rtol=0)
    torch.testing.assert_close(z.std(0, unbiased=False), torch.ones(8, dtype=z.dtype), atol=1e-5, rtol=0)
    before = {name: value.clone() for name, value in flow.state_dict().items()}
    flow.train()(drawn(8, 3))
    assert all(torch.equal(before[name], value) for name, value in flow.state_dict().items())
    untouched = Flow(8)
    untouched.eval()(first.float())
    assert not any(bool(step.norm.ready) for level in untouched.levels for step in level)


def test_seeds_and_permutations():
    def order(**given):
        return Flow(9, **given).levels[0][0].order.tolist()

    assert order() == order(seed=0) != order(seed=1)
    assert order(permutation="reversed") == list(range(9))[::-1]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"permutation": "conv"}, "permutation must be one of random, reversed, got 'conv'"),
        ({"depth": 0}, "must be at least 1, got 3, 0, 32"),
        ({"dim": 4}, "vectors of 4 dimensions cannot be halved for 3 levels"),
    ],
)
def test_what_cannot_be_a_flow(settings, words):
    with pytest.raises(ValueError, match=words):
        Flow(**{"dim": 16, **settings})


def test_it_comes_back_to_the_bit(tmp_path):
    flow, x = disturbed(9, 4).float(), drawn(9).float()
    flow.save(tmp_path)
    opened = Flow.load(str(tmp_path))
    assert not opened.training
    assert torch.equal(opened(x), flow(x))
    features = {"sentence_embedding": x, "other": 1}
    assert torch.equal(opened(features)["sentence_embedding"], flow(x))
    assert features["other"] == 1


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({}, r"config\.json: dim"),
        ({"dim": 9, "depth": 2}, "holds no flow"),
        ({"dim": 9, "levels": 1000}, "holds no flow"),
        ({"dim": 1 << 23}, "holds no flow"),
        ({"dim": 9, "shape": 1}, r"config\.json: shape"),
        ({"dim": "wide"}, r"config\.json: dim"),
    ],
)
def test_a_damaged_folder_is_one_line(config, place, tmp_path):
    Flow(9).save(tmp_path)
    with pytest.raises(EncoderError, match=place) as caught:
        read_flow(layout.Module("Flow", tmp_path, config))
    assert "\n" not in str(caught.value)
