"""Pairs that one system ranks better or worse than another."""

import pytest

from isoglot.core.errors import EvaluationError
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.examples import examples

PAIRS = [(f"a {place}", f"b {place}", place) for place in range(8)]
COSINES = {"good": [0, 1, 2, 3, 4, 5, 6, 7], "swapped": [7, 1, 2, 3, 4, 5, 6, 0]}


@pytest.fixture
def folder(tmp_path):
    text = "sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{gold}\n" for a, b, gold in PAIRS)
    (tmp_path / "sts.eng.tsv").write_text(text)
    return tmp_path


def scores(name, folder):
    """Cosines that stand for the ranks of a system: the second sentence of pair i is turned by its angle."""
    import numpy as np

    def encode(texts):
        angles = [np.arccos(COSINES[name][int(text[2:])] / 10) if text[0] == "b" else 0.0 for text in texts]
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)

    return evaluate(encode, ["sts"], data=folder)


def test_the_pairs_that_changed_most(folder):
    good, swapped = scores("good", folder), scores("swapped", folder)
    better, worse = examples([swapped], [good, good], "sts", data=folder, count=3)
    assert sorted(row[0] for row in better.rows) == ["a 0", "a 7"]
    assert worse.rows == ()
    (row,) = (row for row in better.rows if row[0] == "a 7")
    assert row[1:5] == ("b 7", "7.0", "0.00", "0.70")
    assert float(row[5]) == pytest.approx(-7 / 8, abs=0.01)
    assert float(row[6]) == 0
    assert not examples([good], [swapped], "sts", data=folder)[0].rows


def test_the_pairs_are_those_of_a_subset_that_all_results_have(folder):
    """One result begins with a language that the other does not have."""
    (folder / "sts.deu.tsv").write_text((folder / "sts.eng.tsv").read_text())
    both = scores("good", folder)
    english = [score for score in scores("swapped", folder) if score.subset == "eng"]
    assert next(score.subset for score in both if score.metric == "spearman") == "deu"
    better, _ = examples([both], [english], "sts", data=folder)
    assert better.title.startswith("sts eng:")


def test_what_has_no_examples_is_refused(folder, tmp_path):
    good = scores("good", folder)
    with pytest.raises(EvaluationError, match="tatoeba"):
        examples([good], [good], "tatoeba", data=folder)
    with pytest.raises(EvaluationError, match="sts17"):
        examples([good], [good], "sts17", data=folder)
    (folder / "sts.eng.tsv").write_text("sentence1\tsentence2\tscore\nx\ty\t1\nz\tw\t2\n")
    with pytest.raises(EvaluationError, match="eng"):
        examples([good], [good], "sts", data=folder)
