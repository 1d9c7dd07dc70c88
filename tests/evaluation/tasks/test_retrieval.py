"""Tatoeba and retrieval: the protocol against loops, its invariants, averages, refusals."""

import gzip
import json
import tracemalloc

import numpy as np
import pytest
from cases import by_last_word, by_text, random_vector, value
from folders import numbered, tatoeba, write
from search_loops import cosine

from isoglot.core.errors import EvaluationError
from isoglot.data.formats import DOCUMENTS, FORMATS
from isoglot.data.groups import Group
from isoglot.data.readers import READERS
from isoglot.evaluation.base import Score, averages
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.tasks.retrieval import LASER_112, XTREME_14, XTREME_36, Retrieval, Tatoeba, read_groups
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
    evaluate(by_text, pairs=[("a", "b"), ("a", "c")], languages=("eng", "deu"))
    assert "language eng: row 2 repeats the sentence of row 1" in caplog.messages[-1]


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


@pytest.mark.parametrize("task", ["retrieval", "similarity", "map", "centroids"])
@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"retrieval.tsv": "deu\teng\neins\tone\nzwei\n"}, "retrieval.tsv:3: "),
        (  # the advice can be followed without a recipe
            {"retrieval/deu.txt": "eins\n\n", "retrieval/eng.txt": "one\ntwo\n"},
            r"deu.txt:2: is empty; remove the line from all .* \(a source of a recipe",
        ),
    ],
)
def test_a_broken_file_of_groups_is_told_by_the_task_and_the_line(tmp_path, task, files, message):
    for name, content in files.items():
        write(tmp_path / name, content)
    with pytest.raises(EvaluationError, match=f"^{task}: .*{message}"):
        evaluate(by_text, [task], data=tmp_path)


PO = 'msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "a"\nmsgstr ""\n\nmsgid "one"\nmsgstr "{}"\n'
TMX = '<tmx version="1.4"><header/><body>{}</body></tmx>'.format(
    "".join(
        f'<tu><tuv xml:lang="de"><seg>{german}</seg></tuv><tuv xml:lang="en"><seg>{english}</seg></tuv></tu>'
        for german, english in (("", ""), ("eins", "one"), (" ", ""), ("{}", "three"))
    )
)
XLIFF = (
    '<xliff><file source-language="en" target-language="de"><trans-unit><source>a</source></trans-unit>'
    "<trans-unit><source>one</source><target>{}</target></trans-unit></file></xliff>"
)


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("csv", 'deu,eng\n"eins\nzwei","one\ntwo"\n\n{},three\n', "retrieval.csv:6"),
        ("tsv", "deu\teng\neins\tone\n{}\tthree\n", "retrieval.tsv:3"),
        ("po", PO, "retrieval.po, translation 1"),
        ("xliff", XLIFF, "retrieval.xliff, unit 2"),
        ("tmx", TMX, "retrieval.tmx, unit 4"),  # blank ones count
    ],
)
def test_a_sentence_is_told_by_its_line_or_number_in_the_file(tmp_path, name, text, place):
    write(tmp_path / f"retrieval.{name}", text.format("drei"))
    places = [place for place, group in read_groups(tmp_path, task="retrieval") if "drei" in group.texts]
    assert places == [f"{tmp_path}/{place}"]


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


def test_equals_the_protocol_in_a_loop_and_its_f1_that_of_scikit_learn(tmp_path):
    """F1 is MTEB's main score: each sentence is a class, predicted once for each query that finds it."""
    from sklearn.metrics import f1_score

    rows = numbered("kor", 60)
    encode = lambda texts: np.stack([random_vector(text, 3) for text in texts])  # noqa: E731
    scores = Tatoeba().run(encode, tatoeba(tmp_path, {"kor": rows}))
    sides = [encode([row[side] for row in rows]) for side in (0, 1)]
    for metric, queries, index in (("xx-en", *sides), ("en-xx", *sides[::-1])):
        found = []
        for query in queries:
            cosines = [cosine(query, other) for other in index]
            found.append(cosines.index(max(cosines)))
        right = sum(place == number for number, place in enumerate(found))
        assert 0 < value(scores, "kor-eng", f"accuracy/{metric}") == right / 60 < 1
        if metric == "xx-en":
            f1 = f1_score(range(60), found, average="weighted", zero_division=0)
            assert value(scores, "kor-eng", "f1/xx-en") == pytest.approx(f1)


def test_pairs_of_two_languages_are_not_one_item_set_whatever_copy_numbers_them(tmp_path):
    """MTEB's copy numbers its pairs, but pair 1 of German is not the sentence of pair 1 of Korean."""
    for code in ("deu", "kor"):
        pairs = ({"sentence1": first, "sentence2": second} for first, second in numbered(code, 2))
        write(tmp_path / f"Tatoeba/test/{code}-eng.jsonl", "".join(f"{json.dumps(pair)}\n" for pair in pairs))
    scores = Tatoeba().run(by_text, tmp_path)
    assert {score.subset for score in scores} == {"deu-eng", "kor-eng", "mean"}
    assert {score.item_set for score in scores} == {""}


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


def test_the_message_of_missing_data_lists_every_format_that_is_read():
    formats = {name for name in FORMATS if name in READERS and name not in DOCUMENTS}
    assert formats >= {"csv", "tmx"}
    assert [name for name in formats if f".{name}" not in Retrieval.needs] == []


def test_the_lists_are_those_of_the_papers():
    assert [len(set(codes)) for codes in (XTREME_14, XTREME_36, LASER_112)] == [14, 36, 112]
    assert set(XTREME_14) < set(XTREME_36) < set(LASER_112)
    assert not set(XTREME_36) & {"aze", "lit", "pol", "ukr", "ron"}  # XTREME-R's, which are not averaged


def test_a_row_in_memory_takes_little_more_than_its_texts(tmp_path):
    groups = tuple(Group((f"the cat {number}", f"die Katze {number}"), ("eng", "deu")) for number in range(2000))
    tracemalloc.start()
    try:
        found = Retrieval(groups).find(tmp_path)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [*found] == ["deu-eng"]
    assert held / 2000 < 120  # bytes: two texts, which are there already, and the words of a place
