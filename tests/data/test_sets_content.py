"""Archives are not to be trusted: names that lead out, links, too much, damage."""

import pytest
from killed import tree
from packed import tar, zipped

from isoglot.core.errors import CorpusError
from isoglot.data.sets.content import extract


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "a\\..\\evil.txt", "C:evil.txt"])
@pytest.mark.parametrize("pack", [tar, zipped])
def test_names_that_lead_out_are_refused(tmp_path, name, pack):
    archive = tmp_path / "in" / "archive"
    archive.parent.mkdir()
    archive.write_bytes(pack({"good.txt": b"x", name: b"evil"}))
    with pytest.raises(CorpusError, match="may lead out of the folder"):
        extract(archive, tmp_path / "in" / "out")
    assert set(tree(tmp_path)) == {"in/archive"}


def test_links_are_passed_over_and_junk_too(tmp_path):
    # SNLI and MultiNLI hold a file "Icon" with a carriage return, which no line of a manifest could name.
    (tmp_path / "a").write_bytes(tar({"link": None, "real.txt": b"x", "__MACOSX/real.txt": b"y", "Icon\r": b""}))
    extract(tmp_path / "a", tmp_path / "out")
    assert set(tree(tmp_path / "out")) == {"real.txt"}


@pytest.mark.parametrize("pack", [tar, zipped])
def test_an_archive_may_not_unpack_without_end(tmp_path, pack):
    (tmp_path / "a").write_bytes(pack({"one": bytes(600_000), "two": bytes(600_000)}))
    with pytest.raises(CorpusError, match="size limit"):
        extract(tmp_path / "a", tmp_path / "out", limit=1_000_000)
    assert set(tree(tmp_path)) == {"a"}
    extract(tmp_path / "a", tmp_path / "out", limit=1_200_000)


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", tar({"a": bytes(range(256)) * 99})[:-40], zipped({"a": b"x"})[:-9]],
    ids=["empty", "none", "cut tar", "cut zip"],
)
def test_damaged_archives(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(CorpusError, match="cannot be unpacked"):
        extract(tmp_path / "a", tmp_path / "out")
    assert set(tree(tmp_path)) == {"a"}
