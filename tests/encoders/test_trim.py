"""Fewer pieces, the same vectors: for toy encoders of every kind of tokenizer, and for multilingual-e5-small."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from conftest import SENTENCES, SPECIALS, build_tokenizer, build_transformer
from isoglot.data.files import read_lines
from isoglot.encoders import Encoder, StaticEncoder, TransformerEncoder, encode, load, packaged
from isoglot.encoders.tokenizer import UNKNOWN, train_tokenizer
from isoglot.encoders.trim import check, trim
from isoglot.errors import CorpusError, EncoderError
from isoglot.settings import BUNDLED

CORPUS = SENTENCES[:5]
UNSEEN = [*SENTENCES[5:], "", "quite other words: ₿ 🙂", "\ud800", "the " * 60]


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=SPECIALS, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


TOKENIZERS = {
    "bpe": build_tokenizer,
    "unigram": lambda: build_tokenizer("unigram"),
    "wordpiece": lambda: build_tokenizer("wordpiece"),
    "byte-level": byte_level,
    "own bpe": lambda: train_tokenizer(SENTENCES, 300, min_frequency=1),
    "own unigram": lambda: train_tokenizer(SENTENCES, 300, model="unigram"),
}


ENCODERS = [
    *((family, kind) for kind in ("bpe", "unigram", "wordpiece") for family in ("bert", "xlm-roberta", "distilbert")),
    *(("static", name) for name in TOKENIZERS),
]


def build(family: str, kind: str) -> Encoder:
    if family == "static":
        return StaticEncoder.create(TOKENIZERS[kind](), 8, seed=1)
    return build_transformer(kind, family=family).eval()


@pytest.mark.parametrize("family, kind", ENCODERS)
@pytest.mark.parametrize("characters", [True, False])
def test_vectors_of_the_corpus_are_the_same_bits(family, kind, characters, tmp_path):
    encoder = build(family, kind)
    before = encode(encoder, CORPUS)
    trimmed = trim(encoder, iter(CORPUS), keep_characters=characters)
    np.testing.assert_array_equal(encode(trimmed.encoder, CORPUS), before)
    np.testing.assert_array_equal(encode(encoder, CORPUS), before)  # which is left as it was
    assert trimmed.texts == len(CORPUS)
    assert len(trimmed.rows) < trimmed.pieces
    assert len(np.unique(trimmed.rows)) == len(trimmed.rows)
    check(encoder, trimmed, iter(CORPUS))
    trimmed.encoder.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(encode(again, CORPUS), encode(trimmed.encoder, CORPUS))
    vectors = encode(again, UNSEEN)
    assert np.isfinite(vectors).all()
    assert again.fingerprint != encoder.fingerprint


@pytest.mark.parametrize("family, kind", [("bert", "unigram"), ("xlm-roberta", "bpe"), ("static", "own bpe")])
def test_sentence_transformers_gives_the_same_vectors(family, kind, tmp_path):
    peer = pytest.importorskip("sentence_transformers")
    trimmed = trim(build(family, kind), CORPUS).encoder
    trimmed.save(tmp_path / "model")
    theirs = peer.SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(theirs.encode(SENTENCES), encode(trimmed, SENTENCES), atol=1e-6)


def test_every_row_is_the_one_it_was():
    encoder = build_transformer("unigram", family="bert", head=True, pooling="cls", freeze_embeddings=True)
    trimmed = trim(encoder, CORPUS)
    old, new = encoder.backbone, trimmed.encoder.backbone
    words = new.get_input_embeddings()
    assert torch.equal(words.weight, old.get_input_embeddings().weight[trimmed.rows])
    assert words.num_embeddings == new.config.vocab_size == len(trimmed.rows) == len(words.weight)
    assert not words.weight.requires_grad
    for (name, before), (_, after) in zip(encoder.named_parameters(), trimmed.encoder.named_parameters(), strict=True):
        assert before is not after
        assert "word_embeddings" in name or torch.equal(before, after)
    for number, row in enumerate(trimmed.rows):
        piece = trimmed.encoder.tokenizer.convert_ids_to_tokens(number)
        assert piece == encoder.tokenizer.convert_ids_to_tokens(int(row))


def test_token_weights_are_cut_with_their_rows(toy_static):
    trimmed = trim(toy_static, CORPUS)
    assert torch.equal(trimmed.encoder.token_weights, toy_static.token_weights[trimmed.rows])
    np.testing.assert_array_equal(encode(trimmed.encoder, CORPUS), encode(toy_static, CORPUS))


def test_numbers_in_the_config_follow(tmp_path):
    encoder = build_transformer("wordpiece")
    ids = {name: encoder.tokenizer.convert_tokens_to_ids(name) for name in ("<mask>", "t", "T")}
    encoder.backbone.config.bos_token_id, encoder.backbone.config.eos_token_id = ids["<mask>"], 10**6
    unused = max(encoder.tokenizer.get_vocab().values())
    encoder.backbone.config.cls_token_id = unused
    trim(encoder, CORPUS, keep_characters=False).encoder.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    small = load(tmp_path / "model").tokenizer
    assert config["bos_token_id"] == small.convert_tokens_to_ids("<mask>")
    assert config["cls_token_id"] == config["vocab_size"] - 1 == len(small) - 1
    assert config["eos_token_id"] == 10**6  # no piece, so it is left alone


def test_positions_of_roberta_do_not_move():
    """Its padding is number 3, and positions begin at 4: what comes before it stays, used or not."""
    import transformers

    entries = [("zz", -3.0), ("zy", -3.0), ("<unk>", 0.0), ("<pad>", 0.0), ("▁", -1.0), ("zx", -9.0), ("a", -2.0)]
    backend = Tokenizer(models.Unigram(entries, unk_id=2))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.add_special_tokens(["<unk>", "<pad>"])
    config = transformers.XLMRobertaConfig(
        vocab_size=7, max_position_embeddings=32, pad_token_id=3, type_vocab_size=1, hidden_size=16,
        num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>", model_max_length=20
    )
    torch.manual_seed(0)
    encoder = TransformerEncoder(transformers.XLMRobertaModel(config), tokenizer).eval()
    trimmed = trim(encoder, ["a aa", "a"], keep_characters=False)
    assert trimmed.rows.tolist() == [0, 1, 2, 3, 4, 5, 6]  # zx has the least score
    np.testing.assert_array_equal(encode(trimmed.encoder, ["a aa", "a"]), encode(encoder, ["a aa", "a"]))


def test_text_behind_the_maximal_length_and_the_prompt_count_too():
    encoder = StaticEncoder.create(build_tokenizer("wordpiece"), 8, seed=1)
    encoder.max_length, encoder.prompt = 3, "happily "
    trimmed = trim(encoder, CORPUS, keep_characters=False).encoder
    for one in (encoder, trimmed):
        one.max_length = 99
    np.testing.assert_array_equal(encode(trimmed, CORPUS), encode(encoder, CORPUS))


def test_an_encoder_around_another_is_copied_with_it():
    class Around(Encoder):
        def __init__(self, *inner):
            super().__init__()
            self.inner = torch.nn.ModuleList(inner)

        def tokenize(self, texts):
            return self.inner[0].tokenize(texts)

        def forward(self, tokens):
            return 2 * self.inner[0](tokens)

    toy = StaticEncoder.create(build_tokenizer(), 8, seed=1)
    around = Around(toy)
    trimmed = trim(around, CORPUS)
    assert type(trimmed.encoder) is Around
    tokens = trimmed.encoder.tokenize(CORPUS)
    assert torch.equal(trimmed.encoder(tokens), around(around.tokenize(CORPUS)))
    with pytest.raises(EncoderError, match="this Around has BPE \\+ BPE"):
        trim(Around(toy, build_transformer()), CORPUS)


def test_pieces_met_too_seldom_change_the_text_that_has_them():
    encoder = StaticEncoder.create(build_tokenizer(), 8, seed=1)
    every, often = trim(encoder, CORPUS), trim(encoder, CORPUS, minimum_count=3)
    assert len(often.rows) < len(every.rows)
    with pytest.raises(EncoderError, match="The cat sits on the mat"):
        check(encoder, often, CORPUS)


def test_what_cannot_be_cut_is_said():
    toy = StaticEncoder.create(build_tokenizer(), 8)
    with pytest.raises(ValueError, match="minimum_count must be at least 1, got 0"):
        trim(toy, CORPUS, minimum_count=0)
    for nothing in ([], ["", ""]):
        with pytest.raises(CorpusError, match="holds no sentences"):
            trim(toy, nothing)
    words = Tokenizer(models.WordLevel({UNKNOWN: 0, "cat": 1}, unk_token=UNKNOWN))
    with pytest.raises(EncoderError, match="this StaticEncoder has WordLevel; give"):
        trim(StaticEncoder(torch.zeros(2, 4), words), CORPUS)


@pytest.mark.parametrize("name", ["use-multilingual-v3", pytest.param("glove-6b-50d", marks=pytest.mark.slow)])
def test_packaged_models_without_pieces_are_refused(name):
    listed = {model.name: model for model in packaged.models()}[name]
    if not listed.installed or not listed.cached:
        pytest.skip(f"{name} is not unpacked here; run `isoglot models get {name}`")
    with pytest.raises(EncoderError, match="there is no vocabulary to cut"):
        trim(load(name), CORPUS)


def lines(code: str, count: int) -> list[str]:
    path = BUNDLED / "test" / f"tatoeba.{code}-eng.{code}.xz"
    return [text for _, text in islice(read_lines(path), count)]


@pytest.mark.slow
@pytest.mark.parametrize("name, least", [("multilingual-e5-small", 3.5), ("all-MiniLM-L6-v2", 1.1)])
def test_packaged_models_keep_their_vectors(name, least, tmp_path):
    """Thirty lines in each of ten languages: the very same bits, before and after saving."""
    listed = {model.name: model for model in packaged.models()}[name]
    if not listed.cached:
        pytest.skip(f"{name} is not unpacked here; run `isoglot models get {name}`")
    codes = ["ara", "bul", "cmn", "deu", "ell", "fin", "heb", "hin", "jpn", "kor"]
    corpus = [line for code in codes for line in lines(code, 30)]
    encoder = load(name)
    before = encode(encoder, corpus)
    trimmed = trim(encoder, corpus, keep_characters=False)
    assert trimmed.pieces > least * len(trimmed.rows)
    np.testing.assert_array_equal(encode(trimmed.encoder, corpus), before)
    trimmed.encoder.save(tmp_path / "model")
    np.testing.assert_array_equal(encode(load(tmp_path / "model"), corpus), before)
    assert np.isfinite(encode(trimmed.encoder, UNSEEN)).all()
