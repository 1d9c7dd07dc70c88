"""`isoglot negatives` as a user meets it: what it writes is what the jsonl reader takes, and never a translation."""

from __future__ import annotations

import lzma

import pytest
from command_line import runner

from isoglot.cli.negatives import negatives
from isoglot.data import Group
from isoglot.data.readers import read_jsonl
from isoglot.encoders import load
from isoglot.errors import CorpusError, RecipeError
from isoglot.mining import add_hard_negatives
from isoglot.model import encode

run = runner(negatives=negatives)
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
    monkeypatch.chdir(tmp_path)
    toy_static.save(tmp_path / "model")
    (tmp_path / "pairs.tsv").write_text("eng\tdeu\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS))
    return tmp_path


def nearest(source, others):
    """The other targets from the nearest to the farthest."""
    model = load("model")
    one, many = (encode(model, texts, normalize_embeddings=True) for texts in ([source], others))
    return [others[place] for place in (-(many @ one[0])).argsort(kind="stable")]


def test_each_pair_gets_the_nearest_that_translate_it_not(project):
    err = run("model", "pairs.tsv", "--count", 2, "--output", "triplets.jsonl")
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


def test_negatives_are_in_the_language_of_their_target(toy_static):
    """A sentence of another language may be a translation, and is no negative of this pair."""
    german = [("a dog", "ein Hund", "deu"), ("a cat", "eine Katze", "deu")]
    pairs = [*german, ("a dog", "un chien", "fra"), ("a cat", "un chat", "fra")]
    groups = [Group((one, other), ("eng", code)) for one, other, code in pairs]
    found = add_hard_negatives(toy_static, groups)
    assert [(group.hard_negatives, group.hard_langs) for group in found] == [
        (("eine Katze",), ("deu",)), (("ein Hund",), ("deu",)), (("un chat",), ("fra",)), (("un chien",), ("fra",))
    ]  # fmt: skip


def test_again_gives_the_same_bytes(project):
    for name in ("one.jsonl", "two.jsonl"):
        run("model", "pairs.tsv", "-o", name)
    assert (project / "one.jsonl").read_bytes() == (project / "two.jsonl").read_bytes()


def test_a_folder_of_aligned_files_and_leaks(project):
    (project / "pair").mkdir()
    for column, code in enumerate(("eng", "deu")):
        with lzma.open(project / "pair" / f"{code}.txt.xz", "wt") as stream:
            stream.writelines(f"{pair[column]}\n" for pair in PAIRS)
    (project / "test.txt").write_text("Der Hund!\n")
    run("model", "pair", "--languages", "eng,deu", "--leakage", "test.txt", "-o", "triplets.jsonl")
    groups = list(read_jsonl("triplets.jsonl"))
    order = [set(group.langs) for group in groups]
    assert order == [{"eng", "deu"}] * 4
    assert not any("der Hund" in (*group.texts, *group.hard_negatives) for group in groups)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("eng\tdeu\tfra\na\tb\tc\n", "group 1 has 3 sentences"),
        ("eng\tdeu\na\t\n", "group 1 has 1 sentences"),
        ("eng\tdeu\n", "contains a header and no text"),
    ],
)
def test_what_are_no_pairs_is_told(project, text, words):
    (project / "pairs.tsv").write_text(text)
    with pytest.raises(CorpusError, match=words):
        run("model", "pairs.tsv", "-o", "triplets.jsonl")
    assert not (project / "triplets.jsonl").exists()


def test_nothing_left_and_options_that_a_format_lacks_are_told(project):
    (project / "test.txt").write_text("the cat\nthe dog\na cat\nthe sea\n")
    with pytest.raises(CorpusError, match="no pairs are left"):
        run("model", "pairs.tsv", "--leakage", "test.txt", "-o", "triplets.jsonl")
    (project / "pairs.jsonl").write_text('{"eng": "a", "deu": "b"}\n')
    with pytest.raises(RecipeError, match="'languages'"):
        run("model", "pairs.jsonl", "--languages", "eng,deu", "-o", "triplets.jsonl")


def test_more_negatives_than_targets_are_all_of_them(project):
    err = run("model", "pairs.tsv", "--count", 10**9, "--output", "all.jsonl")
    assert "count is 1000000000: only 3 other targets exist" in err
    groups = list(read_jsonl("all.jsonl"))
    assert [len(group.hard_negatives) for group in groups] == [2, 3, 2, 3, 3]
