"""Weights are rounded to bfloat16 once and not for each chunk: casts are counted, and results are the same."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from conftest import SENTENCES
from isoglot.encoders.device import autocast
from isoglot.encoders.rounding import for_inference, round_weights
from isoglot.objectives import InfoNCE
from isoglot.training.step import StepLimits, backward
from toys import toy_batch

CASTS = (torch.ops.aten._to_copy, torch.ops.aten.to)  # the latter in inference


class Counting(TorchDispatchMode):
    """Counts operations, and those that round a weight: casts to bfloat16 of what has the shape of one."""

    def __init__(self, encoder):
        super().__init__()
        parts = [part for part in encoder.modules() if isinstance(part, torch.nn.Linear)]
        self.shapes = {tuple(weight.shape) for part in parts for weight in part.parameters()}
        self.operations = self.casts = self.of_weights = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        self.operations += 1
        if operation.overloadpacket in CASTS and result.dtype != args[0].dtype:
            self.casts += 1
            self.of_weights += result.dtype == torch.bfloat16 and tuple(result.shape) in self.shapes
        return result


@pytest.mark.parametrize(
    ("name", "value"), [("max_length", 3), ("prompt", "the cat "), ("pooling", "cls"), ("prompts", {"q": "a "})]
)
def test_a_setting_that_changed_is_obeyed(toy_transformer, name, value):
    """Also by the copy of an earlier call, which on an accelerator is used in all precisions."""
    encoder = toy_transformer()
    before, copy = encoder.encode(SENTENCES, precision="bf16"), for_inference(encoder, "bfloat16")
    setattr(encoder, name, value)
    after, other = encoder.encode(SENTENCES, precision="bf16"), toy_transformer()
    setattr(other, name, value)
    np.testing.assert_array_equal(after, other.encode(SENTENCES, precision="bf16"))
    assert name == "prompts" or np.abs(after - before).max() > 0.01
    assert for_inference(encoder, "bfloat16") is copy
    assert getattr(copy, name) == value


def test_inference_casts_no_weights_and_gives_the_same_bits(toy_transformer):
    encoder = toy_transformer().eval()
    with autocast("bfloat16", torch.device("cpu")), torch.inference_mode():
        expected = encoder(encoder.tokenize(SENTENCES)).numpy()
    options = {"precision": "bf16", "normalize_embeddings": False, "batch_size": 2}
    encoder.encode(SENTENCES[:1], **options)  # rounds the weights
    with Counting(encoder) as counted:
        found = encoder.encode(SENTENCES, **options)
    assert counted.of_weights == 0
    assert counted.casts > 0
    np.testing.assert_allclose(found, expected, atol=0.02)
    copy = for_inference(encoder, "bfloat16")
    with autocast("bfloat16", torch.device("cpu")), torch.inference_mode():
        assert (copy(encoder.tokenize(SENTENCES)).numpy() == expected).all()
    assert copy.backbone.get_input_embeddings().weight is encoder.backbone.get_input_embeddings().weight


def test_a_weight_that_changed_is_rounded_again(toy_transformer):
    encoder = toy_transformer().eval()
    before = for_inference(encoder, "bfloat16")
    assert for_inference(encoder, "bfloat16") is before
    linear = next(part for part in encoder.backbone.modules() if isinstance(part, torch.nn.Linear))
    with torch.no_grad():
        linear.weight.mul_(2)
    assert for_inference(encoder, "bfloat16") is not before
    frozen = linear.weight.requires_grad_(False)
    assert round_weights(frozen) is frozen  # without autocast
    with autocast("bfloat16", torch.device("cpu")):
        one = round_weights(frozen)
        assert round_weights(frozen) is one
        frozen.mul_(2)
        assert torch.equal(round_weights(frozen), one * 2)


@pytest.mark.parametrize("fused", [True, False])
def test_an_encoder_that_somebody_trains_is_encoded_as_it_is(toy_transformer, fused):
    """A fused step changes weights and is not counted as a change."""
    encoder = toy_transformer()
    adam = torch.optim.AdamW(encoder.parameters(), lr=0.1, fused=fused)
    before = encoder.encode(SENTENCES, precision="bf16")
    for _ in range(2):
        encoder(encoder.tokenize(SENTENCES)).square().sum().backward()
        adam.step()
        after = encoder.encode(SENTENCES, precision="bf16")
        assert np.abs(after - before).max() > 0.01
        before = after
    adam.zero_grad()
    copied = toy_transformer()
    copied.load_state_dict(encoder.state_dict())
    np.testing.assert_array_equal(copied.encode(SENTENCES, precision="bf16"), after)


@pytest.mark.parametrize("graph", [0, 10**6])
def test_frozen_weights_of_an_adapter_are_rounded_once_in_all_steps(toy_transformer, graph, monkeypatch):
    counts, grads = [], []
    for kept in (True, False):
        encoder = toy_transformer(adapter={"rank": 2}, dropout=0.0)
        if not kept:
            monkeypatch.setattr("isoglot.encoders.rounding.round_weights", lambda weight: weight)
        for _ in range(2):
            encoder.zero_grad()
            with Counting(encoder) as counted:
                limits = StepLimits(chunk_tokens=16, graph_tokens=graph, precision="bfloat16")
                backward(encoder, InfoNCE(), toy_batch([2, 2, 2]), limits)
        counts.append(counted)
        grads.append([weight.grad for weight in encoder.parameters() if weight.grad is not None])
    assert counts[0].casts < counts[1].casts
    assert counts[0].of_weights < counts[1].of_weights / 3
    assert all(torch.equal(one, other) for one, other in zip(*grads, strict=True))
