"""Towers: who reads what, the same vectors as each tower alone, and folders that open together and one by one."""

import copy

import numpy as np
import pytest
import torch

from conftest import SENTENCES, build_transformer, save_and_open
from isoglot.core.errors import EncoderError
from isoglot.encoders import load
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.towers import STRIDE, Towers
from isoglot.model import encode

TEXTS = [*SENTENCES, "我爱 you", "ab 我爱", "", "?! 12", "ⅷ ªº µ", "한국어", "\ud800x"]


def towers(prompt=""):
    """Two towers, the first of which has a prompt."""
    latin, han = build_transformer(seed=1, prompt=prompt), build_transformer("unigram", family="xlm-roberta", seed=2)
    return Towers({"latin": latin, "han": han}, {"latin": ["LATIN"], "han": ["CJK"]}).eval()


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        ({"a": ["LATIN"], "b": ["CJK"]}, "aaaaabbaaaaaaaaaa"),  # read by none: to the first
        ({"a": ["CJK"], "b": []}, "bbbbbbabbbbaaabbb"),  # the rest to the second; ties and no letters to the first
        ({"a": ["ARABIC", "THAI"], "b": ["LATIN", "CYRILLIC"]}, "bbbbbaaaabbbaaaab"),
    ],
)
def test_a_text_goes_to_the_tower_that_reads_most_of_its_letters(scripts, expected, toy_static):
    encoder = Towers({"a": toy_static, "b": copy.deepcopy(toy_static)}, scripts)
    assert "".join("ab"[number] for number in encoder.routes(TEXTS)) == expected


def test_routing_is_counting_letters_by_their_names(toy_static):
    """The table over code points against Python's own loop over characters."""
    from unicodedata import name

    scripts = {"a": ["LATIN", "HIRAGANA"], "b": ["CJK", "KATAKANA"], "c": []}
    encoder = Towers({tower: copy.deepcopy(toy_static) for tower in scripts}, scripts)
    rng = np.random.default_rng(0)
    alphabet = "aZé1 ?" + "我あアяกªˮ" + chr(0x20000) + chr(0x301)
    texts = ["".join(rng.choice(list(alphabet), rng.integers(0, 9))) for _ in range(300)]
    for text, number in zip(texts, encoder.routes(texts), strict=True):
        words = [name(character).split()[0] for character in text if character.isalpha()]
        own = [sum(word in scripts[tower] for word in words) for tower in "ab"]
        counts = [*own, len(words) - sum(own)]
        assert number == counts.index(max(counts)), text


def test_vectors_are_those_of_the_towers_alone():
    encoder = towers()
    numbers = encoder.routes(TEXTS)
    assert set(numbers) == {0, 1}
    together = encode(encoder, TEXTS)
    for text, number, vector in zip(TEXTS, numbers, together, strict=True):
        np.testing.assert_allclose(vector, encode(encoder.members[number], text), atol=1e-6)
    tokens = encoder.tokenize(TEXTS)
    assert [int(i) for i in tokens.ids[tokens.starts] // STRIDE] == list(numbers)
    np.testing.assert_allclose(encode(encoder, iter(TEXTS), precision="bf16"), together, atol=0.05)
    with pytest.raises(EncoderError, match="int8 is computed by transformers, and this is a Towers"):
        encode(encoder, TEXTS, precision="int8")
    assert encode(encoder, []).shape == (0, 16)


def test_static_towers_give_row_sparse_gradients_to_the_tower_that_read(toy_static):
    other = copy.deepcopy(toy_static)
    encoder = Towers({"latin": toy_static, "rest": other}, {"latin": ["LATIN"]})
    assert not encoder.pads
    assert encoder.normalizes
    vectors = encoder(encoder.tokenize(["The cat", "", "Кошка"]))
    assert torch.equal(vectors[1], torch.zeros(8))
    vectors[0].sum().backward()
    assert toy_static.table.grad.is_sparse
    assert other.table.grad is None or not other.table.grad.to_dense().any()


def test_a_prompt_replaces_those_of_the_towers_and_gives_way_again():
    encoder = towers("query: ")
    own, plain = encode(encoder, SENTENCES), encode(encoder, SENTENCES, prompt="")
    assert not np.allclose(own[0], plain[0])
    np.testing.assert_array_equal(own, encode(encoder, SENTENCES))
    np.testing.assert_allclose(plain[0], encode(encoder.members[0], SENTENCES[0], prompt=""), atol=1e-6)


def test_prompts_that_all_towers_have_are_those_of_a_role():
    settings = [{"query": "q: ", "document": "d: "}, {"query": "q: ", "document": "e: "}]
    made = [build_transformer(seed=seed, prompts=prompts) for seed, prompts in enumerate(settings)]
    model = Towers({"a": made[0], "b": made[1]}, {"a": ["LATIN"]}).eval()
    assert model.prompts == {"query": "q: "}
    np.testing.assert_array_equal(model.encode_query(TEXTS), model.encode(TEXTS, prompt="q: "))


def test_what_is_saved_is_what_is_loaded_together_and_alone(tmp_path):
    encoder = towers("query: ")
    for _ in range(2):  # over an older one, too
        assert save_and_open(encoder, tmp_path / "model", TEXTS).identity() == encoder.identity()
    for name, tower in zip(encoder.towers, encoder.members, strict=True):
        np.testing.assert_allclose(encode(load(tmp_path / "model" / name), TEXTS), encode(tower, TEXTS), atol=1e-6)
    assert load(tmp_path / "model", max_length=7, prompt="x ").max_length == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_identity_and_fingerprint_tell_towers_apart(toy_static):
    def made(scripts, first=toy_static, second=toy_static):
        return Towers({"a": copy.deepcopy(first), "b": copy.deepcopy(second)}, scripts)

    shorter, heavier = copy.deepcopy(toy_static), copy.deepcopy(toy_static)
    shorter.max_length = 3
    with torch.no_grad():
        heavier.table[3] += 1e-3
    plain = made({"a": ["LATIN"]})
    others = [made({"a": ["CJK"]}), made({"b": ["LATIN"]}), made({"a": ["LATIN"]}, shorter)]
    assert len({encoder.fingerprint for encoder in [plain, *others]}) == 4
    others.append(made({"a": ["LATIN"]}, heavier))
    assert others[-1].fingerprint == plain.fingerprint
    assert len({encoder.identity() for encoder in [plain, *others]}) == 5


@pytest.mark.parametrize(
    ("names", "scripts", "message"),
    [
        ("a", {}, "between 2 and 255 towers of different names are needed, got a"),
        ("ab", {}, "a and b both read all remaining scripts; set the scripts of one"),
        ("ab", {"a": ["LATIN", "CJK"], "b": ["CJK"]}, "a and b both read CJK"),
        ("ab", {"a": ["Latin"]}, "a: no Unicode letter name begins with 'Latin'; use LATIN, CJK"),
        ("ab", {"c": ["LATIN"]}, "scripts are of a tower; got 'c'"),
        ("a/", {"a": ["LATIN"]}, "a tower's name is letters, digits, - and _, .* got '/'"),
    ],
)
def test_towers_that_do_not_fit_together_are_refused(names, scripts, message, toy_static):
    with pytest.raises(ValueError, match=message):
        Towers(dict.fromkeys(names, toy_static), scripts)


def test_towers_of_unequal_width_or_within_towers_are_refused(toy_static, toy_tokenizer):
    scripts = {"a": ["LATIN"]}
    with pytest.raises(ValueError, match="vectors of equal width, got 6, 8"):
        Towers({"a": toy_static, "b": StaticEncoder.create(toy_tokenizer, 6)}, scripts)
    with pytest.raises(ValueError, match="cannot be towers itself"):
        Towers({"a": Towers({"a": toy_static, "b": toy_static}, scripts), "b": toy_static}, scripts)
