"""Paragraphs, links and sentences of wikitext: what is shown and left out, where links lie, where sentences end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wiki_dumps import names

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
    read,
    split,
)

pytest.importorskip("mwparserfromhell", reason="needs the extra `wikipedia`")


def paragraphs(text):
    return [(p.text, [(p.text[link.start : link.end], link.title) for link in p.links]) for p in read(text, names())[0]]


@pytest.mark.parametrize(
    "text, shown",
    [
        ("A [[bus]] [[red car|car]].", [("A bus car.", [("bus", "Bus"), ("car", "Red car")])]),
        ("'''A [[b|''c'' d]]''' e.", [("A c d e.", [("c d", "B")])]),
        ("L'''amour'' [[est]]", [("L'amour est", [("est", "Est")])]),
        ("A {{t|[[x]]|{{u|[[y]]}}}} [[b]].", [("A b.", [("b", "B")])]),
        ("{{box\n|a=1\n}}\nA [[b]].", [("A b.", [("b", "B")])]),
        ("A.\n{{t}}\nB.", [("A.", []), ("B.", [])]),
        ("A\nB\n\nC", [("A B", []), ("C", [])]),
        ("* a [[b]]\n* c\nd", [("a b", [("b", "B")]), ("c", []), ("d", [])]),
        ("== H [[x]] ==\nA.", [("A.", [])]),
        ("[[File:a.png|thumb|cap [[x]] and [[y|z]]]] A [[b]].", [("A b.", [("b", "B")])]),
        ("A [[Category:X]][[de:A]] [[:de:A|B]] [[wikt:c|c]].", [("A B c.", [])]),
        ("A<ref>[[x]]</ref> <math>x_1</math> [[b]]<br/>C", [("A b", [("b", "B")]), ("C", [])]),
        ("A\n{| class=x\n| [[x]]\n|}\nB", [("A", []), ("B", [])]),
        ("A [http://x.y z [[q]]] [http://x.y] B", [("A z q B", [("q", "Q")])]),
        ("A <nowiki>[[k]]</nowiki> &amp; [[b#c|d]] [[#e|f]]", [("A [[k]] & d f", [("d", "B")])]),
        ("[[a]]s [[ b |  c ]] d", [("as c d", [("a", "A"), ("c", "B")])]),
        ("a [[b|]] [[{{t}}|c]] d __TOC__", [("a c d", [])]),
        ("[[b]] and [[b]] and [[B]]", [("b and b and B", [("b", "B")] * 2 + [("B", "B")])]),
        ("A ({{t}}; ) is [[b]].", [("A is b.", [("b", "B")])]),
        ("([[x]]) (, 1) f() [[b]]", [("(x) (1) f() b", [("x", "X"), ("b", "B")])]),
        ("({{t}}) A [[b]]", [("A b", [("b", "B")])]),
        ("a「{{t}}」と『[[b]]』c", [("aと『b』c", [("b", "B")])]),
        ("<div>a [[b]]</div>c", [("a b", [("b", "B")]), ("c", [])]),
        ("a <!-- [[x]] --> b", [("a b", [])]),
        ("a via [[b]] {{ipa|x}}, c ; d<ref>e</ref> .", [("a via b, c ; d.", [("b", "B")])]),
        ("a {{t}} [[, b]]", [("a, b", [(", b", ", b")])]),
        ("{{only|[[templates]]}}", []),
        # Scripts of two or more bytes, and from right to left.
        (
            "吾輩は[[猫]]である。（{{読み}}）名前は[[名前|まだ]]無い。",
            [("吾輩は猫である。名前はまだ無い。", [("猫", "猫"), ("まだ", "名前")])],
        ),
        (
            "'''القاهرة''' هي عاصمة [[مصر|جمهورية مصر]] و[[نيل|النيل]].",
            [("القاهرة هي عاصمة جمهورية مصر والنيل.", [("جمهورية مصر", "مصر"), ("النيل", "نيل")])],
        ),
        ("😀 𝒳 [[b|𝒴😀]] c", [("😀 𝒳 𝒴😀 c", [("𝒴😀", "B")])]),
    ],
)
def test_what_is_shown(text, shown):
    assert paragraphs(text) == shown


def test_every_link_of_the_markup_is_known():
    text = "A [[b]]. {{t|[[c]]}} <ref>[[d]]</ref>\n{|\n|[[e]]\n|}\n[[File:x.png|[[f]]]] [[Category:g]]"
    text += " [[b]] {{u|{{v|[[h#i|j]]}}}}"
    assert set(read(text, names())[1]) == {"B", "C", "D", "E", "F", "H"}


WORDS = st.text(st.sampled_from("aé東😀ب"), min_size=1, max_size=4)
PIECES = st.one_of(
    WORDS.map(lambda word: (word, None)),
    WORDS.map(lambda word: (f"[[T|{word}]]", word)),
    WORDS.map(lambda word: (f"'''[[T|''{word}'']]'''", word)),
    st.sampled_from(
        ["{{t|[[x]]}}", "<ref>[[x]]</ref>", "[[File:a.png|[[x]]]]", "({{t}})", "\n", "\n\n", "* ", "&nbsp;"]
    ).map(lambda piece: (piece, None)),
)


@given(st.lists(PIECES, max_size=12))
def test_offsets_are_true_whatever_stands_between(pieces):
    found = read(" ".join(piece for piece, _ in pieces), names())[0]
    surfaces = [p.text[link.start : link.end] for p in found for link in p.links]
    assert surfaces == [word for _, word in pieces if word]
    for paragraph in found:
        assert paragraph.text == " ".join(paragraph.text.split())


pytest.importorskip("sentencex", reason="needs the extra `wikipedia`")


def paragraph(text):
    """A paragraph whose links are marked with ⟨ and ⟩."""
    links, plain = [], ""
    for piece in text.replace("⟩", "⟨").split("⟨"):
        links.append((len(plain), len(plain) + len(piece)))
        plain += piece
    return Paragraph(plain, tuple(Link(start, end, plain[start:end]) for start, end in links[1::2]))


def sentences(text, wiki):
    """The sentences of such a paragraph, their links marked too."""
    for plain, links in split(paragraph(text), wiki):
        for link in reversed(links):
            plain = f"{plain[: link.start]}⟨{plain[link.start : link.end]}⟩{plain[link.end :]}"
        yield plain


@pytest.mark.parametrize(
    "wiki, text, found",
    [
        ("en", "The ⟨cat⟩ sat. A ⟨dog⟩ ran!  No link.", ["The ⟨cat⟩ sat.", "A ⟨dog⟩ ran!", "No link."]),
        ("en", "The ⟨sun⟩ and the ⟨sun⟩ shine.", ["The ⟨sun⟩ and the ⟨sun⟩ shine."]),
        ("ja", "吾輩は⟨猫⟩である。名前は⟨まだ⟩無い。", ["吾輩は⟨猫⟩である。", "名前は⟨まだ⟩無い。"]),
        ("ar", "ذهب ⟨أحمد⟩ إلى السوق. هل رأيت ⟨النيل⟩؟ نعم.", ["ذهب ⟨أحمد⟩ إلى السوق.", "هل رأيت ⟨النيل⟩؟", "نعم."]),
        # No sentence ends inside a link, a quotation or a number.
        ("en", "He works at ⟨Yahoo! Inc. He⟩ said so. Yes.", ["He works at ⟨Yahoo! Inc. He⟩ said so.", "Yes."]),
        ("ja", "「そうだ。」と⟨彼⟩は言った。次。", ["「そうだ。」と⟨彼⟩は言った。", "次。"]),
        ("mr", "⟨अफगाणिस्तान⟩मध्ये ६.५ चा भूकंप. ⟨भारत⟩ देश.", ["⟨अफगाणिस्तान⟩मध्ये ६.५ चा भूकंप.", "⟨भारत⟩ देश."]),
        # Separators that a template left are cut.
        ("ja", "、⟨猫⟩は動物。", ["⟨猫⟩は動物。"]),
        ("en", ", the ⟨cat⟩.", ["the ⟨cat⟩."]),
        ("en", "⟨, x⟩ is a name.", ["⟨, x⟩ is a name."]),
    ],
)
def test_each_link_lies_in_its_sentence(wiki, text, found):
    assert list(sentences(text, wiki)) == found


@given(
    st.lists(
        st.sampled_from(["a", "B.", "⟨c⟩", "⟨D. E⟩", "東。", "“f.", "g!”", "(", ")", ",", "Mr.", "?"]),
        min_size=1,
        max_size=14,
    )
)
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


MARKERS = ["<ref>", "{|", "{|\n", "<!--", "<b ", "[http://a ", "<div>", "<nowiki>", "{{", "[[", "<" + "a" * 100_000]


@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: marker[:9])
def test_one_element_that_never_ends_is_read(marker):
    assert read(f"A [[bus]].\n\n{marker}", names("en"))[0][0].text == "A bus."
