"""What holds for every verb: complete help, `-h`, `--quiet`, and a device for each that opens a model."""

from __future__ import annotations

import sys

import pytest
import typer

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.main import app, main
from isoglot.encoders import StaticEncoder

COMPUTES_NOTHING = {"convert"}  # it rewrites weights
TAKES_NO_NAME = {"mine", "train", "search", "serve"}  # they open a model, though no argument of theirs is called so


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


def test_help_is_short_too(monkeypatch, capsys):
    for verb in ("encode", "data get"):
        monkeypatch.setattr(sys, "argv", ["isoglot", *verb.split(), "-h"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
        assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        "encode model a.txt -o a.npy",
        "evaluate model --data . --tasks retrieval -o scores",
        "negatives model a.tsv -o n.jsonl",
        "fit whitening model a.txt -o white",
        "trim model a.txt -o small",
        "mine model a.txt -o p.tsv",
        "index model a.txt -o index",
        "train demo/pairs -o run",
        "plot model a.txt --layout pca -o a.svg",
    ],
)
def test_the_device_asked_for_is_the_one_that_is_used(words, tmp_path, monkeypatch, capsys):
    """No machine has this device, and the error names it."""
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(tmp_path / "model")
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    (tmp_path / "a.tsv").write_text("eng\tdeu\none\teins\ntwo\tzwei\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["isoglot", *words.split(), "--device", "xpu:3"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "'xpu:3'" in capsys.readouterr().err.splitlines()[-1]
