"""The choice of the device, with a stand-in for an accelerator: what is asked for is what computes."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import isoglot
from conftest import SENTENCES
from isoglot.core.errors import EncoderError
from isoglot.encoders import device as devices
from isoglot.encoders import load
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import bf16_pays, random_state, resolve, same_randomness_after, set_random_state

PAIRS = list(zip(SENTENCES[:4], SENTENCES[4:8], strict=True))


@pytest.fixture
def accelerator(monkeypatch):
    """Makes PyTorch report accelerators of a kind; returns the function that does."""
    from transformers import BertModel  # noqa: F401 - must not be imported with a replaced torch.accelerator

    def present(kind, count=2, current=0):
        fake = SimpleNamespace(
            is_available=lambda: kind is not None,
            current_accelerator=lambda: torch.device(kind),
            device_count=lambda: count,
            current_device_index=lambda: current,
        )
        monkeypatch.setattr(torch, "accelerator", fake)
        for name in ("LOCAL_RANK", "ISOGLOT_DEVICE"):
            monkeypatch.delenv(name, raising=False)

    return present


@pytest.mark.parametrize(
    ("kind", "environment", "asked", "place"),
    [
        *((kind, {}, asked, f"{kind}:0") for kind in ("cuda", "xpu", "mps") for asked in ("auto", kind)),
        *((kind, {}, torch.device(kind, 1), f"{kind}:1") for kind in ("cuda", "xpu", "mps")),
        *((kind, {}, asked, "cpu") for kind, asked in (("cuda", "cpu"), (None, "auto"))),
        *(("cuda", {"LOCAL_RANK": "1"}, asked, "cuda:1") for asked in ("auto", "cuda")),  # of torchrun
        ("cuda", {"LOCAL_RANK": "1"}, "cuda:0", "cuda:0"),
        *(("cuda", {"ISOGLOT_DEVICE": place}, "auto", place) for place in ("cuda:1", "cpu")),
        ("cuda", {"ISOGLOT_DEVICE": "cpu"}, "cuda", "cuda:0"),
    ],
)
def test_the_device_that_is_chosen(accelerator, monkeypatch, kind, environment, asked, place):
    accelerator(kind)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert resolve(asked) == torch.device(place)


@pytest.mark.parametrize(
    ("kind", "asked", "named"),
    [
        (None, "cuda:0", "'cuda:0'.*only the CPU"),
        ("xpu", "cuda", "'cuda'.*xpu"),
        ("cuda", "cuda:2", "'cuda:2'.*2"),
        ("cuda", "gpu", "'gpu'"),
    ],
)
def test_a_device_that_is_not_there_is_one_error(accelerator, kind, asked, named):
    accelerator(kind)
    with pytest.raises(EncoderError, match=named):
        resolve(asked)
    with pytest.raises(EncoderError, match=named):
        isoglot.load("no model is looked for before the device", device=asked)


def test_bfloat16_is_asked_of_the_device_and_not_of_its_name(monkeypatch):
    module = SimpleNamespace(is_bf16_supported=lambda including_emulation: not including_emulation)
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)
    assert bf16_pays(torch.device("xpu"))
    monkeypatch.setattr(torch, "get_device_module", lambda device: SimpleNamespace())
    assert not bf16_pays(torch.device("mps"))


def test_load_uses_the_device_asked_for(accelerator, monkeypatch, toy_transformer, tmp_path):
    accelerator("xpu")
    toy_transformer().save(tmp_path / "model")
    moves = []
    monkeypatch.setattr(Encoder, "to", lambda self, device: moves.append(device) or self)
    for asked, place in (("auto", "xpu:0"), ("xpu:1", "xpu:1"), ("cpu", "cpu")):
        load(tmp_path / "model", device=asked)
        assert moves.pop() == torch.device(place)


@pytest.mark.parametrize(
    "call",
    [
        lambda name, device: isoglot.evaluate(name, pairs=PAIRS, device=device),
        lambda name, device: isoglot.plot(name, SENTENCES, method="pca", device=device),
        lambda name, device: isoglot.mine(name, SENTENCES[:4], SENTENCES[4:8], device=device),
        lambda name, device: isoglot.Index.build(name, SENTENCES, device=device),
        lambda name, device: isoglot.train(name, PAIRS, steps=1, device=device),
    ],
    ids=["evaluate", "plot", "mine", "Index.build", "train"],
)
def test_every_function_that_opens_a_model_takes_a_device(accelerator, toy_static, tmp_path, call):
    toy_static.save(tmp_path / "model")
    accelerator("xpu", count=2)
    with pytest.raises(EncoderError, match="'xpu:3'"):
        call(tmp_path / "model", "xpu:3")


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_autocast_is_of_the_encoders_device(monkeypatch, precision):
    used = []
    monkeypatch.setattr(torch, "autocast", lambda kind, **settings: used.append(kind))
    devices.autocast(precision, torch.device("mps"))
    assert used == (["mps"] if precision == "bfloat16" else [])


@pytest.mark.parametrize(
    ("precision", "place"), [("tf32", "cpu"), ("tf32", "xpu"), ("tf32", "cuda"), ("int8", "cuda:0")]
)
def test_a_precision_needs_a_device_that_has_it(monkeypatch, precision, place):
    monkeypatch.setattr(torch.cuda, "is_tf32_supported", lambda: False)
    with pytest.raises(ValueError, match=f"{precision}.*{place}"):
        devices.settle(precision, torch.device(place))


def test_every_part_of_an_encoder_moves(toy_static, toy_transformer):
    from isoglot.encoders.towers import Towers
    from isoglot.encoders.twins import Twins

    wide = toy_transformer()
    towers = Towers({"a": wide, "b": toy_transformer(seed=1)}, {"a": ["LATIN"]})
    for encoder in (toy_static, towers, Twins(wide, toy_transformer())):
        moved = encoder.to("meta")
        assert moved.device == torch.device("meta")
        assert {value.device.type for value in moved.state_dict().values()} == {"meta"}


@pytest.mark.parametrize("kind", ["cuda", "xpu", "mps"])
def test_random_states_are_those_of_the_device(monkeypatch, kind):
    """Of whatever accelerator; MPS has one generator, whose functions take no device."""
    device = torch.device(kind, 0)
    own = {"state": torch.tensor([1], dtype=torch.uint8)}
    places = () if kind == "mps" else (device,)

    def get(*given):
        assert given == places
        return own["state"]

    def put(state, *given):
        assert given == places
        own["state"] = state

    monkeypatch.setattr(torch, "get_device_module", lambda _: SimpleNamespace(get_rng_state=get, set_rng_state=put))
    state = random_state(device)
    assert state.keys() == {"cpu", kind}
    drawn = torch.rand(3)
    own["state"] = torch.tensor([2], dtype=torch.uint8)
    set_random_state(state, device)
    assert torch.equal(torch.rand(3), drawn)
    assert own["state"].item() == 1
    with same_randomness_after(device):
        torch.rand(3)
        own["state"] = torch.tensor([3], dtype=torch.uint8)
    assert own["state"].item() == 1
    set_random_state({"cpu": state["cpu"], "another": torch.tensor([4], dtype=torch.uint8)}, device)
    assert own["state"].item() == 1


def test_a_cpu_that_multiplies_bfloat16_is_recognised():
    info = Path("/proc/cpuinfo")
    if not info.exists():
        pytest.skip("the flags of the CPU are not known here")
    flags = set(info.read_text(encoding="utf-8").split())
    assert bf16_pays(torch.device("cpu")) == bool(flags & {"avx512_bf16", "amx_tile"})
