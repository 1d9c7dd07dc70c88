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


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Opens one model: its folder by torch, and its exported folder by both engines."""
    folder = tmp_path_factory.mktemp("models")
    build_transformer().save(folder / "saved")
    write_onnx(isoglot.load(folder / "saved", engine="torch"), folder / "exported")
    return lambda name, engine, **settings: isoglot.load(folder / name, engine=engine, **settings)


ENGINES = [("saved", "torch"), ("exported", "torch"), ("exported", "onnx")]


@pytest.mark.parametrize("searching", ENGINES, ids="-".join)
@pytest.mark.parametrize("building", ENGINES, ids="-".join)
@pytest.mark.slow
def test_an_index_of_one_engine_is_searched_by_the_others(opened, tmp_path, building, searching):
    Index.build(opened(*building), TEXTS, folder=tmp_path / "index").close()
    with Index.open(tmp_path / "index", opened(*searching)) as index:
        assert [index.search(text, k=1)[0].text for text in TEXTS] == TEXTS


def test_a_model_that_was_changed_or_has_other_settings_is_another(opened, tmp_path):
    Index.build(opened("exported", "onnx"), TEXTS, folder=tmp_path / "index").close()
    models = [opened(name, "torch") for name in ("saved", "exported")]
    for model in models:
        with torch.no_grad():
            model.backbone.get_input_embeddings().weight[5] += 1
    models += [opened("exported", "torch", **settings) for settings in ({"prompt": "query: "}, {"max_length": 4})]
    for model in models:
        with Index.open(tmp_path / "index", model) as index, pytest.raises(SearchError):
            index.search("a")
