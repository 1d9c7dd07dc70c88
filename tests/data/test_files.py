"""Reading and writing files: what a line is, what compression is, and what is said about damaged input."""

import bz2
import gzip
import hashlib
import lzma
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import replace_unseen
from isoglot.core.errors import CorpusError, OutputError
from isoglot.data.files import (
    atomic_write,
    check_outputs,
    content_digest,
    exclusive,
    json_object,
    read_blocks,
    read_lines,
    without_compression,
)

PACKERS = gzip.compress, partial(lzma.compress, preset=0), partial(bz2.compress, compresslevel=1), bytes
COMPRESS = dict(zip(("gz", "xz", "bz2", "plain"), PACKERS, strict=True))
LINE = st.text(st.characters(exclude_characters="\0\n\r\ufeff", exclude_categories=["Cs"]), max_size=30)


def texts(path):
    return [text for _, text in read_lines(path)]


@pytest.mark.parametrize("kind", COMPRESS)
@given(
    lines=st.lists(LINE, min_size=1, max_size=20).filter(lambda lines: lines[-1] != ""), end=st.sampled_from(["", "\n"])
)
def test_lines_come_back_numbered_from_one(tmp_path_factory, kind, lines, end):
    path = tmp_path_factory.mktemp("files") / "text"
    path.write_bytes(COMPRESS[kind](("\n".join(lines) + end).encode()))
    assert list(read_lines(path)) == list(enumerate(lines, 1))


LINES = {
    "line feeds alone end lines": ("a\u2028b\x85c\x0bd\x1ce\re\nf\ng\r", ["a\u2028b\x85c\x0bd\x1ce\re", "f", "g"]),
    "mark and carriage returns are stripped": ("\ufeffone\r\n\r\ntwo\r\n", ["one", "", "two"]),
    "longer than a block": (f"a\n{'ü' * 700_001}\nb\n{'ü' * 700_001}", ["a", "ü" * 700_001, "b", "ü" * 700_001]),
    "compressed.txt": (gzip.compress(b"one\n", mtime=0), ["one"]),  # told by the first bytes, not by the name
    "plain.gz": ("two\n", ["two"]),
}


@pytest.mark.parametrize("name", LINES)
def test_what_a_line_is(tmp_path, name):
    content, lines = LINES[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert texts(tmp_path / name) == lines


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2"])
def test_truncated_compression_names_file_and_last_line(tmp_path, kind):
    lines = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(10_000)]
    path = tmp_path / f"a.{kind}"
    whole = COMPRESS[kind]("\n".join(lines).encode())
    path.write_bytes(whole[: len(whole) * 2 // 3])
    seen = []
    with pytest.raises(CorpusError, match="too early, after line") as caught:
        seen.extend(read_lines(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert f"after line {len(seen)};" in str(caught.value)
    assert seen == list(enumerate(lines[: len(seen)], 1))
    assert seen


def test_blocks_are_decompressed_bytes_and_names_are_cut_alike(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfabc\r\n"))
    assert b"".join(read_blocks(tmp_path / "a.gz")) == b"abc\r\n"
    assert [without_compression(name) for name in ("a.txt.gz", "a.xz", "a.b", "gz")] == ["a.txt", "a", "a.b", "gz"]
    assert without_compression("A.TSV.GZ") == "A.TSV"  # else it would be read as lines


@pytest.mark.parametrize("content", ["täxt\r\n", b"\x00\xff"])
def test_atomic_write_replaces_the_file_and_leaves_nothing_beside_it(tmp_path, content):
    path = tmp_path / "new" / "a"
    for _ in range(2):
        with atomic_write(path, binary=isinstance(content, bytes)) as stream:
            stream.write(content)
    assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())
    assert list(path.parent.iterdir()) == [path]


def test_atomic_write_follows_links_and_writes_to_devices_with_the_usual_permissions(tmp_path):
    for name in ("real", "usual"):
        (tmp_path / name).write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_write(tmp_path / "link") as stream:
        stream.write("new")
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode == (tmp_path / "usual").stat().st_mode
    with atomic_write("/dev/null") as stream:
        stream.write("gone")
    assert Path("/dev/null").is_char_device()


def test_exclusive_refuses_a_second_writer_and_leaves_nothing(tmp_path):
    held = """
import sys
from isoglot.data.files import exclusive
with exclusive(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""
    words = [sys.executable, "-c", held, str(tmp_path / "new" / "out")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(OutputError, match="out"), exclusive(tmp_path / "new" / "out"):
            pass
        other.communicate("\n")
    assert other.returncode == 0
    with exclusive(tmp_path / "new" / "out"):
        pass
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" ", "is empty; remove the line"),
        ("{", "is not JSON .*write one object per line"),
        ("[" * 100_000, "is not JSON .*write one object per line"),
        ("3", "contains a JSON int; write one object per line"),
        ('{"a": {"b": "x\\udc00"}}', r"contains '\\udc00', half of a surrogate pair"),
        ('{"\\uD800": 1}', r"contains '\\ud800', half of a surrogate pair"),
        ('{"x": 5} {"x": 6}', "is not JSON"),
        ('{"deu": "a", "eng": "b", "eng": "c"}', ".*the name 'eng' stands twice"),
        ('{"translation": {"de": "a", "de": "b"}}', ".*the name 'de' stands twice"),
    ],
)
def test_a_line_that_holds_no_object_is_told(text, words):
    with pytest.raises(CorpusError, match=f"^f:3: {words}"):
        json_object(text, file="f", line=3)
    assert json_object('{"a": "\\ud83d\\ude00 \\\\ud8"}', file="f", line=1) == {"a": "😀 \\ud8"}


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_what_follows_a_compressed_stream_is_an_error_unless_it_is_a_stream_or_padding(tmp_path, compress):
    path = tmp_path / "a.txt"
    whole = compress(b"one\n" * 200_000) + compress(b"") + compress(b"two\n")
    for padding in (b"", bytes(1024)):
        path.write_bytes(whole + padding)
        assert b"".join(read_blocks(path)) == b"one\n" * 200_000 + b"two\n"
    for rubbish in (b"rubbish", lzma.compress(b"three\n", lzma.FORMAT_ALONE), b"\0" * 7 + b"rubbish"):
        path.write_bytes(whole + rubbish)
        with pytest.raises(CorpusError, match=r"(cannot be read further|too early).* after line 200001"):
            list(read_blocks(path))


@pytest.mark.parametrize("zeros", [1, 3, (1 << 19) + 2])
def test_padding_of_xz_is_a_multiple_of_four_bytes(tmp_path, zeros):
    path = tmp_path / "a.txt"
    for following in (b"", lzma.compress(b"two\n")):
        path.write_bytes(lzma.compress(b"one\n") + bytes(zeros) + following)
        with pytest.raises(CorpusError, match=r"a\.txt: .*zeros that are not a multiple of four bytes.* after line 1"):
            list(read_blocks(path))
        path.write_bytes(lzma.compress(b"one\n") + bytes(zeros + -zeros % 4) + following)
        assert b"".join(read_blocks(path)).startswith(b"one\n")


@pytest.mark.parametrize("link", ["symbolic", "hard", "around", "same"])
def test_outputs_of_one_call_are_different_files(tmp_path, link):
    kept, dropped = tmp_path / "k.jsonl", tmp_path / "d.jsonl"
    (tmp_path / "sub").mkdir()
    if link == "symbolic":
        dropped.symlink_to(kept)
    elif link == "hard":
        kept.write_text("")
        dropped.hardlink_to(kept)
    else:
        dropped = tmp_path / "sub/../k.jsonl" if link == "around" else kept
    with pytest.raises(OutputError, match=r"k\.jsonl"):
        check_outputs(kept, None, "-", dropped)
    check_outputs(kept, tmp_path / "other", "-", "-", None)


def test_the_digest_of_a_file_follows_its_content(tmp_path, monkeypatch):
    monkeypatch.setattr("isoglot.data.files._SETTLED", -1.0)
    path = tmp_path / "a"
    path.write_bytes(b"one")
    assert content_digest(path) == content_digest(path) == hashlib.sha256(b"one").hexdigest()
    replace_unseen(path, b"two")
    assert content_digest(path) == hashlib.sha256(b"two").hexdigest()


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
def test_a_file_whose_first_bytes_cannot_be_read():
    with pytest.raises(CorpusError, match=r"/proc/self/mem: cannot be read"):
        list(read_lines("/proc/self/mem"))
