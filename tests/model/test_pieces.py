"""sentencepiece gives the ids of the tokenizer.json that its file was made of."""

import copy
import pickle
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isoglot
from isoglot.core.errors import EncoderError
from isoglot.model import packaged, packed
from isoglot.model.pieces import _SEQUENCE, FILE, PieceTokenizer, build, write
from isoglot.model.tokenizer import digest, disable_extras, tokenize_rows

TEXTS = [
    *("", " ", "  two  spaces ", "Guten Morgen!", "今日はいい天気ですね。", "ﬁ ½ Ａ ㍿", "အဦး", "▁ ▁▁a", "word " * 900),
    *("Tie\u0302\u0301ng Vie\u0323\u0302t", "க\u0bc6\u0bbe", "a\u0303 ½\u0303", "\u1112\u1161\u11ab", "한\u11ab"),
    *(
        "x</s>y <s>",
        "<mask>",
        "<unk> <pad>",
        "＜s＞",
        "a ﹤s﹥b<s>＜/s＞c",
        "1\ufe0f\u20e3 👩\u200d👩\u200d👧 🇩🇪",
        "a\r\nb\tc",
        "\ud800 half",
    ),
    *("\u0600a \u0628\u064b", "は\u3099", "ｶﾞｷﾞ ﾊﾟ", "ㅇㅏㄴ ㅠㅠ ㅋㅋ", "ﾡￂ"),
]


MODELS = ["isoglot-small", pytest.param("isoglot-base", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=MODELS)
def both(request):
    folder = packaged.get(request.param)
    tokenizer = packed.read_tokenizer(folder)
    disable_extras(tokenizer)
    return PieceTokenizer(folder), tokenizer


def expected(tokenizer, texts, length=512):
    return tokenize_rows(tokenizer, texts, max_length=length, special=True)


@pytest.mark.parametrize("length", [2, 3, 9, 512])
def test_ids_are_those_of_the_tokenizer(both, length):
    pieces, tokenizer = both
    tokens, wanted = pieces.tokenize(TEXTS, max_length=length), expected(tokenizer, TEXTS, length)
    np.testing.assert_array_equal(tokens.lengths, wanted.lengths)
    np.testing.assert_array_equal(tokens.ids, wanted.ids)


MARKS = st.characters(categories=["Mn", "Mc", "Me", "Cf", "Sk", "Lm"])
LETTERS = st.characters(categories=["Lu", "Ll", "Lo", "Nd", "No", "So"])
ANY = st.text(st.one_of(st.sampled_from(" <>/s\r\n\t▁"), LETTERS, MARKS, st.characters(exclude_categories=["Cs"])))


@settings(max_examples=400)
@given(ANY)
def test_ids_of_any_characters(both, text):
    pieces, tokenizer = both
    words = pieces._words([text.replace("<", "")])
    normalized = re.sub(" +", "▁", tokenizer.normalizer.normalize_str(text.replace("<", "")))
    assert words == [normalized if normalized[:1] in ("", "▁") else "▁" + normalized]


def test_sequences_of_the_table_are_left_to_the_other_step():
    for code in range(0x110000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            assert _SEQUENCE.search("".join(chr(int(part, 16)) for part in parts)), hex(code)


@pytest.mark.slow
def test_other_properties_are_those_of_the_tokenizer(both, tmp_path):
    pieces, tokenizer = both
    assert len(pieces) == tokenizer.get_vocab_size()
    for token in tokenizer.get_added_tokens_decoder().values():
        assert pieces.number(token.content) == tokenizer.token_to_id(token.content)
    tokenizer.save(str(tmp_path / "tokenizer.json"))  # with line ends
    (tmp_path / FILE).write_bytes((pieces.folder / FILE).read_bytes())
    for length, prompt in ((512, ""), (37, "query: "), (37, "query: ")):
        assert pieces.digest(length, prompt) == digest(tokenizer, length, prompt)
        assert PieceTokenizer(tmp_path).digest(length, prompt) == digest(tokenizer, length, prompt)
    again = pickle.loads(pickle.dumps(pieces))
    np.testing.assert_array_equal(again.tokenize(TEXTS, max_length=99).ids, pieces.tokenize(TEXTS, max_length=99).ids)
    assert pieces.backend.to_str() == tokenizer.to_str()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.slow
def test_vectors_do_not_depend_on_which_one_tokenises(model, monkeypatch):
    folder = packaged.get(model)
    with_pieces = isoglot.load(folder)
    assert isinstance(with_pieces._pieces, PieceTokenizer)
    monkeypatch.setattr("isoglot.model.pieces.FILE", "none")
    without = isoglot.load(folder)
    assert without._pieces is None
    np.testing.assert_array_equal(with_pieces.encode(TEXTS), without.encode(TEXTS))
    assert with_pieces.fingerprint == without.fingerprint
    assert with_pieces.identity() == without.identity()


@pytest.mark.slow
def test_tokenizers_with_other_steps_are_left_alone(both, tmp_path):
    pieces, _ = both
    state = packed.read_description(pieces.folder)
    assert build(state) == (pieces.folder / FILE).read_bytes()
    model = state.pop("model")
    for change in (
        lambda s: s["model"].update(type="BPE"),
        lambda s: s["model"].update(unk_id=None),
        lambda s: s["model"]["vocab"].append(["a▁b", -9.0]),
        lambda s: s.update(normalizer=None),
        lambda s: s["normalizer"]["normalizers"].pop(),
        lambda s: s.update(pre_tokenizer=None),
        lambda s: s.update(post_processor=None),
        lambda s: s["added_tokens"][0].update(lstrip=True),
        lambda s: s["added_tokens"].append({**s["added_tokens"][0], "id": 10**6}),
    ):
        changed = copy.deepcopy(state) | {"model": {**model, "vocab": [*model["vocab"]]}}
        change(changed)
        assert build(changed) is None
    isoglot.load("isoglot-static").save(tmp_path / "static")
    assert not write(tmp_path / "static")


@pytest.mark.parametrize("damage", [lambda d: b"", lambda d: d[:-9], lambda d: d[1:], lambda d: d[: len(d) // 2]])
def test_damaged_files(both, damage, tmp_path):
    pieces, _ = both
    (tmp_path / FILE).write_bytes(damage((pieces.folder / FILE).read_bytes()))
    with pytest.raises(EncoderError, match=FILE):
        PieceTokenizer(tmp_path)
