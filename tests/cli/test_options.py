"""Words of verbs: the optional model, what is a file and what cannot be either; functions named as `module:name`."""

import math
from pathlib import Path

import pytest
import typer

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.options import check_stdout, import_function, model_and_files
from isoglot.core.errors import EncoderError, IsoglotError
from isoglot.encoders import StaticEncoder
from isoglot.model import packaged


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A default model, two files, a folder of files, and a model in a folder."""
    monkeypatch.setattr(packaged, "INCLUDED", tmp_path / "models")
    monkeypatch.setattr(packaged, "DEFAULT", "isoglot-small")
    monkeypatch.delenv("ISOGLOT_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    encoder = StaticEncoder.create(build_tokenizer(), 8, seed=1)
    encoder.save("models/isoglot-small", weights="int8")
    encoder.save("mine")
    (tmp_path / "texts").mkdir()
    for name in ("a.deu", "b.eng", "texts/c.fra"):
        (tmp_path / name).write_text("\n".join(SENTENCES[:6]) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "model", "files"),
    [
        (["a.deu", "b.eng"], "isoglot-small", ["a.deu", "b.eng"]),
        (["mine", "a.deu"], "mine", ["a.deu"]),
        (["texts"], "isoglot-small", ["texts"]),
        (["-"], "isoglot-small", ["-"]),
        (["deu=a.deu", "b.eng"], "isoglot-small", ["deu=a.deu", "b.eng"]),
        (["organisation/name", "a.deu", "b.eng"], "organisation/name", ["a.deu", "b.eng"]),
        (["isoglot-small", "a.deu"], "isoglot-small", ["a.deu"]),
    ],
)
def test_the_first_word_is_a_model_unless_it_is_data(words, model, files, place):
    assert model_and_files(words) == (model, files)


@pytest.mark.parametrize(
    ("words", "most", "names"),
    [
        (["mine"], 1, r"^mine: is a model"),
        (["isoglot-small"], 1, r"^isoglot-small: is a model"),
        (["nothing.txt"], 1, r"^nothing\.txt: is neither"),
        (["a.deu", "b.eng"], 1, r"^a\.deu: .*at most 1 "),
        (["a.deu", "mine", "b.eng"], 2, r"^a\.deu: .*at most 2 "),
        (["mine", "a.deu", "b.eng", "a.deu"], 2, r"^mine: .* 3 files"),
    ],
)
def test_what_cannot_be_is_named(words, most, names, place):
    with pytest.raises(EncoderError, match=names):
        model_and_files(words, most=most)


def test_the_environment_has_the_last_word(place, monkeypatch):
    monkeypatch.setenv("ISOGLOT_MODEL", "mine")
    assert model_and_files(["a.deu"]) == ("mine", ["a.deu"])


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("mine a.deu b.eng -o out.tsv", "out.tsv"),
        ("encode a.deu -o out.npy", "out.npy"),
        ("index a.deu eng=b.eng -o out", "out"),
        ("plot a.deu b.eng --layout pca -o out.svg", "out.svg"),
        ("trim a.deu -o out", "out"),
        ("fit whitening a.deu --dim 2 -o out", "out"),
        ("negatives a.tsv -o out.jsonl", "out.jsonl"),
    ],
)
def test_every_verb_works_without_a_model(words, made, place, run_main):
    (place / "a.tsv").write_text("eng\tdeu\none\teins\ntwo\tzwei\nthree\tdrei\n", encoding="utf-8")
    code, _, err = run_main(*words.split())
    assert code == 0, err
    assert (place / made).exists()
    assert "model: isoglot-small" in err


def test_a_file_is_searched_without_an_index(place, run_main):
    code, out, _ = run_main("search", "a.deu", SENTENCES[2], "-k", 1)
    assert code == 0
    assert out.rstrip().split("\t")[5] == SENTENCES[2]


def test_a_function_is_imported():
    assert import_function("--function", "math:sqrt", "module:name") is math.sqrt


@pytest.mark.parametrize(
    "code, message",
    [
        ("def f(:", "SyntaxError: .*broken"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("{}['key']", "KeyError: 'key'"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("", "AttributeError: .*'f'"),
    ],
)
def test_what_a_module_raises_is_an_import_error(code, message, tmp_path, monkeypatch):
    name = f"broken_{abs(hash(code))}"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(IsoglotError, match=f"--function {name}:f: {message}.*; pass module:name"):
        import_function("--function", f"{name}:f", "module:name")


def test_json_beside_an_output_on_stdout_asks_for_a_file():
    with pytest.raises(typer.BadParameter, match="--output FILE"):
        check_stdout(Path("-"), as_json=True)
    check_stdout(Path("pairs.tsv"), as_json=True)
