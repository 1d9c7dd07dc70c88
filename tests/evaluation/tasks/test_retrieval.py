"""Retrieval on groups: which pairs of languages it makes, and where it reads groups from."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from cases import by_text
from folders import write

from isoglot.data.groups import Group
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Score, averages
from isoglot.evaluation.tasks.retrieval import Retrieval
from isoglot.report.evaluate import evaluate

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
    scores = Retrieval(GROUPS).run(by_meaning, tmp_path)
    assert [(score.subset, score.metric, score.n) for score in [*scores[:9:3], *scores[9:]]] == [
        ("deu-eng", "accuracy/xx-en", 2),
        ("deu-fra", "accuracy/xx-yy", 1),
        ("fra-eng", "accuracy/xx-en", 2),
        ("mean", "accuracy/xx-en", 2),
        ("mean", "accuracy/en-xx", 2),
        ("mean", "accuracy/mean", 3),
        ("mean", "accuracy/xx-yy", 1),
        ("mean", "accuracy/yy-xx", 1),
    ]
    assert {score.value for score in scores} == {1.0}


def test_the_first_sentence_of_a_language_counts(tmp_path):
    seen = []
    Retrieval(GROUPS).run(lambda texts: seen.extend(texts) or by_meaning(texts), tmp_path)
    assert "thank you" not in seen
    assert "alone" not in seen


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


def test_groups_from_a_folder_of_aligned_files(tmp_path):
    write(tmp_path / "retrieval" / "dev.eng", "good day\nthanks\n")
    write(tmp_path / "retrieval" / "dev.deu", "guten Tag\ndanke\n")
    assert evaluate(by_meaning, ["retrieval"], data=tmp_path)[0].n == 2


def test_a_file_of_another_kind_is_refused(tmp_path):
    write(tmp_path / "groups.csv", "a,b\n")
    with pytest.raises(EvaluationError, match=r"^retrieval: .*groups.csv: only .jsonl, .tsv, .tmx are read"):
        Retrieval().run(by_meaning, tmp_path / "groups.csv")


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


def test_of_many_mistakes_the_ten_worst_are_kept(tmp_path):
    groups = tuple(Group((f"d {i}", f"e {i}"), ("deu", "eng")) for i in range(40))
    score = Retrieval(groups).run(by_text, tmp_path)[0]
    x, y = (by_text([f"{side} {i}" for i in range(40)]) for side in "de")
    x, y = (side / np.sqrt((side**2).sum(axis=1, keepdims=True)) for side in (x, y))
    wrong = []
    for i in range(40):
        best = max(range(40), key=lambda j: float(x[i] @ y[j]))
        if best != i:
            wrong.append((float(x[i] @ y[best] - x[i] @ y[i]), f"d {i}", f"e {i}", f"e {best}"))
    assert len(wrong) > 10
    assert [row[:3] for row in score.details[0].rows] == [entry[1:] for entry in sorted(wrong, reverse=True)[:10]]
    np.testing.assert_allclose(
        [row[5] for row in score.details[0].rows], [entry[0] for entry in sorted(wrong, reverse=True)[:10]], atol=2e-6
    )


def test_without_a_mistake_there_is_no_detail(tmp_path):
    assert all(score.details == () for score in Retrieval(GROUPS).run(by_meaning, tmp_path))


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
        return {score.units for score in scores if score.subset == "deu-eng"}

    assert len(units("f")) == 1
    assert units("f") == units("f", ["de"])
    assert units("f").isdisjoint(units("g"))
