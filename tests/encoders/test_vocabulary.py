"""Cutting a vocabulary to a corpus: the same pieces and vectors for its text, for each kind of tokenizer."""

import json
from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from conftest import SENTENCES, SPECIALS, build_tokenizer, build_transformer, save_and_open, save_and_open_elsewhere
from isoglot.core.errors import CorpusError, EncoderError
from isoglot.data.files import BUNDLED, read_lines
from isoglot.encoders import Encoder, StaticEncoder, TransformerEncoder, load
from isoglot.encoders.vocabulary import check, cut, cut_to, find_needed, find_used, trim
from isoglot.model import encode, packaged
from isoglot.model.tokenizer import UNKNOWN, train_tokenizer

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
    *(("bert", "bpe"), ("xlm-roberta", "unigram"), ("distilbert", "wordpiece")),
    *(("static", name) for name in TOKENIZERS),
]


def build(family: str, kind: str) -> Encoder:
    if family == "static":
        return StaticEncoder.create(TOKENIZERS[kind](), 8, seed=1)
    return build_transformer(kind, family=family).eval()


@pytest.mark.parametrize("family, kind", ENCODERS)
@pytest.mark.parametrize("characters", [True, False])
@pytest.mark.slow
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
    again = save_and_open(trimmed.encoder, tmp_path / "model", CORPUS, atol=0)
    vectors = encode(again, UNSEEN)
    assert np.isfinite(vectors).all()
    assert again.fingerprint != encoder.fingerprint


@pytest.mark.parametrize("family, kind", ENCODERS)
def test_pieces_in_another_order_are_the_same_pieces(family, kind, tmp_path):
    encoder = build(family, kind)
    size = (encoder.tokenizer if family == "static" else encoder.tokenizer.backend_tokenizer).get_vocab_size()
    first = np.random.default_rng(0).permutation(size)[: size // 2].tolist()
    moved, rows = cut_to(encoder, set(range(size)), first=first)
    assert sorted(rows.tolist()) == [*range(size)]
    places = np.argsort(rows)[first]  # of the pieces that come first; special ones may stand before them
    ordinary = [place for place, piece in zip(places, first, strict=True) if piece > 10]
    assert ordinary == sorted(ordinary)
    assert max(ordinary) < len(first) + 10
    np.testing.assert_array_equal(encode(moved, SENTENCES), encode(encoder, SENTENCES))
    save_and_open(moved, tmp_path / "model", atol=0)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
def test_tokens_behind_the_vocabulary_stay_behind_it(kind):
    encoder = build_transformer(kind)
    encoder.tokenizer.backend_tokenizer.add_tokens(["ZZZ", "QQQ"])
    size = encoder.tokenizer.backend_tokenizer.get_vocab_size()
    moved, rows = cut_to(encoder, set(range(size)), first=[30, 20, 25])
    texts = [*SENTENCES, "a ZZZ b QQQ"]
    np.testing.assert_array_equal(rows[moved.tokenize(texts).ids], encoder.tokenize(texts).ids)


def without_unknowns(tokenizer: Tokenizer, small: Tokenizer) -> int:
    """The number of pieces that were cut, each of which the small tokenizer spells without its unknown token."""
    state = json.loads(small.to_str())["model"]
    unknown = state.get("unk_id") if state["type"] == "Unigram" else small.token_to_id(str(state.get("unk_token")))
    gone = sorted(tokenizer.get_vocab().keys() - small.get_vocab().keys())
    texts = [tokenizer.decode([tokenizer.token_to_id(piece)]) for piece in gone]
    texts += [f"{one}{other.removeprefix('##')}" for one, other in pairwise(texts)]
    texts = [text for text in texts if tokenizer.token_to_id("[UNK]") not in tokenizer.encode(text).ids]
    for text, encoding in zip(texts, small.encode_batch(texts), strict=True):
        if unknown in encoding.ids:
            assert unknown is not None
            assert tokenizer.encode(text).tokens.count(small.id_to_token(unknown)) > 0, text
    return len(gone)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_pieces_that_are_gone_are_spelled_and_not_unknown(kind):
    tokenizer = TOKENIZERS[kind]()
    small = trim(StaticEncoder.create(tokenizer, 8, seed=1), CORPUS[:2]).encoder
    assert without_unknowns(tokenizer, small.tokenizer) > 0


@pytest.mark.parametrize("family, kind", [("bert", "unigram"), ("xlm-roberta", "bpe"), ("static", "own bpe")])
def test_sentence_transformers_gives_the_same_vectors(family, kind, tmp_path):
    save_and_open_elsewhere(trim(build(family, kind), CORPUS).encoder, tmp_path / "model")


def test_every_row_is_the_one_it_was():
    encoder = build_transformer("unigram", family="bert", head="tanh", pooling="cls", freeze_embeddings=True)
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
        piece = trimmed.encoder.tokenizer.backend_tokenizer.id_to_token(number)
        assert piece == encoder.tokenizer.convert_ids_to_tokens(int(row))


def test_token_weights_are_cut_with_their_rows(toy_static):
    trimmed = trim(toy_static, CORPUS)
    assert torch.equal(trimmed.encoder.token_weights, toy_static.token_weights[trimmed.rows])


def test_numbers_in_the_config_follow(tmp_path):
    encoder = build_transformer("wordpiece")
    ids = {name: encoder.tokenizer.convert_tokens_to_ids(name) for name in ("<mask>", "t", "T")}
    encoder.backbone.config.bos_token_id, encoder.backbone.config.eos_token_id = ids["<mask>"], 10**6
    unused = max(encoder.tokenizer.get_vocab().values())
    encoder.backbone.config.cls_token_id = unused
    trim(encoder, CORPUS, keep_characters=False).encoder.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    small = load(tmp_path / "model").tokenizer.backend_tokenizer
    assert config["bos_token_id"] == small.token_to_id("<mask>")
    assert config["cls_token_id"] == config["vocab_size"] - 1 == small.get_vocab_size() - 1
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


def test_text_behind_the_maximal_length_and_prompts_count_too():
    encoder = StaticEncoder.create(build_tokenizer("wordpiece"), 8, seed=1)
    encoder.max_length, encoder.prompt, encoder.prompts = 3, "signs ", {"query": "numbers "}
    trimmed = trim(encoder, CORPUS, keep_characters=False).encoder
    for one in (encoder, trimmed):
        one.max_length = 99
    for name in (None, "query"):
        before, after = (one.encode(CORPUS, prompt_name=name) for one in (encoder, trimmed))
        np.testing.assert_array_equal(after, before)


def test_texts_keep_their_pieces_after_named_prompts():
    """The first word has another piece where a prompt comes before it."""
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    encoder = StaticEncoder(StaticEncoder.create(tokenizer, 8).table, tokenizer, prompts={"query": "query: "})
    trimmed = trim(encoder, ["the", "numbers"]).encoder
    for name in (None, "query"):
        before, after = (one.encode(["the", "numbers"], prompt_name=name) for one in (encoder, trimmed))
        np.testing.assert_allclose(after, before, atol=1e-6)


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
    around.origin = toy.origin = "elsewhere"
    trimmed = trim(around, CORPUS)
    assert type(trimmed.encoder) is Around
    assert trimmed.encoder.origin == trimmed.encoder.inner[0].origin == ""
    tokens = trimmed.encoder.tokenize(CORPUS)
    assert torch.equal(trimmed.encoder(tokens), around(around.tokenize(CORPUS)))
    with pytest.raises(EncoderError, match=r"Around.*BPE \+ BPE"):
        trim(Around(toy, build_transformer()), CORPUS)


def test_pieces_met_too_seldom_change_the_text_that_has_them():
    encoder = StaticEncoder.create(build_tokenizer(), 8, seed=1)
    every, often = trim(encoder, CORPUS), trim(encoder, CORPUS, minimum_count=3)
    assert len(often.rows) < len(every.rows)
    with pytest.raises(EncoderError, match="The cat sits on the mat"):
        check(encoder, often, CORPUS)


def test_the_first_pieces_are_kept_without_being_met():
    encoder = StaticEncoder.create(build_tokenizer(), 8, seed=1)
    size = encoder.tokenizer.get_vocab_size()
    met = set(trim(encoder, CORPUS[:1]).rows.tolist())
    for first in (0, 20, size, size + 7):
        kept = set(trim(encoder, CORPUS[:1], first=first).rows.tolist())
        assert kept >= met | set(range(min(first, size)))
        assert len(kept) < size or first >= size or len(met) == size


def test_what_cannot_be_cut_is_said():
    toy = StaticEncoder.create(build_tokenizer(), 8)
    with pytest.raises(TypeError, match="text 1 is 5"):
        trim(toy, ["a", 5])
    with pytest.raises(ValueError, match="minimum_count is 0; it must be at least 1"):
        trim(toy, CORPUS, minimum_count=0)
    with pytest.raises(ValueError, match="first is -1; it must be at least 0"):
        trim(toy, CORPUS, first=-1)
    for nothing in ([], ["", ""]):
        with pytest.raises(CorpusError, match="no sentences"):
            trim(toy, nothing)
    words = Tokenizer(models.WordLevel({UNKNOWN: 0, "cat": 1}, unk_token=UNKNOWN))
    with pytest.raises(EncoderError, match=r"StaticEncoder.*WordLevel"):
        trim(StaticEncoder(torch.zeros(2, 4), words), CORPUS)


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
    save_and_open(trimmed.encoder, tmp_path / "model", corpus, atol=0)
    spelled = trim(encoder, corpus).encoder
    assert without_unknowns(encoder.tokenizer.backend_tokenizer, spelled.tokenizer.backend_tokenizer) > 10_000
    assert np.isfinite(encode(trimmed.encoder, UNSEEN)).all()


LETTERS = "abc"
PIECES = st.lists(st.text(LETTERS, min_size=1, max_size=4), unique=True, min_size=1, max_size=14)
# `d` is in no vocabulary
TEXTS = st.lists(st.text(LETTERS + "d ", max_size=12), min_size=1, max_size=6)
FEW_SPECIALS = ["<unk>", "<s>"]


def tokenizer_of(model) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(FEW_SPECIALS)
    return tokenizer


@st.composite
def unigrams(draw):
    pieces = draw(PIECES)
    scores = draw(
        st.lists(st.sampled_from([-1.0, -2.0, -5.0, -9.0, -30.0]), min_size=len(pieces), max_size=len(pieces))
    )
    entries = [("<unk>", 0.0), *zip(pieces, scores, strict=True)]
    return tokenizer_of(models.Unigram(entries, unk_id=0))


@st.composite
def word_pieces(draw):
    pieces = draw(PIECES) + ["##" + piece for piece in draw(PIECES)]
    vocabulary = {piece: number for number, piece in enumerate(["<unk>", *pieces])}
    return tokenizer_of(models.WordPiece(vocabulary, unk_token="<unk>"))


@st.composite
def byte_pairs(draw):
    """Merges of what is there already, in any order of ranks."""
    letters = [*draw(st.sets(st.sampled_from(LETTERS), min_size=1))]
    prefix = draw(st.sampled_from([None, "##"]))
    vocabulary = {"<unk>": 0}
    for piece in [*sorted(letters), *(prefix + letter for letter in sorted(letters) if prefix)]:
        vocabulary[piece] = len(vocabulary)
    merges = []
    for _ in range(draw(st.integers(0, 12))):
        left = draw(st.sampled_from([*vocabulary][1:]))
        right = draw(st.sampled_from([piece for piece in [*vocabulary][1:] if not prefix or piece.startswith(prefix)]))
        if (left, right) not in merges:
            merges.append((left, right))
            vocabulary.setdefault(left + right.removeprefix(prefix or ""), len(vocabulary))
    merges = draw(st.permutations(merges))
    options = {"fuse_unk": draw(st.booleans()), "ignore_merges": draw(st.booleans())}
    options |= {"continuing_subword_prefix": prefix} if prefix else {}
    return tokenizer_of(models.BPE(vocabulary, merges, unk_token="<unk>", **options))


def trimmed(tokenizer, texts, **choices):
    met, count = find_used(tokenizer, texts, minimum=choices.pop("minimum", 1))
    state = json.loads(tokenizer.to_str())
    kept = sorted(find_needed(met, state, **{"keep_characters": False, **choices}))
    assert count == sum(map(bool, map(str.strip, texts)))
    return cut(state, {old: new for new, old in enumerate(kept)}), kept


@given(st.one_of(unigrams(), word_pieces(), byte_pairs()), TEXTS, st.booleans())
def test_covered_text_is_cut_as_before(tokenizer, texts, characters):
    small, kept = trimmed(tokenizer, texts, keep_characters=characters)
    assert small.get_vocab_size() == len(kept) <= tokenizer.get_vocab_size()
    assert small.get_vocab().keys() <= tokenizer.get_vocab().keys()
    assert {*FEW_SPECIALS} <= small.get_vocab().keys()
    for text in texts:
        before, after = tokenizer.encode(text), small.encode(text)
        assert [kept[number] for number in after.ids] == before.ids
        assert after.tokens == before.tokens


@given(st.one_of(unigrams(), word_pieces(), byte_pairs()), TEXTS, TEXTS)
def test_characters_that_are_kept_are_never_unknown(tokenizer, texts, unseen):
    small, _ = trimmed(tokenizer, texts, keep_characters=True)
    inner = getattr(tokenizer.model, "continuing_subword_prefix", None) or ""
    alone = {piece for piece in tokenizer.get_vocab() if len(piece.removeprefix(inner)) == 1}
    assert alone <= small.get_vocab().keys()
    for word in " ".join(unseen).split():
        if {word[0], *(inner + letter for letter in word[1:])} <= alone:
            assert small.token_to_id("<unk>") not in small.encode(word).ids


def test_the_pieces_in_front_of_an_unknown_rest_stay():
    """Without `ab`, the word `abc` would be `a ##bc` and known."""
    tokenizer = tokenizer_of(models.WordPiece({"<unk>": 0, "ab": 1, "a": 2, "##bc": 3}, unk_token="<unk>"))
    small, kept = trimmed(tokenizer, ["abc a", "abc"], keep_characters=True)
    assert small.encode("abc").tokens == ["<unk>"]
    assert 1 in kept
    assert 1 not in trimmed(tokenizer, ["abc a", "a"], minimum=2)[1]


def test_the_least_score_stays():
    """`a` `bbc` would win over `ab` `bc` if an unknown `a` cost 30 and not 50."""
    entries = [("<unk>", 0.0), ("ab", -20.0), ("bc", -20.0), ("bbc", -2.0), ("c", -40.0)]
    tokenizer = tokenizer_of(models.Unigram(entries, unk_id=0))
    small, kept = trimmed(tokenizer, ["abbc", "bbc"])
    assert tokenizer.encode("abbc").tokens == small.encode("abbc").tokens == ["ab", "bc"]
    assert 4 in kept


def test_bytes_count_as_characters():
    pieces = ["<unk>", "ab", *(f"<0x{number:02X}>" for number in range(256))]
    tokenizer = tokenizer_of(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0, byte_fallback=True))
    small, kept = trimmed(tokenizer, ["ab"], keep_characters=True)
    assert small.encode("ä").tokens == ["<0xC3>", "<0xA4>"]
    assert len(kept) == 2 + 256 + 1
    assert len(trimmed(tokenizer, ["ab"])[1]) == 3


def template():
    return processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 4), ("</s>", 5)])


@pytest.mark.parametrize(
    "processor",
    [
        template(),
        processors.BertProcessing(("</s>", 5), ("<s>", 4)),
        processors.RobertaProcessing(("</s>", 5), ("<s>", 4)),
        processors.Sequence([processors.ByteLevel(), template()]),
        processors.ByteLevel(),
        None,
    ],
    ids=lambda processor: type(processor).__name__,
)
def test_what_is_put_around_a_sentence_has_its_new_number(processor):
    """Also where it is no added token, and where an added token lies outside the model's own vocabulary."""
    vocabulary = {"<unk>": 0, "a": 1, "b": 2, "c": 3, "<s>": 4, "</s>": 5}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_tokens(["@@"])
    if processor is not None:
        tokenizer.post_processor = processor
    small, kept = trimmed(tokenizer, ["c @@"])
    before, after = tokenizer.encode("c @@ c"), small.encode("c @@ c")
    assert [kept[number] for number in after.ids] == before.ids
    assert after.tokens == before.tokens
    assert len(kept) == (3 if processor is None or type(processor).__name__ == "ByteLevel" else 5)
