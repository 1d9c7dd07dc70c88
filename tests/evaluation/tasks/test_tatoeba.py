"""Tatoeba: the protocol against a loop, the layouts it finds, the averages it gives, and the input it refuses."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from folders import numbered, tatoeba, write
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.errors import EvaluationError, IsoglotError
from isoglot.evaluation.tasks.tatoeba import LASER_112, XTREME_14, XTREME_36, Tatoeba


def random_vectors(texts, dim=16):
    """A fixed random vector for each text, with nothing in it about meaning."""
    seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") for text in texts]
    return np.array([np.random.default_rng(seed).standard_normal(dim) for seed in seeds]).reshape(-1, dim)


def by_number(texts):
    return random_vectors([text.split()[-1] for text in texts])


def value(scores, subset, metric):
    (found,) = [score for score in scores if (score.subset, score.metric) == (subset, metric)]
    return found.value


def test_equals_the_protocol_in_a_loop(tmp_path):
    rows = numbered("kor", 60)
    scores = Tatoeba().run(random_vectors, tatoeba(tmp_path, {"kor": rows}))
    sides = [random_vectors([row[side] for row in rows]) for side in (0, 1)]
    sides = [[v / np.sqrt((v * v).sum()) for v in side] for side in sides]
    for metric, queries, index in (("xx-en", *sides), ("en-xx", sides[1], sides[0])):
        right = 0
        for number, query in enumerate(queries):
            cosines = [float((query * other).sum()) for other in index]
            right += cosines.index(max(cosines)) == number
        assert value(scores, "kor-eng", f"accuracy/{metric}") == right / 60


def test_mistakes_are_kept_for_each_direction(tmp_path):
    rows = numbered("kor", 60)
    scores = Tatoeba().run(random_vectors, tatoeba(tmp_path, {"kor": rows}))
    for score in scores[:2]:
        (detail,) = score.details
        assert detail.kind == "mistakes"
        assert len(detail.rows) == 10 < sum(score.items == 0)
        pairs = {row if score.metric == "accuracy/xx-en" else row[::-1] for row in rows}
        assert {row[:2] for row in detail.rows} <= pairs
        margins = [row[5] for row in detail.rows]
        assert margins == sorted(margins, reverse=True)
        assert min(margins) > 0
    assert all(score.details == () for score in scores[2:])


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 300))
def test_identical_vectors_on_both_sides_score_one_for_any_number_of_pairs(tmp_path_factory, count):
    folder = tatoeba(tmp_path_factory.mktemp("t"), {"deu": numbered("deu", count)})
    scores = Tatoeba().run(by_number, folder)
    assert {score.value for score in scores} == {1.0}
    assert {score.n for score in scores if score.subset == "deu-eng"} == {count}


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


def test_of_a_text_that_stands_twice_the_first_is_found_which_is_told(tmp_path, caplog):
    folder = tatoeba(tmp_path, {"deu": [("x 1", "same 1"), ("y 2", "other 2"), ("z 1", "same 1")]})
    scores = Tatoeba().run(by_number, folder)
    items = {score.metric: score.items.tolist() for score in scores if score.subset == "deu-eng"}
    assert items["accuracy/xx-en"] == [1, 1, 0]
    (told,) = caplog.messages
    assert told.startswith("tatoeba deu-eng, language eng: ")
    assert "tatoeba.deu-eng.eng:3 repeats the sentence of " in told
    assert "tatoeba.deu-eng.eng:1; 1 of 3 rows" in told


@pytest.mark.parametrize("layout", ["", "v1", "tatoeba", "tatoeba/v1", "tatoeba-laser/v1", "data/tatoeba/v1"])
@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_every_layout_is_found(tmp_path, layout, ending):
    tatoeba(tmp_path / layout, {"kor": numbered("kor", 3)}, ending=ending)
    assert Tatoeba().subsets(tmp_path) == ("kor-eng",)
    assert value(Tatoeba().run(by_number, tmp_path), "kor-eng", "accuracy/mean") == 1


def test_a_plain_file_is_preferred_to_a_compressed_one(tmp_path):
    tatoeba(tmp_path, {"kor": numbered("kor", 2)}, ending=".xz")
    tatoeba(tmp_path, {"kor": numbered("kor", 3)})
    assert Tatoeba().run(by_number, tmp_path)[0].n == 3


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["zh"], "cmn-eng"),
        (["zho_Hans"], "cmn-eng"),
        (["cmn"], "cmn-eng"),
        (["fa"], "pes-eng"),
        (["sw"], "swh-eng"),
        (["deu_Latn"], "deu-eng"),
        (["de-AT"], "deu-eng"),
    ],
)
def test_languages_in_any_code_system(tmp_path, asked, found):
    tatoeba(tmp_path, {code: numbered(code, 2) for code in ("cmn", "pes", "swh", "deu")})
    assert Tatoeba().subsets(tmp_path, languages=asked) == (found,)


def test_a_language_that_does_not_exist_is_named(tmp_path):
    tatoeba(tmp_path, {"deu": numbered("deu", 2)})
    with pytest.raises(IsoglotError, match="qqqq"):
        Tatoeba().subsets(tmp_path, languages=["qqqq"])


def test_a_code_of_a_file_needs_no_table(tmp_path):
    tatoeba(tmp_path, {"klingon": numbered("klingon", 2)})
    assert Tatoeba().subsets(tmp_path, languages=["klingon"]) == ("klingon-eng",)


def test_averages_are_given_when_all_their_languages_are_there(tmp_path):
    for code in XTREME_14:
        tatoeba(tmp_path, {code: numbered(code, 2)})
    tatoeba(tmp_path, {"kor": numbered("kor", 3)})
    scores = Tatoeba().run(random_vectors, tmp_path)
    means = {(score.subset, score.n) for score in scores if "-eng" not in score.subset}
    assert means == {("xtreme-14", 14), ("mean", 15)}
    for metric in ("accuracy/xx-en", "accuracy/en-xx", "accuracy/mean"):
        single = [value(scores, f"{code}-eng", metric) for code in XTREME_14]
        assert value(scores, "xtreme-14", metric) == pytest.approx(sum(single) / 14)
    (tmp_path / "tatoeba.tha-eng.tha").unlink()
    (tmp_path / "tatoeba.tha-eng.eng").unlink()
    assert {score.subset for score in Tatoeba().run(random_vectors, tmp_path)} >= {"mean"}
    assert "xtreme-14" not in {score.subset for score in Tatoeba().run(random_vectors, tmp_path)}


def test_the_lists_are_those_of_the_papers():
    assert [len(set(codes)) for codes in (XTREME_14, XTREME_36, LASER_112)] == [14, 36, 112]
    assert set(XTREME_14) < set(XTREME_36) < set(LASER_112)
    assert not set(XTREME_36) & {"aze", "lit", "pol", "ukr", "ron"}  # XTREME-R's, which are not averaged


@pytest.mark.parametrize(
    ("foreign", "english", "message"),
    [
        ("a\nb\n", "A\n", r"tatoeba deu-eng: .*deu has 2 lines and .*eng has 1, so from line 2 on"),
        ("a\n\nc\n", "A\nB\nC\n", r"tatoeba deu-eng, language deu: .*deu:2: the line is empty"),
        ("a\nb\n", "A\n \n", r"language eng: .*eng:2: the line is empty"),
        ("a\nb\r\n", "A\nB\n", r"language deu: .*deu:2: .*carriage return"),
        ("a\n", b"A\xff\n", r"language eng: .*eng:1: .*UTF-8"),
        ("", "A\n", r"language deu: .*deu: holds no text"),
        ("a\n", None, r"deu has no partner tatoeba.deu-eng.eng"),
    ],
)
def test_unusable_files_are_refused_with_task_language_and_line(tmp_path, foreign, english, message):
    for side, text in (("deu", foreign), ("eng", english)):
        if text is not None:
            write(tmp_path / f"tatoeba.deu-eng.{side}", text)
    with pytest.raises(EvaluationError, match=message):
        Tatoeba().run(by_number, tmp_path)


def test_a_separator_inside_a_sentence_is_no_line_end(tmp_path):
    rows = [("one\u2028line 0", "english 0"), ("two\x85lines 1", "english 1")]
    assert Tatoeba().run(by_number, tatoeba(tmp_path, {"deu": rows}))[0].n == 2


def test_the_f1_is_that_of_scikit_learn_weighted_over_sentences(tmp_path):
    """MTEB's main score: each sentence is a class, predicted once for each query that finds it."""
    from sklearn.metrics import f1_score

    tatoeba(tmp_path, {"kor": numbered("kor", 60)})
    rng = np.random.default_rng(0)
    known = {}

    def encode(texts):
        return np.stack([known.setdefault(text, rng.standard_normal(3)) for text in texts])

    (score,) = (s for s in Tatoeba().run(encode, tmp_path) if (s.subset, s.metric) == ("kor-eng", "f1/xx-en"))
    foreign, english = (np.stack([known[f"{side} {i}"] for i in range(60)]) for side in ("kor", "english"))
    cosines = foreign @ english.T / np.linalg.norm(foreign, axis=1)[:, None] / np.linalg.norm(english, axis=1)
    expected = f1_score(np.arange(60), cosines.argmax(1), average="weighted", zero_division=0)
    assert 0 < score.value == pytest.approx(expected)


def test_the_copy_of_mteb_gives_what_the_files_give(tmp_path):
    pairs = numbered("kor", 40)
    files = Tatoeba().run(random_vectors, tatoeba(tmp_path / "files", {"kor": pairs}))
    records = [json.dumps({"sentence1": f"{a}\n", "sentence2": f"{b}\n", "lang": "kor-eng"}) for a, b in pairs]
    path = tmp_path / "copy/tatoeba-bitext-mining/test/kor-eng.jsonl"
    write(path, "".join(f"{record}\n" for record in records))
    found = Tatoeba().run(random_vectors, tmp_path / "copy")
    assert Tatoeba().subsets(tmp_path / "copy", languages=["ko"]) == ("kor-eng",)
    assert Tatoeba().subsets(tmp_path / "copy", languages=["de"]) == ()
    assert [(s.subset, s.metric, s.value, s.n) for s in found] == [(s.subset, s.metric, s.value, s.n) for s in files]
    for text, message in (
        (json.dumps({"sentence1": "\n", "sentence2": "a"}), "kor-eng.jsonl:1: sentence1 is empty"),
        ("\n", "kor-eng.jsonl: has no pair"),
    ):
        write(path, text)
        with pytest.raises(EvaluationError, match=rf"tatoeba kor-eng: .*{message}"):
            Tatoeba().run(random_vectors, tmp_path / "copy")
