"""`isoglot wikipedia` and `isoglot entities` as a user meets them: what is written, and what is said of it."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from command_line import as_function, runner
from wiki_world import world

from isoglot.cli import wikipedia
from isoglot.core.errors import CorpusError
from isoglot.data.entity_vectors import read_vectors
from isoglot.wikipedia import entity_training

run = runner(wikipedia=wikipedia.wikipedia)
entities = as_function(wikipedia.entities)


@pytest.fixture
def project(tmp_path, monkeypatch):
    pytest.importorskip("mwparserfromhell", reason="needs the extra `wikipedia`")
    pytest.importorskip("sentencex", reason="needs the extra `wikipedia`")
    monkeypatch.chdir(tmp_path)
    world(tmp_path)
    return tmp_path


def test_from_wikidata(project):
    told = run("en.xml", "ja.xml", "--wikidata", "wikidata.json", "-o", "out", "--min-links", 3)
    report = json.loads(Path("out/report.json").read_text())
    lines = Path("out/sentences.jsonl").read_text(encoding="utf-8").count("\n")
    assert lines == sum(counts["written"] for counts in report["instances"].values()) > 20
    assert [line for line in told.split("\n") if line][:4] == ["redirects", "entities", "tables", "articles"]
    written = report["instances"]["eng"]["written"]
    assert f"eng: {written} sentences with an entity of " in told
    assert sorted(p.name for p in project.iterdir() if p.name not in ("out",)) == [
        "en.xml", "ja.xml", "titles.tsv", "types.tsv", "wikidata.json"
    ]  # fmt: skip


def test_every_option_reaches_the_report(project):
    run(
        "en.xml", "de=ja.xml", "--titles", "titles.tsv", "--types", "types.tsv", "-o", "out", "--min-links", 2,
        "--count-language", "en", "--all-pages", "--keep-lonely", "--candidates", 3, "--per-entity", 4, "--sample", 5,
        "--min-length", 6, "--max-length", 99, "--seed", 7, "--work", "kept",
    )  # fmt: skip
    settings = json.loads(Path("out/report.json").read_text())["settings"]
    assert settings == {
        "dumps": ["en.xml", "de=ja.xml"], "wikidata": None, "titles": "titles.tsv", "types": "types.tsv",
        "limits": {"least": 6, "most": 99}, "min_links": 2, "count_language": "en", "all_pages": True,
        "keep_lonely": True, "candidates": 3, "share": 4, "size": 5, "seed": 7,
    }  # fmt: skip
    assert Path("kept").is_dir()


@pytest.fixture
def folder(tmp_path):
    labels = ["Alpha", "Beta", "Nowhere"]
    lines = [f"Q{row}\t{9 - row}\t{label}\n" for row, label in enumerate(labels)]
    (tmp_path / "entities.tsv").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def test_vectors_that_are_there(folder, capsys):
    (folder / "v.txt").write_text("word\t1 2\nENTITY/Beta\t3 4\nENTITY/Alpha\t5 6\n")
    entities(folder, vectors=folder / "v.txt")
    out, err = capsys.readouterr()
    assert out == f"{folder / 'entity_vectors.npy'}\n"
    assert "2 of 3 entities have a vector of 2 dimensions" in err
    assert "1 have none and are initialized at random" in err
    table = read_vectors(folder / "entity_vectors.npy")
    assert table[:2].tolist() == [[5, 6], [3, 4]]
    assert np.isnan(table[2]).all()


def test_titles_of_a_language(folder, capsys):
    (folder / "v.txt").write_text("ENTITY/Alfa\t5 6\n")
    (folder / "titles.tsv").write_text("es\tAlfa\tQ0\nen\tAlpha\tQ0\n")
    given = {"vectors": folder / "v.txt", "titles": folder / "titles.tsv"}
    with pytest.raises(CorpusError):
        entities(folder, **given)
    entities(folder, **given, language="es")
    assert "1 of 3 entities" in capsys.readouterr().err


def test_trained_vectors_are_of_the_dumps_language(folder, monkeypatch, capsys):
    """The settings reach the training, whose own tests are in tests/wikipedia/test_entity_training.py."""
    seen = []

    def train(dumps, output, settings, *, report, progress):
        seen.append((dumps, output, settings))
        output.write_text("ENTITY/Alfa\t5 6\n")
        return "es"

    monkeypatch.setattr(entity_training, "train", train)
    (folder / "titles.tsv").write_text("es\tAlfa\tQ0\n")
    settings = {"dim": 2, "min_count": 3, "workers": 2}
    entities(folder, train=True, dump=["a.bz2", "b.bz2"], titles=folder / "titles.tsv", **settings)
    model, err = folder.parent / f"{folder.name}.wikipedia2vec.pkl", capsys.readouterr().err
    assert seen == [(["a.bz2", "b.bz2"], model, entity_training.Training(**settings))]
    assert f"the model: {model}" in err
    assert "1 of 3 entities" in err


def test_nothing_is_trained_for_a_folder_without_entities(tmp_path, monkeypatch):
    monkeypatch.setattr(entity_training, "train", None)
    with pytest.raises(CorpusError, match=r"entities\.tsv: no such file"):
        entities(tmp_path, train=True, dump=["a.bz2"])


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"train": True},
        {"vectors": "v", "train": True},
        {"vectors": "v", "dump": ["d"]},
        {"vectors": "v", "model": "m"},
    ],
)
def test_one_of_the_three(folder, given):
    with pytest.raises(typer.BadParameter, match="--model, or --train and --dump"):
        entities(folder, **given)


def test_vectors_of_names(folder, toy_static):
    toy_static.save(folder / "model")
    entities(folder, model=str(folder / "model"))
    expected = toy_static.encode(["Alpha", "Beta", "Nowhere"], normalize_embeddings=True)
    np.testing.assert_allclose(read_vectors(folder / "entity_vectors.npy"), expected, atol=1e-6)
