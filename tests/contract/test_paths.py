"""No output of a verb is one of its inputs or its other outputs, by whatever name: paths are compared after resolving.

`COLLISIONS` has a line for each output of each verb and each input that it could overwrite: the words of the command
with `{}` for the path that leads to `target`, which the command reads, or writes as another output.
"""

import json
import shutil

import pytest
from command_line import RECIPE
from hostile_world import commands
from typer.testing import CliRunner

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.main import app
from isoglot.core.errors import OutputError
from isoglot.encoders import StaticEncoder, load
from isoglot.index import Index

COLLISIONS = [
    ("average", "m n -o {}", "m"),
    ("average", "m n -o {}", "n"),
    ("align", "m t.jsonl u.jsonl -o {}", "u.jsonl"),
    ("compare", "r s --page {}", "r/results.json"),
    ("compare", "r s --page {}", "s/results.json"),
    ("compare", "r s -o t --page {}", "t/compare.md"),
    ("compare", "r s -o t --page {}", "t/compare.json"),
    ("convert", "m -o {}", "m"),
    ("data import", "tatoeba-laser {} --data d", "d/tatoeba-laser"),
    ("encode", "m t.jsonl -o {}", "t.jsonl"),
    ("encode", "m a.eng -o {} --format jsonl", "m/model.safetensors"),
    ("encode", "m a.eng -o {} --ray local", "m"),
    ("entities", "w --vectors {}", "w/entity_vectors.npy"),
    ("entities", "w --vectors a.eng --titles {}", "w/entity_vectors.json"),
    ("entities", "w --train --dump eng={}", "w/entity_vectors.npy"),
    ("evaluate", "--vectors v.npy --texts {} -o r --data .", "r/results.json"),
    ("evaluate", "--vectors {} --texts t.jsonl -o r --data .", "r/items.npz"),
    ("evaluate", "--write-texts --data d -o {}", "d/tatoeba-laser/normal.json"),
    ("export", "i -o {} --format jsonl", "i/index.sqlite"),
    ("filter", "p.jsonl --model m -o {}", "p.jsonl"),
    ("filter", "p.jsonl --model m -o k.jsonl --dropped {}", "p.jsonl"),
    ("filter", "p.jsonl --model m -o k.jsonl --dropped {}", "k.jsonl"),
    ("fit", "whitening m a.eng -o {}", "m"),
    ("index", "m a.eng -o {}", "m"),
    ("index", "m a.eng -o {} --ray local", "m"),
    ("mine", "m t.jsonl u.jsonl -o {}", "t.jsonl"),
    ("mine", "m t.jsonl u.jsonl -o {}", "u.jsonl"),
    ("mine", "m t.jsonl u.jsonl -o {} --gold k.jsonl", "k.jsonl"),
    ("mine", "t.jsonl u.jsonl --vectors v.npy --vectors v.npy -o {} --format tsv", "v.npy"),
    ("mine", "m t.jsonl u.jsonl -o x.tsv --work {}", "m"),
    ("mine", "m t.jsonl {} -o x.de-en", "x.de-en.scores"),
    ("negatives", "m p.jsonl -o {}", "p.jsonl"),
    ("negatives", "m p.jsonl --leakage t.jsonl -o {}", "t.jsonl"),
    ("plot", "m k.jsonl -o {}", "k.jsonl"),
    ("plot", "m p.jsonl --labels a.eng -o {}", "a.eng"),
    ("plot", "sweep q -o {}", "q/sweep.json"),
    ("plot", "similarity r s -o {}", "s/results.json"),
    ("report", "r s/results.json -o {}", "r/results.json"),
    ("report", "r s/results.json -o {}", "s/results.json"),
    ("sweep", "own.toml -o q --data . --set streams.0.sources=[{{reader='tsv',path='{}'}}]", "q/sweep.md"),
    ("sweep", "--arms {} -o q --data .", "q/sweep.md"),
    ("train", "own.toml -o {}", "m"),
    ("train", "own.toml -o q --set streams.0.sources=[{{reader='jsonl',path='{}'}}]", "q/log.jsonl"),
    ("trim", "m a.eng -o {}", "m"),
    ("wikipedia", "w/dump.xml --titles p.tsv -o {}", "w"),
    ("wikipedia", "w/dump.xml --titles p.tsv -o x --work {}", "w"),
    ("freeze", "q -o {}", "q"),
]  # fmt: skip
# They write no output, or none where the user says, or read nothing of the user's.
NOTHING_TO_COMPARE = {
    "data check", "data get", "data list", "data report", "demo", "models get", "models list", "recipe check",
    "recipe list", "recipe show", "search", "serve", "tasks",
}  # fmt: skip


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Everything that the commands read, in one folder."""
    folder = tmp_path_factory.mktemp("example")
    for name, seed in (("m", 1), ("n", 2)):
        StaticEncoder.create(build_tokenizer(), 8, seed=seed).save(folder / name)
    text = "".join(f"{sentence}\n" for sentence in SENTENCES)
    quoted = "".join(json.dumps(sentence) + "\n" for sentence in SENTENCES)
    pairs = "".join(json.dumps({"texts": [one, one[::-1]], "langs": ["eng", "deu"]}) + "\n" for one in SENTENCES)
    raw = {f"d/tatoeba-laser/tatoeba.deu-eng.{code}": "one\n" for code in ("deu", "eng")}
    own = f'{RECIPE}[evaluation]\ndata = "d/tatoeba-laser"\n'
    manifest = json.dumps({"set": "tatoeba-laser", "importer": 1, "parts": []})
    files = {
        "a.eng": text, "x.de-en.scores": text, "t.jsonl": quoted, "u.jsonl": quoted, "p.jsonl": pairs, "k.jsonl": pairs,
        "p.tsv": "eng\tdeu\na\tb\n", "own.toml": own, "v.npy": text, "dump.xml": text, "w/dump.xml": text,
        "w/entities.tsv": "Q1\t9\tone\n", "w/entity_vectors.npy": text, "w/entity_vectors.json": text,
        "q/sweep.md": "eng\tdeu\na\tb\n", "q/sweep.json": '{"arms": [], "values": {}}',
        "q/log.jsonl": pairs, "r/items.npz": text,
        "t/compare.md": "", "t/compare.json": '{"systems": [], "tables": []}', **raw,
        **{f"{name}/results.json": '{"model": "x", "scores": []}' for name in "rs"},
        "d/tatoeba-laser/normal.json": manifest, "sub/empty": "",
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(content, encoding="utf-8")
    Index.build(load(folder / "m"), SENTENCES, folder=folder / "i").close()
    return folder


def test_every_verb_is_in_the_table():
    assert {verb for verb, *_ in COLLISIONS} | NOTHING_TO_COMPARE == set(commands())


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".lock")
    }


@pytest.mark.parametrize(("verb", "words", "target"), COLLISIONS, ids=map(" ".join, COLLISIONS))
def test_an_output_that_is_an_input_or_another_output_is_refused(example, tmp_path, monkeypatch, verb, words, target):
    """By another name; links are followed by the function that all verbs call: tests/data/test_outputs.py."""
    shutil.copytree(example, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "cache"))
    before = tree(tmp_path)
    command = [*verb.split(), *(word.format(f"sub/../{target}") for word in words.split())]
    done = CliRunner().invoke(app, command)
    assert isinstance(done.exception, OutputError), (done.exception, done.output)
    message = str(done.exception)
    assert any(part in message for part in ("is the input", "is the output", "lies in", "contains the input")), message
    assert {name: content for name, content in tree(tmp_path).items() if not name.startswith("cache/")} == before
