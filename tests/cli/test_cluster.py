"""`--ray` of `encode` and `mine`: the bytes of the plain command, on workers of this machine and after kill -9.

What does not need workers is tested with the same pieces in this process; the rest is skipped where Ray is not
installed.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import runner

from conftest import SENTENCES, build_tokenizer
from isoglot import scale
from isoglot.cli.encode import encode
from isoglot.cli.index import index
from isoglot.cli.pairs import mine as command
from isoglot.core.errors import SearchError
from isoglot.encoders import StaticEncoder
from isoglot.index import table as tables
from isoglot.mining import pipeline as cluster
from isoglot.scale import Cluster, open_shards

ROOT = Path(__file__).parents[2]
run = runner(encode=encode, index=index, mine=command)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A model, and two files of 60 lines, half of which share their words."""
    monkeypatch.chdir(tmp_path)
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(tmp_path / "model")
    lines = [f"{SENTENCES[row % 10]} {row}" for row in range(60)]
    Path("a.eng").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    Path("b.deu").write_text("".join(f"{line} mat\n" for line in [*lines[30:], *SENTENCES * 3]), encoding="utf-8")
    return tmp_path


@pytest.fixture
def here(monkeypatch):
    """Pieces run in this process instead of on workers; the clusters that were asked for."""
    asked = []

    def no_workers(address, *, cpus, gpus=0):
        asked.append((address, cpus, *([gpus] if gpus else [])))
        return Cluster(cpus=cpus)

    monkeypatch.setattr(scale, "Cluster", no_workers)
    return asked


def same_vectors(folder, file):
    shards = open_shards(Path(folder))
    return (shards.rows(0, len(shards)) == np.load(file)).all()


OPTIONS = (
    "--truncate-dim", 3, "--dtype", "float16", "--prompt", "the ", "--no-normalize", "--precision", "bf16", "--format",
    "npy",
)  # fmt: skip


@pytest.mark.parametrize("options", [(), OPTIONS])
def test_pieces_hold_what_the_plain_command_writes(project, here, options):
    run("encode", "model", "a.eng", "-o", "a.npy", *options)
    err = run("encode", "model", "a.eng", "-o", "a", "--ray", "local", "--cores", 2, "--lines", 25, *options)
    assert here == [("local", 2)]
    assert sorted(path.name for path in Path("a").glob("*.npy")) == [f"a.eng-{n:06}.npy" for n in range(3)]
    assert f"60 lines, {3 if options else 8} dimensions, 3 files: a" in err
    assert same_vectors("a", "a.npy")
    assert f'"precision": "{"bfloat16" if options else "float32"}"' in Path("a/shards.json").read_text()


def test_shards_hold_what_the_plain_command_writes_without_ray(project):
    run("encode", "model", "a.eng", "-o", "a.npy")
    counts = []
    for number in (3, 1, 2):
        err = run("encode", "model", "a.eng", "-o", "a", "--shard", f"{number}/3", "--lines", 16, "--cores", 2)
        counts.append(int(re.search(r"(\d+) lines", err)[1]))
    assert sorted(counts) == [16, 16, 28]
    assert same_vectors("a", "a.npy")


def test_an_index_made_in_pieces_is_that_of_the_plain_command(project, here):
    run("index", "model", "eng=a.eng", "-o", "plain", "--prompt", "the ")
    err = run("index", "model", "eng=a.eng", "-o", "pieces", "--prompt", "the ", "--ray", "auto", "--gpus", 0.5)
    assert here == [("auto", 1, 0.5)]
    assert "60 sentences added; 60 in the index (flat)" in err
    assert Path("pieces/vectors.npy").read_bytes() == Path("plain/vectors.npy").read_bytes()


def test_merged_shards_are_the_index_of_the_plain_command(project, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 7)
    words = ("index", "model", "eng=a.eng", "deu=a.eng", "--prompt", "the ", "-o")
    run(*words, "plain")
    for number in (3, 1):
        err = run(*words, "merged", "--shard", f"{number}/3", "--cores", 2)
    assert "42 sentences added; 42 in the index (flat)" in err
    with pytest.raises(SearchError, match="run the same command again with --shard 2/3"):
        run("index", "-o", "merged", "--merge")
    run(*words, "merged", "--shard", "2/3")
    Path("model").rename("moved")
    with pytest.raises(SearchError, match="pass its new place"):
        run("index", "-o", "merged", "--merge")
    assert not Path("merged").exists()
    err = run("index", "moved", "-o", "merged", "--merge")
    assert "120 sentences added; 120 in the index (flat)" in err
    for name in ("vectors.npy", "index.sqlite"):
        assert (Path("merged") / name).read_bytes() == (Path("plain") / name).read_bytes()


def test_accelerators_are_asked_for_by_those_who_encode(project, here):
    run("encode", "model", "a.eng", "-o", "a", "--ray", "local", "--gpus", 0.5)
    run("mine", "model", "a.eng", "b.deu", "-o", "pairs.tsv", "--ray", "local", "--gpus", 1)
    assert here == [("local", 1, 0.5), ("local", 1, 1.0)]


@pytest.mark.parametrize("files", [("a.eng", "b.deu"), ("a.eng",)])
def test_mining_in_pieces_gives_the_same_pairs(project, here, files):
    run("mine", "model", *files, "-o", "plain.tsv")
    run("mine", "model", *files, "-o", "pieces.tsv", "--ray", "auto", "--cores", 1)
    assert here == [("auto", 1)]
    assert Path("pieces.tsv").read_bytes() == Path("plain.tsv").read_bytes()
    assert Path("plain.tsv").stat().st_size > 0
    assert not list(project.glob("*.work"))


def test_given_vectors_are_compared_in_pieces(project, here, monkeypatch):
    sent = []
    compare = cluster.neighbours_shards
    monkeypatch.setattr(
        cluster, "neighbours_shards", lambda x, y, *rest, **more: sent.append((x, y)) or compare(x, y, *rest, **more)
    )
    for name in ("a.eng", "b.deu"):
        run("encode", "model", name, "-o", f"{name}.npy")
    words = ("mine", "a.eng", "b.deu", "--vectors", "a.eng.npy", "--vectors", "b.deu.npy")
    run(*words, "-o", "plain.tsv")
    run(*words, "-o", "pieces.tsv", "--ray", "local")
    assert len(here) == 1
    assert Path("pieces.tsv").read_bytes() == Path("plain.tsv").read_bytes()
    ((x, y),) = sent
    assert [x.files, y.files] == [  # read where they lie, a million rows would be too much to send
        (project / "a.eng.npy",), (project / "pieces.tsv.work" / "files" / "target.given.npy",)
    ]  # fmt: skip


def test_a_part_of_a_map_stays_that_part(tmp_path):
    table = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", table)
    part = np.load(tmp_path / "x.npy", mmap_mode="r")[10:]
    assert cluster._map_file(part) is part
    assert cluster._map_file(table) is table


KILLED = """
import os, signal, sys
from isoglot.cli import console
def kill(self, done, total):
    os.kill(os.getpid(), signal.SIGKILL)
console.Progress.__call__ = kill
sys.argv = "isoglot mine model a.eng b.deu -o pieces.tsv --ray local".split()
from isoglot.cli.main import main
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9 is of POSIX systems")
def test_killed_and_run_again_it_gives_the_same_pairs(project, ray):
    run("mine", "model", "a.eng", "b.deu", "-o", "plain.tsv")
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not Path("pieces.tsv").exists()
    (piece,) = Path("pieces.tsv.work").rglob("source*/*.npy")
    kept = piece.stat().st_mtime_ns
    run("mine", "model", "a.eng", "b.deu", "-o", "pieces.tsv", "--ray", "local", "--work", "pieces.tsv.work")
    assert piece.stat().st_mtime_ns == kept
    assert Path("pieces.tsv").read_bytes() == Path("plain.tsv").read_bytes()
