"""Triplets and labelled pairs in the layouts people have them; XNLI: what is drawn, what is counted."""

import csv
import io
import json
import lzma
import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import published
from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.readers import read_nli, read_xnli

CELL = st.text(st.characters(exclude_characters="\0\r\ufeff", exclude_categories=["Cs"]), max_size=15)
SENTENCE = CELL.filter(str.strip)


def triplet(premise, entailment, *contradiction):
    return Group((premise, entailment), ("eng", "eng"), premise, contradiction, ("eng",) * len(contradiction))


@given(rows=st.lists(st.tuples(SENTENCE, SENTENCE, SENTENCE), min_size=1, max_size=6))
def test_quoted_csv_comes_back(tmp_path_factory, rows):
    stream = io.StringIO()
    csv.writer(stream).writerows([("sent0", "sent1", "hard_neg"), *rows])
    path = tmp_path_factory.mktemp("nli") / "a.csv"
    path.write_bytes(stream.getvalue().encode())
    assert list(read_nli(path, language="en")) == [triplet(*row) for row in rows]


def test_tab_separated_lines_with_and_without_contradiction_or_header(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('premise\tentailment\tcontradiction\nA "man".\tHe\tShe\nB\tC\t\nD\tE\n')
    expected = [triplet('A "man".', "He", "She"), triplet("B", "C"), triplet("D", "E")]
    assert list(read_nli(path, language="en")) == expected
    assert [group.key for group in read_nli(path, language="en", key="none")] == [""] * 3
    path.write_text(path.read_text().partition("\n")[2])
    assert list(read_nli(path, language="en")) == expected


@pytest.mark.parametrize("first", ["premise\thypothesis\tlabel", "A man.\tNobody.\tcontradiction", "A\tB\t2"])
def test_labels_are_no_contradictions(tmp_path, first):
    path = tmp_path / "a.tsv"
    path.write_text(f"{first}\nA man.\tA person.\tentailment\n")
    with pytest.raises(CorpusError, match=":1: has labels in the third column; set labelled = true"):
        list(read_nli(path, language="en"))
    assert read(path)[-1] == Group(("A man.", "A person."), ("eng", "eng"), extras={"label": 0})


PAIRS = [("A man sings.", "A person sings.", 0), ("A man sings.", "Nobody sings.", 2), ("A dog.", 'A "brown" dog.', 1)]
WORDS = ("entailment", "neutral", "contradiction")
EXPECTED = [Group((p, h), ("eng", "eng"), extras={"label": label}) for p, h, label in PAIRS]


def read(path, **options):
    return list(read_nli(path, language="en", labelled=True, **options))


def test_a_folder_as_senteval_has_it(tmp_path):
    for stem, cells in zip(("s1", "s2", "labels"), zip(*PAIRS, strict=True), strict=True):
        words = [WORDS[cell] if stem == "labels" else cell for cell in cells]
        (tmp_path / f"{stem}.train.xz").write_bytes(lzma.compress("\n".join(words).encode()))
        (tmp_path / f"{stem}.dev").write_text(words[0] + "\n")
    assert read(tmp_path) == EXPECTED
    assert read(tmp_path, split="dev") == EXPECTED[:1]


@pytest.mark.parametrize(
    "names",
    [
        ("index", "pairID", "sentence1_parse", "sentence1", "sentence2", "label1", "gold_label"),  # GLUE's MNLI
        ("gold_label", "sentence1", "sentence2", "captionID"),  # SNLI
        ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"),  # SICK
        ("premise", "hypo", "label"),  # XNLI-MT-1.0
        (),  # XTREME
    ],
)
def test_tables_with_named_columns_and_without(tmp_path, names):
    def cell(name, pair):
        if name in ("gold_label", "label", "entailment_judgment"):
            return WORDS[pair[2]].upper()
        return pair[name[-1] in "2oB"] if name[-1] in "1eA2oB" else "x"

    header = "\t".join(names) + "\n" if names else ""
    lines = ("\t".join(cell(name, pair) for name in names or ("premise", "hypo", "label")) for pair in PAIRS)
    (tmp_path / "a.tsv").write_text(header + "\n".join(lines))
    assert read(tmp_path / "a.tsv") == EXPECTED


def test_a_split_of_a_table_or_of_json_lines(tmp_path):
    rows = [f"{split}\t{p}\t{h}\t{WORDS[label]}\n" for split in ("train", "dev") for p, h, label in PAIRS]
    (tmp_path / "AllNLI.tsv").write_text("split\tsentence1\tsentence2\tlabel\n" + "".join(rows))
    assert read(tmp_path / "AllNLI.tsv") == EXPECTED
    for classes in (WORDS, (0, 1, 2)):
        items = [{"s1": p, "s2": h, "label": classes[label]} for p, h, label in PAIRS]
        lines = [json.dumps({"split": split, **item}) for split in ("train", "dev") for item in items]
        (tmp_path / "AllNLI.jsonl").write_text("\n".join(lines))
        assert read(tmp_path / "AllNLI.jsonl") == EXPECTED
    for name in ("AllNLI.tsv", "AllNLI.jsonl"):
        with pytest.raises(CorpusError, match="no row of this split"):
            read(tmp_path / name, split="test")


def test_triplets_of_labelled_pairs_have_a_contradiction_of_their_own_premise(tmp_path):
    path, rows = tmp_path / "snli.tsv", [*PAIRS, ("A man sings.", "Silence.", 2), ("A cat.", "An animal.", 0)]
    path.write_text("".join(f"{p}\t{h}\t{WORDS[label]}\n" for p, h, label in rows) + "a\tb\t-\na\tc\t-1\n")
    counts = Counter()
    texts, langs = ("A man sings.", "A person sings."), ("eng", "eng")
    assert read(path, mode="triplets", counts=counts) == [Group(texts, langs, texts[0], ("Silence.",), ("eng",))]
    assert counts == {"without contradiction": 1, "undecided": 2}
    assert [group.extras["label"] for group in read(path)] == [0, 2, 1, 2, 0]  # those that are decided
    assert read(path, mode="triplets", key="none") == [Group(texts, langs, "", ("Silence.",), ("eng",))]
    with pytest.raises(CorpusError, match="mode"):
        list(read_nli(path, language="en", mode="triplets"))


# XNLI

LANGUAGES = {"en": "eng", "de": "deu", "fr": "fra", "sw": "swa"}


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("nli") / "xnli", corpus(300))


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
    groups = [group for seed in range(8) for group in read_xnli(folder, split="dev", seed=seed)]
    seen, expected = Counter((*group.langs, *group.hard_langs) for group in groups), len(groups) / 4**3
    combinations = product(LANGUAGES.values(), repeat=3)
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
    premises = {group.texts[0] for group in groups}
    assert len(groups) == len(premises) == 900
    langs = Counter(group.langs[0] for group in groups)
    assert langs == {"deu": 300, "fra": 300, "swa": 300}
    assert all(group.key == "" for group in groups)
    assert not any(mark in text for group in groups for text in (*group.texts, *group.hard_negatives) for mark in ',"')
    assert "de p7  it" in premises
    assert groups[0].texts[1][3:].endswith(" 0")
    drawn = Counter((group.langs[1], group.hard_langs[0]) for group in groups)
    assert sum((drawn[a, b] - 100) ** 2 / 100 for a in langs for b in langs) < 26.1


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
    write(tmp_path / "XNLI-MT-1.0", corpus(5), **names, words=(*WORDS[:2], "contradictory"))
    (tmp_path / "XNLI-MT-1.0" / "multinli.train.notes.tsv").write_text("x")
    groups = list(read_xnli(tmp_path / "XNLI-MT-1.0"))
    assert len(groups) == 5
    for file in (tmp_path / "XNLI-MT-1.0").glob("multinli.train.??.tsv"):
        file.with_name(f"{file.name}.xz").write_bytes(lzma.compress(file.read_bytes()))
        file.unlink()
    assert list(read_xnli(tmp_path / "XNLI-MT-1.0")) == groups


def test_blank_cells_are_an_error_or_counted(tmp_path):
    folder = write(tmp_path / "xnli", corpus(300))
    lines = (folder / "dev-sw.tsv").read_text().split("\n")
    lines[3] = "\t".join(["sw x", " ", lines[3].split("\t")[2]])
    (folder / "dev-sw.tsv").write_text("\n".join(lines))
    with pytest.raises(CorpusError, match=r"dev-sw.tsv:4: the hypothesis is empty; remove the row in all languages"):
        list(read_xnli(folder, split="dev", mode="groups"))
    counts = Counter()
    groups = list(read_xnli(folder, split="dev", mode="groups", skip_empty=True, counts=counts))
    assert (len(groups), counts) == (899, {"empty": 1})
    assert len(list(read_xnli(folder, split="dev", mode="groups", pool="en,fr"))) == 900


@pytest.mark.slow
@pytest.mark.data
def test_the_published_dev_sets():
    labels = Counter(group.extras["label"] for group in read(published("senteval-en/SNLI"), split="dev"))
    assert labels == {0: 3329, 1: 3235, 2: 3278}
    triplets = list(read_xnli(published("xtreme-xnli"), split="dev", counts=(counts := Counter())))
    assert len(triplets) == 830
    assert not counts  # every premise has its three hypotheses
    assert len({code for group in triplets for code in group.langs}) == 15


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
