"""Every verb with broken files, wrong values and outputs that must not be written: one line, and no lost byte."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import random
import re
import shutil
import signal
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pytest
import typer
from hostile_world import VERBS, commands, make_world, small_demo, toy_models, verb_of
from safetensors.numpy import load_file, save_file
from web import Web, serving

from isoglot.cli import main as command_line

SECONDS = 20  # a call that takes longer hangs
EXTREMES = [
    *("", " ", "nan", "inf", "-inf", "-1", "0", "1", "1e400", str(2**63), str(2**64), "-0", "1_0", "x" * 5000),
    *("\ud800", "../..", ".", "a.deu", "model", "\n", "=", ",", "[", "%s", "{}", "\x1b[31m", "٣", "a\0b"),
]
VALUES = [
    *(None, True, False, -1, 0, 1, 2**63, 10**400, 1e308, -1e308, math.nan, math.inf, "", " ", "x" * 5000, "a\0b"),
    *("../../a.deu", "/etc", "\ud800", "[", [], {}, [[]], [None], {"a": 1}, ["a", 1], [1e308, math.nan], "eng", "\n"),
]
NOT_TRIED = {"ray", "workers", "cores", "devices", "function", "check_language", "help", "train", "dump"}
LONG = {"epochs", "seeds", "iterations", "attempts", "timeout", "resamples"}  # much is asked for, and done


@dataclass
class Done:
    """How a call ended."""

    code: int
    out: str
    err: str
    files: dict[str, str]


class Standing:
    """The folder in which calls are made, made anew before each."""

    def __init__(self, folder: Path, web: Web) -> None:
        self.here, self.kept, self.web = folder / "deep" / "down" / "here", folder / "kept", web
        self.here.mkdir(parents=True)
        os.chdir(self.here)

    def renew(self) -> None:
        os.chdir("/")
        for folder, _, _ in os.walk(self.here):
            Path(folder).chmod(0o755)
        shutil.rmtree(self.here)
        shutil.copytree(self.kept, self.here, symlinks=True)
        os.chdir(self.here)

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.here)): f"-> {path.readlink()}"
            if path.is_symlink()
            else hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.here.rglob("*"))
            if path.is_symlink() or path.is_file()
        }

    def call(self, words) -> Done:
        """Run the command line as its console script does."""
        if words[:2] == ["data", "get"]:
            pages = Path("mirror").glob("*.address")
            self.web.pages = {
                page.read_text(): body.read_bytes() for page in pages if (body := page.with_suffix(".page")).is_file()
            }
            words = [*words[:2], "--base-url", self.web.address, *words[2:]]
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors)
                    for errors in ("strict", "backslashreplace"))  # fmt: skip
        before = sys.argv, sys.stdin, sys.stdout, sys.stderr
        sys.argv, sys.stdin, sys.stdout, sys.stderr = ["isoglot", *words], io.TextIOWrapper(io.BytesIO()), out, err
        code: object = 0
        try:
            with limited(0.4 if "serve" in words else SECONDS, interrupt="serve" in words), warnings.catch_warnings():
                command_line.main()
        except SystemExit as end:
            code = end.code
        finally:
            sys.argv, sys.stdin, sys.stdout, sys.stderr = before
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode())
        assert isinstance(code, int)
        return Done(code, *texts, self.files())


@contextmanager
def limited(seconds: float, *, interrupt: bool):
    """End what takes longer: with Ctrl-C what waits for it, else with an error."""

    def ring(*_: object) -> None:
        if interrupt:
            signal.raise_signal(signal.SIGINT)
        else:
            pytest.fail(f"takes more than {seconds} s")

    old = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    monkeypatch = pytest.MonkeyPatch()
    folder, before = tmp_path_factory.mktemp("hostile"), Path.cwd()
    monkeypatch.setenv("ISOGLOT_CACHE", str(folder / "deep" / "down" / "here" / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    toy_models(monkeypatch)
    small_demo(monkeypatch, folder / "bundled")
    with serving(Web({})) as web:
        found = Standing(folder, web)
        make_world(found.here, found.call)
        shutil.copytree(found.here, found.kept, symlinks=True)
        yield found
        os.chdir(before)
    monkeypatch.undo()


def parameters(verb: str) -> list[click.Parameter]:
    command = typer.main.get_command(command_line.app)
    for name in verb.split():
        command = command.commands[name]
    return [one for one in command.params if isinstance(one, click.Option) and one.name not in NOT_TRIED]


# What may be wrong with a file. Each is given the file and a source of randomness.


def arbitrary(path, draw):
    path.write_bytes(draw.randbytes(draw.choice([1, 10, 1000])))


def empty(path, _):
    path.write_bytes(b"")


def cut_short(path, draw):
    path.write_bytes(path.read_bytes()[: draw.randrange(max(1, path.stat().st_size))])


def longer(path, draw):
    path.write_bytes(path.read_bytes() + draw.choice([b"\0", b"x", b"\n\n", b"\xff", b"{}", b"\t" * 9, b"]"]))


def zipped(path, draw):
    data = gzip.compress(path.read_bytes(), mtime=0)
    path.write_bytes(data[: draw.choice([len(data), len(data) // 2])])


def carriage_returns(path, _):
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))


def utf16(path, _):
    path.write_bytes(path.read_bytes().decode("latin1").encode("utf-16"))


def changed_bytes(path, draw):
    data = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 3, 30]) if data else 0):
        data[draw.randrange(len(data))] = draw.choice([0, 255, 10, 9, 34, draw.randrange(256)])
    path.write_bytes(data)


def changed_line(path, draw):
    rows = path.read_bytes().split(b"\n")
    at = draw.randrange(len(rows))
    rows[at] = draw.choice([b"", b" ", b"\t", b"\0", b"\xff", b"nan", b"-1", b"null", b"[" * 5000, b"x" * 100_000,
                            rows[at] + b"\t" + rows[at], rows[at][:3], rows[0]])  # fmt: skip
    path.write_bytes(b"\n".join(rows))


def folder(path, _):
    path.unlink()
    path.mkdir()


def missing(path, _):
    path.unlink()


def link_to_itself(path, _):
    path.unlink()
    path.symlink_to(path.name)


def changed_cell(path, draw):
    """Of a table: one value; of TOML: what stands behind a key."""
    text = path.read_bytes().decode(errors="surrogateescape")
    cells = list(re.finditer(r"(?<=[\t= \[,:])[^\t\n=,\[\]{}]+", text))
    if cells:
        cell = draw.choice(cells)
        value = draw.choice([*EXTREMES, *(json.dumps(value) for value in VALUES)])
        text = text[: cell.start()] + value + text[cell.end() :]
    path.write_bytes(text.encode(errors="surrogatepass") if "\ud800" in text else text.encode(errors="surrogateescape"))


def changed_value(path, draw):
    """Of JSON, or one line of it: one value is another, or absent."""
    rows, alone = path.read_text(encoding="utf-8").split("\n"), True
    try:
        found = json.loads("\n".join(rows))
    except ValueError:
        alone, at = False, draw.randrange(max(1, len(rows) - 1))
        found = json.loads(rows[at].rstrip(",") or "{}")
    holder = [found]
    place: object = 0
    inside: object = holder
    while isinstance(inside[place], dict | list) and inside[place] and draw.random() < 0.85:  # type: ignore[index]
        inside = inside[place]  # type: ignore[index]
        place = draw.choice(sorted(inside)) if isinstance(inside, dict) else draw.randrange(len(inside))
    if inside is not holder and draw.random() < 0.2:
        del inside[place]  # type: ignore[attr-defined]
    else:
        inside[place] = draw.choice(VALUES)  # type: ignore[index]
    text = json.dumps(holder[0], ensure_ascii=draw.random() < 0.5)
    if not alone:
        rows[at] = text
        text = "\n".join(rows)
    path.write_bytes(text.encode(errors="surrogatepass"))


ODD = [
    np.zeros((0, 8), np.float32),
    np.zeros((20, 0), np.float32),
    np.float32(1),
    np.full((20, 8), np.nan, np.float32),
    np.full((20, 8), 3e38, np.float32),
    np.zeros((20, 8), np.float32),
    np.ones((20, 8), np.int64),
    np.ones((20, 8, 2), np.float32),
    np.array([["a"] * 8] * 20),
    np.array([[{}] * 8] * 20, dtype=object),
    np.ones((20, 8), np.complex64),
    np.ones((20, 8), np.float16),
    np.ones((20, 8), ">f8"),
    np.zeros(20, [("a", "f4")]),
]


def odd_table(path, draw):
    """Of a NumPy file: another table; of several in one: one of them, or one value of it."""
    odd = draw.choice(ODD)
    if path.suffix == ".npz":
        with np.load(path) as found:
            tables = dict(found)
        tables[draw.choice([*tables, "a/b", "x"])] = odd
        np.savez(path, **tables)
    elif path.suffix == ".npy":
        found = np.load(path)
        if draw.random() < 0.5 and found.size and found.dtype.kind == "f":
            found[draw.randrange(len(found))] = draw.choice(
                [np.nan, np.inf, -np.inf, 0, 3e38 % np.finfo(found.dtype).max]
            )
        else:
            found = odd
        np.save(path, found, allow_pickle=True)


def odd_weights(path, draw):
    found = load_file(path)
    name = draw.choice(sorted(found))
    table = np.array(found[name])
    flat = table.reshape(-1)
    kind = draw.randrange(4)
    if kind == 0 and flat.size and table.dtype.kind == "f":
        flat[draw.randrange(flat.size) :: 7] = draw.choice([np.nan, np.inf, 3e38, 0, -1e30])
        found[name] = table
    elif kind == 1:
        del found[name]
    elif kind == 2:
        found[name] = table[: len(table) // 2] if table.ndim else table
    else:
        found[name] = table.astype(draw.choice([np.int32, np.float16, np.float64, np.uint8]))
    save_file(found, path)


FAULTS = [arbitrary, empty, cut_short, longer, zipped, carriage_returns, utf16, changed_bytes, changed_line, folder,
          missing, link_to_itself]  # fmt: skip
KINDS = {
    **dict.fromkeys((".json", ".jsonl", ".page"), changed_value),
    **dict.fromkeys((".toml", ".tsv", ".tmx", ".xml", ".md", ".txt"), changed_cell),
    **dict.fromkeys((".npy", ".npz"), odd_table),
    ".safetensors": odd_weights,
}


# What may be wrong with a call. Each changes the folder and the words of the call, and says what it did.


def with_a_fault(verb, words, draw):
    names = [
        path
        for name in verb.reads
        for path in [Path(name), *sorted(Path(name).rglob("*"))]
        if path.is_file() and path.suffix != ".address"
    ]
    path = draw.choice(names)
    fitting = [KINDS[path.suffix]] * len(FAULTS) if path.suffix in KINDS else []
    fault = draw.choice([*FAULTS, *fitting])
    try:
        fault(path, draw)
    except UnicodeDecodeError:
        fault = changed_bytes
        fault(path, draw)
    return words, f"{fault.__name__} {path}"


def with_an_extreme(verb, words, draw):
    option = draw.choice(parameters(verb_of(verb.words)))
    value = draw.choice(EXTREMES)
    if option.name in LONG and value in (str(2**63), str(2**64), "inf"):
        value = "-1"
    names = [*option.opts, *option.secondary_opts]
    name = draw.choice(names)
    if option.name == "output" or (name == "--data" and verb.words.startswith(("data get", "data import"))):
        return with_an_output(verb, words, draw)
    given = [name] if option.is_flag else [f"{name}={value}" if name.startswith("--") else f"{name}{value}"]
    start = len(verb_of(verb.words).split())
    # Behind what the call has already, so that it is this one that counts.
    if name.startswith("--"):
        words = [
            word
            for at, word in enumerate(words)
            if not (word == name or (at and words[at - 1] == name and not option.is_flag))
        ]
    return [*words[:start], *given, *words[start:]], f"{given}"


def place_of_output(words):
    flags = ("-o", "--output") if words[:2] not in (["data", "get"], ["data", "import"]) else ("--data",)
    return 1 + next(at for at, word in enumerate(words) if word in flags)


def into(out, words):
    """The call with another output."""
    at = place_of_output(words)
    return [*words[:at], str(out), *words[at + 1 :]]


def foreign(path):
    path.mkdir()
    (path / "mine.txt").write_text("mine")
    (path / "model").mkdir()
    (path / "model" / "mine.txt").write_text("mine")


def with_an_output(verb, words, draw):
    ending = Path(verb.output).suffix
    out, read = Path(f"other{ending}"), draw.choice([*verb.reads, "a.deu", "model"])
    kinds = {
        "foreign folder": (out, lambda: foreign(out)),
        "link to a foreign folder": (out, lambda: (foreign(Path("theirs")), out.symlink_to("theirs"))),
        "file": (out, lambda: out.write_text("mine")),
        "folder": (out, out.mkdir),
        "link to itself": (out, lambda: out.symlink_to(out)),
        "link to nothing": (out, lambda: out.symlink_to(f"nowhere/{out}")),
        "link to an input": (out, lambda: out.symlink_to(read)),
    }
    plain = [
        "a.deu/other",
        f"{read}/{out}",
        read,
        ".",
        "..",
        "",
        "a\0b",
        "\udcff",
        "/proc/other",
        "/dev/null",
        "x" * 300,
    ]
    kinds |= {f"path {path[:20]!r}": (path, lambda: None) for path in plain}
    kind = draw.choice(sorted(kinds))
    out, make = kinds[kind]
    make()
    return into(out, words), f"output {kind}"


def with_a_foreign_file_inside(verb, words, draw):
    place = Path(draw.choice([verb.output, "index", "trained", "model", "one", "white"]))
    if place.is_dir() or not place.exists():
        (place / "nested").mkdir(parents=True)
        for path in (place / "mine.txt", place / "nested" / "mine.txt"):
            path.write_text("mine")
    return into(place, words), f"mine.txt in {place}"


def ways(verb):
    """The mutations that a call can have, and how often each is drawn."""
    found = {with_a_fault: 6} if verb.reads else {}
    found |= {with_an_extreme: 3} if parameters(verb_of(verb.words)) else {}
    return found | ({with_an_output: 2, with_a_foreign_file_inside: 1} if verb.output else {})


def outcome(standing: Standing, name: str, seed: str):
    """The words of a spoiled call, what was done, and all that is wrong with how it ended."""
    verb, draw = VERBS[name], random.Random(f"{name} {seed}")
    standing.renew()
    if not (found := ways(verb)):
        return verb.words.split(), "nothing", []
    (way,) = draw.choices([*found], [*found.values()])
    words, did = way(verb, verb.words.split(), draw)
    before, own = standing.files(), owned(verb, words)
    try:
        done = standing.call(words)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also that it takes too long
        return words, did, [f"raises {type(error).__name__}: {str(error)[:300]}", error]
    return words, did, [*wrong_words(done), *wrong_files(own, before, done)]


def wrong_words(done):
    if done.code not in (0, 1, 2):
        yield f"exit code {done.code}"
    if "Traceback" in done.err:
        yield "Traceback in stderr"
    error = done.err.partition("isoglot: ")[2].strip()
    if done.code == 1 and ("\n" in error or not done.err + done.out):
        yield f"not one line: {error[-300:]!r}"


def wrong_files(own, before, done):
    for name, digest in before.items():
        if done.files.get(name) != digest and (name.endswith("mine.txt") or not own(name)):
            yield f"{'changed' if name in done.files else 'lost'} {name} (exit {done.code})"
    for name in sorted(done.files.keys() - before.keys()):
        if (".tmp" in name and ".work/" not in name) or name.endswith(".lock"):
            yield f"left {name} (exit {done.code})"
        made = done.code == 0 and name.endswith(".npy") and "entity_vectors" not in name and Path(name).is_file()
        if made and not np.isfinite(np.load(name)).all():
            yield f"{name} is not finite"


def owned(verb, words):
    """Whether a file is the output of the call, in it, or of the library's own next to it."""
    places = {"cache"} if verb.words.startswith("models") else set()
    places |= {"kept"} if "--cache" in words else set()
    if verb.words.startswith("entities"):
        places |= {"entity/entity_vectors.npy", "entity/entity_vectors.json"}
    if verb.output:
        out = words[place_of_output(words)]
        # An input is never an output, whatever is asked for; an index and a run are added to.
        grown = out == verb.output or (verb.words.startswith("index") and out == "index")
        for whole in {out, out if "\0" in out else os.path.relpath(os.path.realpath(out))}:
            names = [(f"{whole}/", f"{one}/") for one in inputs(verb)]
            if grown or not any(out.startswith(one) or one.startswith(out) for out, one in names):
                places.add(whole)
    return lambda name: any(name == place or name.startswith(f"{place}/") for place in places)


def inputs(verb):
    here = {word.partition("=")[2] or word for word in verb.words.split()} - {verb.output}
    return {name for name in here if Path(name).exists()} - {"kept"}


def test_every_verb_is_here():
    assert {verb_of(verb.words) for verb in VERBS.values()} == commands()


@pytest.mark.parametrize("name", VERBS)
def test_the_calls_are_valid(standing, name):
    standing.renew()
    done = standing.call(VERBS[name].words.split())
    assert done.code == 0, done.err


@pytest.mark.parametrize("name", VERBS)
def test_no_traceback_and_no_lost_byte(standing, name):
    spoil(standing, name, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_no_traceback_and_no_lost_byte_however_often(standing, name):
    spoil(standing, name, range(1, 60))


def spoil(standing, name, seeds):
    for seed in seeds:
        words, did, found = outcome(standing, name, str(seed))
        assert not found, f"{name}, {seed}: {did}: isoglot {' '.join(words)!r}: {found}"
