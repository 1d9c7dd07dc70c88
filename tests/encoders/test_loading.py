"""Where a name leads, old and new keys, and what is said when a model cannot be opened."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from conftest import SENTENCES
from isoglot.encoders import encode, layout, load
from isoglot.encoders.layers import Dense
from isoglot.errors import EncoderError


@pytest.fixture
def saved(toy_transformer, tmp_path):
    """A saved mean-pooled transformer, and the encoder itself."""
    encoder = toy_transformer()
    encoder.save(tmp_path / "model")
    return tmp_path / "model", encoder


def edit(path, **changes):
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, **changes}))


def pooling_file(folder, config):
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    "config",
    [
        {"embedding_dimension": 16, "pooling_mode": "cls", "include_prompt": True},
        {"embedding_dimension": 16, "pooling_mode": ["cls"]},
        {"word_embedding_dimension": 16, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
    ],
)
def test_poolings_in_old_and_new_keys(config, saved, toy_transformer):
    folder, _ = saved
    pooling_file(folder, config)
    assert load(folder).pooling == "cls"
    np.testing.assert_allclose(
        encode(load(folder), SENTENCES), encode(toy_transformer(pooling="cls"), SENTENCES), atol=1e-6
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"pooling_mode": "lasttoken"}, "pooling lasttoken is not run here; choose one of cls"),
        ({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}, "pooling cls \\+ max is not run"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "pooling mean_sqrt_len is not run"),
    ],
)
def test_poolings_we_do_not_run(config, message, saved):
    folder, _ = saved
    pooling_file(folder, config)
    with pytest.raises(EncoderError, match=message):
        load(folder)
    assert load(folder, pooling="max").pooling == "max"


def test_a_prompt_outside_the_pooling_is_refused(saved):
    folder, _ = saved
    edit(folder / "1_Pooling" / "config.json", include_prompt=False)
    assert load(folder).prompt == ""
    with pytest.raises(EncoderError, match="leaves the prompt out of the pooling"):
        load(folder, prompt="query: ")


def test_a_plain_hugging_face_folder_gets_a_pooling(saved):
    folder, encoder = saved
    for extra in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (folder / extra).unlink()
    shutil.rmtree(folder / "1_Pooling")
    np.testing.assert_allclose(encode(load(folder), SENTENCES), encode(encoder, SENTENCES), atol=1e-6)
    changed = load(folder, pooling="cls", prompt="a ", max_length=7, layers=1, head=True)
    assert (changed.pooling, changed.prompt, changed.max_length, changed.head is None) == ("cls", "a ", 7, False)


def test_dense_modules_come_along(toy_transformer, tmp_path):
    encoder = toy_transformer(pooling="cls", projections=[Dense(16, 5), Dense(5, 3, bias=False, activation="Identity")])
    encoder.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.dim == encoder.dim == 3
    np.testing.assert_allclose(encode(loaded, SENTENCES), encode(encoder, SENTENCES), atol=1e-6)
    edit(tmp_path / "model" / "2_Dense" / "config.json", activation_function="torch.nn.Softplus")
    with pytest.raises(EncoderError, match="unknown activation 'Softplus'"):
        load(tmp_path / "model")


def test_lower_casing_in_the_settings_is_done(saved):
    folder, encoder = saved
    edit(folder / "sentence_bert_config.json", do_lower_case=True)
    lower = [text.lower() for text in SENTENCES]
    np.testing.assert_allclose(encode(load(folder), SENTENCES), encode(encoder, lower), atol=1e-6)


def test_modules_we_do_not_run_are_named(saved):
    folder, _ = saved
    layout.write_modules(folder, [("Transformer", ""), ("LSTM", "1_LSTM"), ("Pooling", "1_Pooling")])
    with pytest.raises(EncoderError, match="1_LSTM: LSTM modules are not run here"):
        load(folder)
    layout.write_modules(folder, [("CLIPModel", "")])
    with pytest.raises(EncoderError, match="begins with CLIPModel"):
        load(folder)


def test_nothing_comes_after_normalize(saved):
    """What is behind it would see other vectors here than those of length one that it was made for."""
    folder, _ = saved
    layout.write_modules(folder, [("Transformer", ""), ("Normalize", "1_Normalize"), ("Dense", "2_Dense")])
    with pytest.raises(EncoderError, match="Dense after Normalize"):
        load(folder)


def test_damaged_weights_are_named(saved):
    folder, _ = saved
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "layer.1" in name)
    save_file(
        {key: value for key, value in weights.items() if key != name}, folder / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(EncoderError, match=f"lack 1 tensors, such as {name}"):
        load(folder)
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load(folder)


def test_a_missing_pooler_is_not_invented(saved):
    folder, encoder = saved
    weights = {name: value for name, value in load_file(folder / "model.safetensors").items() if "pooler" not in name}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    loaded = load(folder)
    assert loaded.backbone.pooler is None
    np.testing.assert_allclose(encode(loaded, SENTENCES), encode(encoder, SENTENCES), atol=1e-6)


def test_static_folders_that_cannot_be_run(toy_static, tmp_path):
    folder = tmp_path / "model"
    toy_static.save(folder)
    with pytest.raises(EncoderError, match="pooling 'cls' needs a transformer"):
        load(folder, pooling="cls")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderError, match=str(folder)):
        load(folder)
    save_file({"other": toy_static.table.detach()}, folder / "model.safetensors")
    with pytest.raises(EncoderError, match="no embedding table, only other"):
        load(folder)
    (folder / "model.safetensors").write_bytes(b"\0" * 4)
    with pytest.raises(EncoderError, match="weights cannot be read"):
        load(folder)


def test_an_unknown_name_lists_the_known_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EncoderError, match=r"did you mean 'multilingual-e5-small'.*glove-6b-50d"):
        load("multilingual-e5-smal")
    with pytest.raises(EncoderError, match="allow_download=True"):
        load("somebody/something")
    with pytest.raises(EncoderError, match="not here/at all' not found"):
        load("./not here/at all")


def test_an_empty_folder_holds_no_model(tmp_path):
    with pytest.raises(EncoderError, match=r"neither modules\.json nor config\.json"):
        load(tmp_path)


def test_wrong_settings_name_the_folder(saved, toy_static, tmp_path):
    folder, _ = saved
    toy_static.save(tmp_path / "static")
    with pytest.raises(EncoderError, match="static: holds a StaticEncoder, which has no setting head, layers"):
        load(tmp_path / "static", head=True, layers=1)
    with pytest.raises(EncoderError, match="holds a TransformerEncoder, which has no setting sparse"):
        load(folder, sparse=True)
    with pytest.raises(EncoderError, match="model: max_length must lie between"):
        load(folder, max_length=10_000)


@pytest.mark.parametrize(
    ("folder", "given", "named"), [("run/model", None, "run"), ("small", None, "small"), ("run/model", "mine", "mine")]
)
def test_a_saved_model_has_a_name(toy_transformer, tmp_path, folder, given, named):
    toy_transformer().save(tmp_path / folder, name=given)
    opened = load(tmp_path / folder)
    assert opened.name == named
    opened.save(tmp_path / "again")  # what is made of it is another model
    assert load(tmp_path / "again").name == "again"


def test_a_fault_of_the_hub_cache_is_not_absence(tmp_path, monkeypatch):
    def broken(*given, **options):
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("huggingface_hub.snapshot_download", broken)
    with pytest.raises(EncoderError, match=r"Hugging Face cache.*Permission denied"):
        load("somebody/something")
