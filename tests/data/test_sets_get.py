"""Getting and checking sets: against a local server, and copies that broke."""

import gzip
import importlib
import lzma
import sys
from functools import partial
from hashlib import sha256

import pytest
from killed import tree
from packed import tar, zipped
from web import Web, pages_of, serving

from isoglot.core.errors import CorpusError, OutputError
from isoglot.data.sets import check, get
from isoglot.data.sets.catalogue import Count, DataSet, Hub, Rule, read_manifest
from isoglot.data.sets.check import LOCK, present
from isoglot.data.sets.content import Measure
from isoglot.data.sets.download import Network
from isoglot.data.sets.get import source

entries = importlib.import_module("isoglot.data.sets.catalogue")  # the package has a function of that name
BASE = "https://data.example/sets/"
TEXTS = {"a/one.txt": b"eins\nzwei\n", "two.txt": b"\xef\xbb\xbfdrei\r\nvier", "three.txt": b""}


def content(text):
    total = Measure()
    total.add(text)
    return total.content


def entry(name="toy", **options):
    base = {"use": "tests", "what": "a toy", "languages": "de", "rows": 4, "unit": "lines", "licence": "CC0"}
    return DataSet(name, **(base | {"redistribution": "yes", "address": BASE} | options))


@pytest.fixture
def known(monkeypatch):
    """Puts sets into the catalogue, with recorded files where some are given."""

    def put(one, files=None):
        sets = {**entries.catalogue(), one.name: one}
        recorded = {path: content(text) for path, text in (files or {}).items()}
        before = entries._read_record
        monkeypatch.setattr(entries, "catalogue", lambda: sets)
        monkeypatch.setattr(entries, "_read_record", lambda name: recorded if name == one.name else before(name))
        return one

    return put


@pytest.fixture
def web():
    with serving(Web({f"/data.example/sets/{path}": text for path, text in TEXTS.items()})) as server:
        yield server


def network(web, **options):
    return Network(**({"mirror": web.address, "timeout": 5, "attempts": 2, "pause": 0} | options))


def test_get_brings_files_packs_them_and_check_agrees(tmp_path, known, web):
    one = known(
        entry(rules=(Rule(r"(.+)\.xz", r"\1"),)), {"a/one.txt.xz": TEXTS["a/one.txt"], "two.txt": TEXTS["two.txt"]}
    )
    assert check(one, tmp_path).state == "absent"
    assert present(one, tmp_path) == "no"
    folder = get("toy", tmp_path, network=network(web))
    assert folder == tmp_path / "toy"
    assert set(tree(folder)) == {"a/one.txt.xz", "two.txt", "SOURCE"}
    assert lzma.decompress((folder / "a/one.txt.xz").read_bytes()) == TEXTS["a/one.txt"]
    assert (folder / "two.txt").read_bytes() == TEXTS["two.txt"]
    assert (folder / "SOURCE").read_text() == source(one)
    assert str(check(one, tmp_path)) == "toy: ok: 2 files"
    assert present(one, tmp_path) == "yes"


def test_what_is_there_is_not_fetched_again_however_it_is_packed(tmp_path, known, web):
    known(entry(rules=(Rule(r"(.+)\.xz", r"\1"),)), {"a/one.txt.xz": TEXTS["a/one.txt"], "two.txt": TEXTS["two.txt"]})
    (tmp_path / "toy" / "a").mkdir(parents=True)
    (tmp_path / "toy" / "a" / "one.txt").write_bytes(TEXTS["a/one.txt"])
    (tmp_path / "toy" / "mine.txt").write_bytes(b"left alone")
    get("toy", tmp_path, network=network(web))
    assert set(web.asked) == {"/data.example/sets/two.txt"}
    assert set(tree(tmp_path / "toy")) == {"a/one.txt", "two.txt", "mine.txt", "SOURCE"}
    web.asked.clear()
    (tmp_path / "toy" / "SOURCE").write_text("by hand\n")
    get("toy", tmp_path, network=network(web))
    assert not web.asked
    assert (tmp_path / "toy" / "SOURCE").read_text() == "by hand\n"


@pytest.mark.parametrize("other", ["one.txt", "one.txt.gz"])
def test_of_a_file_packed_in_several_ways_the_one_that_is_read_is_judged_and_replaced(tmp_path, known, web, other):
    """A wrong one does not hide behind a right one: tasks read the plain file first, then `.gz`, then `.xz`."""
    one = known(entry(rules=(Rule(r"(.+)\.xz", r"\1"),)), {"a/one.txt.xz": TEXTS["a/one.txt"]})
    (tmp_path / "toy" / "a").mkdir(parents=True)
    wrong = tmp_path / "toy" / "a" / other
    wrong.write_bytes(gzip.compress(b"eins\n") if other.endswith(".gz") else b"eins\n")
    (tmp_path / "toy" / "a" / "one.txt.xz").write_bytes(lzma.compress(TEXTS["a/one.txt"]))
    assert str(check(one, tmp_path)) == f"toy: wrong: a/{other} has 1 lines, 2 expected"
    get("toy", tmp_path, network=network(web))
    assert set(tree(tmp_path / "toy")) == {"a/one.txt.xz", "SOURCE"}
    assert check(one, tmp_path).state == "ok"


def test_a_set_without_checksums_may_be_packed_too(tmp_path, known, web):
    one = known(entry(unpacked=(("two.txt", "two.txt"),), counts=(Count("two.txt", 1, 2),)))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "x").write_text("x")
    assert str(check(entry(), tmp_path)) == "toy: unknown: checksums not recorded"
    get("toy", tmp_path, network=network(web))
    plain = tmp_path / "toy" / "two.txt"
    plain.with_name("two.txt.xz").write_bytes(lzma.compress(plain.read_bytes()))
    assert check(one, tmp_path).state == "ok"  # it is one file
    plain.unlink()
    assert check(one, tmp_path).state == "ok"
    assert present(one, tmp_path) == "yes"
    web.asked.clear()
    get("toy", tmp_path, network=network(web))
    assert not web.asked


def test_a_damaged_file_is_named_and_got_anew(tmp_path, known, web):
    one = known(entry(), {path: TEXTS[path] for path in ("a/one.txt", "two.txt")})
    get("toy", tmp_path, network=network(web))
    path = tmp_path / "toy" / "a" / "one.txt"
    path.write_bytes(TEXTS["a/one.txt"].replace(b"zwei", b"drei"))
    seen, expected = (sha256(text).hexdigest() for text in (path.read_bytes(), TEXTS["a/one.txt"]))
    assert str(check(one, tmp_path)) == f"toy: wrong: a/one.txt has sha256 {seen}, {expected} expected"
    path.write_bytes(b"eins\n")
    (tmp_path / "toy" / "two.txt").unlink()
    assert str(check(one, tmp_path)) == "toy: wrong: a/one.txt has 1 lines, 2 expected; missing two.txt"
    assert present(one, tmp_path) == "part"
    path.unlink()
    (tmp_path / "toy" / "a" / "one.txt.gz").write_bytes(b"\x1f\x8bjunk")
    assert "cannot be read to its end" in str(check(one, tmp_path))
    (tmp_path / "toy" / "a" / "one.txt.gz").unlink()
    assert check(one, tmp_path).state == "missing"
    get("toy", tmp_path, network=network(web))
    assert check(one, tmp_path).state == "ok"


@pytest.mark.parametrize("recorded", [True, False], ids=["with checksums", "without"])
def test_an_interrupted_get_is_not_there_whole_and_is_made_again(tmp_path, known, web, recorded):
    if recorded:
        one, missing = known(entry(), {path: TEXTS[path] for path in ("a/one.txt", "two.txt")}), "missing two.txt"
    else:
        one = known(entry(unpacked=tuple((path, path) for path in ("a/one.txt", "two.txt"))))
        missing = "missing: the rest of a download that was interrupted"
    web.cut["/data.example/sets/two.txt"] = [5]
    with pytest.raises(CorpusError, match="run the command again"):
        get("toy", tmp_path, network=network(web, attempts=1))
    assert not (tmp_path / "toy" / "two.txt").exists()
    assert present(one, tmp_path) == "part"
    assert missing in str(check(one, tmp_path))
    get("toy", tmp_path, network=network(web))
    assert (present(one, tmp_path), check(one, tmp_path).state) == ("yes", "ok")
    assert web.sent == [
        ("/data.example/sets/a/one.txt", len(TEXTS["a/one.txt"])),
        ("/data.example/sets/two.txt", 5),
        ("/data.example/sets/two.txt", len(TEXTS["two.txt"]) - 5),
    ]
    assert (tmp_path / "toy" / "two.txt").read_bytes() == TEXTS["two.txt"]


def test_a_file_where_a_folder_is_needed(tmp_path, known, web):
    known(entry(), {"two.txt": TEXTS["two.txt"]})
    (tmp_path / "data").write_text("")
    with pytest.raises(OutputError, match="data is not a folder"):
        get("toy", tmp_path / "data", network=network(web))


def test_a_licence_that_forbids_a_program_is_kept(tmp_path):
    with pytest.raises(CorpusError, match=r"mldoc .*NIST.*sib-200"):
        get("mldoc", tmp_path, network=Network(mirror="http://127.0.0.1:1"))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("pack", [zipped, *(partial(tar, mode=mode) for mode in ("w", "w:gz", "w:bz2", "w:xz"))])
def test_a_set_inside_an_archive(tmp_path, known, web, pack):
    web.pages["/data.example/all.bin"] = pack({"./top/a/one.txt": TEXTS["a/one.txt"], "top/two.txt": TEXTS["two.txt"]})
    one = entry(address="https://data.example/all.bin", rules=(Rule("(.+)", r"!top/\1"),))
    known(one, {path: TEXTS[path] for path in ("a/one.txt", "two.txt")})
    get("toy", tmp_path, network=network(web))
    assert web.asked["/data.example/all.bin"] == 1
    assert set(tree(tmp_path / "toy")) == {"a/one.txt", "two.txt", "SOURCE"}


LOGIN = b"<html>\nlog in\n</html>\n"  # a page that comes with status 200
ALL = "https://data.example/all"
INSIDE = {"address": ALL, "rules": (Rule("(.+)", r"!top/\1"),)}
COUNTS = (Count("one.txt", 1, 2), Count("*.txt", 1, 2))


@pytest.mark.parametrize(
    ("options", "files", "path", "page", "message"),
    [
        ({}, {"two.txt": b"other\n"}, "sets/two.txt", b"x", rf"{BASE}two\.txt: .*sha256 .* 1 lines"),
        (INSIDE, {"one.txt": b"x"}, "all", tar({"top/else.txt": b"x"}), r"all: .*top/one\.txt"),
        (INSIDE, {"one.txt": b"x"}, "all", LOGIN, rf"^{ALL}: cannot be unpacked .*get it again$"),
        ({"address": ALL, "unpacked": (("!top/", ""),)}, {}, "all", LOGIN, rf"^{ALL}: cannot be unpacked"),
        (
            {"address": ALL, "unpacked": (("", "one.txt"),), "counts": COUNTS},
            {},
            "all",
            LOGIN,
            rf"^{ALL}: .*3 lines, 2",
        ),
        ({"unpacked": (("two.gz",) * 2,)}, {}, "sets/two.gz", b"\x1f\x8bjunk", rf"^{BASE}: two\.gz: cannot be read"),
    ],
)
def test_what_is_wrong_is_not_kept_and_is_asked_anew(tmp_path, known, web, options, files, path, page, message):
    known(entry(**options), files)
    web.pages[f"/data.example/{path}"] = page
    for _ in range(2):
        with pytest.raises(CorpusError, match=message):
            get("toy", tmp_path, network=network(web))
        assert tree(tmp_path / "toy") == {}
    assert web.asked[f"/data.example/{path}"] == 2


def test_what_a_refused_set_leaves_is_what_was_there(tmp_path, known, web):
    """One file more than expected: neither the right ones nor the wrong one get their names."""
    web.pages["/data.example/all.zip"] = zipped({"dev/a": b"1\n", "dev/b": b"2\n"})
    known(entry(address="https://data.example/all.zip", unpacked=(("!", ""),), counts=(Count("dev/*", 1, 1),)))
    (tmp_path / "toy" / "dev").mkdir(parents=True)
    (tmp_path / "toy" / "dev" / "a").write_bytes(b"mine\n")
    with pytest.raises(CorpusError, match=r"2 files dev/\*, 1 expected"):
        get("toy", tmp_path, network=network(web))
    assert set(tree(tmp_path / "toy")) == {"dev/a"}
    assert (tmp_path / "toy" / "dev" / "a").read_bytes() == b"mine\n"


def test_a_set_that_another_must_come_before_says_how_to_get_that(tmp_path, known, web):
    known(entry(rules=(Rule("(.+)", r"\1", "unleaked"),)), {"a/one.txt": b"x\n", "a/two.txt": b"y\n"})
    web.pages |= {"/data.example/sets/a/one.txt": b"x\n", "/data.example/sets/a/two.txt": b"y\n"}
    with pytest.raises(CorpusError, match=rf"isoglot data get tatoeba-laser --data {tmp_path}$"):
        get("toy", tmp_path, network=network(web))


def test_a_first_download_is_remembered(tmp_path, known, web):
    web.pages["/data.example/all.zip"] = zipped({"top/dev/a": b"1\n2\n", "top/dev/b": b"1\n3\n", "else": b"x"})
    counts = (Count("dev/*", 2, 2),)
    one = known(entry(address="https://data.example/all.zip", unpacked=(("!top/", ""),), counts=counts))
    get("toy", tmp_path, network=network(web))
    folder = tmp_path / "toy"
    assert set(tree(folder)) == {"dev/a", "dev/b", LOCK, "SOURCE"}
    contents = {"dev/a": content(b"1\n2\n"), "dev/b": content(b"1\n3\n")}
    assert read_manifest((folder / LOCK).read_text(), LOCK) == contents
    finding = check(one, tmp_path)
    assert finding.state == "ok"
    assert "the catalogue records none" in finding.note
    get("toy", tmp_path, network=network(web))
    assert web.asked["/data.example/all.zip"] == 1
    (folder / "dev" / "a").write_bytes(b"1\n")
    assert check(one, tmp_path).details[:2] == ("dev/a has 1 lines, 2 expected",) * 2
    with pytest.raises(CorpusError, match="move the folder"):
        get("toy", tmp_path, network=network(web))
    (folder / "dev" / "a").unlink()
    assert check(one, tmp_path).state == "missing"  # one file where two are expected
    (folder / "dev" / "a").write_bytes(b"1\n2\n")
    (folder / "dev" / "c").write_bytes(b"1\n2\n")
    assert check(one, tmp_path).details == ("3 files dev/*, 2 expected",)
    assert check(one, tmp_path).state == "wrong"
    (folder / LOCK).write_text("rubbish\n")
    with pytest.raises(CorpusError, match=rf"{LOCK}:1: "):
        check(one, tmp_path)
    assert present(one, tmp_path) == "part"


@pytest.mark.parametrize("folder", ["", "test"])
def test_a_hub_repository_or_its_folder(tmp_path, known, web, folder):
    one = known(entry(hub=Hub("org/toy", "abc", folder)))
    web.pages |= pages_of(one.hub, {"test/ko.jsonl": b'{"a": 1}\n'})
    get("toy", tmp_path, network=network(web))
    assert set(tree(tmp_path / "toy")) == {"test/ko.jsonl", LOCK, "SOURCE"}


def test_a_part_of_a_hub_set_is_told_from_the_whole(tmp_path):
    """JSON lines, plain or packed; the real entry of the catalogue, and a copy that nothing was fetched for."""
    one, folder = entries.find("stsbenchmark-sts"), tmp_path / "stsbenchmark-sts"
    folder.mkdir()
    for name, lines in {"train.jsonl.gz": 5749, "validation.jsonl": 1500, "test.jsonl.gz": 1379}.items():
        text = b"{}\n" * lines
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert str(check(one, tmp_path)) == "stsbenchmark-sts: ok: checksums not recorded"
    (folder / "test.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 1378))
    assert "test.jsonl.gz has 1,378 lines, 1,379 expected" in str(check(one, tmp_path))
    assert present(one, tmp_path) == "yes"  # by names alone
    (folder / "test.jsonl.gz").unlink()
    assert "0 files test.jsonl*, 1 expected" in str(check(one, tmp_path))
    assert present(one, tmp_path) == "part"


def test_rows_of_parquet_are_counted(tmp_path, monkeypatch):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    one, path = entry(counts=(Count("test-*.parquet", 1, 3),)), tmp_path / "toy" / "test-00000-of-00001.parquet"
    path.parent.mkdir()
    parquet.write_table(pyarrow.table({"text": ["a", "b\n", "c"]}), path)
    assert check(one, tmp_path).state == "ok"
    parquet.write_table(pyarrow.table({"text": ["a", "b"]}), path)
    assert check(one, tmp_path).details == ("test-00000-of-00001.parquet has 2 rows, 3 expected",)
    path.write_bytes(path.read_bytes()[:-9])
    assert "cannot be read as Parquet" in str(check(one, tmp_path))
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # not installed: only the files are counted
    assert check(one, tmp_path).state == "ok"
    path.unlink()
    assert check(one, tmp_path).state == "missing"


HUB = Hub("org/toy", "abc")
NINE = b'[{"type": "file", "path": "a.jsonl", "size": 9}]'
LISTED = "/huggingface.co/api/datasets/org/toy/tree/abc?recursive=true"


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        (pages_of(HUB, {"a.jsonl": b"x\n"}, digest="0" * 64), "is not the file the hub lists"),
        (pages_of(HUB, {"../a.jsonl": b"x\n"}), "may lead out of the folder"),
        (pages_of(HUB, {f"raw/{i}.jsonl": b"{}\n" for i in range(998)}), "lists only the first 1,000 of its files"),
        ({LISTED: b"<html>"}, "listing of its files cannot be read"),
        ({LISTED: b"[]"}, "no files"),
        (pages_of(HUB, {"a.jsonl": b"x\n"}) | {LISTED: NINE}, r"a\.jsonl: is not the file the hub lists \(9 bytes\)"),
    ],
)
def test_a_hub_repository_that_is_not_what_it_lists(tmp_path, known, web, pages, message):
    known(entry(hub=HUB))
    web.pages |= pages
    with pytest.raises(CorpusError, match=message):
        get("toy", tmp_path, network=network(web))
    assert {path.partition("/")[0] for path in tree(tmp_path / "toy")} <= {".downloads"}
