"""Random vocabularies, not trained ones: whatever the pieces, text of the corpus is cut as before."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from isoglot.encoders.trim import cut, needed, used

LETTERS = "abc"
PIECES = st.lists(st.text(LETTERS, min_size=1, max_size=4), unique=True, min_size=1, max_size=14)
# `d` is in no vocabulary
TEXTS = st.lists(st.text(LETTERS + "d ", max_size=12), min_size=1, max_size=6)
SPECIALS = ["<unk>", "<s>"]


def tokenizer_of(model) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(SPECIALS)
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
    met, count = used(tokenizer, texts, minimum=choices.pop("minimum", 1))
    state = json.loads(tokenizer.to_str())
    kept = sorted(needed(met, state, **{"keep_characters": False, **choices}))
    assert count == sum(map(bool, map(str.strip, texts)))
    return cut(state, {old: new for new, old in enumerate(kept)}), kept


@settings(max_examples=200, deadline=None)
@given(st.one_of(unigrams(), word_pieces(), byte_pairs()), TEXTS, st.booleans())
def test_covered_text_is_cut_as_before(tokenizer, texts, characters):
    small, kept = trimmed(tokenizer, texts, keep_characters=characters)
    assert small.get_vocab_size() == len(kept) <= tokenizer.get_vocab_size()
    assert small.get_vocab().keys() <= tokenizer.get_vocab().keys()
    assert {*SPECIALS} <= small.get_vocab().keys()
    for text in texts:
        before, after = tokenizer.encode(text), small.encode(text)
        assert [kept[number] for number in after.ids] == before.ids
        assert after.tokens == before.tokens


@settings(max_examples=100, deadline=None)
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


def test_pieces_met_too_seldom_go():
    tokenizer = tokenizer_of(models.WordPiece({"<unk>": 0, "aa": 1, "bb": 2, "a": 3, "##a": 4}, unk_token="<unk>"))
    small, kept = trimmed(tokenizer, ["aa bb", "bb"], minimum=2, keep_characters=True)
    assert kept[:4] == [0, 2, 3, 4]
    assert small.encode("aa bb").tokens == ["a", "##a", "bb"]


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
