"""What holds for every verb: complete help, `-h`, `--quiet`, and a device for each that opens a model."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import typer

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.main import app
from isoglot.encoders import Encoder, StaticEncoder, load
from isoglot.index import Index

COMPUTES_NOTHING = {"convert"}  # it rewrites weights
# They open a model, though no argument of theirs is called so.
TAKES_NO_NAME = {"align", "mine", "train", "search", "serve", "demo", "sweep"}


def commands(group, before=""):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


VERBS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_and_argument_is_explained(verb):
    texts = {one.name: one.help or "" for one in VERBS[verb].params}
    assert {name: text for name, text in texts.items() if not text.endswith(".") or not text[0].isupper()} == {}
    assert VERBS[verb].help.strip().split("\n")[0].endswith(".")
    assert {"quiet", "log_level"} <= set(texts)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_with_a_model_has_a_device(verb):
    names = {one.name for one in VERBS[verb].params}
    assert "device" in names or verb in COMPUTES_NOTHING or not ("model" in names or verb in TAKES_NO_NAME)


def test_help_is_short_too(run_main):
    for verb in ("encode", "data get"):
        code, out, _ = run_main(*verb.split(), "-h")
        assert code == 0
        assert "Usage" in out


OPENING = [
    "encode model a.txt -o a.npy",
    "evaluate model --data . --tasks retrieval -o scores",
    "negatives model a.tsv -o n.jsonl",
    "filter a.tsv --model model --threshold 0 -o f.jsonl",
    "fit whitening model a.txt -o white",
    "trim model a.txt -o small",
    "mine model a.txt -o p.tsv",
    "align model a.txt a.txt -o p.tsv",
    "index model a.txt -o new",
    "search index one",
    "search --model model a.txt one",
    "plot model a.txt --layout pca -o a.svg",
    "entities wiki --model model",
    "serve model",
    "serve index",
]
TRAINING = ["train demo/pairs -o run", "demo -o demo", "sweep demo/pairs --over steps=1,2 --data . -o swept"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model, an index, and what the verbs read."""
    tmp_path = tmp_path_factory.mktemp("made")
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(tmp_path / "model")
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    rows = [f"{text}\t{text} too" for text in SENTENCES]
    (tmp_path / "a.tsv").write_text("\n".join(["eng\tdeu", *rows]) + "\n", encoding="utf-8")
    (tmp_path / "retrieval.tsv").write_text("\n".join(["eng\tdeu", *rows]) + "\n", encoding="utf-8")
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki" / "entities.tsv").write_text("Q1\t9\tone\nQ2\t8\ttwo\n", encoding="utf-8")
    Index.build(load(tmp_path / "model"), SENTENCES, folder=tmp_path / "index").close()
    return tmp_path


@pytest.fixture
def run(made, tmp_path, monkeypatch, run_main):
    """Run words on a device, in a folder with links to what was made; the exit code and stderr."""
    monkeypatch.chdir(tmp_path)
    for path in made.iterdir():
        (tmp_path / path.name).symlink_to(path)

    return lambda words: run_main(*words.split(), "--device", "xpu:3")[::2]


@pytest.mark.parametrize("words", [*OPENING, *TRAINING])
def test_a_device_that_is_not_there_is_one_error(words, run):
    code, shown = run(words)
    assert code == 1
    assert "'xpu:3'" in shown.splitlines()[-1]


@pytest.mark.parametrize("words", OPENING)
def test_the_model_is_loaded_on_the_device_asked_for(words, run, monkeypatch):
    """PyTorch reports four accelerators that are not there, and encoders record where they are moved and stay."""
    moves = []
    fake = {"is_available": lambda: True, "current_accelerator": lambda: torch.device("xpu"), "device_count": lambda: 4}
    monkeypatch.setattr(torch, "accelerator", SimpleNamespace(**fake))
    monkeypatch.setattr("isoglot.encoders.device.bf16_pays", lambda _: False)
    monkeypatch.setattr(Encoder, "to", lambda self, device: moves.append(device) or self)
    monkeypatch.setattr("isoglot.serve.serve", lambda *_, **__: None)
    code, shown = run(words)
    assert code == 0, shown
    assert "device: " in shown
    assert moves
    assert set(moves) == {torch.device("xpu:3")}
