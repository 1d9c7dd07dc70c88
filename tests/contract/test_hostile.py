"""Every verb with broken files, wrong values and outputs that must not be written: one line, and no lost byte."""

import os
import random
from pathlib import Path

import click
import hostile_world
import numpy as np
import pytest
from hostile_world import VERBS, Standing, commands, verb_of

from damage import EXTREMES, damage

NOT_TRIED = {"ray", "workers", "cores", "devices", "function", "check_language", "help", "train", "dump"}
LONG = {"epochs", "seeds", "iterations", "attempts", "timeout", "resamples"}  # much is asked for, and done


standing = hostile_world.standing


def parameters(verb: str) -> list[click.Parameter]:
    return [one for one in commands()[verb].params if isinstance(one, click.Option) and one.name not in NOT_TRIED]


# What may be wrong with a call. Each changes the folder and the words of the call, and says what it did.


def with_a_fault(verb, words, draw):
    names = [
        path
        for name in verb.reads
        for path in [Path(name), *sorted(Path(name).rglob("*"))]
        if path.is_file() and path.suffix != ".address"
    ]
    path = draw.choice(names)
    return words, f"{damage(path, draw)} {path}"


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
    while name in words:
        at = words.index(name)
        words = [*words[:at], *words[at + (1 if option.is_flag else 2) :]]
    return [*words[:start], *given, *words[start:]], f"{given}"


def with_another_input(verb, words, draw):
    at = draw.choice([at for at, word in enumerate(words) if word in verb.reads])
    value = draw.choice(EXTREMES)
    return [*words[:at], value, *words[at + 1 :]], f"{words[at]} is {value[:20]!r}"


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
    plain = ["a.deu/other", f"{read}/{out}", read, *(".", "..", "", "a\0b", "\udcff", "x" * 300)]
    plain += ["/proc/other", "/dev/null"]
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
    found |= {with_another_input: 1} if {*verb.reads} & {*verb.words.split()} else {}
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
    if done.code == 1 and ("\n" in error or (not done.err and not done.out)):
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
    assert {verb_of(verb.words) for verb in VERBS.values()} == set(commands())


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_the_calls_are_valid(standing, name):
    standing.renew()
    done = standing.call(VERBS[name].words.split())
    assert done.code == 0, done.err


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_no_traceback_and_no_lost_byte(standing, name):
    for seed in range(60):
        words, did, found = outcome(standing, name, str(seed))
        assert not found, f"{name}, {seed}: {did}: isoglot {' '.join(words)!r}: {found}"
