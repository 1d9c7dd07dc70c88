"""XNLI as triplets, groups and pairs: what is drawn, what is counted, what is rejected."""

from __future__ import annotations

import lzma
import random
from collections import Counter

import pytest

from conftest import published
from isoglot.core.errors import CorpusError
from isoglot.data.readers import read_xnli

LANGUAGES = {"en": "eng", "de": "deu", "fr": "fra", "sw": "swa"}
WORDS = {0: "entailment", 1: "neutral", 2: "contradiction"}


def corpus(premises):
    """(premise, hypothesis, label) in an order in which a premise's rows lie apart."""
    rows = [(f"p{i}, it", f'h{i} "{label}"', label) for i in range(premises) for label in (0, 1, 2)]
    return random.Random(5).sample(rows, len(rows))


def write(folder, rows, *, name="dev-{}.tsv", header="", words=WORDS):
    folder.mkdir(exist_ok=True)
    for code in LANGUAGES:
        lines = (f"{code} {p}\t{code} {h}\t{words[label]}\n" for p, h, label in rows)
        (folder / name.format(code)).write_text(header + "".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "xnli", corpus(300))


def language_and_content(text):
    code, _, content = text.partition(" ")
    return LANGUAGES[code], content


def test_triplets_say_the_languages_they_are_in_and_belong_together(folder):
    counts = Counter()
    groups = list(read_xnli(folder, split="dev", counts=counts))
    assert len(groups) == 300
    for group in groups:
        told = [language_and_content(text) for text in (*group.texts, *group.hard_negatives)]
        assert tuple(code for code, _ in told) == (*group.langs, *group.hard_langs)
        number = told[0][1].removeprefix("p").partition(",")[0]
        assert [content for _, content in told] == [f"p{number}, it", f'h{number} "0"', f'h{number} "2"']
        assert group.key == f"en p{number}, it"
    assert not counts


def test_the_three_languages_are_uniform_and_independent(folder):
    """Chi-square over the 64 combinations of three languages; 103.4 is its 99.9th percentile (63 degrees)."""
    seen = Counter(
        (*group.langs, *group.hard_langs) for seed in range(8) for group in read_xnli(folder, split="dev", seed=seed)
    )
    expected = sum(seen.values()) / 4**3
    combinations = [(a, b, c) for a in LANGUAGES.values() for b in LANGUAGES.values() for c in LANGUAGES.values()]
    assert sum((seen[c] - expected) ** 2 / expected for c in combinations) < 103.4


def test_a_draw_depends_on_the_row_and_the_seed_alone(folder, tmp_path):
    groups = list(read_xnli(folder, split="dev"))
    assert groups == list(read_xnli(folder, split="dev", pool=["sw", "fr", "de", "en"]))
    other = write(tmp_path / "other", corpus(300)[::-1][:450])
    few = list(read_xnli(other, split="dev"))
    by_content = {group.key: group for group in groups}
    kept = [group for group in few if group.hard_negatives]
    assert len(kept) > 20
    assert all(by_content[group.key] == group for group in kept)
    assert groups != list(read_xnli(folder, split="dev", seed=1))


def test_a_premise_without_contradiction_is_left_out_or_given_that_of_another(tmp_path):
    folder = write(tmp_path / "x", [("a", "a0", 0), ("b", "b2", 2), ("b", "b2 again", 2), ("b", "b0", 0)])
    counts = Counter()
    assert [group.key for group in read_xnli(folder, split="dev", counts=counts)] == ["en b"]
    assert counts == {"without contradiction": 1}
    counts.clear()
    groups = list(read_xnli(folder, split="dev", draw="repo", counts=counts))
    assert counts == {"with a random contradiction": 1}
    assert [group.key for group in groups] == ["en a"] * 4 + ["en b"] * 4
    assert {language_and_content(group.hard_negatives[0])[1] for group in groups} == {"b2 again"}


def test_the_code_of_msimcse_writes_each_premise_in_every_language(folder):
    groups = list(read_xnli(folder, split="dev", draw="repo", pool="de,fr,sw", key="none"))
    assert len(groups) == 900
    premises = Counter(group.texts[0] for group in groups)
    assert set(premises.values()) == {1}
    assert Counter(group.langs[0] for group in groups) == {"deu": 300, "fra": 300, "swa": 300}
    assert all(group.key == "" for group in groups)
    assert not any(mark in text for group in groups for text in (*group.texts, *group.hard_negatives) for mark in ',"')
    assert "de p7  it" in premises
    assert groups[0].texts[1][3:].endswith(" 0")
    drawn = Counter((group.langs[1], group.hard_langs[0]) for group in groups)
    assert sum((drawn[a, b] - 100) ** 2 / 100 for a in premises_of(groups) for b in premises_of(groups)) < 26.1


def premises_of(groups):
    return {group.langs[0] for group in groups}


def test_groups_hold_one_sentence_in_all_languages(folder):
    groups = list(read_xnli(folder, split="dev", mode="groups", pool=["fr", "en", "de"]))
    assert len(groups) == 900  # a row each, as the 400k of MPCL
    assert all(group.langs == ("deu", "eng", "fra") for group in groups)
    assert set(Counter(group.key for group in groups).values()) == {3}  # equal meaning, equal key
    assert all(text.partition(" ")[2] == group.key.partition(" ")[2] for group in groups for text in group.texts)
    both = list(read_xnli(folder, split="dev", mode="groups", sentences="both", key="none"))
    assert len(both) == 1800
    assert not any(group.key or group.hard_negatives for group in both)


def test_groups_with_a_hard_negative_in_any_language(folder):
    groups = list(read_xnli(folder, split="dev", mode="groups", hard_negatives=True))
    for group in groups:
        (code, content) = language_and_content(group.hard_negatives[0])
        assert (code,) == group.hard_langs
        assert content == f'h{group.key[4:].partition(",")[0]} "2"'
    seen = Counter(group.hard_langs[0] for group in groups)
    assert sum((seen[code] - 225) ** 2 / 225 for code in LANGUAGES.values()) < 16.3  # 99.9 % of chi-square, 3 degrees


def test_pairs_have_a_label_and_two_languages(folder):
    groups = list(read_xnli(folder, split="dev", mode="pairs"))
    assert [group.extras["label"] for group in groups] == [label for _, _, label in corpus(300)]
    assert len({group.langs for group in groups}) == 16


def test_the_layout_of_the_machine_translated_training_set(tmp_path):
    names = {"name": "multinli.train.{}.tsv", "header": "premise\thypo\tlabel\n"}
    write(tmp_path / "XNLI-MT-1.0", corpus(5), **names, words=WORDS | {2: "contradictory"})
    (tmp_path / "XNLI-MT-1.0" / "multinli.train.notes.tsv").write_text("x")
    assert len(list(read_xnli(tmp_path / "XNLI-MT-1.0"))) == 5
    packed = tmp_path / "packed"
    packed.mkdir()
    for file in (tmp_path / "XNLI-MT-1.0").glob("multinli.train.??.tsv"):
        (packed / f"{file.name}.xz").write_bytes(lzma.compress(file.read_bytes()))
    assert list(read_xnli(packed)) == list(read_xnli(tmp_path / "XNLI-MT-1.0"))


def test_blank_cells_are_an_error_or_counted(folder):
    lines = (folder / "dev-sw.tsv").read_text().split("\n")
    lines[3] = "\t".join(["sw x", " ", lines[3].split("\t")[2]])
    (folder / "dev-sw.tsv").write_text("\n".join(lines))
    with pytest.raises(CorpusError, match=r"dev-sw.tsv:4: the hypothesis is empty; pass skip_empty"):
        list(read_xnli(folder, split="dev", mode="groups"))
    counts = Counter()
    groups = list(read_xnli(folder, split="dev", mode="groups", skip_empty=True, counts=counts))
    assert (len(groups), counts) == (899, {"empty": 1})
    assert len(list(read_xnli(folder, split="dev", mode="groups", pool="en,fr"))) == 900


def test_rows_without_a_decided_label_are_left_out_and_counted(tmp_path):
    folder, counts = write(tmp_path / "x", [("a", "a0", 0), ("a", "a?", 3)], words=WORDS | {3: "-"}), Counter()
    assert len(list(read_xnli(folder, split="dev", mode="groups", counts=counts))) == 1
    assert counts == {"undecided": 1}


@pytest.mark.slow
@pytest.mark.data
def test_the_real_dev_set():
    folder = published("xtreme-xnli")
    counts = Counter()
    triplets = list(read_xnli(folder, split="dev", counts=counts))
    assert len(triplets) == 830
    assert not counts  # every premise has its three hypotheses
    assert len({code for group in triplets for code in group.langs}) == 15
    groups = list(read_xnli(folder, split="dev", mode="groups", pool="bg,el,vi,sw"))
    assert len(groups) == 2490
    assert len({group.key for group in groups}) == 830


def test_labels_of_files_with_two_columns_are_in_a_file_of_their_own(tmp_path, folder):
    apart = tmp_path / "apart"
    apart.mkdir()
    for file in folder.iterdir():
        rows = [line.rpartition("\t") for line in file.read_text().splitlines()]
        (apart / file.name).write_text("".join(f"{pair}\n" for pair, _, _ in rows))
    labels = [label for _, _, label in rows]
    with pytest.raises(CorpusError, match="2 columns where 3"):
        list(read_xnli(apart, split="dev"))
    (apart / "labels.dev.txt").write_text("\n".join(labels) + "\n")
    for mode in ("triplets", "pairs"):
        assert list(read_xnli(apart, split="dev", mode=mode)) == list(read_xnli(folder, split="dev", mode=mode))
    for wrong, short in (([*labels, labels[0]], r"dev-\w\w\.tsv"), (labels[1:], r"labels\.dev\.txt")):
        (apart / "labels.dev.txt").write_text("\n".join(wrong))
        with pytest.raises(CorpusError, match=f"{short}: has fewer rows than"):
            list(read_xnli(apart, split="dev"))
