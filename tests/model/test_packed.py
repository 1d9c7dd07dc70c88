"""Packed weights: the rounding is the best of its kind, what is saved is what is read, damage is named."""

import json
import lzma

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot.core.errors import EncoderError
from isoglot.encoders import StaticEncoder, TransformerEncoder, load, packing
from isoglot.encoders.layers import Dense, WithLayer
from isoglot.encoders.towers import Towers
from isoglot.model import encode, packed

BITS = pytest.mark.parametrize("bits", [8, 4])

SIZES = {"vocab_size": 220, "max_position_embeddings": 512, "hidden_size": 16, "num_hidden_layers": 1}
SIZES |= {"num_attention_heads": 2, "intermediate_size": 32, "pad_token_id": 0}


def restored(values, bits):
    integers, scales, unit = packing.quantize(values, bits)
    return torch.from_numpy(packed.dequantize(integers.numpy(), scales.numpy(), unit, values.shape[-1]))


@given(
    bits=st.sampled_from([8, 4]),
    rows=st.integers(0, 5),
    columns=st.integers(1, 100),
    exponent=st.integers(-12, 6),
    seed=st.integers(0, 1000),
)
def test_no_group_is_worse_than_plain_rounding(bits, rows, columns, exponent, seed):
    """Plain: the scale max / (L - 1), to nearest."""
    draw = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=draw) * 10.0**exponent
    found = restored(values, bits)
    assert found.shape == values.shape
    level = 1 << (bits - 1)
    for start in range(0, columns, packed.GROUP):
        group, ours = values[:, start : start + packed.GROUP], found[:, start : start + packed.GROUP]
        scale = group.abs().amax(1, keepdim=True) / (level - 1)
        plain = (group / scale).round() * scale
        rounded = group.square().sum(1) * 2.0**-20  # of the scale to float16
        assert ((ours - group).square().sum(1) <= (plain - group).square().sum(1) * 1.01 + rounded).all()


def test_the_scale_is_near_the_best_of_a_fine_search():
    bits = 4
    draw = torch.Generator().manual_seed(0)
    values = torch.randn(40, packed.GROUP, generator=draw)
    level = 1 << (bits - 1)
    scales = values.abs().amax(1)[:, None] / level * torch.linspace(0.5, 1.2, 400)[None]
    scales = torch.cat([scales, -scales], 1)[:, :, None]
    grid = (values[:, None] / scales).round().clamp(-level, level - 1) * scales
    best = (grid - values[:, None]).square().sum(2).amin(1)
    ours = (restored(values, bits) - values).square().sum(1)
    assert float(ours.sum() / best.sum()) < 1.08


@BITS
def test_what_is_representable_stays_as_it_is(bits):
    level = 1 << (bits - 1)
    draw = torch.Generator().manual_seed(1)
    whole = torch.randint(-level, level, (7, 64), generator=draw)
    whole[:, ::32] = -level  # the end of the range is used
    torch.testing.assert_close(restored(whole.float() / 16, bits), whole / 16, rtol=2e-3, atol=0)
    assert (restored(torch.zeros(3, 40), bits) == 0).all()


def made(kind):
    if kind == "static":
        return StaticEncoder.create(build_tokenizer(), 64, seed=1)
    if kind == "towers":
        return Towers({"a": build_transformer("unigram"), "b": build_transformer(seed=1)}, {"b": ["CJK"]})
    if kind == "layer":
        return WithLayer(build_transformer(), Dense(16, 8)).eval()
    return build_transformer(kind, prompt="query: ", normalizes=True).eval()


@pytest.mark.parametrize("kind", ["static", "bpe", "towers", "layer"])
@pytest.mark.parametrize(("weights", "least"), [("float16", 0.99999), ("int8", 0.999), ("int4", 0.9)])
def test_a_packed_model_has_nearly_the_same_vectors(kind, weights, least, tmp_path):
    encoder = made(kind).eval()
    encoder.save(tmp_path / "m", weights=weights, name="mine")
    opened = load(tmp_path / "m")
    assert opened.name == "mine"
    assert (opened.prompt, opened.dim, opened.max_length) == (encoder.prompt, encoder.dim, encoder.max_length)
    assert all(value.dtype != torch.float16 for value in opened.state_dict().values())
    for text in SENTENCES:
        torch.testing.assert_close(opened.tokenize([text]).ids, encoder.tokenize([text]).ids)
    a, b = (encode(each, SENTENCES, normalize_embeddings=True) for each in (encoder, opened))
    assert (a * b).sum(1).min() >= least


def test_packing_again_changes_nothing_more(tmp_path):
    build_transformer().save(tmp_path / "a", weights="int8", words="int4")
    opened = load(tmp_path / "a")
    opened.save(tmp_path / "b")
    assert load(tmp_path / "b").identity() == opened.identity()
    assert not list((tmp_path / "b").rglob("*packed*"))


def test_the_forms_can_be_mixed(tmp_path):
    encoder = build_transformer()
    words = "embeddings.word_embeddings.weight"
    for weights, table, expected in (("int8", "int4", torch.uint8), ("int4", "float32", torch.float32)):
        encoder.save(tmp_path / "m", weights=weights, words=table)
        tensors = load_file(tmp_path / "m" / packed.WEIGHTS)
        assert tensors[words].dtype == expected
        matrix = tensors["encoder.layer.0.output.dense.weight"]
        assert matrix.dtype == {"int8": torch.int8, "int4": torch.uint8}[weights]
        assert tensors["encoder.layer.0.output.dense.bias"].dtype == torch.float16
    encoder.save(tmp_path / "m", words="float16")
    assert load_file(tmp_path / "m" / packed.WEIGHTS)["encoder.layer.0.output.dense.weight"].dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("embeddings.word_embeddings", lambda: transformers.BertModel(transformers.BertConfig(**SIZES))),
        ("embed_tokens", lambda: transformers.LlamaModel(transformers.LlamaConfig(**SIZES))),
    ],
)
def test_the_word_table_is_not_that_of_most_rows(name, build, tmp_path):
    TransformerEncoder(build(), build_transformer().tokenizer).save(tmp_path / "m", words="int4")
    tensors = load_file(tmp_path / "m" / packed.WEIGHTS)
    assert [key for key, values in tensors.items() if values.dtype == torch.uint8] == [f"{name}.weight"]


def test_the_tokenizer_is_the_same_json(tmp_path):
    encoder = build_transformer("unigram")
    encoder.save(tmp_path / "full")
    encoder.save(tmp_path / "small", weights="int8")
    expanded = lzma.decompress((tmp_path / "small" / packed.TOKENIZER).read_bytes())
    assert json.loads(expanded) == json.loads((tmp_path / "full" / "tokenizer.json").read_bytes())
    assert not (tmp_path / "small" / "tokenizer.json").exists()


def test_impossible_forms_are_refused_before_anything_is_written(tmp_path):
    for wrong in ({"weights": "int5"}, {"words": "bf16"}):
        with pytest.raises(ValueError, match=r"int8|known"):
            build_transformer().save(tmp_path / "m", **wrong)
    encoder = StaticEncoder.create(build_tokenizer(), 8, seed=1)
    with torch.no_grad():
        encoder.table[3, 3] = torch.nan
    with pytest.raises(EncoderError, match=r"embedding\.weight"):
        encoder.save(tmp_path / "m", weights="int8")
    assert not list(tmp_path.iterdir())


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def unlabelled(path):
    save_file(load_file(path), path)


def followed(path):
    path.write_bytes(path.read_bytes() + b"rubbish")


def wrong_columns(path):
    tensors = load_file(path)
    facts = {name: {"columns": 9999, "unit": 1.0} for name in tensors if name + ".scales" in tensors}
    save_file(tensors, path, metadata={"isoglot": json.dumps(facts)})


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (packed.WEIGHTS, cut),
        (packed.WEIGHTS, unlabelled),
        (packed.WEIGHTS, wrong_columns),
        (packed.TOKENIZER, cut),
        (packed.TOKENIZER, followed),
    ],
)
@pytest.mark.parametrize("kind", ["static", "bpe"])
def test_damage_is_named(kind, name, damage, tmp_path):
    made(kind).save(tmp_path / "m", weights="int8")
    damage(tmp_path / "m" / name)
    with pytest.raises(EncoderError, match=r"packed\.safetensors: |tokenizer\.json\.xz: "):
        load(tmp_path / "m")


def test_a_tokenizer_that_expands_without_end_is_refused(tmp_path, monkeypatch):
    made("static").save(tmp_path / "m", weights="int8")
    monkeypatch.setattr(packed, "_LARGEST", 100)
    with pytest.raises(EncoderError, match=r"tokenizer\.json\.xz: "):
        load(tmp_path / "m")
