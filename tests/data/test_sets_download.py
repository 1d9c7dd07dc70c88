"""One file over HTTP: cut connections, servers that lie, fall silent or ignore what they are asked."""

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from web import Web, serving

from isoglot.core.errors import CorpusError
from isoglot.data.sets.download import Network, download

PAGE = random.Random(1).randbytes(300_000)
QUICK = Network(timeout=5, attempts=3, pause=0)


def fetch(web, target, network=QUICK, path="/a.txt", **options):
    download(f"{web.address}{path}", target, network=network, **options)
    return target.read_bytes()


def test_a_file_comes_whole_and_leaves_nothing_beside_it(tmp_path):
    seen = []
    with serving(Web({"/a.txt": PAGE})) as web:
        assert fetch(web, tmp_path / "a", progress=lambda *event: seen.append(event)) == PAGE
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert seen[-1] == (f"{web.address}/a.txt", len(PAGE), len(PAGE))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("validator", [True, False])
def test_a_cut_connection_is_taken_up(tmp_path, ranges, validator):
    with serving(Web({"/a.txt": PAGE}, cut={"/a.txt": [100_000]}, ranges=ranges, validator=validator)) as web:
        assert fetch(web, tmp_path / "a") == PAGE
    rest = len(PAGE) - 100_000 if ranges and validator else len(PAGE)  # without a validator nothing may be joined
    assert web.sent == [("/a.txt", 100_000), ("/a.txt", rest)]


def test_the_next_call_goes_on_where_the_last_one_ended(tmp_path):
    with serving(Web({"/a.txt": PAGE}, cut={"/a.txt": [1000, 2000]})) as web:
        with pytest.raises(CorpusError, match=r"after 3,000 of 300,000 bytes, 2 times in a row; 3,000 bytes are kept"):
            fetch(web, tmp_path / "a", Network(timeout=5, attempts=2, pause=0))
        assert not (tmp_path / "a").exists()
        assert fetch(web, tmp_path / "a") == PAGE
    assert [size for _, size in web.sent] == [1000, 2000, len(PAGE) - 3000]


@pytest.mark.parametrize("other", [PAGE[::-1], b"short\n"], ids=["other bytes", "shorter"])
def test_a_file_that_changed_meanwhile_is_not_joined_to_its_old_beginning(tmp_path, other):
    with serving(Web({"/a.txt": PAGE}, cut={"/a.txt": [1000]})) as web:
        with pytest.raises(CorpusError):
            fetch(web, tmp_path / "a", Network(timeout=5, attempts=1, pause=0))
        web.pages["/a.txt"] = other
        assert fetch(web, tmp_path / "a") == other


@pytest.mark.parametrize("version", [None, b"", b"\xff", b'"1"'])
def test_bytes_of_unknown_origin_are_not_continued(tmp_path, version):
    (tmp_path / "a.part").write_bytes(b"junk")
    if version is not None:
        (tmp_path / "a.part.version").write_bytes(version)
    with serving(Web({"/a.txt": PAGE})) as web:
        assert fetch(web, tmp_path / "a") == PAGE
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("fault", [{"extra": 10}, {"stall": {"/a.txt"}}], ids=["announces too much", "silent"])
def test_a_server_that_never_sends_all_is_given_up(tmp_path, fault):
    with serving(Web({"/a.txt": PAGE}, **fault)) as web, pytest.raises(CorpusError, match="3 times in a row"):
        fetch(web, tmp_path / "a", Network(timeout=0.1, attempts=3, pause=0))
    assert web.asked["/a.txt"] == 3
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("habit", [{"length": False}, {"trickle": 0.1}], ids=["announces no length", "slow"])
def test_a_server_that_sends_all_is_waited_for(tmp_path, habit):
    """The timeout is of silence: a transfer may take longer than it, as long as something comes."""
    with serving(Web({"/a.txt": PAGE}, **habit)) as web:
        assert fetch(web, tmp_path / "a", Network(timeout=1, attempts=1, pause=0)) == PAGE


def test_an_overloaded_server_is_asked_again_and_a_missing_file_is_not(tmp_path):
    with serving(Web({"/a.txt": PAGE}, answers={"/a.txt": [503, 429], "/b": [403]})) as web:
        assert fetch(web, tmp_path / "a") == PAGE
        assert web.asked["/a.txt"] == 3
        for path, code in (("/none.txt", 404), ("/b", 403)):
            with pytest.raises(CorpusError, match=rf"{path}: the server answered {code} .*--base-url"):
                fetch(web, tmp_path / "b", path=path)
            assert web.asked[path] == 1


def test_pauses_double(tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr("isoglot.data.sets.download.time.sleep", pauses.append)
    with serving(Web({"/a.txt": PAGE}, answers={"/a.txt": [500] * 9})) as web, pytest.raises(CorpusError, match="500"):
        fetch(web, tmp_path / "a", Network(timeout=5, attempts=4, pause=0.5))
    assert pauses == [0.5, 1.0, 2.0]
    with pytest.raises(CorpusError, match="no connection"):  # the server has gone
        fetch(web, tmp_path / "a")


def test_a_mirror_is_asked_for_host_and_path_and_only_by_http(tmp_path):
    network = Network(mirror="http://mirror.example/copies/")
    assert network.resolve("https://a.example/b/c?d=e") == "http://mirror.example/copies/a.example/b/c?d=e"
    for mirror, address in (("file:///etc", "https://a.example/b"), ("/a/folder", "https://a"), ("", "file:///etc/b")):
        with pytest.raises(CorpusError, match="--base-url"):
            download(address, tmp_path / "a", network=Network(mirror=mirror))
    for options in ({"attempts": 0}, {"timeout": 0}, {"pause": -1}):
        with pytest.raises(ValueError, match="attempts"):
            Network(**options)


@settings(max_examples=25)
@given(page=st.binary(max_size=5000), cuts=st.lists(st.integers(0, 3000), max_size=5), data=st.data())
def test_an_interrupted_download_equals_the_whole(page, cuts, data):
    options = {name: data.draw(st.booleans()) for name in ("ranges", "validator")}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "a"
        with serving(Web({"/a.txt": page}, cut={"/a.txt": list(cuts)}, **options)) as web:
            for _ in range(len(cuts) + 1):  # a call for each cut at most, as a user would repeat them
                try:
                    fetch(web, target, Network(timeout=5, attempts=1, pause=0))
                    break
                except CorpusError:
                    assert not target.exists()
            assert target.read_bytes() == page
