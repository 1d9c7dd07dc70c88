"""Running tasks: what is missing is reported, and texts are shared."""

import pytest
from cases import by_text, skipping
from folders import numbered, tatoeba

from isoglot.core.errors import EvaluationError
from isoglot.evaluation import TASKS
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.run import texts_of
from isoglot.evaluation.sets import get_command


def test_languages_without_data_and_english_alone_are_told_and_the_others_are_scored(tmp_path):
    tatoeba(tmp_path, {"kor": numbered("kor", 4)})
    told = []
    scores = skipping(told, by_text, ["tatoeba"], data=tmp_path, languages=["ko", "ja", "en"])
    assert {score.subset for score in scores} == {"kor-eng", "mean"}
    command = f"get more with: {get_command(TASKS['tatoeba'], data=tmp_path)}"
    assert told == [f"tatoeba: {tmp_path} has no data for ja; {command}"]
    told.clear()
    assert skipping(told, by_text, ["tatoeba"], data=tmp_path, languages=["ja", "de"]) == []
    assert told == [f"tatoeba: {tmp_path} has no data for ja, de; {command}"]
    told.clear()  # English alone is to stand beside others
    assert skipping(told, by_text, ["tatoeba"], data=tmp_path, languages=["en"]) == []
    skipping(told, by_text, ["tatoeba"], data=tmp_path, languages=["en", "ja"])
    assert [line.partition(";")[0] for line in told] == [
        "tatoeba: English is scored only with another language", f"tatoeba: {tmp_path} has no data for ja"
    ]  # fmt: skip


def test_a_place_that_is_no_folder_is_told(tmp_path):
    told = []
    for place in (tmp_path / "nowhere", tmp_path / "file"):
        (tmp_path / "file").write_text("a line\n", encoding="utf-8")
        skipping(told, by_text, ["tatoeba"], data=place)
    assert told[0].startswith(f"tatoeba: no data in {tmp_path / 'nowhere'}, which does not exist; ")
    assert told[0].endswith(f"get it with: isoglot data get tatoeba-laser --data {tmp_path / 'nowhere'}")
    assert told[1].startswith(f"tatoeba: no data in {tmp_path / 'file'}, which is a file; ")
    assert told[1].endswith("--data DIR")
    (tmp_path / "own.tsv").write_text("deu\teng\na\tb\nc\td\n", encoding="utf-8")
    for task in ("retrieval", "similarity"):
        skipping(told, by_text, [task], data=tmp_path / "own.tsv", languages=["de", "ko"])
        assert told[-1] == f"{task}: {tmp_path / 'own.tsv'} has no data for ko"
    with pytest.raises(EvaluationError, match="isoglot tasks"):
        evaluate(by_text, [], data=tmp_path)


def test_the_texts_of_tasks_are_listed_with_what_is_missing(tmp_path):
    tatoeba(tmp_path, {"kor": numbered("kor", 2)})
    told = []
    texts = texts_of(["tatoeba", "sts22"], data=tmp_path, languages=["ko", "ja"], on_missing=told.append)
    assert len(texts) == 4
    assert [line.partition(":")[0] for line in told] == ["tatoeba", "sts22"]
    assert "no data for ja" in told[0]
    assert texts_of(["tatoeba", "sts22"], data=tmp_path) == texts


def test_texts_shared_by_languages_and_tasks_are_encoded_once(tmp_path):
    tatoeba(tmp_path, {code: numbered(code, 5) for code in ("kor", "deu")})
    asked = []
    evaluate(lambda texts: asked.extend(texts) or by_text(texts), ["tatoeba", TASKS["tatoeba"]], data=str(tmp_path))
    assert len(asked) == len(set(asked)) == 15
