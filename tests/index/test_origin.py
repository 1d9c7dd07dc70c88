"""An index belongs to a model, whichever engine computes its vectors."""

import pytest
import torch

import isoglot
from conftest import SENTENCES, build_transformer
from isoglot.core.errors import SearchError
from isoglot.encoders.onnx_export import write_onnx
from isoglot.index import Index

pytest.importorskip("onnx", reason="needs the extra `torch`")
TEXTS = sorted(set(SENTENCES))


@pytest.fixture
def opened(tmp_path):
    """Opens one model: its folder by torch, and its exported folder by both engines."""
    build_transformer().save(tmp_path / "saved")
    write_onnx(isoglot.load(tmp_path / "saved", engine="torch"), tmp_path / "exported")

    def opened(name, engine, **settings):
        return isoglot.load(tmp_path / name, engine=engine, **settings)

    return opened


ENGINES = [("saved", "torch"), ("exported", "torch"), ("exported", "onnx")]


@pytest.mark.parametrize("searching", ENGINES, ids="-".join)
@pytest.mark.parametrize("building", ENGINES, ids="-".join)
@pytest.mark.slow
def test_an_index_of_one_engine_is_searched_by_the_others(opened, tmp_path, building, searching):
    Index.build(opened(*building), TEXTS, folder=tmp_path / "index").close()
    with Index.open(tmp_path / "index", opened(*searching)) as index:
        assert [index.search(text, k=1)[0].text for text in TEXTS] == TEXTS


@pytest.mark.parametrize("name", ["saved", "exported"])
def test_a_model_that_was_changed_is_another(opened, tmp_path, name):
    Index.build(opened("exported", "onnx"), TEXTS, folder=tmp_path / "index").close()
    model = opened(name, "torch")
    with torch.no_grad():
        model.backbone.get_input_embeddings().weight[5] += 1
    with Index.open(tmp_path / "index", model) as index, pytest.raises(SearchError):
        index.search("a")


@pytest.mark.parametrize("settings", [{"prompt": "query: "}, {"max_length": 4}], ids=str)
def test_other_settings_are_another_model(opened, tmp_path, settings):
    Index.build(opened("exported", "torch"), TEXTS, folder=tmp_path / "index").close()
    with Index.open(tmp_path / "index", opened("exported", "onnx", **settings)) as index, pytest.raises(SearchError):
        index.search("a")
