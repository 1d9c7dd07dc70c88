"""xSIM: the protocol against loops, averages, mistakes, and sets that cannot be used."""

from itertools import pairwise

import numpy as np
import pytest
from cases import by_last_word, by_text, value
from cases_xsim import CASES
from folders import write
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from search_loops import cosine, margin, mine, top

from isoglot.core.errors import EvaluationError, IsoglotError
from isoglot.evaluation.tasks.xsim import N_WAY, ORDER, XSIM, XSim

OWN = N_WAY["own"]


def clear(x, y, k):
    """Whether no two choices are so close that rounding could decide, of cosines and of margins."""
    rows = [[cosine(a, b) for b in y] for a in x]
    around_x = [sum(sorted(row)[-k:]) / min(k, len(y)) for row in rows]
    around_y = [sum(sorted(column)[-k:]) / min(k, len(x)) for column in zip(*rows, strict=True)]
    gaps = [b - a for row in rows for a, b in pairwise(sorted(row))]
    for i, row in enumerate(rows):
        near = sorted(range(len(y)), key=lambda j: -row[j])[:k]
        means = [(around_x[i] + around_y[j]) / 2 for j in near]
        for scores in (
            [row[j] - mean for j, mean in zip(near, means, strict=True)],
            [row[j] / max(mean, 1e-6) for j, mean in zip(near, means, strict=True)],
        ):
            gaps += [(b - a) / max(1, abs(a)) for a, b in pairwise(sorted(scores))]
        gaps += [abs(mean - 1e-6) / 10 for mean in means]
    return min(gaps, default=1) > 1e-6


def found_by_margin(x, y, kind, k):
    """For each row of x the row of y that scores best among its k nearest."""
    return [j for _, _, j in sorted(mine(x, y, k, kind, "forward"), key=lambda pair: pair[1])]


def loops(sides, vectors, kind, k=4):
    """Errors by text and by index of all sentences, x to y."""
    chosen = found_by_margin(*vectors, kind, k)
    by_text = sum(sides[1][place] != sides[1][i] for i, place in enumerate(chosen))
    by_index = sum(place != i for i, place in enumerate(chosen))
    return by_text / len(chosen), by_index / len(chosen)


def files(folder, texts):
    for code, sentences in texts.items():
        write(folder / "xsim" / f"{code}.txt", "".join(f"{text}\n" for text in sentences))
    return folder


def table_of(texts, vectors):
    rows = {text: row for code in texts for text, row in zip(texts[code], vectors[code], strict=True)}
    return lambda asked: np.array([rows[text] for text in asked])


def check(scores, texts, vectors, pair, k=4):
    """Errors by text and by index are those of the loops."""
    for kind in ORDER:
        expected = loops([texts[code] for code in pair], [vectors[code] for code in pair], kind, k)
        ways = (f"error/{kind}", f"error-by-index/{kind}")
        assert tuple(value(scores, "-".join(pair), metric) for metric in ways) == expected


@settings(max_examples=30)
@given(st.integers(1, 14), st.integers(2, 12), st.floats(0.1, 2), st.integers(0, 10**6), st.sampled_from([1, 2, 4, 7]))
def test_equals_the_protocol_in_loops(tmp_path_factory, count, dim, noise, seed, k):
    rng = np.random.default_rng(seed)
    meaning = rng.standard_normal((count, dim))
    texts = {code: [f"{code} {i}" for i in range(count)] for code in ("deu", "eng")}
    vectors = {code: np.float32(meaning + noise * rng.standard_normal((count, dim))) for code in texts}
    assume(clear(vectors["deu"], vectors["eng"], k) and clear(vectors["eng"], vectors["deu"], k))
    scores = XSim(OWN, k=k).run(table_of(texts, vectors), files(tmp_path_factory.mktemp("x"), texts))
    for pair in (("deu", "eng"), ("eng", "deu")):
        check(scores, texts, vectors, pair, k)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=14), st.integers(0, 10**6))
def test_equals_the_loops_where_texts_stand_twice(tmp_path_factory, kinds, seed):
    """Only the side searched repeats texts; then by index counts the second of them wrong, by text does not."""
    rng = np.random.default_rng(seed)
    texts = {"deu": [f"deu {i}" for i in range(len(kinds))], "eng": [f"eng {kind}" for kind in kinds]}
    meaning = np.float32(rng.standard_normal((6, 8)))
    noise = np.float32(0.8 * rng.standard_normal((len(kinds), 8)))
    vectors = {"deu": np.float32(meaning[kinds] + noise), "eng": meaning[kinds]}
    scores = XSim(OWN).run(table_of(texts, vectors), files(tmp_path_factory.mktemp("x"), texts))
    check(scores, texts, vectors, ("deu", "eng"))


def test_averages_are_over_sources_then_over_targets(tmp_path):
    texts = {code: [f"{code} {i}" for i in range(30)] for code in ("deu", "eng", "kor", "fra")}
    scores = XSim(OWN, margins=("ratio",)).run(
        lambda asked: by_text(asked) + by_last_word(asked), files(tmp_path, texts)
    )
    single = {score.subset: score.value for score in scores if score.metric == "error/ratio" and not score.over}
    assert len(single) == 12
    assert len(set(single.values())) > 3
    columns = []
    for target in texts:
        column = [single[f"{source}-{target}"] for source in texts if source != target]
        columns.append(sum(column) / 3)
        assert value(scores, f"xx-{target}", "error/ratio") == pytest.approx(columns[-1])
    assert value(scores, "mean", "error/ratio") == pytest.approx(sum(columns) / 4)
    assert scores[-2].over == ("xx-deu", "xx-eng", "xx-fra", "xx-kor")


def ratios(x, y, k=4):
    """The ratio margin of every pair, in loops."""
    around_x, around_y = (
        [sum(score for score, _ in row) / k for row in top(*two, k, cosine)] for two in ((x, y), (y, x))
    )
    return [
        [margin("ratio", cosine(a, b), here, there) for b, there in zip(y, around_y, strict=True)]
        for a, here in zip(x, around_x, strict=True)
    ]


def test_mistakes_equal_the_worst_in_loops(tmp_path):
    texts = {code: [f"{code} {i}" for i in range(40)] for code in ("deu", "eng")}
    scores = XSim(OWN).run(by_text, files(tmp_path, texts))
    for a, b in (("deu", "eng"), ("eng", "deu")):
        x, y = by_text(texts[a]), by_text(texts[b])
        table, found = ratios(x, y), found_by_margin(x, y, "ratio", 4)
        expected = [
            (texts[a][i], texts[b][i], texts[b][j], table[i][i], table[i][j], table[i][j] - table[i][i])
            for i, j in enumerate(found)
            if i != j
        ]
        assert len(expected) > 10
        worst = sorted(expected, key=lambda row: -row[5])[:10]
        (detail,) = next(s.details for s in scores if (s.subset, s.metric) == (f"{a}-{b}", "error/ratio"))
        assert detail.kind == "mistakes"
        assert detail.columns == ("sentence", "expected", "found", "ratio expected", "ratio found", "difference")
        assert [row[:3] for row in detail.rows] == [row[:3] for row in worst]
        np.testing.assert_allclose([row[3:] for row in detail.rows], [row[3:] for row in worst], atol=1e-5)


@pytest.mark.parametrize(("codes", "pivot"), [(("deu", "eng", "kor"), "eng"), (("deu", "fra", "kor"), "deu")])
def test_mistakes_are_kept_with_english_or_else_the_first_language(tmp_path, codes, pivot):
    texts = {code: [f"{code} {i}" for i in range(20)] for code in codes}
    scores = XSim(OWN).run(by_text, files(tmp_path, texts))
    having = {(score.subset, score.metric) for score in scores if score.details}
    others = [code for code in codes if code != pivot]
    pairs = [f"{code}-{pivot}" for code in others] + [f"{pivot}-{code}" for code in others]
    assert having == {(pair, "error/ratio") for pair in pairs}


def test_english_need_not_be_named_and_is_not_enough(tmp_path):
    files(tmp_path, {code: ["a"] for code in ("deu", "eng", "kor")})
    task = XSIM["xsim/own"]
    assert task.subsets(tmp_path, languages=["ko"]) == ("eng-kor", "kor-eng")
    assert task.subsets(tmp_path, languages=["en"]) == ()
    assert len(task.subsets(tmp_path)) == 6
    with pytest.raises(IsoglotError, match="qqqq"):
        task.subsets(tmp_path, languages=["qqqq"])


def test_english_of_tico_is_the_one_beside_the_language(tmp_path):
    CASES["xsim/tico"].write(tmp_path)
    asked = []
    XSIM["xsim/tico"].run(lambda new: asked.append(new[0]) or by_text(new), tmp_path, languages=["ko"])
    assert sorted(asked) == ["english for ko 0", "ko 0"]
    (tmp_path / "tico-19" / "en-ko" / "tico19-test.en.xz").unlink()
    with pytest.raises(EvaluationError, match=r"xsim/tico, language en: .* is present, but its text for ko is missing"):
        XSIM["xsim/tico"].run(by_text, tmp_path)


def test_a_part_of_sib_that_is_missing_is_named(tmp_path):
    CASES["xsim/sib"].write(tmp_path)
    (tmp_path / "sib-200" / "annotated" / "kor_Hang" / "dev.tsv.xz").unlink()
    with pytest.raises(EvaluationError, match=r"xsim/sib, language kor_Hang: .* is present, but its dev is missing"):
        XSIM["xsim/sib"].run(by_text, tmp_path)
    with pytest.raises(EvaluationError, match=r"^xsim/sib/k5, language kor_Hang: .* is present"):
        XSim(XSIM["xsim/sib"].texts, k=5).run(by_text, tmp_path)
