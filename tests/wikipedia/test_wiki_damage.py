"""Damaged pages: the estimate bounds the steps of the parser, and everything else takes time linear in the page."""

import json
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wiki_dumps import names

from isoglot.wikipedia import damage, wikitext
from isoglot.wikipedia.damage import DEEPEST, TOO_BROKEN, TOO_DEEP, Scan, find_damage
from isoglot.wikipedia.wikitext import LONGEST_PARAGRAPH, Link, Paragraph, UnreadableError, read, split

pytest.importorskip("mwparserfromhell", reason="needs the extra `wikipedia`")
pytest.importorskip("sentencex", reason="needs the extra `wikipedia`")

MARKS = [
    "<b>", "</b>", "<ref>", "</ref>", "<ref name=a/>", "<p>", "<li>", "<td>", "<br>", "<nowiki>", "</nowiki>", '<b x="',
    "<b ", "<!--", "-->", "{{", "{{a|", "{{a|b=", "{{{a|", "}}", "}}}", "[[", "[[a|", "]]", "[[File:a|", "[[http://a ",
    "[http://a ", "]", "\n{|\n", "\n|}", "\n|-", "\n| a", "||", "\n! ", "|", "''", "'''", "'''''", "\n==", "=", "==\n",
    "&", "&amp;", "\n* ", "\n;", ":", "\n", "\n----", "( ", ") ", "( [[a]] ", "(a) ", "« ", "“", "a. ", "<", ">", "//a",
]  # fmt: skip
# Steps of the parser for each character that it reads, once or in vain; measured: at most 6.
STEPS = 20


def parser_steps(text, most):
    """How often the parser, in Python, reads a character; more than `most` are not counted."""
    from mwparserfromhell.parser.tokenizer import Tokenizer

    class Enough(Exception):  # noqa: N818, not an error
        pass

    class Counting(Tokenizer):
        steps = 0

        def _read(self, *arguments, **keywords):
            self.steps += 1
            if self.steps > most:
                raise Enough
            return super()._read(*arguments, **keywords)

    tokenizer = Counting()
    try:
        tokenizer.tokenize(text)
    except Enough:
        return most + 1
    return tokenizer.steps


@given(st.lists(st.lists(st.sampled_from(MARKS), min_size=1, max_size=4).map("".join), min_size=1, max_size=3))
def test_the_estimate_bounds_the_steps_of_the_parser(units):
    check_steps("".join(unit * (400 // len(units) // len(unit)) for unit in units))


@pytest.mark.slow
def test_the_steps_of_the_parser_grow_with_the_estimate():
    for unit in (*MARKS, "<b><!--", "</ref><ref>", "(}}'''''{{{a|", "<b>\n;", "{{a|''b}}"):
        check_steps(unit * (400 // len(unit)))
    check_steps('<b x="' * 33 + "</b>" * 50)  # tags inside tags


def check_steps(text):
    scan = Scan(text)
    most = STEPS * (len(text) + scan.reread)
    assert scan.depth > DEEPEST or parser_steps(text, most) <= most, text


@pytest.mark.parametrize(
    "text, kind",
    [
        ("{{a|" * 60 + "p <5 " * 60, None),
        ("</ref>" * 9_000 + "<ref>" * 9_000, TOO_BROKEN),  # equally many, but ends before beginnings
        ("<p>" * 9_000, TOO_BROKEN),
        ("<!--" * 9_000, TOO_BROKEN),
        ("{{a|''b}} " * 9_000, TOO_BROKEN),
        ("<b>[[a|</b>]] " * 9_000, TOO_BROKEN),  # each end inside another element
        ("<div><b><i>" * 200, TOO_DEEP),
        ("\n{|\n|{{a|" * 40 + "}}|x\n|}" * 40, TOO_BROKEN),  # each table is read twice by the one around it
        ("[[http://a " * 40 + "]]\n" * 40, TOO_BROKEN),
        ("==" + " =" * 100_000, TOO_DEEP),  # ended the process
        ("<ul>" + "<li>a\n" * 9_000 + "</ul>", TOO_BROKEN),
        ("<li>a\n" * 9_000, None),
        ("{|\n" + "<tr><td>a<td>b\n" * 300 + "|}", None),
        ("a < b, p <0.05 and [1] {x} ''c'' '''d''' '''''e''''' l''f''\n" * 100, None),
        ("<ref name=a>{{b|[[c]]}} [http://d e]</ref><!-- f --><br><nowiki>{{</nowiki>\n" * 2_000, None),
        ("== a ==\n{{b\n|c=[[File:d|{{{e|}}}]]\n}}\n{| f\n|-\n| g || h\n|}\n" * 1_000, None),
    ],
    ids=lambda value: str(value)[:24].strip(),
)
def test_kinds_of_damage(text, kind):
    assert find_damage(text) == kind
    if kind:
        with pytest.raises(UnreadableError, match=kind):
            read(text, names())


def count_lines(module, function):
    """Lines of a module that a call runs."""
    lines = 0

    def trace(frame, event, _argument):
        nonlocal lines
        if frame.f_code.co_filename != module.__file__:
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return lines


def test_the_scan_is_linear():
    for unit in (*MARKS, "<b><i>", "</b><b>", "<b>{{a|", "[http://a ''\n", "<li><td>", "<td></li>"):
        once, twice = (count_lines(damage, partial(Scan, unit * count)) for count in (100, 200))
        assert twice <= 2.2 * once + 100, unit


@pytest.mark.parametrize("unit", ["( [[a]] ", "(a. ) ", "[[a]]. ", "(a) ", "« ", "''a. ", "“a. ” ", "「a. "])
def test_paragraphs_and_sentences_are_linear(unit):
    def convert(count):
        for paragraph in read(unit * count, names())[0]:
            list(split(paragraph, "en"))

    once, twice = (count_lines(wikitext, lambda count=count: convert(count)) for count in (70, 140))
    assert twice <= 2.2 * once + 100


def test_a_paragraph_that_is_too_long_has_no_sentences():
    """The time of the splitter is quadratic in quotation marks."""
    sentence = "A [[bus]]. "
    assert len(list(split(read(sentence * 100, names())[0][0], "en"))) == 100
    assert list(split(Paragraph("« " * LONGEST_PARAGRAPH, (Link(0, 1, "A"),)), "en")) == []


PROCESS = """
import json, sys
from isoglot.wikipedia.titles import Names
from isoglot.wikipedia.wikitext import UnreadableError, read, split
for unit in json.loads(sys.argv[1]):
    try:
        for paragraph in read(unit * (100_000 // len(unit)), Names("en", {}))[0]:
            list(split(paragraph, "en"))
    except UnreadableError:
        pass
"""


@pytest.mark.slow
def test_no_page_takes_minutes():
    """All kinds of damage at 100,000 characters, in a process that can be ended: it took hours."""
    units = [*MARKS, "<b><!--", "</ref><ref>", "<b>\n;", "<i>''", "{{a|<b>", "[[a|''", "{|\n<p>", "(}}'''''{{{a|"]
    subprocess.run([sys.executable, "-c", PROCESS, json.dumps(units)], timeout=300, check=True)
