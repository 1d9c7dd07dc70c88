"""Triplets of premise, entailment and contradiction, and labelled pairs, in the layouts people have them."""

from __future__ import annotations

import csv
import io
import json
import lzma
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import published
from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.readers import read_nli

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
    path.write_text(path.read_text().partition("\n")[2])
    assert list(read_nli(path, language="en")) == expected


def test_without_a_key_rows_of_one_premise_are_negatives(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("A\tB\tC\n")
    assert list(read_nli(path, language="en", key="none")) == [Group(("A", "B"), ("eng", "eng"), "", ("C",), ("eng",))]


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
    (tmp_path / "s2.dev").write_text("a\nb\n")
    with pytest.raises(CorpusError, match=r"s1\.dev: has fewer rows than"):
        read(tmp_path, split="dev")
    with pytest.raises(CorpusError, match=r"s1\.test: no such file"):
        read(tmp_path, split="test")


def table(names, cell):
    """Lines under a header; `cell` gives what stands in a column of a pair."""
    return "".join("\t".join(cell(name, pair) for name in names) + "\n" for pair in PAIRS)


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
        return {"1": pair[0], "e": pair[0], "A": pair[0], "2": pair[1], "o": pair[1], "B": pair[1]}.get(name[-1], "x")

    header = "\t".join(names) + "\n" if names else ""
    (tmp_path / "a.tsv").write_text(header + table(names or ("premise", "hypo", "label"), cell))
    assert read(tmp_path / "a.tsv") == EXPECTED


def test_a_split_of_a_table(tmp_path):
    rows = [f"{split}\t{p}\t{h}\t{WORDS[label]}\n" for split in ("train", "dev") for p, h, label in PAIRS]
    (tmp_path / "AllNLI.tsv").write_text("split\tsentence1\tsentence2\tlabel\n" + "".join(rows))
    assert read(tmp_path / "AllNLI.tsv") == EXPECTED
    assert read(tmp_path / "AllNLI.tsv", split="test") == []


@pytest.mark.parametrize(
    ("names", "classes"),
    [(("sentence1", "sentence2", "gold_label"), WORDS), (("premise", "hypothesis", "label"), (0, 1, 2))],
)
def test_json_lines(tmp_path, names, classes):
    lines = [json.dumps(dict(zip(names, (p, h, classes[label]), strict=True))) for p, h, label in PAIRS]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert read(tmp_path / "a.jsonl") == EXPECTED


@pytest.mark.parametrize("undecided", ["-", "-1"])
def test_pairs_without_a_majority_are_counted(tmp_path, undecided):
    (tmp_path / "a.tsv").write_text(f"a\tb\t{undecided}\na\tb\tneutral\n")
    counts = Counter()
    assert len(read(tmp_path / "a.tsv", counts=counts)) == 1
    assert counts == {"undecided": 1}


@pytest.mark.slow
@pytest.mark.data
def test_snli_as_senteval_has_it():
    folder = published("senteval-en/SNLI")
    assert Counter(group.extras["label"] for group in read(folder, split="dev")) == {0: 3329, 1: 3235, 2: 3278}


def test_triplets_of_labelled_pairs_have_a_contradiction_of_their_own_premise(tmp_path):
    path, rows = tmp_path / "snli.tsv", [*PAIRS, ("A man sings.", "Silence.", 2), ("A cat.", "An animal.", 0)]
    path.write_text("".join(f"{p}\t{h}\t{WORDS[label]}\n" for p, h, label in rows))
    counts = Counter()
    texts, langs = ("A man sings.", "A person sings."), ("eng", "eng")
    assert read(path, mode="triplets", counts=counts) == [Group(texts, langs, texts[0], ("Silence.",), ("eng",))]
    assert counts == {"without contradiction": 1}
    assert read(path, mode="triplets", key="none") == [Group(texts, langs, "", ("Silence.",), ("eng",))]
    with pytest.raises(CorpusError, match="mode"):
        list(read_nli(path, language="en", mode="triplets"))
