"""Training a tokenizer, and applying one to many texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SENTENCES, build_tokenizer
from isoglot.core.errors import EncoderError
from isoglot.model.tokenizer import digest, tokenize_rows, train_tokenizer

KINDS = ("bpe", "unigram", "wordpiece")


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_trained_pieces_cover_the_text(model):
    tokenizer = train_tokenizer(SENTENCES * 3, 300, model=model)
    assert tokenizer.get_vocab_size() <= 300
    assert tokenizer.token_to_id("<unk>") == 0
    tokens = tokenize_rows(tokenizer, SENTENCES, max_length=99)
    assert (tokens.ids != 0).all()
    assert (tokens.lengths > 0).all()


def test_the_same_texts_give_the_same_tokenizer():
    assert train_tokenizer(SENTENCES, 200).to_str() == train_tokenizer(iter(SENTENCES), 200).to_str()


def test_of_characters_that_are_equally_frequent_the_first_are_kept():
    rare = [chr(0x4E00 + number) for number in range(1000)]
    characters = {piece for piece in train_tokenizer(rare[::-1], 400).get_vocab() if len(piece) == 1}
    assert characters == {"\u2581", *rare[:199]}


def test_of_too_many_sentences_some_are_drawn_from_all_parts_of_the_text():
    texts = [f"{chr(0x4E00 + number)} x" for number in range(20_000)]
    seen = {ord(piece) - 0x4E00 for piece in train_tokenizer(texts, 900, sentences=400).get_vocab() if len(piece) == 1}
    drawn = sorted(number for number in seen if number >= 0)
    assert len(drawn) == 400
    assert 120 < sum(number < 10_000 for number in drawn) < 280
    assert train_tokenizer(texts, 900, sentences=400).to_str() == train_tokenizer(texts, 900, sentences=400).to_str()


def test_words_stay_whole_and_ideographs_single():
    tokens = train_tokenizer(["the cat", "猫猫猫 the"] * 50, 200).encode("The 猫猫 cat").tokens
    assert tokens == ["\u2581the", "\u2581猫", "猫", "\u2581cat"]


def test_all_white_space_is_one_space():
    tokenizer = train_tokenizer(SENTENCES, 200)
    tokens = tokenize_rows(tokenizer, ["the  cat\n", "the\r\n\tcat", "the cat"], max_length=9)
    assert len({tuple(tokens.select([row]).ids) for row in range(3)}) == 1


def test_settings_are_heeded():
    assert train_tokenizer(SENTENCES, 200, lowercase=False).token_to_id("T") is not None
    assert train_tokenizer(SENTENCES, 200).token_to_id("T") is None
    pieces = train_tokenizer(["a" * 40] * 9, 400, min_frequency=1).get_vocab()
    assert max(len(piece) for piece in pieces if piece != "<unk>") <= 16


def test_impossible_settings_are_refused():
    for wrong in ({"vocabulary": 1}, {"model": "words"}, {"sentences": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            train_tokenizer(SENTENCES, **{"vocabulary": 100, **wrong})
    with pytest.raises(EncoderError, match="no words"):
        train_tokenizer([], 100)


@settings(max_examples=10)
@given(st.lists(st.text(alphabet=st.characters(), max_size=20), max_size=8))
def test_rows_are_those_of_each_text_alone(texts):
    tokenizer = build_tokenizer()
    tokens = tokenize_rows(tokenizer, texts, max_length=99, special=True)
    clean = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
    expected = [tokenizer.encode(text).ids for text in clean]
    assert tokens.lengths.tolist() == list(map(len, expected))
    assert tokens.ids.tolist() == [piece for row in expected for piece in row]


@pytest.mark.parametrize("kind", KINDS)
def test_empty_texts_are_empty_rows_or_the_filler(kind):
    tokenizer = build_tokenizer(kind)
    assert tokenize_rows(tokenizer, ["", "cat", ""], max_length=99).lengths.tolist()[::2] == [0, 0]
    filled = tokenize_rows(tokenizer, ["", "cat"], max_length=99, filler=0)
    assert filled.lengths[0] == 1
    assert filled.ids[0] == 0
    assert len(tokenize_rows(tokenizer, [], max_length=99, special=True)) == 0


def test_the_digest_changes_with_tokenizer_and_settings():
    digests = {digest(build_tokenizer(kind), length, prompt) for kind in KINDS for length in (9, 10) for prompt in "ab"}
    assert len(digests) == 12
    padding = build_tokenizer()
    padding.enable_padding()
    assert digest(padding, 9, "a") == digest(build_tokenizer(), 9, "a")
