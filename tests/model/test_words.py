"""Ids by remembered words equal those of the tokenizer, for any text."""

import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, normalizers

import isoglot
from isoglot.model import words
from isoglot.model.tokenizer import tokenize_rows, train_tokenizer

SENTENCES = [
    "The cat sat on the mat, twice.",
    "Der Hund läuft über die Straße.", "Кошка сидит на ковре.", "猫がマットの上に座った。",
    "แมวนั่งอยู่บนเสื่อ", "القطة تجلس على السجادة", "बिल्ली चटाई पर बैठी", "مي\u200cروم به خانه", "고양이가 앉았다 2024",
]  # fmt: skip
ODD = [
    " ", "  ", "\u00a0", "\u3000", "\u200b", "\u200d", "\t", "\n", "\r\n", "\x00", "\x1f", "\x85", "\u0308", "\u00a8",
    "\u00b4", "\ufdfa", "\u2581", "\u2581a", "<unk>", "a<unk>b", "\ufb01", "\u0130", "\u03a3", "ΟΔΟΣ", "\ud800",
    "\U0001f600", "x" * 80, "",
    "\u0600", "①", "½", "ﷺ", "ᄀ", "ᅡ", "e\u0301", "\u1e9b\u0323", "cat.", "MAT", "Straße",
]  # fmt: skip
WORDS = st.one_of(st.sampled_from([word for text in SENTENCES for word in text.split(" ")] + ODD), st.text(max_size=6))
TEXTS = st.lists(st.lists(st.tuples(WORDS, st.sampled_from([" ", " ", " ", ""])), max_size=8), min_size=1, max_size=12)


@pytest.fixture(autouse=True)
def few_texts_too(monkeypatch):
    monkeypatch.setattr(words, "_FEWEST", 0)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request):
    return train_tokenizer(SENTENCES * 3, 300, model=request.param)


def check(tokenizer, texts, max_length=512):
    found, expected = (cut(tokenizer, texts, max_length=max_length) for cut in (words.tokenize, tokenize_rows))
    assert np.array_equal(found.lengths, expected.lengths)
    assert np.array_equal(found.ids, expected.ids)
    assert found.ids.dtype == found.lengths.dtype == np.int64


@given(texts=TEXTS, max_length=st.sampled_from([1, 3, 512]))
def test_ids_equal_those_of_the_tokenizer(tokenizer, texts, max_length):
    check(tokenizer, ["".join(part for pair in text for part in pair) for text in texts], max_length)


def test_most_words_are_remembered(tokenizer):
    check(tokenizer, SENTENCES)
    tokens, is_odd = words._look_up(tokenizer, ["the cat sat", "two  spaces", "Der Hund"], 512)
    assert is_odd.tolist() == [False, True, False]
    assert len(tokens) == 2


def test_the_memory_is_bounded(tokenizer, monkeypatch):
    monkeypatch.setattr(words, "_MOST", 20)
    monkeypatch.setattr(words, "_BLOCK", 4)
    check(tokenizer, [f"cat{number} mat{number % 7}" for number in range(50)])
    memory = words._memories[tokenizer]
    assert 0 < len(memory.places) == len(memory.words) <= 20


def test_a_tokenizer_that_changes_forgets():
    tokenizer = train_tokenizer(SENTENCES * 3, 300, lowercase=False)
    check(tokenizer, ["The MAT"] * 3)
    tokenizer.normalizer = normalizers.Lowercase()
    check(tokenizer, ["The MAT"] * 3)
    tokenizer.add_tokens([AddedToken("cat sat", normalized=False)])
    check(tokenizer, ["The cat sat on"] * 3)


def test_other_tokenizers_are_left_alone():
    tokenizer = train_tokenizer(SENTENCES * 3, 300)
    tokenizer.normalizer = normalizers.Replace(" cat", "x")
    check(tokenizer, ["The cat sat on the cat"] * 3)
    assert not words._memories[tokenizer].is_possible


def test_threads_and_forks_share_it():
    model = isoglot.load("isoglot-static")
    texts = [f"{text} {number}" for number in range(40) for text in SENTENCES]
    expected, found = tokenize_rows(model.tokenizer, texts, max_length=128), list[object]()
    threads = [threading.Thread(target=lambda: found.append(model.tokenize(texts))) for _ in range(4)]
    for thread in threads:
        thread.start()
    if hasattr(os, "fork"):
        if not (child := os.fork()):
            os._exit(0 if np.array_equal(model.tokenize(texts).ids, expected.ids) else 1)
        assert os.waitpid(child, 0)[1] == 0
    for thread in threads:
        thread.join()
    assert all(np.array_equal(tokens.ids, expected.ids) for tokens in found)
    assert len(found) == 4
