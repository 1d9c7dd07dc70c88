"""Paragraphs and links of wikitext: what is shown, what is left out, and where links lie."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wiki_dumps import names

from isoglot.wikipedia.wikitext import read

pytest.importorskip("mwparserfromhell", reason="needs the extra `wikipedia`")


def paragraphs(text, wiki="en"):
    return [
        (p.text, [(p.text[link.start : link.end], link.title) for link in p.links]) for p in read(text, names(wiki))[0]
    ]


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
    ],
)
def test_what_is_shown(text, shown):
    assert paragraphs(text) == shown


def test_scripts_of_two_or_more_bytes_and_from_right_to_left():
    assert paragraphs("吾輩は[[猫]]である。（{{読み}}）名前は[[名前|まだ]]無い。", "ja") == [
        ("吾輩は猫である。名前はまだ無い。", [("猫", "猫"), ("まだ", "名前")])
    ]
    assert paragraphs("'''القاهرة''' هي عاصمة [[مصر|جمهورية مصر]] و[[نيل|النيل]].", "ar") == [
        ("القاهرة هي عاصمة جمهورية مصر والنيل.", [("جمهورية مصر", "مصر"), ("النيل", "نيل")])
    ]
    assert paragraphs("😀 𝒳 [[b|𝒴😀]] c") == [("😀 𝒳 𝒴😀 c", [("𝒴😀", "B")])]


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
@settings(max_examples=80, deadline=None)
def test_offsets_are_true_whatever_stands_between(pieces):
    found = read(" ".join(piece for piece, _ in pieces), names())[0]
    surfaces = [p.text[link.start : link.end] for p in found for link in p.links]
    assert surfaces == [word for _, word in pieces if word]
    for paragraph in found:
        assert paragraph.text == " ".join(paragraph.text.split())
