"""Tatoeba, retrieval, xSIM and nearest sentences: the protocols against loops, their invariants, averages, refusals."""

from __future__ import annotations

import gzip
import math
from itertools import pairwise

import numpy as np
import pytest
from cases import by_last_word, by_text, random_vector, value
from cases_xsim import CASES
from folders import numbered, tatoeba, write
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isoglot.core.errors import EvaluationError, IsoglotError
from isoglot.data.groups import Group
from isoglot.evaluation.base import Score, averages
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.tasks.retrieval import (
    LASER_112,
    N_WAY,
    ORDER,
    XSIM,
    XTREME_14,
    XTREME_36,
    CorpusSearch,
    Retrieval,
    Tatoeba,
    XSim,
)
from isoglot.search import neighbours

GROUPS = (
    Group(("good day", "guten Tag", "bonjour"), ("eng", "deu", "fra")),
    Group(("thanks", "danke"), ("eng", "deu")),
    Group(("merci", "thanks", "thank you"), ("fra", "eng", "eng")),
    Group(("alone",), ("kor",)),
)


MEANING = {"good day": 0, "guten Tag": 0, "bonjour": 0, "thanks": 1, "danke": 1, "merci": 1, "thank you": 2, "alone": 3}


def by_meaning(texts):
    return np.eye(4, dtype=np.float32)[[MEANING[text] for text in texts]]


def test_every_pair_of_languages_that_occurs_together(tmp_path):
    asked = []
    scores = Retrieval(GROUPS).run(lambda texts: asked.extend(texts) or by_meaning(texts), tmp_path)
    scores = [score for score in scores if score.metric.startswith("accuracy")]
    assert [f"{score.subset} {score.metric[9:]} {score.n}" for score in [*scores[:9:3], *scores[9:]]] == [
        *("deu-eng xx-en 2", "deu-fra xx-yy 1", "fra-eng xx-en 2"),
        *("mean xx-en 2", "mean en-xx 2", "mean mean 3", "mean xx-yy 1", "mean yy-xx 1"),
    ]
    assert {score.value for score in scores} == {1.0}
    assert {"thank you", "alone"}.isdisjoint(asked)  # of a language the first sentence counts


def test_sentences_that_stand_twice_are_told_once_with_language_and_lines(tmp_path, caplog):
    rows = ["eng\tdeu\tfra", "one\teins\tun", "two\tzwei\tdeux", "one\t(eins)\t(un)", "one\tja\toui"]
    (tmp_path / "retrieval.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for _ in range(2):
        evaluate(by_text, ["retrieval"], data=tmp_path)
    (told,) = caplog.messages
    assert told.startswith("retrieval deu-eng, language eng: ")
    assert "retrieval.tsv:4 repeats the sentence of " in told
    assert "retrieval.tsv:2; 2 of 4 rows" in told


def test_english_need_not_be_asked_for(tmp_path):
    assert Retrieval(GROUPS).subsets(tmp_path, languages=["de"]) == ("deu-eng",)
    assert Retrieval(GROUPS).subsets(tmp_path, languages=["fr", "de"]) == ("deu-eng", "deu-fra", "fra-eng")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("retrieval.tsv", "eng\tdeu\ngood day\tguten Tag\nthanks\tdanke\n"),
        ("retrieval.jsonl", '{"translation": {"en": "good day", "de": "guten Tag"}}\n' * 2),
        ("retrieval.tsv.gz", gzip.compress(b"eng\tdeu\ngood day\tguten Tag\nthanks\tdanke\n", mtime=0)),
    ],
)
def test_groups_from_a_file_or_from_the_folder_that_holds_it(tmp_path, name, content):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for data in (tmp_path, tmp_path / name):
        assert Retrieval().subsets(data) == ("deu-eng",)
        assert evaluate(by_meaning, ["retrieval"], data=data)[0].n == 2


def test_groups_from_a_folder_of_aligned_files_and_from_no_other_kind(tmp_path):
    write(tmp_path / "retrieval" / "dev.eng", "good day\nthanks\n")
    write(tmp_path / "retrieval" / "dev.deu", "guten Tag\ndanke\n")
    assert evaluate(by_meaning, ["retrieval"], data=tmp_path)[0].n == 2
    write(tmp_path / "groups.ods", "a,b\n")
    with pytest.raises(EvaluationError, match=r"^retrieval: .*groups.ods: only .jsonl, .tsv, .* are read"):
        Retrieval().run(by_meaning, tmp_path / "groups.ods")


def test_an_average_needs_all_it_is_over():
    scores = [Score("t", name, "m", value, 9) for name, value in (("a", 0.2), ("b", 0.6), ("c", 1.0))]
    assert averages(scores, "two", over=["a", "b"]) == [Score("t", "two", "m", pytest.approx(0.4), 2, ("a", "b"))]
    assert averages(scores, "all") == [Score("t", "all", "m", pytest.approx(0.6), 3, ("a", "b", "c"))]
    assert averages(scores, "four", over=["a", "d"]) == []
    assert averages([], "none") == []


PLANE = {"a": 0, "b": 90, "c": 200, "A": 10, "B": 120, "C": 20}


def on_a_circle(texts):
    angles = np.radians([PLANE[text] for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_mistakes_are_told_with_both_sentences_worst_first(tmp_path):
    """To English c (200°) finds B (120°) instead of C (20°); back, C finds a (20°) instead of c (180°)."""
    groups = tuple(Group((foreign, english), ("deu", "eng")) for foreign, english in ("aA", "bB", "cC"))
    scores = {score.metric: score for score in Retrieval(groups).run(on_a_circle, tmp_path) if not score.over}
    assert scores["accuracy/xx-en"].value == scores["accuracy/en-xx"].value == pytest.approx(2 / 3)
    (there,), (back,) = scores["accuracy/xx-en"].details, scores["accuracy/en-xx"].details
    assert there.kind == back.kind == "mistakes"
    assert there.columns == ("sentence", "expected", "found", "cosine expected", "cosine found", "margin")
    cos = {degrees: round(float(np.cos(np.radians(degrees))), 6) for degrees in (20, 80, 180)}
    assert there.rows == (("c", "C", "B", cos[180], cos[80], pytest.approx(cos[80] - cos[180])),)
    assert back.rows == (("C", "c", "a", cos[180], cos[20], pytest.approx(cos[20] - cos[180])),)
    assert scores["accuracy/mean"].details == ()


def test_a_broken_file_of_groups_is_told_by_the_task_and_the_line(tmp_path):
    write(tmp_path / "retrieval.tsv", "deu\teng\neins\tone\nzwei\n")
    for task in ("retrieval", "similarity", "map", "centroids"):
        with pytest.raises(EvaluationError, match=rf"^{task}: .*retrieval.tsv:3: "):
            evaluate(by_text, [task], data=tmp_path)


@pytest.mark.parametrize("task", ["retrieval", "similarity"])
def test_a_unit_of_a_translation_memory_is_told_by_its_number_in_the_file(tmp_path, task):
    def unit(*texts):
        versions = (
            f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in zip(("de", "en"), texts, strict=True)
        )
        return f"<tu>{''.join(versions)}</tu>"

    units = [unit("", ""), unit("eins", "one"), unit(" ", ""), unit("zwei", "two"), unit("drei", "three")]
    write(tmp_path / "retrieval.tmx", f'<tmx version="1.4"><header/><body>{"".join(units)}</body></tmx>')
    with pytest.raises(EvaluationError, match=rf"^{task} .*deu.*retrieval.tmx, unit 4: .*NaN.* 'zwei'"):
        evaluate(lambda texts: by_text(texts) * [[np.nan if "zwei" in t else 1] for t in texts], [task], data=tmp_path)


@pytest.mark.parametrize("task", ["retrieval", "similarity"])
def test_units_are_those_of_the_sentences_whichever_languages_are_asked_for(tmp_path, task):
    def units(sentence, languages=()):
        rows = "".join(f"d {i}\t{sentence} {i}\te {i}\n" for i in range(6))
        write(tmp_path / "retrieval.tsv", f"deu\tfra\teng\n{rows}")
        scores = evaluate(by_text, [task], data=tmp_path, languages=languages)
        return {score.item_set for score in scores if score.subset == "deu-eng"}

    assert len(units("f")) == 1
    assert units("f") == units("f", ["de"])
    assert units("f").isdisjoint(units("g"))


def test_equals_the_protocol_in_a_loop(tmp_path):
    rows = numbered("kor", 60)
    scores = Tatoeba().run(by_text, tatoeba(tmp_path, {"kor": rows}))
    sides = [by_text([row[side] for row in rows]) for side in (0, 1)]
    sides = [[v / np.sqrt((v * v).sum()) for v in side] for side in sides]
    for metric, queries, index in (("xx-en", *sides), ("en-xx", sides[1], sides[0])):
        right = 0
        for number, query in enumerate(queries):
            cosines = [float((query * other).sum()) for other in index]
            right += cosines.index(max(cosines)) == number
        assert value(scores, "kor-eng", f"accuracy/{metric}") == right / 60


def test_directions_differ_and_each_is_divided_by_the_pairs(tmp_path):
    """Three foreign sentences near one English one: en-xx finds only one of them."""
    vectors = {"a": [1, 0.1], "b": [1, 0.2], "c": [0, 1], "A": [1, 0], "B": [0.9, 0.4], "C": [0, 1]}
    folder = tatoeba(tmp_path, {"fra": [("a", "A"), ("b", "B"), ("c", "C")]})
    scores = Tatoeba().run(lambda texts: np.array([vectors[text] for text in texts]), folder)
    assert value(scores, "fra-eng", "accuracy/xx-en") == pytest.approx(2 / 3)
    assert value(scores, "fra-eng", "accuracy/en-xx") == 1
    assert value(scores, "fra-eng", "accuracy/mean") == pytest.approx(5 / 6)
    items = {score.metric: score.items.tolist() for score in scores if score.subset == "fra-eng"}
    assert items["accuracy/xx-en"] == [1, 0, 1]
    assert items["accuracy/mean"] == [1, 0.5, 1]


def test_of_a_text_that_stands_twice_the_first_is_found_which_is_told(tmp_path, caplog, monkeypatch):
    def round_apart(*tables, **options):
        """As a product may round the two cosines: the second is the larger one."""
        near = neighbours(*tables, **options)
        near.forward_ids[near.forward_ids == 0] = 2
        return near

    monkeypatch.setattr("isoglot.evaluation.tasks.retrieval.neighbours", round_apart)
    folder = tatoeba(tmp_path, {"deu": [("x 1", "same 1"), ("y 2", "other 2"), ("z 1", "same 1")]})
    scores = Tatoeba().run(by_last_word, folder)
    items = {score.metric: score.items.tolist() for score in scores if score.subset == "deu-eng"}
    assert items["accuracy/xx-en"] == [1, 1, 0]
    (told,) = caplog.messages
    assert told.startswith("tatoeba deu-eng, language eng: ")
    assert "tatoeba.deu-eng.eng:3 repeats the sentence of " in told
    assert "tatoeba.deu-eng.eng:1; 1 of 3 rows" in told


@pytest.mark.parametrize("code", ["zh=cmn", "zho_Hans=cmn", "cmn=cmn", "fa=pes", "sw=swh", "deu_Latn=deu", "de-AT=deu"])
def test_languages_in_any_code_system(tmp_path, code):
    tatoeba(tmp_path, {code: numbered(code, 2) for code in ("cmn", "pes", "swh", "deu")})
    asked, _, subset = code.partition("=")
    assert Tatoeba().subsets(tmp_path, languages=[asked]) == (f"{subset}-eng",)


def test_averages_are_given_when_all_their_languages_are_there(tmp_path):
    tatoeba(tmp_path, {code: numbered(code, 2) for code in (*XTREME_14, "kor")})
    scores = Tatoeba().run(by_text, tmp_path)
    means = {(score.subset, score.n) for score in scores if "-eng" not in score.subset}
    assert means == {("xtreme-14", 14), ("mean", 15)}
    for metric in ("accuracy/xx-en", "accuracy/en-xx", "accuracy/mean"):
        single = [value(scores, f"{code}-eng", metric) for code in XTREME_14]
        assert value(scores, "xtreme-14", metric) == pytest.approx(sum(single) / 14)
    (tmp_path / "tatoeba.tha-eng.tha").unlink()
    assert {score.subset for score in Tatoeba().run(by_text, tmp_path) if score.over} == {"mean"}


def test_the_lists_are_those_of_the_papers():
    assert [len(set(codes)) for codes in (XTREME_14, XTREME_36, LASER_112)] == [14, 36, 112]
    assert set(XTREME_14) < set(XTREME_36) < set(LASER_112)
    assert not set(XTREME_36) & {"aze", "lit", "pol", "ukr", "ron"}  # XTREME-R's, which are not averaged


def test_the_f1_is_that_of_scikit_learn_weighted_over_sentences(tmp_path):
    """MTEB's main score: each sentence is a class, predicted once for each query that finds it."""
    from sklearn.metrics import f1_score

    tatoeba(tmp_path, {"kor": numbered("kor", 60)})
    encode = lambda texts: np.stack([random_vector(text, 3) for text in texts])  # noqa: E731
    f1 = value(Tatoeba().run(encode, tmp_path), "kor-eng", "f1/xx-en")
    foreign, english = (encode([f"{side} {i}" for i in range(60)]) for side in ("kor", "english"))
    cosines = foreign @ english.T / np.linalg.norm(foreign, axis=1)[:, None] / np.linalg.norm(english, axis=1)
    expected = f1_score(np.arange(60), cosines.argmax(1), average="weighted", zero_division=0)
    assert 0 < f1 == pytest.approx(expected)


OWN = N_WAY["own"]


def cosine(a, b):
    dot = sum(float(p) * float(q) for p, q in zip(a, b, strict=True))
    lengths = math.sqrt(sum(float(p) ** 2 for p in a)) * math.sqrt(sum(float(q) ** 2 for q in b))
    return dot / lengths


def nearest_k(row, table, k):
    scored = [(cosine(row, other), place) for place, other in enumerate(table)]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:k]


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
    around_y = [sum(score for score, _ in nearest_k(row, x, k)) / min(k, len(x)) for row in y]
    chosen = []
    for row in x:
        near = nearest_k(row, y, k)
        around_x = sum(score for score, _ in near) / len(near)
        best, place = -math.inf, None
        for score, j in near:
            mean = (around_x + around_y[j]) / 2
            value = {"absolute": score, "distance": score - mean, "ratio": score / max(mean, 1e-6)}[kind]
            if value > best:
                best, place = value, j
        chosen.append(place)
    return chosen


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


def values(scores, subset):
    return {score.metric: score.value for score in scores if score.subset == subset}


@settings(max_examples=30)
@given(st.integers(1, 24), st.integers(2, 12), st.floats(0.1, 2), st.integers(0, 10**6), st.sampled_from([1, 2, 4, 7]))
def test_equals_the_protocol_in_loops(tmp_path_factory, count, dim, noise, seed, k):
    rng = np.random.default_rng(seed)
    meaning = rng.standard_normal((count, dim))
    texts = {code: [f"{code} {i}" for i in range(count)] for code in ("deu", "eng")}
    vectors = {code: meaning + noise * rng.standard_normal((count, dim)) for code in texts}
    for rows in vectors.values():
        rows[:] = np.float32(rows)
    assume(clear(vectors["deu"], vectors["eng"], k) and clear(vectors["eng"], vectors["deu"], k))
    scores = XSim(OWN, k=k).run(table_of(texts, vectors), files(tmp_path_factory.mktemp("x"), texts))
    for a, b in (("deu", "eng"), ("eng", "deu")):
        for kind in ORDER:
            expected = loops((texts[a], texts[b]), (vectors[a], vectors[b]), kind, k)
            assert values(scores, f"{a}-{b}")[f"error/{kind}"] == expected[0]
            assert values(scores, f"{a}-{b}")[f"error-by-index/{kind}"] == expected[1]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=24), st.integers(0, 10**6))
def test_equals_the_loops_where_texts_stand_twice(tmp_path_factory, kinds, seed):
    """Only the side searched repeats texts; then by index counts the second of them wrong, by text does not."""
    rng = np.random.default_rng(seed)
    texts = {"deu": [f"deu {i}" for i in range(len(kinds))], "eng": [f"eng {kind}" for kind in kinds]}
    meaning = np.float32(rng.standard_normal((6, 8)))
    noise = np.float32(0.8 * rng.standard_normal((len(kinds), 8)))
    vectors = {"deu": np.float32(meaning[kinds] + noise), "eng": meaning[kinds]}
    scores = XSim(OWN).run(table_of(texts, vectors), files(tmp_path_factory.mktemp("x"), texts))
    for kind in ORDER:
        expected = loops((texts["deu"], texts["eng"]), (vectors["deu"], vectors["eng"]), kind)
        assert values(scores, "deu-eng")[f"error/{kind}"] == expected[0]
        assert values(scores, "deu-eng")[f"error-by-index/{kind}"] == expected[1]


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
        assert values(scores, f"xx-{target}")["error/ratio"] == pytest.approx(columns[-1])
    assert values(scores, "mean")["error/ratio"] == pytest.approx(sum(columns) / 4)
    assert scores[-2].over == ("xx-deu", "xx-eng", "xx-fra", "xx-kor")


def ratios(x, y, k=4):
    """The ratio margin of every pair, in loops."""
    around_x = [sum(score for score, _ in nearest_k(row, y, k)) / k for row in x]
    around_y = [sum(score for score, _ in nearest_k(row, x, k)) / k for row in y]
    rows = [[cosine(a, b) for b in y] for a in x]
    return [
        [value / max((here + there) / 2, 1e-6) for value, there in zip(row, around_y, strict=True)]
        for row, here in zip(rows, around_x, strict=True)
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


def nearest(folder, queries, corpus):
    for role, texts in (("queries", queries), ("corpus", corpus)):
        for code, sentences in texts.items():
            write(folder / "nearest" / f"{role}.{code}.txt", "".join(f"{text}\n" for text in sentences))
    return folder


def loop(queries, corpus, encode, top):
    """The best distinct sentences other than the query, with their cosines."""
    found = []
    for query in queries:
        (a,) = encode([query])
        scored = []
        for other in dict.fromkeys(corpus):
            (b,) = encode([other])
            if other != query:
                scored.append((float(a @ b / np.sqrt((a @ a) * (b @ b))), other))
        found.append(sorted(scored, key=lambda pair: -pair[0])[:top])
    return found


@pytest.mark.parametrize("top", [1, 3, 5])
def test_equals_the_search_in_a_loop(tmp_path, top):
    queries = [f"text {i}" for i in range(0, 40, 3)]
    corpus = [f"text {i % 30}" for i in range(50)]
    (score, mean) = CorpusSearch(top=top).run(by_text, nearest(tmp_path, {"deu": queries}, {"eng": corpus}))
    expected = loop(queries, corpus, by_text, top)
    (detail,) = score.details
    assert detail.kind == "hits"
    assert [row[:3] for row in detail.rows] == [
        (query, rank, text)
        for query, hits in zip(queries, expected, strict=True)
        for rank, (_, text) in enumerate(hits, 1)
    ]
    np.testing.assert_allclose([row[3] for row in detail.rows], [c for hits in expected for c, _ in hits], atol=1e-5)
    assert score.value == pytest.approx(np.mean([hits[0][0] for hits in expected]), abs=1e-6)
    assert (mean.subset, mean.value, mean.over) == ("mean", score.value, ("deu-eng",))


def test_the_query_itself_is_no_hit_and_a_text_is_one_hit(tmp_path):
    folder = nearest(tmp_path, {"eng": ["a 1", "b 2"]}, {"eng": ["a 1", "c 1", "a 1", "c 1", "d 2", "e 3"]})
    score = CorpusSearch(top=2).run(by_last_word, folder)[0]
    assert score.subset == "eng"
    assert [row[2] for row in score.details[0].rows if row[1] == 1] == ["c 1", "d 2"]
    assert [row[2] for row in score.details[0].rows if row[0] == "a 1"].count("c 1") == 1


def test_only_the_first_queries_are_shown_and_all_are_counted(tmp_path):
    folder = nearest(tmp_path, {"deu": [f"q {i}" for i in range(9)]}, {"eng": [f"c {i}" for i in range(9)]})
    score = CorpusSearch(shown=2).run(by_text, folder)[0]
    assert (score.n, len(score.items), len(score.details[0].rows)) == (9, 9, 6)
    assert len({row[0] for row in score.details[0].rows}) == 2


def test_languages_of_queries_and_corpora(tmp_path):
    texts = {code: [f"{code} {i}" for i in range(4)] for code in ("deu", "eng", "kor")}
    folder = nearest(tmp_path, texts, {code: texts[code] for code in ("deu", "eng")})
    task = CorpusSearch()
    assert task.subsets(folder) == ("deu", "eng-deu", "kor-deu", "deu-eng", "eng", "kor-eng")
    assert task.subsets(folder, languages=["ko"]) == ("kor-eng",)
    assert task.subsets(folder, languages=["en"]) == ("eng",)
    asked = []
    task.run(lambda new: asked.append(new) or by_text(new), folder)
    assert asked.count(texts["kor"]) == 2  # as queries of both corpora
    assert asked.count(texts["deu"]) == 3  # so, and as a corpus once


def test_a_corpus_of_nothing_but_the_query_is_refused(tmp_path):
    folder = nearest(tmp_path, {"eng": ["other", "a"]}, {"eng": ["a", "a"]})
    with pytest.raises(EvaluationError, match=r"nearest eng, queries, language eng: .*queries.eng.txt:2: the corpus"):
        CorpusSearch().run(by_text, folder)
