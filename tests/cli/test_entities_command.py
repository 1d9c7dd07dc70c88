"""`isoglot entities`: vectors read and trained, and what is said of them."""

from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from isoglot.cli import wikipedia
from isoglot.cli.signatures import expand_options
from isoglot.core.errors import CorpusError
from isoglot.data.entity_vectors import read_vectors
from isoglot.wikipedia import entity_training

app = typer.Typer()
app.command()(expand_options(wikipedia.entities))


@app.command()
def other() -> None:
    """With a second verb, the first is called by its name."""


def invoke(*words):
    return CliRunner().invoke(app, ["entities", *map(str, words)])


@pytest.fixture
def folder(tmp_path):
    labels = ["Alpha", "Beta", "Nowhere"]
    lines = [f"Q{row}\t{9 - row}\t{label}\n" for row, label in enumerate(labels)]
    (tmp_path / "entities.tsv").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def test_vectors_that_are_there(folder):
    (folder / "v.txt").write_text("word\t1 2\nENTITY/Beta\t3 4\nENTITY/Alpha\t5 6\n")
    result = invoke(folder, "--vectors", folder / "v.txt")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{folder / 'entity_vectors.npy'}\n"
    assert "2 of 3 entities have a vector of 2 dimensions" in result.stderr
    assert "1 have none and are initialized at random" in result.stderr
    table = read_vectors(Path(result.stdout.strip()))
    assert table[:2].tolist() == [[5, 6], [3, 4]]
    assert np.isnan(table[2]).all()


def test_titles_of_a_language(folder):
    (folder / "v.txt").write_text("ENTITY/Alfa\t5 6\n")
    (folder / "titles.tsv").write_text("es\tAlfa\tQ0\nen\tAlpha\tQ0\n")
    asked = [folder, "--vectors", folder / "v.txt", "--titles", folder / "titles.tsv"]
    assert isinstance(invoke(*asked).exception, CorpusError)
    assert "1 of 3 entities" in invoke(*asked, "--language", "es").stderr


def test_trained_vectors_are_of_the_dumps_language(folder, monkeypatch):
    """The settings reach the training, whose own tests are in tests/data/test_entity_training.py."""
    seen = []

    def train(dumps, output, settings, *, report, progress):
        seen.append((dumps, output, settings))
        output.write_text("ENTITY/Alfa\t5 6\n")
        return "es"

    monkeypatch.setattr(entity_training, "train", train)
    (folder / "titles.tsv").write_text("es\tAlfa\tQ0\n")
    words = ["--train", "--dump", "a.bz2", "--dump", "b.bz2", "--dim", 2, "--min-count", 3, "--workers", 2]
    result = invoke(folder, *words, "--titles", folder / "titles.tsv")
    assert result.exit_code == 0, result.output
    settings = entity_training.Training(dim=2, min_count=3, workers=2)
    model = folder.parent / f"{folder.name}.wikipedia2vec.pkl"
    assert seen == [(["a.bz2", "b.bz2"], model, settings)]
    assert f"the model: {model}" in result.stderr
    assert "1 of 3 entities" in result.stderr


def test_nothing_is_trained_for_a_folder_without_entities(tmp_path, monkeypatch):
    monkeypatch.setattr(entity_training, "train", None)
    result = invoke(tmp_path, "--train", "--dump", "a.bz2")
    assert isinstance(result.exception, CorpusError)
    assert "entities.tsv: no such file" in str(result.exception)


@pytest.mark.parametrize("words", [[], ["--train"], ["--vectors", "v", "--train"], ["--vectors", "v", "--dump", "d"]])
def test_one_of_the_two(folder, words):
    result = invoke(folder, *words)
    assert result.exit_code == 2
    assert "--model, or --train and --dump" in " ".join(result.output.split())


def test_vectors_of_names(folder, toy_static):
    toy_static.save(folder / "model")
    done = invoke(folder, "--model", folder / "model")
    assert done.exit_code == 0, done.output
    table = read_vectors(folder / "entity_vectors.npy")
    expected = toy_static.encode(["Alpha", "Beta", "Nowhere"], normalize_embeddings=True)
    np.testing.assert_allclose(table, expected, atol=1e-6)
    assert invoke(folder, "--model", folder / "model", "--vectors", folder / "x").exit_code == 2
