"""Models of the package that have their word table and tokenizer from another one."""

import shutil

import numpy as np
import pytest
from killed import full_after

import isoglot
from conftest import SENTENCES, build_transformer
from isoglot.core.errors import EncoderError
from isoglot.encoders.loading import expand
from isoglot.encoders.onnx_export import write_onnx
from isoglot.model import card, layout, packaged
from isoglot.model.shared import FILE, Shared

onnx = pytest.importorskip("onnx", reason="needs the extra `onnx`")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folders `large`, whole, and `small`, which has another last layer and lacks what it shares with `large`."""
    place = tmp_path_factory.mktemp("made")
    encoder = build_transformer(normalizes=True).eval()
    write_onnx(encoder, place / "models" / "large", name="large")
    for weight in encoder.backbone.encoder.layer[-1].parameters():
        weight.data *= 1.5
    write_onnx(encoder, place / "whole", name="small")
    table = [each.name for each in read_graph(place / "whole").graph.initializer if "word_emb" in each.name]
    small = place / "models" / "small"
    shutil.copytree(place / "whole", small)
    (small / "tokenizer.json").unlink()
    part = read_graph(small)
    for each in [each for each in part.graph.initializer if each.name in table]:
        part.graph.initializer.remove(each)
    onnx.save_model(part, small / layout.GRAPH)
    shared = Shared(model="large", files=["tokenizer.json"], initializers=table)
    layout.write_json(small / FILE, shared.model_dump())
    return place


@pytest.fixture
def models(made, tmp_path, monkeypatch, own_cache):
    """A copy of them."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(packaged, "INCLUDED", tmp_path / "models")
    return tmp_path / "models"


def read_graph(folder):
    return onnx.load_model(folder / layout.GRAPH)


def test_a_completed_model_is_the_whole_one(models):
    whole, model = isoglot.load(models.parent / "whole"), isoglot.load("small")
    assert (model.encode(SENTENCES) == whole.encode(SENTENCES)).all()
    assert not (model.encode(SENTENCES) == isoglot.load("large").encode(SENTENCES)).all()
    assert (model.trainable().encode(SENTENCES) == whole.trainable().encode(SENTENCES)).all()
    onnx.checker.check_model(read_graph(model.folder))
    graphs = [read_graph(folder).graph for folder in (model.folder, models.parent / "whole")]
    first, second = ({each.name: each for each in graph.initializer} for graph in graphs)
    assert first == second
    assert not (model.folder / FILE).exists()


@pytest.mark.slow
def test_an_expanded_folder_and_the_completed_one_are_two(models):
    completed, expanded = isoglot.load("small").folder, expand("small")
    assert isoglot.load("small").folder == completed
    assert (expanded / "model.safetensors").is_file()
    np.testing.assert_array_equal(
        isoglot.load(expanded).encode(SENTENCES), isoglot.load("small", engine="torch").encode(SENTENCES)
    )


@pytest.mark.slow
def test_it_is_completed_once_and_again_when_a_part_is_another(models):
    folder = isoglot.load("small").folder
    before = (folder / layout.GRAPH).stat().st_mtime_ns
    assert isoglot.load("small").folder == folder
    assert (folder / layout.GRAPH).stat().st_mtime_ns == before
    with (models / "large" / card.FILE).open("a", encoding="utf-8") as file:
        file.write("\n")
    isoglot.load("small")
    assert (folder / layout.GRAPH).stat().st_mtime_ns > before


@pytest.mark.parametrize(
    ("name", "content"),
    [("large/" + layout.GRAPH, b"\x3a\x05abc"), ("large/" + layout.GRAPH, b""), (f"small/{FILE}", b'{"model": 3}')],
)
@pytest.mark.slow
def test_a_damaged_part_is_named(models, name, content):
    (models / name).write_bytes(content)
    with pytest.raises(EncoderError, match=rf"models/{name}"):
        isoglot.load("small")


def test_a_cache_that_cannot_be_written_is_named(models, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EncoderError, match=r"small: .*file/cache.*ISOGLOT_CACHE"):
        isoglot.load("small")
    assert isoglot.load("large").encode(SENTENCES).any()


@pytest.mark.parametrize("during", ["copies", "the table"])
def test_a_full_disk_names_the_cache(models, during):
    files = [path.stat().st_size for path in models.rglob("*") if path.is_file() and path.parent.name != "onnx"]
    part = (models / "small" / layout.GRAPH).stat().st_size
    assert max(files) <= part
    with (
        full_after(100 if during == "copies" else part + 10),
        pytest.raises(EncoderError, match=r"^small: .*cache/models/small: .*make room.*ISOGLOT_CACHE"),
    ):
        isoglot.load("small")
