"""What is called on an encoder: the settings of `encode`, prompts by name, similarity, and wrong kinds of argument."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch

import isoglot
from conftest import SENTENCES, build_tokenizer, save_and_open
from isoglot.core.errors import EncoderError
from isoglot.encoders import StaticEncoder
from isoglot.encoders.layers import Dense, WithLayer
from isoglot.encoders.towers import Towers
from isoglot.encoders.twins import Twins
from isoglot.model.base import cache_key

PROMPTS = {"query": "q: ", "passage": "p: "}


@pytest.fixture
def encoder(toy_transformer):
    return toy_transformer(prompt="own: ", prompts=PROMPTS, normalizes=True)


def test_batch_size_bounds_the_texts_of_a_chunk(encoder, toy_static):
    for model in (encoder, toy_static):
        sizes = []
        handle = model.register_forward_hook(lambda module, inputs, output: sizes.append(len(output)))  # noqa: B023
        rows = model.encode(SENTENCES, batch_size=3)
        handle.remove()
        assert max(sizes) == 3
        assert sum(sizes) == len(SENTENCES)
        np.testing.assert_allclose(rows, model.encode(SENTENCES), atol=1e-6)
        with pytest.raises(ValueError, match="batch_size"):
            model.encode(SENTENCES, batch_size=0)


def test_prompts_by_name(encoder, toy_static):
    np.testing.assert_array_equal(toy_static.encode_query("the cat"), toy_static.encode("the cat"))  # it has none
    by_text = {text: encoder.encode("cat", prompt=text) for text in ("q: ", "p: ", "own: ", "")}
    np.testing.assert_array_equal(encoder.encode("cat", prompt_name="query"), by_text["q: "])
    np.testing.assert_array_equal(encoder.encode_query("cat"), by_text["q: "])
    np.testing.assert_array_equal(encoder.encode_document("cat"), by_text["p: "])
    np.testing.assert_array_equal(encoder.encode_document("cat", prompt=""), by_text[""])
    np.testing.assert_array_equal(encoder.encode("cat"), by_text["own: "])
    with pytest.raises(ValueError, match=r"'quer'.*'query'"):
        encoder.encode("cat", prompt_name="quer")


def test_white_space_around_a_text_is_no_part_of_it(encoder, toy_static, toy_transformer):
    for model in (encoder, toy_static, toy_transformer(family="xlm-roberta")):
        rows = model.encode(["the cat", "the cat\n", " the cat\t", "the cat \r\n", "", " \n"])
        np.testing.assert_allclose(rows[1:4], rows[[0, 0, 0]], atol=1e-6)
        np.testing.assert_allclose(rows[5], rows[4], atol=1e-6)


def test_prompts_are_saved_and_opened(encoder, tmp_path):
    for prompt, more in (("own: ", {"default": "own: "}), ("q: ", {})):
        encoder.prompt = prompt
        opened = save_and_open(encoder, tmp_path / "m")
        assert (opened.prompt, dict(opened.prompts)) == (prompt, {**PROMPTS, "document": "p: ", **more})
        np.testing.assert_allclose(opened.encode_query(SENTENCES), encoder.encode_query(SENTENCES), atol=1e-6)


def test_similarity_of_texts_and_vectors(encoder):
    rows = encoder.encode(SENTENCES)
    cosines = encoder.similarity(SENTENCES, rows)
    assert cosines.shape == (len(SENTENCES), len(SENTENCES))
    np.testing.assert_allclose(np.diag(cosines), 1, atol=1e-5)
    np.testing.assert_allclose(cosines, rows @ rows.T, atol=1e-5)
    assert encoder.similarity(SENTENCES[0], 3 * torch.from_numpy(rows)) == pytest.approx(cosines[:1], abs=1e-5)
    assert encoder.similarity(rows[0], list(torch.from_numpy(rows))).shape == (1, len(SENTENCES))
    assert encoder.similarity([], SENTENCES).shape == (0, len(SENTENCES))
    for given in (list, np.ndarray.tolist, pd.DataFrame, torch.from_numpy, lambda rows: map(list, rows)):
        np.testing.assert_array_equal(encoder.similarity(given(rows), rows), encoder.similarity(rows, rows))
    for scale in (1e-60, 1e60):  # beyond float32
        np.testing.assert_allclose(encoder.similarity(scale * rows.astype(np.float64), rows), cosines, atol=1e-5)
    for wrong in (5, None, [None], {"a": 1}, b"a", ["a", None], [[1.0], [1.0, 2.0]], pd.DataFrame({"a": ["b"]})):
        with pytest.raises(TypeError, match=r"\(N, D\)"):
            encoder.similarity(wrong, SENTENCES)
    for compare in (encoder.similarity, encoder.similarity_pairwise):
        with pytest.raises(ValueError, match=r"\(10, 16\) and \(10, 3\)"):
            compare(SENTENCES, rows[:, :3])


def test_the_length_of_every_kind_can_be_set(toy_transformer):
    layered = WithLayer(toy_transformer(), Dense(16, 4))
    towers = Towers({"a": toy_transformer(), "b": toy_transformer(seed=1)}, {"a": ["LATIN"]})
    for model in (toy_transformer(), layered, towers, Twins(toy_transformer(), toy_transformer())):
        model.max_seq_length = 3
        assert model.max_length == 3
        assert model.tokenize(SENTENCES).lengths.max() == 3
    with pytest.raises(ValueError, match="65"):
        layered.max_seq_length = 65  # the backbone has 64 positions


def test_a_length_below_one_is_refused(toy_static):
    before = toy_static.max_length
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"length is {wrong}; it must be at least 1"):
            toy_static.max_seq_length = wrong
    assert toy_static.max_length == before


def test_a_file_of_text_is_not_a_model(tmp_path):
    (tmp_path / "english.txt").write_text("The cat sits.\n")
    with pytest.raises(EncoderError, match=r"english\.txt.*model comes first"):
        isoglot.load(tmp_path / "english.txt")


def test_without_a_name_the_environment_names_the_model(monkeypatch, tmp_path):
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(tmp_path / "small")
    monkeypatch.setenv("ISOGLOT_MODEL", str(tmp_path / "small"))
    assert (isoglot.load().dim, isoglot.load().name) == (8, "small")


def test_a_changed_weight_prompt_or_ending_is_another(toy_static):
    seen = {toy_static.identity(), copy.deepcopy(toy_static).identity()}
    for change in (
        lambda e: e.table.data[3].add_(1e-3),
        lambda e: setattr(e, "prompt", "query: "),
        lambda e: setattr(e, "normalizes", not e.normalizes),
        lambda e: setattr(e, "max_length", 7),
    ):
        other = copy.deepcopy(toy_static)
        with torch.no_grad():
            change(other)
        seen.add(other.identity())
    assert len(seen) == 5
    assert toy_static.train().identity() == toy_static.eval().identity()


def test_cached_vectors_of_another_default_precision_have_another_name(toy_static, monkeypatch):
    before = cache_key(toy_static)
    monkeypatch.setattr(type(toy_static), "settle", lambda self, precision, place=None: "bfloat16")
    assert cache_key(toy_static) != before
    assert cache_key(toy_static).startswith(toy_static.identity())
