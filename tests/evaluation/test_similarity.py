"""Pairs of languages with English beside the others."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from command_line import as_function

from isoglot.cli.evaluation import plot as plot_verb
from isoglot.core.errors import EvaluationError
from isoglot.evaluation.base import Detail, Score
from isoglot.evaluation.scores import Scores, write_results
from isoglot.evaluation.similarity import plot_similarity, split_similarity

plot = as_function(plot_verb)

CODES = ("deu", "eng", "fra", "kor")
VALUES = np.array([[1, 0.9, 0.5, 0.4], [0.9, 1, 0.8, 0.7], [0.5, 0.8, 1, 0.3], [0.4, 0.7, 0.3, 1]])


def results(name="m", codes=CODES, values=VALUES):
    rows = tuple((code, *row) for code, row in zip(codes, values.tolist(), strict=True))
    detail = Detail("similarity", ("", *codes), rows)
    mean = Score("similarity", "mean", "cosine/translations", 0.6, 6, ("deu-eng",), unit="cosine", details=(detail,))
    return Scores([mean], name, {})


def test_the_means_are_over_pairs_with_english_and_over_the_others():
    found = split_similarity(results())
    assert found.codes == ("eng", "deu", "fra", "kor")
    assert found.english == pytest.approx((0.9 + 0.8 + 0.7) / 3)
    assert found.others == pytest.approx((0.5 + 0.4 + 0.3) / 3)
    np.testing.assert_allclose(found.table, found.table.T)


@pytest.mark.parametrize("codes", [("deu", "eng", "fra", "eng:2"), ("deu", "eng", "fra", "eng_GB")])
def test_a_second_english_is_no_other_language(tmp_path, codes):
    """A paraphrase or a variety: its pairs with other languages are with English, and its pair with English neither."""
    found = split_similarity(results(codes=codes))
    assert set(found.codes[:2]) == {"eng", codes[3]}
    assert found.english == pytest.approx((0.9 + 0.8 + 0.4 + 0.3) / 4)
    assert found.others == 0.5
    split = plot_similarity([results(codes=codes)], tmp_path / "a.svg")["m"]
    assert (split.english, split.others) == (found.english, found.others)
    paraphrased = split_similarity(results(codes=("deu", "eng", "fra", "deu:2"), values=VALUES**2))
    assert paraphrased.others == pytest.approx((0.25 + 0.09) / 2)


def test_results_that_cannot_be_split_are_refused(tmp_path):
    others, apart = [0, 2, 3], VALUES.astype(object)
    apart[1, others] = apart[others, 1] = ""  # English has a cosine with no other language: the mean would be NaN
    for wrong, problem in (
        (Scores([], "m", {}), "no table of similarities"),
        (results(codes=("deu", "fra", "kor"), values=VALUES[np.ix_(others, others)]), "expected English"),
        (results(codes=CODES[:2], values=VALUES[:2, :2]), "expected English"),
        (results(values=apart), "expected English"),
    ):
        with pytest.raises(EvaluationError, match=f"m: .*{problem}"):
            split_similarity(wrong)
    with pytest.raises(EvaluationError, match="names"):
        plot_similarity([results(), results()], tmp_path / "a.svg")
    with pytest.raises(EvaluationError, match=r"a\.html"):
        plot_similarity([results()], tmp_path / "a.html")


def test_a_heat_map_for_each_of_the_results(tmp_path, capsys):
    for name, values in (("a", VALUES), ("b", VALUES**2)):
        write_results(tmp_path / name, results(name, values=values))
    words = ["similarity", f"one={tmp_path / 'a'}", f"two={tmp_path / 'b'}"]
    plot(words, tmp_path / "both.svg")
    assert "one: with English 0.800, others 0.400" in capsys.readouterr().err
    root = ElementTree.parse(tmp_path / "both.svg").getroot()
    drawn = "".join(root.itertext())
    assert all(word in drawn for word in ("one", "two", "0.800", "deu"))
