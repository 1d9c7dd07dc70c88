"""Opening models by name: folders good and hostile, the hub cache, and what a saved model must be."""

import builtins
import json
import os
import random
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import isoglot
from conftest import SENTENCES, build_tokenizer, build_transformer
from damage import damage
from isoglot.core.errors import EncoderError, IsoglotError
from isoglot.encoders import StaticEncoder, load
from isoglot.encoders.layers import Dense, Flow, WithLayer
from isoglot.encoders.towers import TYPE, Towers
from isoglot.model import encode, layout


@pytest.fixture
def saved(toy_transformer, tmp_path):
    """A saved mean-pooled transformer, and the encoder itself."""
    encoder = toy_transformer()
    encoder.save(tmp_path / "model")
    return tmp_path / "model", encoder


def edit(path, **changes):
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, **changes}))


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
    pooling(**config)(folder)
    assert load(folder).pooling == "cls"
    np.testing.assert_allclose(
        encode(load(folder), SENTENCES), encode(toy_transformer(pooling="cls"), SENTENCES), atol=1e-6
    )


def test_a_prompt_outside_the_pooling_is_refused(saved):
    folder, _ = saved
    edit(folder / "1_Pooling" / "config.json", include_prompt=False)
    assert load(folder).prompt == ""
    for settings in ({"prompt": "query: "}, {"prompts": {"query": "query: "}}):
        with pytest.raises(EncoderError, match="its pooling leaves prompts out"):
            load(folder, **settings)


def test_a_plain_hugging_face_folder_gets_a_pooling(saved):
    folder, encoder = saved
    for extra in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (folder / extra).unlink()
    shutil.rmtree(folder / "1_Pooling")
    np.testing.assert_allclose(encode(load(folder), SENTENCES), encode(encoder, SENTENCES), atol=1e-6)
    changed = load(folder, pooling="cls", prompt="a ", max_length=7, layers=1, head="tanh")
    assert (changed.pooling, changed.prompt, changed.max_length, changed.head is None) == ("cls", "a ", 7, False)


def test_lower_casing_in_the_settings_is_done(saved):
    folder, encoder = saved
    edit(folder / "sentence_bert_config.json", do_lower_case=True)
    lower = [text.lower() for text in SENTENCES]
    np.testing.assert_allclose(encode(load(folder), SENTENCES), encode(encoder, lower), atol=1e-6)


def test_a_missing_pooler_is_not_invented(saved):
    folder, encoder = saved
    weights = {name: value for name, value in load_file(folder / "model.safetensors").items() if "pooler" not in name}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    loaded = load(folder)
    assert loaded.backbone.pooler is None
    np.testing.assert_allclose(encode(loaded, SENTENCES), encode(encoder, SENTENCES), atol=1e-6)


def test_an_unknown_name_lists_the_known_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EncoderError, match=r"did you mean 'multilingual-e5-small'.*glove-6b-50d"):
        load("multilingual-e5-smal")
    with pytest.raises(EncoderError, match="allow_download=True"):
        load("somebody/something")
    with pytest.raises(EncoderError, match="not here/at all' not found"):
        load("./not here/at all")
    with pytest.raises(EncoderError, match="can't be the name of a model"):
        load("x" * 5000)
    with pytest.raises(EncoderError, match=r"neither modules\.json nor config\.json"):
        load(tmp_path)


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


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (None, r"^Model 'somebody/something' not found"),
        ("", r"cache .*hub can't be read; check its permissions"),
        ("models--somebody--something", r"something can't be read; check its permissions"),
        ("models--somebody--something/refs/main", r"something has no complete snapshot; finish the download"),
    ],
)
def test_each_fault_of_the_hub_cache_has_its_message(tmp_path, monkeypatch, made, message):
    cache = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    if made is not None:
        (cache / made).parent.mkdir(parents=True, exist_ok=True)
        (cache / made).write_text("abc")  # a file where a folder is expected, or a reference to a missing snapshot
    with pytest.raises(EncoderError, match=message):
        load("somebody/something")


CODE = "import os, pathlib\npathlib.Path(os.environ['ISOGLOT_TEST_MARK']).touch()\nclass Model: pass\n"
TEXTS = [*SENTENCES, "", "cat " * 80]


@pytest.fixture(autouse=True)
def no_code_and_no_question(monkeypatch, tmp_path_factory):
    """Foreign code leaves a mark, and a question is answered with yes; both fail the test."""
    mark = tmp_path_factory.mktemp("mark") / "ran"
    asked = []
    monkeypatch.setenv("ISOGLOT_TEST_MARK", str(mark))
    monkeypatch.setattr(builtins, "input", lambda *prompt: asked.append(prompt) or "y")
    yield
    assert not mark.exists()
    assert not asked


KINDS = ("transformer", "layers", "static", "flow", "towers")


@cache
def originals() -> dict[str, Path]:
    """Folders of the `KINDS`, saved once."""
    place = Path(tempfile.mkdtemp())
    made = {
        "transformer": build_transformer(normalizes=True, prompt="q: ", projections=[Dense(16, 6)]),
        "layers": build_transformer(family="xlm-roberta", pooling="first-last"),
        "static": StaticEncoder.create(build_tokenizer(), 8, seed=1),
        "flow": WithLayer(build_transformer(), Flow(16, levels=1, depth=1, width=4)),
        "towers": Towers(
            {"a": StaticEncoder.create(build_tokenizer(), 8), "b": StaticEncoder.create(build_tokenizer(), 8)},
            {"a": ["LATIN"]},
        ),
    }
    for name, encoder in made.items():
        encoder.save(place / name)
    return {name: place / name for name in made}


def copied(kind: str, place: Path) -> Path:
    return Path(shutil.copytree(originals()[kind], place / "model"))


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("local", [True, False], ids=["known", "unknown"])
def test_code_that_comes_with_a_model_is_refused(file, local, tmp_path):
    folder = copied("transformer", tmp_path)
    for name in ("modeling_evil", "configuration_evil", "tokenization_evil"):
        (folder / f"{name}.py").write_text(CODE)
    names = {"AutoConfig": "configuration_evil.Model", "AutoModel": "modeling_evil.Model"}
    edit(folder / file, auto_map={**names, "AutoTokenizer": ["tokenization_evil.Model", None]})
    if not local:
        edit(folder / "config.json", model_type="evil")
        edit(folder / "tokenizer_config.json", tokenizer_class="EvilTokenizer")
    with pytest.raises(EncoderError, match=rf"{file}: auto_map: ") as caught:
        load(folder)
    assert "trust_remote_code" not in str(caught.value)


class Evil:
    def __reduce__(self):
        return os.mkdir, (os.environ["ISOGLOT_TEST_MARK"],)


@pytest.mark.parametrize("kind", ["transformer", "static"])
def test_a_pickle_is_read_as_weights_or_not_at_all(kind, tmp_path):
    folder = copied(kind, tmp_path)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    np.testing.assert_allclose(encode(load(folder), SENTENCES), encode(load(originals()[kind]), SENTENCES), atol=1e-6)
    torch.save({**weights, "more": Evil()}, folder / "pytorch_model.bin")
    with pytest.raises(EncoderError, match=r"pytorch_model\.bin: .*safetensors") as caught:
        load(folder)
    assert "weights_only" not in str(caught.value)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(EncoderError, match=r"model\.safetensors"):
        load(folder)


def test_a_model_without_its_tokenizer_is_refused(tmp_path):
    folder = copied("transformer", tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).unlink()
        with pytest.raises(EncoderError, match=str(folder)):
            load(folder)


@pytest.mark.parametrize("kind", ["transformer", "static"])
def test_a_tokenizer_of_another_model_is_refused(kind, tmp_path):
    folder = copied(kind, tmp_path)
    known = json.loads((folder / "tokenizer.json").read_text())
    for number in (220, 5_000_000):
        vocabulary = {**known["model"]["vocab"], "extra": number}
        found = {**known, "model": {**known["model"], "vocab": vocabulary}}
        (folder / "tokenizer.json").write_text(json.dumps(found))
        with pytest.raises(EncoderError, match=rf"'extra' is number {number}.*has 2[02]0 rows"):
            load(folder)
    blind = {"type": "WordLevel", "vocab": {"<unk>": 1}, "unk_token": "<unk>"}
    (folder / "tokenizer.json").write_text(json.dumps({**known, "model": blind}))
    with pytest.raises(EncoderError, match="knows no text"):
        load(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_not_finite_are_refused(kind, value, tmp_path):
    folder = copied(kind, tmp_path)
    path = next(iter(sorted(folder.rglob("model.safetensors"))))
    weights = load_file(path)
    name = max(weights, key=lambda name: weights[name].numel() if weights[name].is_floating_point() else 0)
    weights[name].view(-1)[-1] = value
    save_file(weights, path, {"format": "pt"})
    with pytest.raises(EncoderError, match=r"contains NaN or infinity|only the mean"):
        load(folder)


def values(file, **changes):
    """Other values in a JSON file of the folder."""
    return lambda folder: edit(folder / file, **changes)


def modules(*kinds):
    return lambda folder: layout.write_modules(folder, [(kind, path) for kind, path in kinds])


def module(number, **changes):
    """Another value in a line of modules.json."""

    def change(folder):
        entries = json.loads((folder / "modules.json").read_text())
        entries[number] |= changes
        (folder / "modules.json").write_text(json.dumps(entries))
        (folder / "evil.py").write_text(CODE)

    return change


def pooling(**config):
    return lambda folder: (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))


def tensors(keep, **more):
    """Only the weights whose names pass, and others."""

    def change(folder):
        weights = load_file(folder / "model.safetensors")
        made = {name: value for name, value in weights.items() if keep(name)} | more
        save_file(made, folder / "model.safetensors", {"format": "pt"})

    return change


def text(file, content):
    return lambda folder: (folder / file).write_text(content)


def tokenizer(**changes):
    """Other steps of tokenizer.json; a dict as a value replaces single entries."""

    def change(folder):
        state = json.loads((folder / "tokenizer.json").read_text())
        for name, value in changes.items():
            state[name] = value if not isinstance(state[name], dict) or "type" in value else state[name] | value
        (folder / "tokenizer.json").write_text(json.dumps(state))

    return change


def tower_in_itself(folder):
    shutil.rmtree(folder / "a")
    (folder / "a").symlink_to(folder)


ST = "config_sentence_transformers.json"
REFUSED = [  # kind of model, what is changed in its folder, and the error
    ("transformer", pooling(pooling_mode="lasttoken"), "pooling lasttoken is not run here; choose one of cls"),
    ("transformer", pooling(pooling_mode_cls_token=True, pooling_mode_max_tokens=True), r"cls \+ max is not run"),
    ("transformer", pooling(pooling_mode_mean_sqrt_len_tokens=True), "pooling mean_sqrt_len is not run"),
    ("transformer", values("2_Dense/config.json", activation_function="torch.nn.Softplus"), "activation 'Softplus'"),
    ("transformer", modules(("Transformer", ""), ("LSTM", "1_LSTM")), "1_LSTM: LSTM modules are not run here"),
    ("transformer", modules(("CLIPModel", "")), "begins with CLIPModel"),
    ("towers", modules((TYPE, ""), ("LSTM", "1_LSTM")), "1_LSTM: LSTM modules are not run here"),
    ("static", modules(("StaticEmbedding", ""), ("Pooling", "1_P")), "1_P: Pooling modules are not run here"),
    ("transformer", modules(("Transformer", ""), ("Normalize", "1_N"), ("Dense", "2_Dense")), "Dense after Normalize"),
    ("transformer", tensors(lambda name: name != "encoder.layer.1.output.dense.bias"), "lack 1 tensors, such as"),
    ("transformer", values("config.json", attn_implementation="somebody/kernel"), "attn_implementation"),
    ("transformer", text("adapter_config.json", '{"base_model_name_or_path": "elsewhere"}'), "adapter"),
    ("transformer", values("config.json", num_hidden_layers=1), "1 layers, and the weights have more"),
    *(("transformer", values("config.json", num_hidden_layers=wrong), r"config\.json: .*num_hidden_layers")
      for wrong in (-1, 0, 10**9, 2.0, "2", None, True)),
    *(("transformer", module(0, type=name), r"modules\.json: 0\.type: ")
      for name in ("evil.Transformer", "evil:Transformer", "evil", "sentence_transformers:evil", "..x")),
    *(("transformer", module(1, path=path), r"modules\.json: 1\.path: leads out")
      for path in ("..", "../model/1_Pooling", "/tmp", "a/../../x", "C:\\x", "..\\x")),
    ("towers", text("towers.json", json.dumps([{"name": "../model", "scripts": []}] * 2)), r"towers\.json: 0\.name"),
    ("towers", tower_in_itself, "a tower cannot be towers"),
    ("static", text("tokenizer.json", "{}"), "model"),
    ("static", tensors(lambda _: False, other=torch.ones(2, 2)), "no embedding table, only other"),
    ("static", text("model.safetensors", "\0" * 4), "safetensors: can't be read"),
    ("transformer", text("model.safetensors", "\0" * 99), "model.* can't be read"),
    *((kind, tokenizer(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}), "tokenizer|cannot encode")
      for kind in ("static", "transformer")),  # the library panics when it reads this, and below when it tokenises
    ("static", tokenizer(model={"type": "Unigram", "unk_id": None, "vocab": [["x", -1.0]]}), "tokenizer|cannot encode"),
    ("transformer", tokenizer(post_processor={"special_tokens": {}}), "tokenizer|cannot encode"),
    *(("transformer", values(file, **{key: value}), rf"{file}: .*{key}") for file, key, value in (
        ("config.json", "vocab_size", 10**12),
        ("config.json", "hidden_size", -16),
        ("config.json", "max_position_embeddings", 1 << 30),
        (ST, "prompts", ["q: "]),
        (ST, "prompts", {"default": 1}),
        (ST, "default_prompt_name", "absent"),
        ("sentence_bert_config.json", "max_seq_length", "48"),
        ("sentence_bert_config.json", "max_seq_length", -1),
        ("sentence_bert_config.json", "do_lower_case", "yes"),
        ("tokenizer_config.json", "model_max_length", [48]),
        ("1_Pooling/config.json", "pooling_mode_mean_tokens", "mean"),
        ("1_Pooling/config.json", "pooling_mode", 7),
        ("2_Dense/config.json", "in_features", 10**12),
        ("2_Dense/config.json", "bias", "no"),
        ("2_Dense/config.json", "module_input_name", "token_embeddings"),
        ("tokenizer_config.json", "truncation_side", "left"),
    )),
    ("layers", values("2_Pooling/config.json", pooling_mode="cls"), "pooling cls of a mean of layers is not run"),
    ("layers", values("1_Layers/config.json", num_hidden_layers="2"), "1_Layers/config.json: .*num_hidden_layers"),
    ("flow", values("2_Flow/config.json", depth=10**9), "2_Flow/config.json: .*depth"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "message"), REFUSED)
def test_a_folder_that_is_refused(kind, change, message, tmp_path):
    folder = copied(kind, tmp_path)
    change(folder)
    with pytest.raises(EncoderError, match=message):
        load(folder)
    assert "evil" not in sys.modules


@pytest.mark.parametrize(
    ("kind", "settings", "error", "message"),
    [
        ("static", {"pooling": "cls"}, EncoderError, "pooling 'cls' needs a transformer"),
        ("static", {"head": "tanh", "layers": 1}, EncoderError, "a StaticEncoder has no setting head, layers"),
        ("transformer", {"sparse": True}, EncoderError, "a TransformerEncoder has no setting sparse"),
        ("transformer", {"max_length": 10_000}, EncoderError, "model: max_length must lie between"),
        ("transformer", {"max_length": True}, TypeError, "max_length"),
        ("transformer", {"max_length": 2.5}, TypeError, "max_length"),
        ("transformer", {"allow_download": "no"}, TypeError, "allow_download"),
        ("transformer", {"pooling": 1}, TypeError, "pooling"),
        ("transformer", {"dim": -1}, EncoderError, "dim"),
        ("transformer", {"adapter": 5}, EncoderError, "adapter"),
    ],
)
def test_settings_that_are_refused(kind, settings, error, message, tmp_path):
    with pytest.raises(error, match=message):
        load(copied(kind, tmp_path), **settings)


def test_an_engine_without_torch_does_not_ignore_settings_of_torch_and_the_device(toy_static, tmp_path, monkeypatch):
    toy_static.save(tmp_path / "m")
    for name, value in (("pooling", "cls"), ("token_weights", True)):
        with pytest.raises(EncoderError, match=f"m: the engine static can't change {name}"):
            isoglot.load(tmp_path / "m", engine="static", **{name: value})
    monkeypatch.setattr("isoglot.model.loading.wants_accelerator", lambda device: device != "cpu")
    with pytest.raises(EncoderError, match="the engine static computes on the CPU, not on cuda"):
        isoglot.load(tmp_path / "m", engine="static", device="cuda")
    for device in ("auto", "cpu"):
        assert isoglot.load(tmp_path / "m", engine="static", device=device).device == "cpu"


def test_a_pooling_that_we_run_replaces_one_that_we_do_not(saved):
    pooling(pooling_mode="lasttoken")(saved[0])
    assert load(saved[0], pooling="max").pooling == "max"


def test_a_tokenizer_whose_unknown_token_has_no_number(tmp_path):
    folder = copied("static", tmp_path)
    tokenizer(model={"unk_token": "[NONE]", "byte_fallback": False})(folder)
    with pytest.raises(EncoderError, match="NONE"):
        load(folder).encode("\u2603 \U0001f600")


@pytest.mark.parametrize(
    ("kind", "content"),
    [*((kind, content) for kind in KINDS for content in ("[]", "{")),
     *(("transformer", content) for content in ("7", '"x"', "null", "[" * 100_000, "\udcff"))],
    ids=lambda value: value[:9],
)  # fmt: skip
def test_files_that_hold_something_else(kind, content, tmp_path):
    folder = copied(kind, tmp_path)
    for path in sorted(folder.rglob("*.json")):
        before = path.read_bytes()
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
        if path.name in ("special_tokens_map.json", "isoglot.files.json") or path.parent.name.endswith("Normalize"):
            opens_or_refuses(folder)  # not every version of transformers reads it
        else:
            with pytest.raises(EncoderError):
                load(folder)
        path.write_bytes(before)


def opens_or_refuses(folder: Path, *, distinct: bool = True) -> None:
    """Either an error of the first opening, or finite vectors, the same at each opening, that tell texts apart."""
    rows = []
    with suppress(IsoglotError):
        for seed in (0, 1):
            torch.manual_seed(seed)
            rows.append(encode(load(folder), TEXTS))
    if not rows:
        return
    np.testing.assert_array_equal(*rows)
    assert np.isfinite(rows[0]).all()
    assert not distinct or len(np.unique(rows[0].round(6), axis=0)) > 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 40), marks=pytest.mark.slow)], ids=["few", "many"])
def test_a_damaged_file_is_an_error_or_gives_finite_vectors(kind, seeds, tmp_path):
    for seed in seeds:
        draw, folder = random.Random(f"{kind} {seed}"), copied(kind, tmp_path / str(seed))
        (folder / "evil.py").write_text(CODE)
        file = draw.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
        damage(file, draw)
        opens_or_refuses(folder, distinct=file.suffix != ".safetensors")


PADDING = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<unk>"}


@pytest.mark.parametrize("kind", ["static", "transformer"])
@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("padding", PADDING | {"strategy": {"Fixed": 20_000_000}}),
        ("padding", PADDING | {"strategy": "BatchLongest", "pad_to_multiple_of": 10**9}),
        ("model", {"dropout": 0.9}),
    ],
    ids=["fixed padding", "multiple of", "dropout"],
)
def test_a_tokenizer_does_nothing_but_tokenise(kind, part, value, toy_static, toy_transformer, tmp_path):
    (toy_static if kind == "static" else toy_transformer()).save(tmp_path / "m")
    texts = ["the cat sat on the mat"] * 3
    expected = load(tmp_path / "m").encode(texts)
    file = tmp_path / "m" / "tokenizer.json"
    saved = json.loads(file.read_text())
    saved[part] = (saved[part] or {}) | value
    file.write_text(json.dumps(saved))
    opened = load(tmp_path / "m")
    for _ in range(3):
        assert np.array_equal(opened.encode(texts), expected)
