"""Alignment, similarity, centroids and the map: measures against loops, sources of groups, degenerate vectors."""

import itertools
import math

import cases_xsim
import numpy as np
import pytest
from cases import by_last_word, by_text, random_vector, value
from cases_alignment import OTHER, POSITIVE, one_hot, sts17, stsb_dev
from cases_sts import STS17, export
from folders import write
from hypothesis import given, settings
from hypothesis import strategies as st
from search_loops import dot

from conftest import DATA, published
from isoglot.core.errors import EvaluationError
from isoglot.evaluation import TASKS
from isoglot.evaluation.plot import plane
from isoglot.evaluation.tasks.analysis import (
    FEW,
    GROUPS,
    MARKED,
    POINTS,
    POOLED,
    Centroids,
    SentenceMap,
    Similarity,
    alignment,
    read_groups,
    uniformity,
)
from isoglot.evaluation.tasks.sts import EXTENDED_10


def by_language_and_meaning(texts):
    """What real encoders give: a part of the meaning, a part of the language, a part of the sentence."""
    return np.array([sum(map(random_vector, [*text.split(), text])) for text in texts]).reshape(-1, 32)


def unit_in_a_loop(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector] if length else list(vector)


def units(code, count):
    return [*map(unit_in_a_loop, by_language_and_meaning([f"{code} {i}" for i in range(count)]).tolist())]


def centre(rows):
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def squared(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def write_groups(folder, codes, count):
    rows = "".join("\t".join(f"{code} {i}" for code in codes) + "\n" for i in range(count))
    write(folder / "retrieval.tsv", "\t".join(codes) + "\n" + rows)


def test_similarity_equals_loops(tmp_path):
    write_groups(tmp_path, ("deu", "kor", "eng"), 12)
    scores = Similarity().run(by_language_and_meaning, tmp_path)
    table = {code: units(code, 12) for code in ("deu", "kor", "eng")}
    for a, b in (("deu", "kor"), ("deu", "eng"), ("kor", "eng")):
        same = [dot(table[a][i], table[b][i]) for i in range(12)]
        others = [dot(table[a][i], table[b][j]) for i in range(12) for j in range(12) if i != j]
        assert value(scores, f"{a}-{b}", "cosine/translations") == pytest.approx(sum(same) / 12)
        contrast = sum(same) / 12 - sum(others) / len(others)
        assert value(scores, f"{a}-{b}", "cosine/contrast") == pytest.approx(contrast)
    least, deviation = [], []
    for i in range(12):
        cosines = [dot(table[a][i], table[b][i]) for a, b in itertools.combinations(table, 2)]
        least.append(min(cosines))
        mean = sum(cosines) / 3
        deviation.append(math.sqrt(sum((c - mean) ** 2 for c in cosines) / 3))
    assert value(scores, "deu-kor-eng", "cosine/min") == pytest.approx(sum(least) / 12)
    assert value(scores, "deu-kor-eng", "cosine/std") == pytest.approx(sum(deviation) / 12)


def test_tables_of_similarity(tmp_path):
    write_groups(tmp_path, ("deu", "kor", "eng"), 5)
    scores = Similarity().run(by_language_and_meaning, tmp_path)
    (table,) = next(score.details for score in scores if score.subset == "mean" and score.details)
    assert table.columns == ("language", "deu", "kor", "eng")
    cosines = (value(scores, subset, "cosine/translations") for subset in ("deu-kor", "deu-eng"))
    assert table.rows[0] == ("deu", 1.0, *cosines)
    assert [row[1:][place] for place, row in enumerate(table.rows)] == [1.0] * 3
    assert all(table.rows[i][1 + j] == table.rows[j][1 + i] for i in range(3) for j in range(3))
    (example,) = next(score.details for score in scores if score.metric == "cosine/min")
    assert [row[0] for row in example.rows] == ["deu: deu 0", "kor: kor 0", "eng: eng 0"]
    assert example.rows[0][3] == pytest.approx(dot(units("deu", 1)[0], units("eng", 1)[0]), abs=1e-6)


def test_centroids_equal_loops(tmp_path):
    write_groups(tmp_path, ("deu", "eng"), 15)
    scores = Centroids().run(by_language_and_meaning, tmp_path)
    table = {code: units(code, 15) for code in ("deu", "eng")}
    centres = {code: centre(rows) for code, rows in table.items()}
    spread = [math.sqrt(sum(squared(row, centres[code]) for row in table[code]) / 15) for code in table]
    expected = math.sqrt(squared(centres["deu"], centres["eng"])) / (sum(spread) / 2)
    assert value(scores, "deu-eng", "distance") == pytest.approx(expected)
    assert expected > 0.3
    (mean,) = [score for score in scores if score.over]
    assert mean.details[0].rows == (("deu", 0.0, scores[0].value), ("eng", scores[0].value, 0.0))


def test_centroids_where_nothing_is_spread(tmp_path):
    write_groups(tmp_path, ("deu", "eng"), 4)
    assert value(Centroids().run(lambda texts: np.ones((len(texts), 3)), tmp_path), "deu-eng", "distance") == 0
    with pytest.raises(EvaluationError, match=r"centroids deu-eng: all 4 sentences of a language have the same vector"):
        Centroids().run(lambda texts: np.array([[1, text.startswith("deu")] for text in texts]), tmp_path)


def test_shares_of_variance_equal_loops(tmp_path):
    write_groups(tmp_path, ("deu", "kor", "eng"), 9)
    scores = SentenceMap().run(by_language_and_meaning, tmp_path)
    table = [units(code, 9) for code in ("deu", "kor", "eng")]
    everything = [row for rows in table for row in rows]
    total = sum(squared(row, centre(everything)) for row in everything)
    language = sum(9 * squared(centre(rows), centre(everything)) for rows in table)
    meaning = sum(3 * squared(centre([rows[i] for rows in table]), centre(everything)) for i in range(9))
    assert value(scores, "deu-kor-eng", "variance/language") == pytest.approx(language / total)
    assert value(scores, "deu-kor-eng", "variance/meaning") == pytest.approx(meaning / total)
    assert {score.n for score in scores if score.subset == "deu-kor-eng"} == {27}
    assert value(scores, "deu-eng", "variance/meaning") > value(scores, "deu-kor-eng", "variance/meaning")


@pytest.mark.slow
def test_maps_hold_few_groups_in_full_and_many_sentences(tmp_path):
    write_groups(tmp_path, ("deu", "kor", "eng"), 150)
    meaning, language = (s for s in SentenceMap().run(by_language_and_meaning, tmp_path) if s.details)
    assert (meaning.subset, language.metric) == ("deu-kor-eng", "variance/language")
    (few,), (many,) = meaning.details, language.details
    assert few.kind == many.kind == "map"
    assert few.columns == ("group", "language", "x", "y", "text")
    assert [row[0] for row in few.rows] == [str(1 + i) for i in range(FEW) for _ in range(3)]
    assert len(many.rows) == POINTS // 3 * 3
    assert sum(row[0] != "" for row in many.rows) == MARKED * 3
    assert (few.rows[3][1], few.rows[3][4]) == ("deu", "deu 1")


def test_a_map_lays_what_is_alike_together():
    rng = np.random.default_rng(0)
    points = np.repeat(np.eye(4), 10, axis=0) + 0.01 * rng.standard_normal((40, 4))
    laid = plane(points)
    distance = np.sqrt(np.square(laid[:, None] - laid[None]).sum(-1)) + 1e9 * np.eye(40)
    assert np.array_equal(distance.argmin(axis=1) // 10, np.arange(40) // 10)
    assert np.array_equal(laid, plane(points))
    assert not plane(np.ones((6, 3))).any()


def test_pairs_need_two_groups_and_all_languages_together_too(tmp_path):
    write(tmp_path / "retrieval.tsv", "deu\teng\tfra\na 0\tb 0\t\na 1\tb 1\tc 1\n\tb 2\tc 2\n")
    assert Similarity().subsets(tmp_path) == Centroids().subsets(tmp_path) == ("deu-eng", "fra-eng")
    assert SentenceMap().subsets(tmp_path) == ("deu-eng", "fra-eng")
    assert not [score for score in SentenceMap().run(by_text, tmp_path) if score.details]  # no group has all three
    assert SentenceMap().subsets(tmp_path, languages=["de"]) == ("deu-eng",)
    (mean,) = [s for s in Similarity().run(by_text, tmp_path) if s.subset == "mean" and s.details]
    assert mean.details[0].rows[0][2] == ""  # German and French meet only once


def plain(folder, names):
    for name, code in names.items():
        write(folder / name, "".join(f"{code} {i}\n" for i in range(6)))


@pytest.mark.parametrize(
    ("source", "files", "codes"),
    [
        ("ntrex", [f"NTREX-128/newstest2019-{name}" for name in ("src.eng.txt", "ref.deu.txt.gz", "ref.zho-CN.txt")],
         ("deu", "zho_CN", "eng")),
        ("tico", [f"tico-19/en-{pair}/tico19-test.{code}.xz" for pair in ("ar", "sw") for code in ("en", pair)],
         ("ar", "sw", "en")),
        ("multi30k", [f"multi30k/task1/raw/test_2016_flickr.{code}.gz" for code in ("de", "en", "fr")],
         ("de", "fr", "en")),
        ("flores-devtest", [f"devtest/{code}.devtest" for code in ("deu_Latn", "eng_Latn")], ("deu_Latn", "eng_Latn")),
    ],
)  # fmt: skip
def test_published_sets_are_found(tmp_path, source, files, codes):
    plain(tmp_path, dict.fromkeys(files, "text"))
    for name in ("", source):
        groups = read_groups(tmp_path, task="similarity", source=name)
        assert {tuple(group.sentences) for group in groups} == {codes}
        assert [group.sentences[codes[-1]][0].split()[-1] for group in groups] == list("012345")
    assert read_groups(tmp_path, task="similarity", languages=[codes[0]])[0].sentences.keys() == {codes[0], codes[-1]}


def test_paraphrases_of_a_language_are_compared_by_similarity_alone(tmp_path):
    rows = "".join(f"eng {i}\tother {i}\tthird {i}\tdeu {i}\n" for i in range(6))
    write(tmp_path / "retrieval.tsv", "eng\teng\teng\tdeu\n" + rows)
    english = {"eng-eng:2", "eng-eng:3", "eng:2-eng:3"}
    everything = {*english, "deu-eng", "deu-eng:2", "deu-eng:3", "deu-eng-eng:2-eng:3"}
    assert set(Similarity().subsets(tmp_path)) == set(Similarity().subsets(tmp_path, languages=["de"])) == everything
    assert Centroids().subsets(tmp_path) == ("deu-eng",)
    scores = Similarity().run(by_language_and_meaning, tmp_path)
    tables = units("other", 6), units("third", 6)
    assert value(scores, "eng:2-eng:3", "cosine/translations") == pytest.approx(sum(map(dot, *tables)) / 6)


def test_ones_own_groups_come_first_and_hide_no_set_without_the_languages_asked_for(tmp_path):
    plain(tmp_path, {f"multi30k/task1/raw/test_2016_flickr.{code}": code for code in ("fr", "en")})
    write_groups(tmp_path, ("kor", "eng"), GROUPS + 20)
    assert Similarity().subsets(tmp_path) == Similarity().subsets(tmp_path, languages=["ko"]) == ("kor-eng",)
    assert Similarity().run(by_last_word, tmp_path)[0].n == GROUPS  # only so many are used
    assert Similarity(source="multi30k").subsets(tmp_path) == ("fr-en",)
    assert Similarity().subsets(tmp_path, languages=["fr"]) == ("fr-en",)


def test_the_set_with_the_most_of_the_languages_is_read_and_of_equals_the_first(tmp_path):
    plain(tmp_path, {f"multi30k/task1/raw/test_2016_flickr.{code}": code for code in ("cs", "de", "fr", "en")})
    plain(tmp_path, {f"flores-200/devtest/{code}.devtest": code for code in ("deu_Latn", "epo_Latn", "eng_Latn")})
    write_groups(tmp_path, ("deu", "eng"), 10)

    def codes(*languages):
        return {code for subset in Similarity().subsets(tmp_path, languages=languages) for code in subset.split("-")}

    assert codes() == codes("de") == codes("de", "ko") == {"deu", "eng"}
    assert codes("de", "eo") == codes("eo") | {"deu_Latn"} == {"deu_Latn", "epo_Latn", "eng_Latn"}
    assert codes("de", "eo", "fr", "cs") == {"de", "fr", "cs", "en"}


def test_a_set_that_is_not_read_may_be_broken(tmp_path):
    plain(tmp_path, {f"NTREX-128/newstest2019-{code}.txt": code for code in ("src.eng", "ref.deu")})
    cases_xsim.sib(tmp_path)
    for path in tmp_path.rglob("dev.tsv.xz"):
        path.unlink()
    assert Similarity().subsets(tmp_path, languages=["de", "eo"]) == ("deu-eng",)


def test_files_of_unequal_length_are_refused(tmp_path):
    plain(tmp_path, {"NTREX-128/newstest2019-src.eng.txt": "eng"})
    write(tmp_path / "NTREX-128" / "newstest2019-ref.deu.txt", "a\nb\n")
    problem = r"^centroids, set ntrex, languages deu and eng: .*; .*is line 3 of \S*eng.txt;"
    with pytest.raises(EvaluationError, match=problem):
        Centroids().run(by_text, tmp_path)


def square_in_a_loop(a, b):
    return squared(unit_in_a_loop(a), unit_in_a_loop(b))


def uniformity_in_a_loop(rows):
    kernel = [math.exp(-2 * square_in_a_loop(rows[i], rows[j])) for i in range(len(rows)) for j in range(i)]
    return math.log(sum(kernel) / len(kernel))


@settings(max_examples=30)
@given(st.integers(2, 25), st.integers(1, 6), st.integers(1, 30), st.integers(0, 99))
def test_both_equal_the_loops_in_blocks_of_any_size(count, dims, block, seed):
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((count, dims)).astype(np.float32)
    rows[generator.integers(count)] = 0
    rows[generator.integers(count)] = rows[0]
    other = generator.standard_normal((count, dims)).astype(np.float32)
    assert uniformity(rows, block=block) == pytest.approx(uniformity_in_a_loop(rows.tolist()), abs=1e-9)
    loop = [square_in_a_loop(a, b) for a, b in zip(rows.tolist(), other.tolist(), strict=True)]
    assert alignment(rows, other) == pytest.approx(loop, abs=1e-12)


def test_a_run_equals_the_protocol_in_a_loop(tmp_path):
    stsb_dev(tmp_path)
    aligned, uniform = TASKS["alignment"].run(by_text, tmp_path)
    left, right = (by_text([f"b {side} {i}" for i in range(POSITIVE)]).tolist() for side in ("left", "right"))
    rest = by_text([f"b {side}{i}" for side in ("left a", "right b") for i in range(OTHER)]).tolist()
    squares = [square_in_a_loop(a, b) for a, b in zip(left, right, strict=True)]
    assert (aligned.subset, aligned.metric, aligned.n) == ("eng", "alignment", POSITIVE)
    assert aligned.value == pytest.approx(sum(squares) / POSITIVE, abs=1e-6)
    assert aligned.items == pytest.approx(squares, abs=1e-6)
    assert (uniform.subset, uniform.metric, uniform.n) == ("eng", "uniformity", 2 * (POSITIVE + OTHER))
    assert uniform.value == pytest.approx(uniformity_in_a_loop([*left, *right, *rest]), abs=1e-6)


def test_a_gold_of_exactly_four_counts_and_a_text_that_stands_twice_is_one_sentence(tmp_path):
    table = [("a 0", "a 1", 4), ("a 0", "a 2", 3.999), ("a 0", "a 0", 5)]
    export(tmp_path / "STS17/ko-ko", table)
    aligned, uniform = TASKS["alignment/sts17"].run(one_hot, tmp_path)
    assert (aligned.value, aligned.n, aligned.items.tolist()) == (1, 2, [2, 0])
    assert (uniform.value, uniform.n) == (pytest.approx(-4), 3)


def test_no_pair_of_one_meaning_is_an_error(tmp_path):
    export(tmp_path / "STS17/ko-ko", [("a", "b", 1), ("c", "d", 3.9)])
    problem = r"^alignment/sts17 kor-kor: none of its 2 labelled pairs .* of 4 or more"
    with pytest.raises(EvaluationError, match=problem):
        TASKS["alignment/sts17"].run(by_text, tmp_path)
    write(tmp_path / "STS/STSBenchmark/sts-dev.csv", "g\tf\ty\t1\t7\ta\tb\n")
    with pytest.raises(EvaluationError, match=r"^alignment eng: .*sts-dev.csv:1: the score '7' is not a number"):
        TASKS["alignment"].run(by_text, tmp_path)


def test_the_pool_is_over_all_pairs_of_ten_sets(tmp_path):
    sts17(tmp_path)
    task = TASKS["alignment/sts17"]
    assert task.subsets(tmp_path)[-1] == POOLED
    assert POOLED not in task.subsets(tmp_path, languages=["ar"])
    found = {(score.subset, score.metric): score for score in task.run(by_text, tmp_path)}
    pooled = found[POOLED, "alignment"]
    parts = [found[subset, "alignment"] for subset in EXTENDED_10]
    assert pooled.n == sum(part.n for part in parts) == 10 * POSITIVE
    assert pooled.items.tolist() == [item for part in parts for item in part.items.tolist()]
    assert found[POOLED, "uniformity"].n == 10 * 2 * (POSITIVE + OTHER)
    assert found[POOLED, "uniformity"].value != found["extended-10", "uniformity"].value
    assert set(found["extended-10", "alignment"].over) == set(EXTENDED_10)
    assert POOLED not in found["mean", "alignment"].over
    assert found["mean", "alignment"].n == len(STS17)


@pytest.mark.slow
@pytest.mark.data
def test_the_dev_split_has_264_pairs_of_one_meaning():
    published("senteval-en")
    scores = TASKS["alignment"].run(lambda texts: np.array([[len(t), t.count(" ") + 1] for t in texts]), DATA)
    assert [(score.metric, score.n) for score in scores] == [("alignment", 264), ("uniformity", 2909)]
