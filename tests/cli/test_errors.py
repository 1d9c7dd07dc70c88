"""What every verb says of wrong words: one line, and nothing is written.

Errors of paths are in tests/contract, and those of values in the tests of the functions that verbs call: here is one of
each verb, whose arguments it calls by the names of its options.
"""

from pathlib import Path

import numpy as np
import pytest
from command_line import invoke
from test_documents import write_docx

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.main import app
from isoglot.core.errors import CorpusError, EncoderError, EvaluationError, IsoglotError, OutputError, SearchError
from isoglot.encoders import StaticEncoder
from isoglot.evaluation.base import Score
from isoglot.evaluation.scores import Scores, write_results

MINE = "mine a.eng b.deu --vectors x.npy --vectors x.npy -o out.tsv"
RAY = "encode m a.eng -o out --ray local"
SHARD = "encode m a.eng -o out --shard"
PLOT = "plot m --layout pca -o out.svg"
COMPARE = "compare --resamples 20 "
WRONG = [
    (f"{MINE} --direction both", IsoglotError, "mine: --direction is 'both'"),
    (f"{MINE} --cores 2", IsoglotError, "--cores and --gpus need --ray"),
    (f"{MINE} --check-language no:thing", IsoglotError, "no:thing"),
    (f"{MINE.removesuffix('-o out.tsv')} --format moses --languages eng,deu", OutputError, "^-: moses"),
    (f"{MINE} --ids", CorpusError, "a.eng:1: is not an id"),
    ("mine m - - -o out.tsv", IsoglotError, "-: stdin can be read once"),
    ("align m a.docx -o out.tsv", IsoglotError, "align: a.docx is the only file"),
    ("align m a.docx b.deu -o out --format docx", IsoglotError, "--format is 'docx'"),
    ("encode m a.eng -o out.npy --precision fp8", EncoderError, "precision"),
    ("encode m a.eng -o out.npy --devices nonsense:0", EncoderError, "nonsense"),
    ("encode m a.eng -o out.npy --precision int8", EncoderError, "int8"),
    ("encode m a.eng -o out.txt", OutputError, r"out\.txt"),
    ("encode m a.eng -o out.npy --format jsonl", OutputError, "format"),
    ("encode m a.eng -o out.npy --calibration x.npy", EncoderError, "--calibration is for --output-precision int8"),
    (f"{SHARD} 1/2 --calibration x.npy", EncoderError, "--calibration is for --output-precision int8"),
    (f"{RAY} --workers 2", EncoderError, "remove --workers"),
    (f"{RAY} --devices cpu", EncoderError, "remove --workers"),
    (f"{RAY} --format jsonl", EncoderError, "remove --format jsonl"),
    (f"{SHARD} 1/2 --workers 2", EncoderError, "--shard sets .* --workers"),
    (f"{SHARD} 1/2 --format jsonl", EncoderError, "--shard writes a folder"),
    (f"{SHARD} 3/2", IsoglotError, "--shard is '3/2'; write it as 3/64"),
    (f"{SHARD} half", IsoglotError, "write it as 3/64"),
    ("encode m a.eng -o out --workers 2 --devices cpu", EncoderError, "remove --workers"),
    ("encode m a.eng -o out --lines 5", EncoderError, "needs --ray"),
    ("encode m a.eng -o out --gpus 1", IsoglotError, "need --ray"),
    ("fit whitning m a.eng -o out", EncoderError, "'whitning'; did you mean 'whitening'"),
    ("fit flow m a.eng -o out --dim 3", EncoderError, "--dim 3: a flow keeps every dimension"),
    ("fit whitening m a.eng -o out --dim 9", EncoderError, "dim must lie between 1 and the encoder's 8"),
    ("fit whitening m few.txt -o out", EncoderError, r"few\.txt: a covariance.*got 1"),
    ("trim m empty.txt -o out", CorpusError, "empty.txt: .*no text"),
    ("average m m --weights .9,.8 -o out", EncoderError, r"0\.8"),
    ("convert nowhere -o out --weights int5", IsoglotError, "weights: 'int5' .*did you mean"),
    ("export m --format onnx -o out", IsoglotError, "only transformers can be exported to ONNX"),
    ("export m -o out.tsv", IsoglotError, "m: is a model; to export it, pass --format onnx"),
    ("export i -o out.tsv --words int4", OutputError, "i: --words int4 is for a model"),
    ("mine m a.eng b.deu -o out.tsv --dtype bf16", IsoglotError, "mine: --dtype must be .*'bf16'"),
    ("filter pairs.tsv -o out.jsonl --model m --margin absolut", IsoglotError, r"filter: --margin is .*absolute"),
    ("filter pairs.tsv -o out.tsv --model m", OutputError, r"out\.tsv"),
    ("filter pairs.tsv -o out.jsonl --dropped out.csv --model m", OutputError, r"out\.csv"),
    ("filter pairs.tsv -o out.jsonl --dropped - --model m", OutputError, "pass a file as --dropped"),
    ("negatives m three.tsv -o out.jsonl", CorpusError, "group 1 has 3 sentences"),
    ("negatives m one.tsv -o out.jsonl", CorpusError, "group 1 has 1 sentences"),
    ("negatives m pairs.tsv --leakage a.eng -o out.jsonl", CorpusError, "no pairs are left"),
    *((f"index m a.eng -o out {words} --device cpu", SearchError, "remove --device")
      for words in ("--shard 1/2", "--ray auto")),
    ("index m a.eng -o out --cores 2", IsoglotError, "need --ray"),
    ("index m - -o out --shard 1/2", IsoglotError, "reads the sentences twice"),
    *((f"index {words} -o out", IsoglotError, f"index: {reason}.*; remove {option}") for words, reason, option in [
        ("m a.eng --merge", "--merge takes", r"\[MODEL\] FILE"),
        ("m a.eng --remove x", "entries are removed", r"\[MODEL\] FILE"),
        ("--merge --columns a=deu", "--merge takes", "--columns"), ("--remove x --kind ivf", "entries", "--kind"),
        ("--merge --remove x", "--merge takes", "--remove"), ("--remove-file b.deu --shard 1/2", "entries", "--shard"),
    ]),
    (f"{PLOT} a.eng --parallel", CorpusError, "two files or more"),
    ("plot m a.eng --layout mds -o out.svg", EvaluationError, "'mds'"),
    (f"{PLOT} a.eng --color topic", EvaluationError, "has the extras: none"),
    (f"{PLOT} a.eng few.txt --parallel", CorpusError, r"few\.txt"),
    (f"{PLOT} a.eng --languages eng,deu", CorpusError, "got 2 languages"),
    (f"{PLOT} a.eng b.deu --parallel --languages eng,deu,fra", CorpusError, "3 languages"),
    (f"{PLOT} a.eng --labels few.txt", EvaluationError, "1 for 7"),
    (f"{PLOT} blank.txt a.eng --labels a.eng", CorpusError, r"blank\.txt:1: is empty"),
    *((f"plot {words}", IsoglotError, f"plot: {words.split()[0]} takes only --output; .*; remove {option}")
      for words, option in [
        ("sweep s --limit 7", "--limit"), ("similarity r --languages deu", "--languages"),
    ]),
    *((f"evaluate --write-texts --data . -o out {words}", IsoglotError, f"encodes nothing; remove {option}")
      for words, option in [("m", "MODEL"), ("--precision int8", "--precision"), ("--cache c", "--cache")]),
    ("evaluate m --function json:loads --data . --tasks tatoeba -o out", IsoglotError, "specify one thing to evaluate"),
    ("evaluate --function math:pi --data . --tasks tatoeba -o out", IsoglotError, "^--function math:pi: .*float"),
    ("evaluate --vectors x.npy --data . --tasks tatoeba -o out", IsoglotError, "--vectors and --texts"),
    ("evaluate --function json:loads --cache c --data . -o out", IsoglotError, "a cache needs an encoder"),
    ("evaluate --function json:loads --cache a.eng/deep --data . -o out", OutputError, r"a\.eng is not a folder"),
    ("evaluate --function json:loads --prompt x --data . -o out", EvaluationError, "^--prompt is for a MODEL"),
    ("evaluate --function json:loads --max-length 7 --data . -o out", EvaluationError, "^--max-length is for a MODEL"),
    (f"{COMPARE} r nosuch", EvaluationError, "nosuch: cannot be read"),
    (f"{COMPARE} r x=", EvaluationError, "'x=' is neither a path nor NAME=PATH"),
    (f"{COMPARE} r =r", EvaluationError, "'=r' is neither a path nor NAME=PATH"),
    (f"{COMPARE} r r=s", EvaluationError, "'r' is the name of two systems; .* NAME=r"),
    (f"{COMPARE} r r", EvaluationError, "'r' is the name of two systems"),
    ("models get nosuch", IsoglotError, "nosuch"),
    ("serve nosuch", IsoglotError, "not found"),
    ("serve m --effort 3", IsoglotError, "not an index"),
    ("serve m --port 0 --allow-origin example.org", SearchError, r"serve: 'example\.org' "),
    ("recipe show nosuch", IsoglotError, "neither a file nor a packaged recipe"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("errors")
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(folder / "m")
    text = "".join(f"{sentence}\n" for sentence in SENTENCES[:7])
    files = {
        **dict.fromkeys(("a.eng", "b.deu"), text), "few.txt": "one\n", "empty.txt": "", "blank.txt": "\n \n",
        "pairs.tsv": "eng\tdeu\n" + "".join(f"{one}\t{one}\n" for one in SENTENCES[:7]),
        "three.tsv": "eng\tdeu\tfra\na\tb\tc\n", "one.tsv": "eng\tdeu\na\t\n",
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    write_docx(folder / "a.docx", "".join(f"<w:p><w:r><w:t>{one}</w:t></w:r></w:p>" for one in SENTENCES[:5]))
    np.save(folder / "x.npy", np.random.default_rng(0).standard_normal((7, 4), np.float32))
    for name in "rs":
        items = np.ones(3, np.float32)
        write_results(folder / name, Scores([Score("tatoeba", "deu-eng", "accuracy/mean", 1.0, 3, items=items)], name))
    return folder


def files():
    """What is there, except for work folders, from which a call with another budget resumes."""
    return sorted(path for path in Path().iterdir() if path.suffix != ".work")


@pytest.mark.parametrize(("words", "error", "message"), WRONG, ids=[words for words, *_ in WRONG])
def test_wrong_words_are_one_error_and_write_nothing(folder, monkeypatch, words, error, message):
    monkeypatch.chdir(folder)
    before = files()
    with pytest.raises(error, match=message):
        invoke(app, *words.split())
    assert files() == before
