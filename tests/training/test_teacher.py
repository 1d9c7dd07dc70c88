"""A teacher's vectors go with the rows they are of, are computed once, survive a kill, and are never another's."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import build_tokenizer, build_transformer
from isoglot.core.environment import cache_folder
from isoglot.core.errors import CorpusError, EncoderError, RecipeError
from isoglot.data.batching import Batches
from isoglot.data.corpus import build_table
from isoglot.encoders import StaticEncoder, load
from isoglot.model import encode, engine
from isoglot.training import teacher
from isoglot.training.loop import ignore
from isoglot.training.plan import corpus_of
from isoglot.training.recipe import parse
from isoglot.training.teacher import open_teacher, teacher_column
from runs import train

GROUPS = [
    {"texts": ["the cat", "die Katze"], "langs": ["eng", "deu"], "hard_negatives": ["der Hund"], "hard_langs": ["deu"]},
    {"texts": ["the dog", "der Hund", "le chien"], "langs": ["eng", "deu", "fra"]},
    {"texts": ["a cat\nand a dog", "die Katze"], "langs": ["eng", "deu"]},
    {"texts": ["the sea", "das Meer"], "langs": ["eng", "deu"], "key": "sea"},
]
SENTENCES = [text for group in GROUPS for text in (*group["texts"], *group.get("hard_negatives", []))]
ROWS = np.arange(len(SENTENCES))
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two teachers of 16 dimensions and one of 8."""
    folder = tmp_path_factory.mktemp("models")
    build_transformer().save(folder / "teacher")
    build_transformer(seed=1).save(folder / "other")
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(folder / "narrow")
    return folder


@pytest.fixture
def project(tmp_path, own_cache, models):
    """A corpus in which texts repeat, and the teachers."""
    lines = [json.dumps(group) + "\n" for group in GROUPS]
    (tmp_path / "corpus.jsonl").write_text("".join(lines[:2]))
    (tmp_path / "more.jsonl").write_text("".join(lines[2:]))
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    return tmp_path


def recipe_of(folder: Path, objective: str = "soft_contrastive", steps: int = 3, **settings):
    stream = {
        "sources": [{"reader": "jsonl", "path": "corpus.jsonl"}, {"reader": "jsonl", "path": "more.jsonl"}],
        "teacher": {"model": "teacher", **settings},
        "batching": {"size": 4, "anchor": "first"},
        "objectives": [{"name": objective} | ({"value": "kl"} if objective == "soft_contrastive" else {})],
    }
    encoder = {"kind": "transformer", "model": "teacher"}
    whole = {"name": "t", "steps": steps, "encoder": encoder, "streams": [stream], "optimizer": {"lr": 0.01}}
    return parse(whole, folder=folder)


def opened(recipe, report=ignore):
    """Sources, table and the teacher's column."""
    sources = corpus_of(recipe, recipe.stages[0].streams[0])
    student = load(recipe.folder / "teacher")
    table = build_table(
        sources, student.tokenize, fingerprint=student.fingerprint, cache=cache_folder() / "tables", report=ignore
    )
    settings = recipe.stages[0].streams[0].teacher
    model = open_teacher(recipe, settings, CPU)
    return sources, table, teacher_column(model, settings, sources, table, report=report)


def folders(project):
    return sorted((project / "cache" / "teachers").iterdir())


def assert_teaches(recipe, texts=SENTENCES, name="teacher", prompt=None, **settings):
    """The rows of the teacher's column, after they were compared with the unit vectors of the model's own `encode`."""
    _, table, column = opened(recipe)
    found = column(np.arange(table.sentences))
    model = load(recipe.folder / name, **settings)
    np.testing.assert_allclose(found, encode(model, texts, normalize_embeddings=True, prompt=prompt), atol=1e-6)
    return found


def test_every_row_of_the_table_has_the_vector_of_its_own_text(project):
    """Hard negatives are rows too, repeated texts have one vector, two sources follow each other."""
    found = assert_teaches(recipe_of(project))
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(opened(recipe_of(project))[2](np.array([9, 0])), found[[9, 0]])
    stored = np.load(folders(project)[0] / "vectors.npy", mmap_mode="r")
    assert stored.shape == (len(set(SENTENCES)), 16)
    names = [path.name for path in folders(project)[0].iterdir()]
    assert sorted(names) == ["rows.npy", "vectors.npy", "vectors.npy.journal"]


def test_joined_streams_too(project):
    """The Katze of two groups makes them one; rows are in the order that joining gives."""
    recipe = recipe_of(project)
    stream = recipe.stages[0].streams[0].model_copy(update={"join": True})
    stage = recipe.stages[0].model_copy(update={"streams": (stream,)})
    recipe = recipe.model_copy(update={"stages": (stage,)})
    groups = [group for _, groups in corpus_of(recipe, stream).source_groups() for group in groups]
    assert_teaches(recipe, [text for group in groups for text in (*group.texts, *group.hard_negatives)])


def test_with_a_pivot_language_a_group_has_the_vector_of_its_sentence_in_it(project):
    """Or of the first, in a group that has none; hard negatives too, whose own vectors are not needed."""
    for pivot, targets in (
        ("deu", ["die Katze", "der Hund", "die Katze", "das Meer"]),
        ("fra", ["the cat", "le chien", "a cat\nand a dog", "the sea"]),
    ):
        texts = [text for text, rows in zip(targets, (3, 3, 2, 2), strict=True) for _ in range(rows)]
        assert_teaches(recipe_of(project, pivot=pivot), texts)
    assert sorted(len(np.load(folder / "vectors.npy", mmap_mode="r")) for folder in folders(project)) == [3, 4]


def test_a_pivot_stands_for_all_its_scripts_and_must_be_there(project):
    group = {"texts": ["the cat", "die Katze"], "langs": ["eng", "zho_Hans"]}
    (project / "corpus.jsonl").write_text(json.dumps(group) + "\n")
    assert_teaches(recipe_of(project, pivot="zh"), ["die Katze"] * 2 + [GROUPS[2]["texts"][0]] * 2 + ["the sea"] * 2)
    with pytest.raises(RecipeError, match=r"streams\.train\.teacher\.pivot: no sentence is in kor"):
        opened(recipe_of(project, pivot="ko"))


def test_a_batch_carries_it_beside_its_rows(project):
    recipe = recipe_of(project)
    _, table, column = opened(recipe)
    batch = Batches(table, recipe.stages[0].streams[0].batching, seed=0, columns={"teacher": column}).next()
    vectors = {tuple(ids): row for ids, row in zip(ids_of(table), column(np.arange(table.sentences)), strict=True)}
    starts = batch.tokens.starts.tolist()
    for start, length, row in zip(starts, batch.tokens.lengths.tolist(), batch.extras["teacher"], strict=True):
        assert torch.equal(row, torch.from_numpy(vectors[tuple(batch.tokens.ids[start : start + length].tolist())]))


def ids_of(table):
    return [table.tokens(np.array([row]))[0].tolist() for row in range(table.sentences)]


def test_it_is_computed_once_and_says_so(project, monkeypatch):
    words = []
    first = opened(recipe_of(project), report=words.append)[2](ROWS)
    assert [word.startswith("stream train: encoding its sentences") for word in words] == [True]
    monkeypatch.setattr(teacher, "_compute", None)
    np.testing.assert_array_equal(opened(recipe_of(project), report=words.append)[2](ROWS), first)
    assert len(words) == 1


@pytest.mark.parametrize("change", [{"model": "other"}, {"prompt": "query: "}, {"pooling": "cls"}, {"max_length": 3}])
@pytest.mark.slow
def test_another_teacher_has_vectors_of_its_own(project, change):
    first = assert_teaches(recipe_of(project))
    settings = {"name" if key == "model" else key: value for key, value in change.items()}
    found = assert_teaches(recipe_of(project, **change), **settings)
    assert len(folders(project)) == 2
    assert not np.allclose(found, first, atol=1e-3)


def test_other_weights_under_the_same_name_are_another_teacher_and_other_texts_are_read(project, toy_transformer):
    opened(recipe_of(project))
    toy_transformer(seed=2).save(project / "teacher")
    assert_teaches(recipe_of(project))
    (project / "more.jsonl").write_text(json.dumps({"texts": ["new", "neu"], "langs": ["eng", "deu"]}) + "\n")
    assert_teaches(recipe_of(project), [*SENTENCES[:6], "new", "neu"])


class KilledError(Exception):
    pass


@pytest.mark.parametrize("moment", ["before the rows", "before the vectors", "in the vectors"])
@pytest.mark.slow
def test_a_killed_computation_goes_on(project, monkeypatch, moment):
    """Whatever a kill leaves behind, the next run ends with the same vectors."""

    def killed(*_, **__):
        raise KilledError

    with monkeypatch.context() as patch:
        if moment == "before the rows":
            patch.setattr(teacher, "write_vectors", killed)
        elif moment == "before the vectors":
            patch.setattr(engine, "encode", killed)
        else:
            patch.setattr("isoglot.data.store._checksum", killed)
        with pytest.raises(KilledError):
            opened(recipe_of(project))
    assert_teaches(recipe_of(project))


def test_a_damaged_cache_is_told(project):
    recipe = recipe_of(project)
    opened(recipe)
    (folder,) = folders(project)
    for name in ("vectors.npy", "vectors.npy.journal", "rows.npy"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(b"rubbish")
        with pytest.raises(EncoderError, match="delete this folder"):
            opened(recipe)
        (folder / name).write_bytes(whole)
    np.save(folder / "rows.npy", np.arange(7))
    with pytest.raises(CorpusError, match="the stream has 10"):
        opened(recipe)


def test_an_impossible_setting_is_told(project):
    with pytest.raises(EncoderError, match="teacher: max_length must lie between 2 and"):
        opened(recipe_of(project, max_length=10_000))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["transformer", "static"])
def test_a_student_of_another_tokenizer_width_and_depth_learns_the_sources_vector(kind, project, toy_transformer):
    toy_transformer("unigram", seed=4).save(project / "other")
    changes = {
        "transformer": {"model": "other", "layers": "every 2nd", "dim": 8},
        "static": {"dim": 8, "vocabulary": 400},
    }
    recipe = recipe_of(project, "distillation", model="narrow", steps=40)
    encoder = {"kind": kind, **changes[kind]}
    data = recipe.model_dump(mode="json", exclude={"folder", "data"}) | {"encoder": encoder}
    data["stages"][0]["streams"][0]["objectives"][0]["priority"] = ["eng"]
    train(recipe.model_validate({**data, "folder": recipe.folder}), project / "run")
    log = (project / "run" / "log.jsonl").read_text().splitlines()
    losses = [json.loads(line)["losses"]["distillation"] for line in log]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


def test_a_narrow_teacher_is_one_line_for_distillation_and_welcome_for_soft_labels(project):
    with pytest.raises(RecipeError, match="the teacher has 8 dimensions and the student 16"):
        train(recipe_of(project, "distillation", model="narrow"), project / "run")
    assert not (project / "cache" / "teachers").exists()  # it is told before the teacher has read the corpus
    assert train(recipe_of(project, "soft_contrastive", model="narrow"), project / "soft").steps == 3
