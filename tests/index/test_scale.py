"""Percentages: they grow with the cosine, are low for unrelated sentences and high for translations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_parts import ORIGIN, sentences, unit

import isoglot
from isoglot.core.errors import SearchError
from isoglot.data.files import BUNDLED, read_lines
from isoglot.index import Index, Scale, Sentence


@given(middle=st.floats(-0.5, 0.9), width=st.floats(0.001, 0.09), cosines=st.lists(st.floats(-1, 1), min_size=2))
def test_percentages_grow_with_the_cosine_and_equal_vectors_have_100(middle, width, cosines):
    scale = Scale(100, middle, middle + width)
    found = scale.percent(np.sort(cosines))
    assert (np.diff(found) >= 0).all()
    assert ((found >= 0) & (found <= 100)).all()
    assert scale.percent(np.array([middle, middle + width, 1])).tolist() == [4.95, 49.5, 100]
    assert Scale.from_json(scale.as_json(), "x") == scale


EQUAL = '{"size": 1, "middle": 0.5, "high": 0.5}'


@pytest.mark.parametrize("text", ["", "[]", "{}", EQUAL, EQUAL.replace("1", "[]"), EQUAL.replace("0.5", '"a"')])
def test_another_scale_is_an_error(text):
    with pytest.raises(SearchError, match="x: does not say what its scores mean"):
        Scale.from_json(text, "x")


def test_a_scale_is_measured_again_when_the_index_has_grown(tmp_path):
    with Index.create(tmp_path / "i", ORIGIN) as made:
        sizes = []
        for first in range(0, 600, 100):
            made.add_vectors(sentences(100, first), unit(100, seed=first))
            made.restructure()
            sizes.append(made._find_scale(made._view).size)
        assert sizes == [0, 200, 300, 400, 500, 500]
        (hits,) = made.search(unit(1, seed=9), 5)
    with Index.open(tmp_path / "i") as again:
        assert again.search(unit(1, seed=9), 5) == [hits]


def test_a_small_index_keeps_its_scale_where_its_model_is_not_loaded(tmp_path, toy_static):
    with Index.build(toy_static, [f"cat {number}" for number in range(9)], folder=tmp_path / "i") as made:
        before = made._find_scale(made._view)
        ids = [hit.id for hit in made.search("cat", 9)]
    with Index.open(tmp_path / "i") as again:
        again.delete(ids[:7])
        assert again._find_scale(again._view) == before
        assert before.size == 9


def test_near_copies_and_translations_do_not_count_as_unrelated():
    """Some sentences have near copies, and all have a translation in another file."""
    vectors = unit(300, 32)
    copies = vectors[:60] + 0.05 * unit(60, 32, seed=1)
    others = vectors + 0.1 * unit(300, 32, seed=2)
    every = np.concatenate([rows / np.linalg.norm(rows, axis=1)[:, None] for rows in (vectors, copies, others)])
    origin = isoglot.index.Origin("toy", "0" * 64, 32)
    middles = []
    for rows, languages in ((300, ["deu"] * 300), (660, ["deu"] * 360 + ["eng"] * 300)):
        made = Index.create(None, origin)
        texts = [Sentence(str(row), str(row), language) for row, language in enumerate(languages)]
        made.add_vectors(texts, every[:rows])
        scale = made._find_scale(made._view)
        middles.append(scale.middle)
        assert scale.high < 0.9
        assert scale.percent((others / np.linalg.norm(others, axis=1)[:, None] * vectors).sum(axis=1)).min() > 90
    assert middles[1] - middles[0] < 0.1


def test_an_index_of_one_content_takes_the_sentences_of_the_package(toy_static):
    """It has no unrelated sentences, and every hit had 99 %."""
    made = Index.build(toy_static, ["cat"] * 80, ids=map(str, range(80)), languages="eng")
    few = Index.build(toy_static, ["cat"], languages="eng")
    scales = [one._find_scale(one._view) for one in (made, few)]
    assert (scales[0].middle, scales[0].high) == (scales[1].middle, scales[1].high)


def test_an_equal_text_has_100_whatever_its_vector(toy_static):
    """As with models of int8, and where queries have another prompt."""
    made = Index.build(toy_static, ["cat", "dog", "mat"], query_prompt="A dog runs ")
    hits = made.search("cat", 3)
    assert {hit.text: hit.percent == 100 for hit in hits} == {"cat": True, "dog": False, "mat": False}
    assert all(hit.score < 0.9999 for hit in hits)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "pairs"), [("isoglot-static", 400), ("isoglot-base", 160)])
def test_translations_have_high_percentages_and_others_low_ones(model, pairs):
    """Pairs of which one half is indexed: queries are its other sides, and the sentences of the other half."""
    files = [BUNDLED / "dev" / f"tatoeba.fra-eng.{side}.xz" for side in ("fra", "eng")]
    sides = [[text for _, text in read_lines(file)][:pairs] for file in files]
    half = pairs // 2
    index = Index.build(model, sides[1][:half], languages="eng", ids=map(str, range(half)))
    found = [hits[0] for hits in index.search(sides[0][:half], 1)]
    assert np.mean([hit.id == str(row) for row, hit in enumerate(found)]) > 0.8
    translations = [hit.percent for hit in found]
    others = [hits[0].percent for hits in index.search([*sides[0][half:], *sides[1][half:]], 1)]
    assert np.median(translations) > 70
    assert np.median(others) < 25
    assert [hits[0].percent for hits in index.search(sides[1][:5], 1)] == [100] * 5
    few = Index.build(model, sides[1][:4])
    assert few.search(sides[0][1], 1)[0].percent > 50 > few.search(sides[0][half], 1)[0].percent
