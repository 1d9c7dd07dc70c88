"""Language identification: the split, the probe against loops, and what is rejected."""

import numpy as np
import pytest
from cases import by_last_word, by_text, random_vector
from cases_classification import lingua_data, put, xnli_data

from isoglot.core.errors import EvaluationError
from isoglot.evaluation.tasks import language_id
from isoglot.evaluation.tasks.classification import STRENGTHS
from isoglot.evaluation.tasks.language_id import LanguageId, LanguageIdLingua, probe


def values(scores):
    return {score.subset: score.value for score in scores}


def apart(count):
    """The numbers of the sentences that are not learnt from."""
    return sorted(np.random.default_rng(0).permutation(count)[count // 2 :].tolist())


def table(rng, shift, count=60):
    return (rng.standard_normal((count, 6)) + shift).astype(np.float32)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_half_of_each_language_is_learnt_from_and_the_other_tested():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    tables = {"de": table(rng, 0.0), "en": table(rng, 1.0), "fr": table(rng, -1.0, 41)}
    outcome = probe(tables)
    assert outcome.gold.tolist() == [0] * 30 + [1] * 30 + [2] * 21
    best = 0.0
    for strength in STRENGTHS:
        learnt, gold, tested = [], [], []
        for number, vectors in enumerate(tables.values()):
            second = apart(len(vectors))
            learnt += [vectors[row] for row in range(len(vectors)) if row not in second]
            gold += [number] * (len(vectors) - len(second))
            tested += [vectors[row] for row in second]
        model = LogisticRegression(C=strength, max_iter=200).fit(np.array(learnt), gold)
        best = max(best, float((model.predict(np.array(tested)) == outcome.predicted[0]).mean()))
    assert best == 1.0  # one of the strengths gives these very answers


def test_translations_are_on_the_same_side(tmp_path):
    """Vectors of meaning alone give chance: no sentence of the test side was learnt in another language."""
    xnli_data(tmp_path, premises=60)
    scores = LanguageId().run(lambda texts: np.array([random_vector(t.split()[-2]) for t in texts]), tmp_path)
    assert values(scores) == {"en-de-fr-hi": 0.25, "en-tr-ar-bg": 0.25, "mean": 0.25}


def test_the_first_thousand_premises_that_differ_are_taken(tmp_path, monkeypatch):
    assert language_id.PREMISES == 1000
    monkeypatch.setattr(language_id, "PREMISES", 20)
    xnli_data(tmp_path, codes=("en", "tr", "ar", "bg"), premises=25)
    asked = []

    def cheap(texts):
        asked.extend(texts)
        return np.array([[len(text), text.count("e")] for text in texts], np.float32)

    scores = LanguageId().run(cheap, tmp_path)
    for code in ("en", "tr", "ar", "bg"):
        premises = [f"{code} premise test {i} {code}" for i in range(20)]
        assert [text for text in asked if text.startswith(code)] == premises
    assert {score.n for score in scores if not score.over} == {4 * 10}


def test_a_premise_taken_for_another_language_is_a_mistake(tmp_path):
    xnli_data(tmp_path, premises=30)
    path, line = tmp_path / "test-de.tsv", 3 * apart(30)[4]
    lines = path.read_text().splitlines()
    put(path, [*lines[:line], "de premise ending in hi\thypothesis", *lines[line + 1 :]])
    scores = {score.subset: score for score in LanguageId().run(by_last_word, tmp_path)}
    (detail,) = scores["en-de-fr-hi"].details
    assert detail.kind == "mistakes"
    assert detail.columns == ("sentence", "language", "taken for", "probability")
    assert [row[:3] for row in detail.rows] == [("de premise ending in hi", "de", "hi")]
    assert scores["en-tr-ar-bg"].details == scores["mean"].details == ()
    assert scores["en-tr-ar-bg"].n == 4 * 15  # each premise counts once


def test_lingua_has_the_mistakes_of_each_language(tmp_path):
    lingua_data(tmp_path)
    path, line = tmp_path / "lingua-langid/sentences/fr.txt", apart(200)[7]
    lines = path.read_text().splitlines()
    put(path, [*lines[:line], "sentence of fr in ko", *lines[line + 1 :]])
    scores = {score.subset: score for score in LanguageIdLingua().run(by_last_word, tmp_path, languages=["fr", "de"])}
    (detail,) = scores["fr"].details
    assert [row[:3] for row in detail.rows] == [("sentence of fr in ko", "fr", "ko")]
    assert scores["de"].details == scores["mean"].details == ()


def test_lingua_shows_the_languages_asked_for_and_knows_all(tmp_path):
    lingua_data(tmp_path)
    everything = values(LanguageIdLingua().run(by_text, tmp_path))
    assert set(everything) == {"de", "en", "fr", "ko", "mean"}
    asked = values(LanguageIdLingua().run(by_text, tmp_path, languages=["ko"]))
    assert asked == {"ko": everything["ko"], "mean": everything["ko"]}
    assert everything["mean"] == pytest.approx(sum(everything[c] for c in ("de", "en", "fr", "ko")) / 4)


def test_one_language_is_nothing_to_tell_and_a_set_lacking_one_is_left_out(tmp_path):
    lingua_data(tmp_path, codes=("de",))
    assert LanguageIdLingua().subsets(tmp_path) == ()
    xnli_data(tmp_path, codes=("en", "de", "fr", "hi", "tr"))
    assert LanguageId().subsets(tmp_path) == ("en-de-fr-hi",)


def test_one_premise_over_and_over_is_refused(tmp_path):
    xnli_data(tmp_path)
    (tmp_path / "test-en.tsv").write_text("the same\thypothesis\n" * 240, encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"^language-id en-de-fr-hi, language en: .*only one premise"):
        LanguageId().run(by_text, tmp_path)


def test_two_sentences_of_each_language_leave_nothing_to_choose_a_strength_by():
    outcome = probe({"de": np.eye(2, 4, dtype=np.float32), "en": np.eye(2, 4, 2, dtype=np.float32)})
    assert len(outcome.gold) == 2
