"""`isoglot trim`: what it writes, what it says, and one line for what cannot be."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import as_function, runner

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.trim import trim as trim_verb
from isoglot.encoders import StaticEncoder, load, vocabulary
from isoglot.errors import CorpusError, EncoderError
from isoglot.model import encode

trim = as_function(trim_verb)


@pytest.fixture
def project(tmp_path):
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(tmp_path / "model")
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in SENTENCES[:3]), encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text(f"spa\trus\n{SENTENCES[3]}\t{SENTENCES[4]}\n", encoding="utf-8")
    hard = {"texts": [SENTENCES[5]], "langs": ["jpn"], "hard_negatives": [SENTENCES[6]], "hard_langs": ["zho"]}
    (tmp_path / "more.jsonl").write_text(json.dumps(hard) + "\n", encoding="utf-8")
    return tmp_path


def test_every_kind_of_corpus_counts(project, capsys):
    corpus = [project / name for name in ("lines.txt", "pairs.tsv", "more.jsonl")]
    trim([str(project / "model"), *map(str, corpus)], project / "small")
    before, after = load(project / "model"), load(project / "small")
    np.testing.assert_array_equal(encode(after, SENTENCES[:7]), encode(before, SENTENCES[:7]))
    said = capsys.readouterr().err
    assert f"7 sentences use {len(after.table)} of {len(before.table)} pieces" in said.replace(",", "")
    assert "vectors of the corpus unchanged" in said
    assert len(after.table) < len(before.table)


def test_the_options_are_heeded(project):
    words = [project / "model", project / "lines.txt", "-o", project / "small", "--prompt", "%: "]
    said = runner(trim=trim_verb)(*words, "--minimum-count", 2, "--no-keep-characters")
    assert "sentences with rarer pieces have other vectors" in said
    small = load(project / "small")
    assert small.prompt == "%: "
    pieces = small.tokenizer.get_vocab()
    assert "%" in pieces
    assert "猫" not in pieces


def test_what_cannot_be_is_one_line_and_writes_nothing(project, monkeypatch):
    (project / "empty.txt").write_text("")
    (project / "blank.txt").write_text("\n \n\n")
    for name, words in (("empty.txt", "empty.txt: .*no text"), ("blank.txt", "no sentences")):
        with pytest.raises(CorpusError, match=words):
            trim([str(project / "model"), str(project / name)], project / "small")
    monkeypatch.setattr(vocabulary, "KINDS", ("Unigram",))
    with pytest.raises(EncoderError, match=r"model: .*vocabulary"):
        trim([str(project / "model"), str(project / "lines.txt")], project / "small")
    assert not (project / "small").exists()
