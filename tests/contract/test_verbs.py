"""What holds for every verb: complete help, `-h`, `--quiet`, and a device for each that opens a model."""

from types import SimpleNamespace

import hostile_world
import pytest
import torch
from hostile_world import commands, having

from isoglot.encoders import Encoder

COMPUTES_NOTHING = {"convert"}  # it rewrites weights
# They open a model, though no argument of theirs is called so.
TAKES_NO_NAME = {"align", "mine", "train", "search", "serve", "demo", "sweep"}
VERBS = commands()
# The calls in the table compute nothing new, or are not by a model that is on the device from the beginning.
WORDS = {name: verb.words for name, verb in having("--device").items()} | {
    "entities": "entities entity --model model",
    "search in a file": "search --model model a.deu one",
    "serve a model": "serve model",
}
standing = hostile_world.standing


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained_and_a_verb_with_a_model_has_a_device(verb):
    texts = {one.name: one.help or "" for one in VERBS[verb].params}
    assert {name: text for name, text in texts.items() if not text.endswith(".") or not text[0].isupper()} == {}
    assert VERBS[verb].help.strip().split("\n")[0].endswith(".")
    assert {"quiet", "log_level"} <= set(texts)
    assert "device" in texts or verb in COMPUTES_NOTHING or not ("model" in texts or verb in TAKES_NO_NAME)


@pytest.mark.parametrize("verb", ["encode", "data get"])
def test_help_is_short_too(run_main, verb):
    code, out, _ = run_main(*verb.split(), "-h")
    assert code == 0
    assert "Usage" in out


@pytest.mark.parametrize("verb", WORDS)
def test_a_device_that_is_not_there_is_one_error(standing, verb):
    standing.renew()
    done = standing.call([*WORDS[verb].split(), "--device", "xpu:3"])
    assert done.code == 1
    assert "'xpu:3'" in done.err.splitlines()[-1]


@pytest.mark.parametrize("verb", sorted(WORDS.keys() - {"train", "demo", "sweep"}))
def test_the_model_is_loaded_on_the_device_asked_for(standing, verb, monkeypatch):
    """PyTorch reports four accelerators that are not there, and encoders record where they are moved and stay."""
    moves = []
    fake = {"is_available": lambda: True, "current_accelerator": lambda: torch.device("xpu"), "device_count": lambda: 4}
    monkeypatch.setattr(torch, "accelerator", SimpleNamespace(**fake))
    monkeypatch.setattr("isoglot.encoders.device.bf16_pays", lambda _: False)
    monkeypatch.setattr(Encoder, "to", lambda self, device: moves.append(device) or self)
    monkeypatch.setattr("isoglot.serve.serve", lambda *_, **__: None)
    standing.renew()
    done = standing.call([*WORDS[verb].split(), "--device", "xpu:3"])
    assert done.code == 0, done.err
    assert "device: " in done.err
    assert set(moves) == {torch.device("xpu:3")}
