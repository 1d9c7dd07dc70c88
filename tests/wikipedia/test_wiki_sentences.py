"""Sentences: each link in the one that contains it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.wikipedia.wikitext import (
    MARKUP,
    ONLY_LINKS,
    TOO_LONG,
    TOO_SHORT,
    Limits,
    Link,
    Paragraph,
    fault,
    is_table,
    split,
)

pytest.importorskip("sentencex", reason="needs the extra `wikipedia`")


def paragraph(text):
    """A paragraph whose links are marked with ⟨ and ⟩."""
    links, plain = [], ""
    for piece in text.replace("⟩", "⟨").split("⟨"):
        links.append((len(plain), len(plain) + len(piece)))
        plain += piece
    return Paragraph(plain, tuple(Link(start, end, plain[start:end]) for start, end in links[1::2]))


def sentences(text, wiki="en"):
    return [(t, [t[link.start : link.end] for link in links]) for t, links in split(paragraph(text), wiki)]


def test_each_link_lies_in_its_sentence():
    assert sentences("The ⟨cat⟩ sat. A ⟨dog⟩ and a ⟨cow⟩ ran!  No link.") == [
        ("The cat sat.", ["cat"]),
        ("A dog and a cow ran!", ["dog", "cow"]),
        ("No link.", []),
    ]
    assert sentences("吾輩は⟨猫⟩である。名前は⟨まだ⟩無い。", "ja") == [
        ("吾輩は猫である。", ["猫"]),
        ("名前はまだ無い。", ["まだ"]),
    ]
    assert sentences("ذهب ⟨أحمد⟩ إلى السوق. هل رأيت ⟨النيل⟩؟ نعم.", "ar") == [
        ("ذهب أحمد إلى السوق.", ["أحمد"]),
        ("هل رأيت النيل؟", ["النيل"]),
        ("نعم.", []),
    ]


def test_the_same_link_twice_keeps_its_two_places():
    ((text, links),) = split(paragraph("The ⟨sun⟩ and the ⟨sun⟩ shine."), "en")
    assert [(link.start, link.end) for link in links] == [(4, 7), (16, 19)]
    assert text == "The sun and the sun shine."


def test_no_sentence_ends_inside_a_link_or_a_quotation():
    assert sentences("He works at ⟨Yahoo! Inc. He⟩ said so. Yes.") == [
        ("He works at Yahoo! Inc. He said so.", ["Yahoo! Inc. He"]),
        ("Yes.", []),
    ]
    assert sentences("「そうだ。」と⟨彼⟩は言った。次。", "ja") == [("「そうだ。」と彼は言った。", ["彼"]), ("次。", [])]


def test_no_sentence_ends_inside_a_number():
    assert sentences("⟨अफगाणिस्तान⟩मध्ये ६.५ चा भूकंप. ⟨भारत⟩ देश.", "mr") == [
        ("अफगाणिस्तानमध्ये ६.५ चा भूकंप.", ["अफगाणिस्तान"]),
        ("भारत देश.", ["भारत"]),
    ]


def test_separators_that_a_template_left_are_cut():
    assert sentences("、⟨猫⟩は動物。", "ja") == [("猫は動物。", ["猫"])]
    assert sentences(", the ⟨cat⟩.") == [("the cat.", ["cat"])]
    assert sentences("⟨, x⟩ is a name.") == [(", x is a name.", [", x"])]


@given(
    st.lists(
        st.sampled_from(["a", "B.", "⟨c⟩", "⟨D. E⟩", "東。", "“f.", "g!”", "(", ")", ",", "Mr.", "?"]),
        min_size=1,
        max_size=14,
    )
)
@settings(max_examples=100, deadline=None)
def test_nothing_is_lost_but_spaces_and_separators(pieces):
    whole = paragraph(" ".join(pieces))
    found = list(split(whole, "en"))
    kept = "".join(text for text, _ in found)
    assert [c for c in kept if c.isalpha()] == [c for c in whole.text if c.isalpha()]
    assert [text[link.start : link.end] for text, links in found for link in links] == [
        link.title for link in whole.links
    ]


@pytest.mark.parametrize(
    "text, why",
    [
        ("A ⟨cat⟩.", TOO_SHORT),
        ("これは⟨猫⟩の文でした。", None),  # 10 wide characters are 20 columns
        ("これは⟨猫⟩の文です。", TOO_SHORT),
        ("The ⟨cat⟩ sat on the mat.", None),
        ("The ⟨cat⟩ " + "sat " * 200, TOO_LONG),
        ("The ⟨cat⟩ sat on [[the mat.", MARKUP),
        ("The ⟨cat⟩ sat || on the mat", MARKUP),
        ("The ⟨cat⟩ <span lang=x>sat on the mat.", MARKUP),
        ("If 1 < 2 the ⟨cat⟩ sat on the mat.", None),
        ("⟨A rather long title⟩, ⟨another one⟩ (1999).", ONLY_LINKS),
    ],
)
def test_faults(text, why):
    one = paragraph(text)
    assert fault(one.text, list(one.links), Limits(20, 500)) == why


def test_a_table_that_was_not_seen_as_one():
    assert is_table(Paragraph("a |- b", ()))
    assert not is_table(Paragraph("a | b - c", ()))
