"""TMX, XLIFF and PO: what a segment says, whatever its mark-up, and what broken files say."""

import tracemalloc
from collections import Counter

import folders
import pytest

from isoglot.core.errors import CorpusError
from isoglot.data.formats import read_texts
from isoglot.data.groups import Group
from isoglot.data.readers import read, read_tmx, reader_of
from isoglot.data.readers.files import read_files
from isoglot.index import read_sentences

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
    '<tmx version="1.4"><header srclang="en"/>\n'
)


def unit(**segments):
    prop = '<prop type="x">no</prop>'
    inside = "".join(f'<tuv xml:lang="{code}">{prop}<seg>{text}</seg></tuv>' for code, text in segments.items())
    return f"<tu>{inside}</tu>\n"


def write(path, *units, end="</body></tmx>"):
    return folders.write(path, HEAD + "<body>" + "".join(units) + end)


def test_units_become_groups(tmp_path):
    bare = '<tu><tuv lang="zh-CN"><seg>你好</seg></tuv></tu>'
    path = write(tmp_path / "a.tmx", unit(en="Hi &amp; bye", de="Hallo"), bare)
    assert list(read_tmx(path)) == [Group(("Hi & bye", "Hallo"), ("eng", "deu")), Group(("你好",), ("zho_Hans",))]


@pytest.mark.parametrize(
    "segment, text",
    [
        ("A <hi>bold <hi>deep</hi> word</hi>.", "A bold deep word."),
        ('Press <bpt i="1">&lt;b&gt;</bpt>now<ept i="1">&lt;/b&gt;</ept>!', "Press now!"),
        ('See <ph x="1">{1}</ph>there', "See there"),
        ("\n   two\n   lines\t", "two lines"),
        ("keep\u00a0this\u3000", "keep\u00a0this\u3000"),
        ('two<ph x="1" type="lb">&lt;br/&gt;</ph>lines<x ctype="lb"/>, three', "two lines , three"),
        ('La<hi xml:lang="lb">ngue</hi>', "Langue"),
    ],
)
def test_inline_tags_are_flattened(tmp_path, segment, text):
    assert next(read_tmx(write(tmp_path / "a.tmx", unit(en=segment)))).texts == (text,)


def test_units_without_text_are_counted(tmp_path):
    counts = Counter()
    path = write(tmp_path / "a.tmx", unit(en="", de=" "), "<tu/>", unit(en="Hi", de=""))
    assert list(read_tmx(path, counts=counts)) == [Group(("Hi",), ("eng",))]
    assert counts == {"empty": 2}


def test_truncated_xml_names_the_line_after_the_good_units(tmp_path):
    path = write(tmp_path / "a.tmx", unit(en="one"), unit(en="two"), "<tu><tuv xml:lang='en'><seg>thr", end="")
    groups = []
    with pytest.raises(CorpusError, match=r"a\.tmx:6: the XML is cut short"):
        groups.extend(read_tmx(path))
    assert [group.texts for group in groups] == [("one",), ("two",)]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    def peak(units):
        path = write(tmp_path / "a.tmx", *(unit(en=f"sentence {i}", de=f"Satz {i}") for i in range(units)))
        tracemalloc.start()
        count = sum(1 for _ in read_tmx(path))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == units
        return top

    assert peak(7_000) < 1.5 * peak(2_500)


# PO and XLIFF

PO = r"""# A translator.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: de\n"

#: a.c:1
msgid "The red "
"boat"
msgstr "Das rote\n"
"Boot"

msgid "untranslated"
msgstr ""

#, fuzzy
msgid "perhaps"
msgstr "vielleicht"

msgid "%d boat"
msgid_plural "%d boats"
msgstr[0] "%d Boot"
msgstr[1] "%d Boote"

#~ msgid "old"
#~ msgstr "alt"
"""

XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" source-language="en" target-language="de-DE" datatype="plaintext"><body>
<trans-unit id="1"><source>The <g id="1">red</g>
 <bpt id="2">&lt;b&gt;</bpt>boat<x id="3"/></source><seg-source><mrk mtype="seg">no</mrk></seg-source>
<target>Das <g id="1">rote</g> Boot</target><alt-trans><source>no</source><target>nein</target></alt-trans></trans-unit>
<trans-unit id="2"><source>untranslated</source></trans-unit>
</body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.1" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0">
<file id="f"><unit id="1"><originalData><data id="d">no</data></originalData>
<segment><source>The <pc id="1">red</pc> boat<ph id="2"/></source><target>Das rote Boot</target></segment>
<segment><source>It sails.</source><target>Es fährt.</target></segment></unit></file></xliff>
"""


def pairs_of(path, **options):
    return [group.texts for group in read(reader_of(path, default="lines"), path, **options)]


def test_pairs_of_po_and_xliff(tmp_path):
    po = folders.write(tmp_path / "a.po", PO)
    boats = ("The red boat", "Das rote Boot")
    assert pairs_of(po) == [boats, ("%d boat", "%d Boot"), ("%d boats", "%d Boote")]
    assert next(read("po", po)).langs == ("eng", "deu")
    assert next(read("po", po, languages="fra,ita")).langs == ("fra", "ita")
    first, second = folders.write(tmp_path / "a.xlf", XLIFF_1), folders.write(tmp_path / "b.xliff", XLIFF_2)
    assert pairs_of(first) == [boats]
    assert pairs_of(second) == [boats, ("It sails.", "Es fährt.")]
    assert [group.langs for group in read("xliff", first)] == [("eng", "deu")]
    copied = XLIFF_2.replace("<segment", '<segment state="initial"').replace("Es fährt.", "It sails.")
    assert pairs_of(folders.write(tmp_path / "c.xliff", copied)) == [boats]
    assert pairs_of(folders.write(tmp_path / "b.po", PO.replace("The red boat", "The\u2028red boat"))) == pairs_of(po)
    named = folders.write(tmp_path / "c.po", PO.replace("Language: de", "X-Generator: a"))
    assert [group.langs for group in read_files([named], languages=["en", "de"])] == [("eng", "deu")] * 3
    broken = XLIFF_2.replace("boat<ph id=", "boat<ph subType='xlf:lb' id=").replace("It sails", "It\u00a0 sails")
    assert pairs_of(folders.write(tmp_path / "d.xliff", broken))[1] == ("It\u00a0 sails.", "Es fährt.")
    for path in (po, first, second):
        sentence = next(read_sentences(str(path)))
        assert (sentence.text, sentence.language, sentence.translation) == (boats[0], "eng", boats[1])
        with pytest.raises(CorpusError, match="has pairs of translations"):
            list(read_texts(path))


@pytest.mark.parametrize(
    "rule, texts",
    [
        ("nplurals=4; plural=(n%100==1 ? 1 : n%100==2 ? 2 : n%100==3 || n%100==4 ? 3 : 0);", ["1", "0"]),  # Slovenian
        ("nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 ? 3 : 5", ["1", "5"]),  # like Arabic
        ("nplurals=1; plural=0;", ["0"]),
        ("nplurals=INTEGER; plural=EXPRESSION;", ["0", "1"]),
        ("nplurals=2; plural=(n % 0);", ["0", "1"]),
        ("", ["0", "1"]),
    ],
)
def test_a_plural_has_the_forms_for_one_and_many(tmp_path, rule, texts):
    head = 'msgid ""\nmsgstr ""\n"Language: sr_RS@latin\\n"\n' + (f'"Plural-Forms: {rule}\\n"\n' if rule else "")
    forms = "".join(f'msgstr[{number}] "{number}\u00a0!"\n' for number in range(6))
    path = folders.write(tmp_path / "a.po", f'{head}\nmsgid "boat"\nmsgid_plural "boats"\n{forms}')
    groups = [*read("po", path)]
    assert [group.texts for group in groups] == [
        *zip(("boat", "boats"), (f"{one}\u00a0!" for one in texts), strict=False)
    ]
    assert groups[0].langs == ("eng", "srp_Latn")
