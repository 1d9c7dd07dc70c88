"""Folders are swapped as a whole; JSON that cannot be read is named."""

import json

import pytest

from conftest import SENTENCES
from isoglot.core.errors import EncoderError, OutputError
from isoglot.model import layout


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_when_complete_and_replaces_the_whole_old_one(tmp_path):
    target = tmp_path / "deep" / "model"
    for before, file in (None, "config.json"), ("config.json", "modules.json"):
        with layout.replacing(target) as new:
            (new / file).write_text("{}")
            assert target.exists() == bool(before)
        assert names(tmp_path / "deep") == ["model"]
        assert names(target) == sorted([file, layout.FILES])


@pytest.fixture
def target(tmp_path):
    """A folder of an old model."""
    with layout.replacing(tmp_path / "model") as new:
        (new / "config.json").write_text("old")
    return tmp_path / "model"


def interrupted(target, error):
    with layout.replacing(target) as new:
        (new / "config.json").write_text("half")
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_failure_leaves_the_old_model(error, target):
    with pytest.raises(OutputError if error is OSError else error):
        interrupted(target, error("no space left"))
    assert (target / "config.json").read_text() == "old"
    assert names(target.parent) == ["model"]


def test_a_swap_that_fails_midway_brings_the_old_model_back(target, monkeypatch):
    real = type(target).replace

    def failing(self, destination):
        if self.name == "new":
            raise OSError("disk gone")
        return real(self, destination)

    monkeypatch.setattr(type(target), "replace", failing)
    with pytest.raises(OutputError, match="can't be written: disk gone"), layout.replacing(target):
        pass
    assert (target / "config.json").read_text() == "old"


def test_what_is_no_model_is_not_replaced(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="is a file"), layout.replacing(tmp_path / "file"):
        pass
    (tmp_path / "empty").mkdir()
    with layout.replacing(tmp_path / "empty") as new:
        (new / "config.json").write_text("{}")


def test_damaged_json_is_named(tmp_path):
    (tmp_path / "modules.json").write_text("[{")
    with pytest.raises(EncoderError, match=r"modules\.json: is not valid JSON"):
        layout.read_modules(tmp_path)
    with pytest.raises(EncoderError, match=r"gone\.json: cannot be read"):
        layout.read_json(tmp_path / "gone.json")


def test_class_paths_of_every_version_are_understood(tmp_path):
    types = [
        "sentence_transformers.models.Transformer",
        "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    ]
    entries = [{"idx": i, "name": str(i), "path": f"{i}_x", "type": kind} for i, kind in enumerate(types)]
    (tmp_path / "modules.json").write_text(json.dumps(entries[::-1]))
    assert [module.kind for module in layout.read_modules(tmp_path)] == ["Transformer", "Pooling"]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_our_tokenizers_are_read_as_transformers_reads_them(toy_transformer, tmp_path, kind):
    import transformers

    toy_transformer(kind).save(tmp_path / "m")
    ours = layout.read_tokenizer(tmp_path / "m")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    assert ours.backend_tokenizer.to_str() == theirs.backend_tokenizer.to_str()
    assert ours.special_tokens_map == theirs.special_tokens_map
    assert ours.model_input_names == tuple(theirs.model_input_names)
    for setting in ("model_max_length", "pad_token_id"):
        assert getattr(ours, setting) == getattr(theirs, setting)
    found = ours.backend_tokenizer.encode_batch(SENTENCES)
    assert [row.ids for row in found] == theirs(SENTENCES)["input_ids"]
    (tmp_path / "m" / "added_tokens.json").write_text("{}")
    assert layout.read_tokenizer(tmp_path / "m") is None


def test_old_keys_are_written(tmp_path):
    layout.write_modules(tmp_path, [("Transformer", ""), ("Pooling", "1_Pooling")], prompt="query: ")
    layout.write_pooling(tmp_path / "1_Pooling", "cls", 7)
    pooling = json.loads((tmp_path / "1_Pooling" / "config.json").read_text())
    assert pooling["pooling_mode_cls_token"] is True
    assert pooling["pooling_mode_mean_tokens"] is False
    assert pooling["word_embedding_dimension"] == 7
    assert layout.read_modules(tmp_path)[1] == layout.Module("Pooling", tmp_path / "1_Pooling")
    assert layout.read_settings(tmp_path).default == "query: "
    assert "sentence_transformers.models.Pooling" in (tmp_path / "modules.json").read_text()


def test_equal_models_are_equal_files(toy_static, tmp_path):
    """The library for tensors orders several entries of metadata by chance, in one process too."""
    contents = set()
    for number in range(6):
        toy_static.save(tmp_path / str(number), weights="int8")
        contents.add((tmp_path / str(number) / "packed.safetensors").read_bytes())
    assert len(contents) == 1


def test_weights_are_readable_for_whoever_may_read_the_folder(toy_static, tmp_path):
    toy_static.save(tmp_path / "model")
    assert len({file.stat().st_mode for file in (tmp_path / "model").iterdir() if file.is_file()}) == 1
