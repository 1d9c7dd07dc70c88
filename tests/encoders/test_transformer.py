"""Transformers: poolings, tokens, heads, layers, and the saved folder."""

import numpy as np
import pytest
import torch

import isoglot
from conftest import SENTENCES, save_and_open, save_and_open_elsewhere
from isoglot.encoders import TransformerEncoder, load
from isoglot.encoders.fitting import fit_whitening
from isoglot.encoders.layers import Dense
from isoglot.encoders.onnx_export import write_onnx
from isoglot.encoders.pooling import POOLINGS, Pooling, maximum
from isoglot.encoders.settings import TransformerSettings
from isoglot.model import encode

FAMILIES = ("bert", "xlm-roberta", "distilbert")
KEEPS_BFLOAT16 = TransformerEncoder.keeps_bfloat16  # which a fixture replaces


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_vectors_are_the_backbones(family, kind, toy_transformer):
    encoder = toy_transformer(kind, family=family).eval()
    batch = encoder.tokenizer(SENTENCES, padding=True, truncation=True, max_length=48, return_tensors="pt")
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        states = encoder.backbone(**inputs).last_hidden_state
    mask = inputs["attention_mask"][:, :, None]
    expected = (states * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(encode(encoder, SENTENCES), expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "first-last", "first1-last"])  # which both have
@pytest.mark.slow
def test_a_saved_model_is_the_same_here_and_in_sentence_transformers(family, pooling, toy_transformer, tmp_path):
    settings = {"pooling": pooling, "prompt": "query: ", "max_length": 20, "normalizes": True}
    dense = [Dense(16, 5, bias=False, activation="Identity"), Dense(5, 6, activation="GELU")]
    encoder = toy_transformer(family=family, projections=dense, **settings)
    texts = [*SENTENCES, "so " * 100 + "long", "x"]  # no white space at the ends, which version 5 strips
    loaded = save_and_open(encoder, tmp_path / "model", texts)
    assert {name: getattr(loaded, name) for name in settings} == settings
    assert (loaded.fingerprint, loaded.dim) == (encoder.fingerprint, 6)
    theirs = save_and_open_elsewhere(encoder, tmp_path / "model", texts)
    theirs.save(str(tmp_path / "theirs"))
    np.testing.assert_allclose(encode(load(tmp_path / "theirs"), texts), encode(encoder, texts), atol=1e-6)


def test_the_head_works_in_training_alone_and_is_not_saved(toy_transformer, tmp_path):
    plain, headed = toy_transformer(pooling="cls"), toy_transformer(pooling="cls", head="tanh")
    np.testing.assert_array_equal(encode(plain, SENTENCES), encode(headed, SENTENCES))
    tokens = headed.tokenize(SENTENCES)
    assert headed.train()(tokens).abs().max() < 1 < encode(plain, SENTENCES).max()
    assert save_and_open(headed, tmp_path / "model").head is None


def test_a_kept_head_is_the_training_head_and_is_saved(toy_transformer, tmp_path):
    headed, kept = (toy_transformer(pooling="cls", head=head) for head in ("tanh", "kept"))
    tokens, made = headed.tokenize(SENTENCES), []
    for encoder in (headed, kept):
        torch.manual_seed(0)  # equal dropout masks
        made.append(encoder.train()(tokens))
    torch.testing.assert_close(*made)
    kept.eval()
    assert np.abs(encode(kept, SENTENCES)).max() < 1
    save_and_open(kept, tmp_path / "model")


def test_frozen_and_sparse_embeddings(toy_transformer):
    frozen = toy_transformer(freeze_embeddings=True)
    words = frozen.backbone.get_input_embeddings().weight
    frozen(frozen.tokenize(SENTENCES)).sum().backward()
    assert words.grad is None
    sparse = toy_transformer(sparse_embeddings=True)
    sparse(sparse.tokenize(SENTENCES)).sum().backward()
    assert sparse.backbone.get_input_embeddings().weight.grad.is_sparse


@pytest.mark.parametrize("family", FAMILIES)
def test_dropout_is_set_everywhere_and_not_saved(family, toy_transformer, tmp_path):
    """On backbones of transformers and, for the opened BERT, on ours."""
    toy_transformer(family=family).save(tmp_path / "model")
    still, restless = (load(tmp_path / "model", dropout=rate) for rate in (0.0, 0.5))
    expected = torch.from_numpy(encode(load(tmp_path / "model"), SENTENCES))
    for encoder, equal in ((still, True), (restless, False), (toy_transformer(family=family, dropout=0.0), True)):
        vectors = encoder.train()(encoder.tokenize(SENTENCES)).detach()
        assert torch.allclose(vectors, expected, atol=1e-5) == equal
    still.save(tmp_path / "again")
    again, before = (load(tmp_path / name).backbone.config for name in ("again", "model"))
    rates = [name for name, value in vars(before).items() if "dropout" in name and isinstance(value, float)]
    assert rates
    assert all(getattr(again, name) == getattr(before, name) for name in rates)


def test_every_trained_weight_gets_a_gradient(toy_transformer):
    encoder = toy_transformer()
    encoder(encoder.tokenize(SENTENCES)).square().sum().backward()
    assert all(weight.grad is not None for weight in encoder.parameters() if weight.requires_grad)


@pytest.mark.parametrize(
    ("family", "layers", "kept"),
    [*((family, [2], [2]) for family in FAMILIES), ("bert", "every 2nd", [1]), ("bert", 1, [1]),
     ("bert", [1, 2], [1, 2]), ("bert", "every 1st", [1, 2])],
)  # fmt: skip
def test_chosen_layers(family, layers, kept, toy_transformer, tmp_path):
    whole, part = toy_transformer(family=family), toy_transformer(family=family, layers=layers)
    assert part.layers == kept
    for name, weight in part.state_dict().items():
        head, found, tail = name.partition(".layer.")
        number, _, rest = tail.partition(".")
        same = f"{head}{found}{kept[int(number)] - 1}.{rest}" if found else name
        assert torch.equal(weight, whole.state_dict()[same]), name
    save_and_open(part, tmp_path / "model")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"head": "tanh"}, "belongs to cls pooling, got pooling 'mean'"),
        ({"dropout": 1.0}, "dropout"),
        ({"layers": 3}, "between 1 and the backbone's 2, got 3"),
        ({"head": "kept", "pooling": "cls", "adapter": {"rank": 2}}, "head='kept'"),
        ({"dim": 6, "adapter": {"rank": 1}}, "adapter"),
        ({"family": "xlm-roberta", "max_length": 64}, "between 2 and the backbone's 63 positions, got 64"),
        ({"pooling": "median"}, f"one of {', '.join(POOLINGS)}, got 'median'"),
        *(({"layers": layers}, "layers must be") for layers in (0, [], [0], [3], [2, 1], [1, 1], "every 0th", "2nd")),
    ],
)
def test_settings_that_the_backbone_does_not_take(settings, words, toy_transformer):
    with pytest.raises(ValueError, match=words):
        toy_transformer(**settings)


@pytest.mark.parametrize("dim", [6, 40])
def test_a_new_layer_of_another_width_keeps_angles(dim, toy_transformer, tmp_path):
    encoder, plain = toy_transformer(dim=dim, seed=3), toy_transformer(seed=3)
    vectors, before = encode(encoder, SENTENCES), encode(plain, SENTENCES)
    assert encoder.dim == dim
    if dim > 16:
        np.testing.assert_allclose(vectors @ vectors.T, before @ before.T, atol=1e-5)
    assert all(weight.requires_grad for weight in encoder.projections.parameters())
    save_and_open(encoder, tmp_path / "model")


def test_length_is_bounded_by_tokenizer_and_positions(toy_transformer):
    assert toy_transformer().max_length == 48
    assert toy_transformer(max_length=60).tokenize(["cat " * 100]).lengths.tolist() == [60]
    assert toy_transformer(family="xlm-roberta", max_length=63).max_length == 63  # 64 less the padding's


def test_no_rows_give_no_vectors(toy_transformer):
    encoder = toy_transformer()
    assert encoder(encoder.tokenize([])).shape == (0, 16)


def test_fingerprint_follows_what_changes_ids(toy_transformer):
    prints = [toy_transformer(**settings).fingerprint for settings in ({}, {"max_length": 9}, {"prompt": "a "})]
    assert len({*prints, toy_transformer("unigram").fingerprint}) == 4
    assert toy_transformer(seed=3).fingerprint == prints[0]


def test_autocast_gives_float32(toy_transformer):
    encoder = toy_transformer()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert encoder(encoder.tokenize(SENTENCES)).dtype == torch.float32
    assert encoder.double()(encoder.tokenize(SENTENCES)).dtype == torch.float64


LENGTHS = (3, 1, 5)


def by_hand(name, states, length):
    first, second, last = (state[:length] for state in states)
    match name:
        case "cls":
            return last[0]
        case "mean":
            return torch.stack([last[t] for t in range(length)]).mean(0)
        case "max":
            return torch.stack([last[:, d].max() for d in range(last.shape[1])])
        case "first-last":
            return ((first + last) / 2).mean(0)
        case "first1-last":
            return ((second + last) / 2).mean(0)


@pytest.mark.parametrize("name", POOLINGS)
def test_padding_does_not_count(name):
    states = torch.randn(3, len(LENGTHS), 5, 4, generator=torch.Generator().manual_seed(0)) - 3
    mask = torch.tensor([[1] * length + [0] * (5 - length) for length in LENGTHS])
    states[:, mask == 0] = 1e4  # what is behind padding must not matter
    vectors = POOLINGS[name](list(states), mask)
    for row, length in enumerate(LENGTHS):
        alone = [*states[:, row : row + 1, :length]]
        torch.testing.assert_close(vectors[row], POOLINGS[name](alone, None)[0])
        if (expected := by_hand(name, states[:, row], length)) is not None:
            torch.testing.assert_close(vectors[row], expected)


def last_token(states, mask):
    """A pooling that no table of this library and of sentence-transformers has."""
    last = states[-1]
    ends = torch.full(last.shape[:1], last.shape[1]) if mask is None else mask.sum(dim=1)
    return last[torch.arange(last.shape[0]), ends - 1]


def largest(states, mask):
    """The largest values of several layers, which sentence-transformers cannot express."""
    return torch.stack([maximum([one], mask) for one in states]).amax(0)


@pytest.mark.parametrize("pooling", [Pooling(last_token), Pooling(largest, (0, -1))], ids=["one layer", "layers"])
def test_a_new_pooling_is_one_row(pooling, toy_transformer, tmp_path, monkeypatch):
    """It is trained, saved, opened and exported by its name."""
    pytest.importorskip("onnx", reason="needs the extra `onnx`")
    with pytest.raises(ValueError, match=f"must be one of {', '.join(POOLINGS)}"):
        TransformerSettings(kind="transformer", model="base", pooling="new")
    monkeypatch.setitem(POOLINGS, "new", pooling)
    assert TransformerSettings(kind="transformer", model="base", pooling="new").pooling == "new"
    toy_transformer().save(tmp_path / "base")
    pairs = [(f"one {i} two", f"three {i}") for i in range(8)]
    encoder = isoglot.train(load(tmp_path / "base", pooling="new"), pairs, steps=1, batch_size=8)
    vectors = encode(encoder, SENTENCES)
    ids, mask = map(torch.from_numpy, encoder.tokenize(SENTENCES).pad(encoder.pad))
    with torch.no_grad():
        states = encoder.backbone(ids, mask, output_hidden_states=True).hidden_states
        np.testing.assert_allclose(vectors, pooling(states, mask), atol=1e-6)
    loaded = save_and_open(encoder, tmp_path / "model", atol=0)
    assert loaded.pooling == "new"
    write_onnx(encoder, tmp_path / "graph", words="float32", layers="float32")
    graph = isoglot.load(tmp_path / "graph", engine="onnx")
    np.testing.assert_allclose(encode(graph, SENTENCES), vectors, atol=1e-4)


@pytest.mark.parametrize("whitened", [False, True])
def test_auto_is_bfloat16_where_it_is_fast_and_keeps_the_vectors(whitened, toy_transformer, monkeypatch):
    monkeypatch.setattr(TransformerEncoder, "keeps_bfloat16", KEEPS_BFLOAT16)
    encoder = toy_transformer(pooling="cls")
    if whitened:  # the first tokens of a random network differ little: that difference is the whole vector
        encoder = fit_whitening(encoder, SENTENCES * 4).encoder
    for is_fast in (False, True):
        monkeypatch.setattr("isoglot.encoders.device.bf16_pays", lambda _device, fast=is_fast: fast)
        expected = "bfloat16" if is_fast and not whitened else "float32"
        assert encoder.settle(None) == encoder.settle("auto") == expected
        assert encoder.describe().endswith(expected)
    assert encoder.settle("bfloat16") == "bfloat16"
    assert encoder.settle("fp32") == "float32"
