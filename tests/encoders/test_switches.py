"""Switches of the whole process: on or off while anybody is inside, then as they were."""

import pytest
import torch

from conftest import SENTENCES
from isoglot.encoders import device as devices
from isoglot.encoders import switches, transformer


def test_tf32_is_on_while_anybody_is_inside(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_tf32_supported", lambda: True)
    cuda, products = torch.device("cuda:0"), torch.backends.cuda.matmul
    assert devices.settle("tf32", cuda) == "tf32"
    assert not products.allow_tf32
    with devices.autocast("tf32", cuda):
        with devices.autocast("tf32", cuda), devices.autocast("float32", cuda):
            assert products.allow_tf32
        assert products.allow_tf32
    assert not products.allow_tf32


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="the newer switch is of 2.9")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_program_may_choose_tf32_by_the_newer_switch():
    """PyTorch refuses to read the older one then."""
    products = torch.backends.cuda.matmul
    before = products.fp32_precision
    products.fp32_precision = "tf32"
    try:
        with switches.full_precision():
            assert products.fp32_precision != "tf32"
        with devices.autocast("tf32", torch.device("cuda:0")):
            assert products.fp32_precision == "tf32"
        assert products.fp32_precision == "tf32"
    finally:
        products.fp32_precision = before


def test_forward_passes_on_cuda_are_without_the_attention_that_plans_for_each_shape(toy_transformer, monkeypatch):
    encoder = toy_transformer()
    state = torch.backends.cuda.cudnn_sdp_enabled
    seen = []
    encoder.backbone.register_forward_pre_hook(lambda *_: seen.append(state()))
    tokens = encoder.tokenize(SENTENCES)
    encoder(tokens)
    monkeypatch.setattr(transformer, "attending", lambda device: switches.attending(torch.device("cuda")))
    encoder(tokens)
    assert seen == [True, False]
    assert state()
