"""Verbs of pairs, `filter`, `negatives` and `align`: what they write is what readers take."""

import csv
import json
import lzma
from pathlib import Path

import pytest
from command_line import runner
from test_documents import write_docx

from conftest import SENTENCES
from isoglot.cli import pairs
from isoglot.core.errors import CorpusError, OutputError
from isoglot.data import Group
from isoglot.data.languages import canonical_list
from isoglot.data.readers import read_jsonl, read_tmx
from isoglot.data.tmx import write_tmx
from isoglot.encoders import load
from isoglot.mining import add_hard_negatives
from isoglot.model import encode

run = runner(filter=pairs.filter, negatives=pairs.negatives, align=pairs.align)
WRONG = [(text, text) for text in dict.fromkeys(SENTENCES)]
WRONG[1] = (WRONG[1][0], WRONG[2][0])  # a wrong translation
PAIRS = [
    ("the cat", "die Katze"),
    ("the dog", "der Hund"),
    ("the cat", "eine Katze"),  # a second translation of the first source
    ("a cat", "die Katze"),  # the same target again
    ("the sea", "das Meer"),
    ("the sea", "das Meer"),  # repeated
]


@pytest.fixture
def project(tmp_path, monkeypatch, toy_static):
    """A model, pairs, and two versions of a document: the second joins the first two sentences and lacks the last."""
    monkeypatch.chdir(tmp_path)
    toy_static.save(tmp_path / "model")
    for name, rows in (("wrong", WRONG), ("pairs", PAIRS)):
        (tmp_path / f"{name}.tsv").write_text("eng\tdeu\n" + "".join(f"{a}\t{b}\n" for a, b in rows))
    write_docx(tmp_path / "a.docx", "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in SENTENCES[:5]))
    second = [f"{SENTENCES[0]} {SENTENCES[1]}", *SENTENCES[2:4]]
    (tmp_path / "b.deu.html").write_text("".join(f"<p>{text}</p>\n" for text in second), encoding="utf-8")
    return tmp_path


def test_wrong_pairs_are_dropped(project):
    err = run("filter", "wrong.tsv", "-o", "out.jsonl", "--model", "model", "--dropped", "bad.jsonl",
              "--threshold", 1.001)  # fmt: skip
    kept, dropped = (list(read_jsonl(f"{name}.jsonl")) for name in ("out", "bad"))
    assert WRONG[1] in [group.texts for group in dropped]
    assert sorted(group.texts for group in [*kept, *dropped]) == sorted(WRONG)
    assert f"eng-deu: {len(dropped)} dropped, {len(kept)} kept" in err


def test_columns_of_csv_become_a_translation_memory(project):
    with Path("pairs.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("number", "german", "english"), *((1, b, a) for a, b in WRONG)])
    words = ("filter", "pairs.csv", "-o", "out.tmx", "--model", "model")
    with pytest.raises(CorpusError, match=r"pairs\.csv:1: .*the columns are number, german, english: .*--columns"):
        run(*words)
    run(*words, "--columns", "english=en, german=de", "--threshold", 0)
    assert [group.texts[::-1] for group in read_tmx("out.tmx")] == WRONG


@pytest.mark.parametrize("languages", ["eng,deu", "de,en"])
@pytest.mark.parametrize("form", ["folder", "jsonl", "tmx"])
def test_sources_are_in_the_first_of_two_languages(project, form, languages):
    rows = list(dict.fromkeys(PAIRS))
    if form == "folder":
        Path("folder").mkdir()
        for side, code in enumerate(("eng", "deu")):
            Path(f"folder/x.{code}").write_text("".join(f"{row[side]}\n" for row in rows))
    elif form == "jsonl":
        Path("in.jsonl").write_text("".join(json.dumps({"fra": "oui", "eng": a, "deu": b}) + "\n" for a, b in rows))
    else:
        write_tmx(Path("in.tmx"), (({}, [("fra", "oui"), ("eng", a), ("deu", b)]) for a, b in rows), source="eng")
    source = "folder" if form == "folder" else f"in.{form}"
    run("negatives", "model", source, "-o", "out.jsonl", "--languages", languages)
    found = list(read_jsonl("out.jsonl"))
    wanted = tuple(canonical_list(languages))
    assert {group.langs for group in found} == {wanted}
    assert {group.hard_langs[0] for group in found} == {wanted[1]}
    assert {group.texts for group in found} == {row if wanted[0] == "eng" else row[::-1] for row in rows}


def nearest(source, others):
    """The other targets from the nearest to the farthest."""
    model = load("model")
    one, many = (encode(model, texts, normalize_embeddings=True) for texts in ([source], others))
    return [others[place] for place in (-(many @ one[0])).argsort(kind="stable")]


def test_a_name_of_another_format_is_refused(project):
    """The file was written as JSON lines."""
    for words in (("negatives", "model", "pairs.tsv"), ("filter", "pairs.tsv", "--model", "model")):
        with pytest.raises(OutputError, match=r"out\.xlsx: .*JSON lines"):
            run(*words, "-o", "out.xlsx")
    with pytest.raises(OutputError, match=r"out\.tmx"):
        run("negatives", "model", "pairs.tsv", "-o", "out.tmx")
    assert not list(Path().glob("out.*"))


def test_each_pair_gets_the_nearest_that_translate_it_not(project):
    err = run("negatives", "model", "pairs.tsv", "--count", 2, "--output", "triplets.jsonl")
    assert "5 pairs with up to 2 hard negatives each: triplets.jsonl" in err
    groups = list(read_jsonl("triplets.jsonl"))
    assert [group.texts for group in groups] == PAIRS[:5]
    assert all(group.langs == ("eng", "deu") for group in groups)
    targets = list(dict.fromkeys(target for _, target in PAIRS))
    for group in groups:
        translations = {target for source, target in PAIRS if source == group.texts[0]}
        wanted = nearest(group.texts[0], [text for text in targets if text not in translations])[:2]
        assert list(group.hard_negatives) == wanted
        assert group.hard_langs == ("deu",) * len(wanted)
    err = run("negatives", "model", "pairs.tsv", "--count", 10**9, "--output", "all.jsonl")
    assert "count is 1000000000: only 3 other targets exist" in err
    assert [len(group.hard_negatives) for group in read_jsonl("all.jsonl")] == [2, 3, 2, 3, 3]


def test_negatives_are_in_the_language_of_their_target(toy_static):
    """A sentence of another language may be a translation, and is no negative of this pair."""
    german = [("a dog", "ein Hund", "deu"), ("a cat", "eine Katze", "deu")]
    pairs = [*german, ("a dog", "un chien", "fra"), ("a cat", "un chat", "fra")]
    groups = [Group((one, other), ("eng", code)) for one, other, code in pairs]
    found = add_hard_negatives(toy_static, groups)
    assert [(group.hard_negatives, group.hard_langs) for group in found] == [
        (("eine Katze",), ("deu",)), (("ein Hund",), ("deu",)), (("un chat",), ("fra",)), (("un chien",), ("fra",))
    ]  # fmt: skip


def test_groups_of_one_key_are_no_negatives_of_each_other(toy_static):
    pairs = [("A dog barks.", "Ein Hund bellt."), ("The dog is barking.", "Der Hund bellt."), ("A cat.", "Eine Katze.")]
    groups = [Group(pair, ("eng", "deu"), key) for pair, key in zip(pairs, ("dog", "dog", ""), strict=True)]
    found = [group.hard_negatives for group in add_hard_negatives(toy_static, groups, 2)]
    assert found[:2] == [("Eine Katze.",), ("Eine Katze.",)]
    assert sorted(found[2]) == ["Der Hund bellt.", "Ein Hund bellt."]


def test_a_sentence_is_no_negative_of_itself(toy_static):
    """It may be the target of another one, in one language or where it was left untranslated."""
    texts = ["a dog", "the park", "signs", "numbers"]
    groups = [Group(pair, ("eng", "eng")) for pair in zip(texts, [*texts[1:], texts[0]], strict=True)]
    for group in add_hard_negatives(toy_static, groups):
        assert {*group.hard_negatives} == {*texts} - {*group.texts}


def test_negatives_of_a_folder_of_aligned_files_without_leaks(project):
    (project / "pair").mkdir()
    for column, code in enumerate(("eng", "deu")):
        with lzma.open(project / "pair" / f"{code}.txt.xz", "wt") as stream:
            stream.writelines(f"{pair[column]}\n" for pair in PAIRS)
    (project / "test.txt").write_text("Der Hund!\n")
    run("negatives", "model", "pair", "--languages", "eng,deu", "--leakage", "test.txt", "-o", "triplets.jsonl")
    groups = list(read_jsonl("triplets.jsonl"))
    assert [set(group.langs) for group in groups] == [{"eng", "deu"}] * 4
    assert not any("der Hund" in (*group.texts, *group.hard_negatives) for group in groups)


def test_documents_become_a_memory(project, run_main):
    words = "align model a.docx b.deu.html -o out.tmx --languages eng,deu --write-ids --json"
    _, out, err = run_main(*words.split())
    counts = {"1-0": 1, "1-1": 2, "2-1": 1}
    assert json.loads(out) == {"output": "out.tmx", "alignments": 3, "counts": counts}
    assert "alignments: 1 1-0, 2 1-1, 1 2-1" in err
    groups = list(read_tmx("out.tmx"))
    assert [group.texts[0] for group in groups] == [f"{SENTENCES[0]} {SENTENCES[1]}", *SENTENCES[2:4]]
    assert {group.langs for group in groups} == {("eng", "deu")}
    text = (project / "out.tmx").read_text(encoding="utf-8")
    assert '<prop type="source-id">1,2</prop><prop type="target-id">1</prop>' in text
