"""Wrong calls of every public function: each argument with values of other kinds. None ends in an error of Python's."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

import isoglot
from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot import mining, objectives, scale, search
from isoglot.data import groups_of
from isoglot.encoders import StaticEncoder, average, fit_flow, fit_whitening, trim
from isoglot.index import Index
from isoglot.mining import add_hard_negatives, filter_pairs
from isoglot.model import quantize_vectors
from isoglot.serve import create_app

LEFT, RIGHT = SENTENCES[:4], SENTENCES[4:8]
PAIRS = list(zip(LEFT, RIGHT, strict=True))
SOURCE = str(Path(isoglot.__file__).parent)
MASKED = np.ma.masked_less(np.eye(8, dtype=np.float32), 0.5)

# Values that an argument of each kind can't have: all are errors.
WRONG = {
    "count": [True, 2.5, "3", -1, object(), [1]],
    "whole": [True, 2.5, "3", object(), [1]],
    "number": ["1", True, float("nan"), [1.0], 1j],
    "switch": ["no", 1, 0, [True]],
    "path": [5, 2.5, True, b"x", ["a"], object(), "a\0b", "\ud800"],
    "place": [5, 2.5, True, b"x", ["a"], object()],  # one that is not always opened
    "name": [5, True, b"x", ["a"], object()],
    "texts": [5, 2.5, object(), {"a": 1}, [None], [5], pd.DataFrame({"a": ["b"]}), np.array(3)],
    "vectors": [5, object(), {"a": 1}, [None], MASKED, [*MASKED], np.array(3)],
    "names": [5, object(), [5], {"a": "b"}, 2.5],
    "column": [5, object(), 2.5, {"a": "b"}],
    "pairs": [5, object(), "text", ["a"], [("a",)], [("a", "b"), ("c",)], {"en": ["a", None], "de": ["b", "c"]}],
    "callback": [5, "x", [1], object()],
    "choice": [5, True, "nonsense", b"x", object()],
    "array": [None, 5, "x", object(), {"a": 1}, [None], MASKED, np.array("x"), np.array([[None]]), [[1.0]]],
    "wide": ["1", [1.0], 1j, -1, {"a": "b"}],
    "anything": [],
}
# Values that may be taken or not; for every argument.
ODD = [None, 10**30, -(10**30), float("inf"), "x" * 5000, "", np.array(3), np.float32(1), [], {}, [[["a"]]], range(2)]


class World:
    """What the calls need."""

    def __init__(self):
        self.m = StaticEncoder.create(build_tokenizer(), 8, seed=1)
        self.m.save("static")
        build_transformer().save("transformer")
        self.index = Index.build(self.m, LEFT)
        self.scores = isoglot.evaluate(self.m, pairs=PAIRS)
        self.compared = isoglot.compare(self.scores, resamples=10)
        self.mined = isoglot.mine(self.m, LEFT, RIGHT)
        self.vectors, self.others = self.m.encode(LEFT), self.m.encode(RIGHT)
        self.found = search.neighbours(self.vectors, self.others, 2)
        self.codes = quantize_vectors(self.vectors, "ubinary")
        self.map = isoglot.plot(self.m, LEFT, method="pca")


def calls(w):
    """A function, what it is called with, and its arguments by kind."""

    def options(name, kind):
        """`mine` as a function of the fields of one of its options."""
        return lambda **given: isoglot.mine(w.m, LEFT, RIGHT, languages="deu,eng", **{name: kind(**given)})

    def compare(system=w.scores, **given):
        return isoglot.compare(system, **{"resamples": 10, **given})

    two, mine = {"model": w.m, "texts": SENTENCES * 3}, {"model": w.m, "sources": LEFT, "targets": RIGHT}
    near, pairs = {"x": w.vectors, "y": w.others, "k": 2}, {"model": w.m, "pairs": PAIRS}
    return {
        "load": (isoglot.load, {"name": "transformer"},
            "name:path device:choice pooling:choice prompt:name max_length:count allow_download:switch dim:count "
            "dropout:number layers:anything head:choice seed:anything train_layers:choice adapter:anything "
            "freeze_embeddings:switch sparse_embeddings:switch"),
        "load static": (isoglot.load, {"name": "static"}, "max_length:count token_weights:switch sparse:switch"),
        "encode": (w.m.encode, {"texts": LEFT},
            "texts:texts batch_size:count batch_tokens:count show_progress_bar:switch normalize_embeddings:switch "
            "convert_to_tensor:switch prompt:name prompt_name:choice truncate_dim:count precision:choice dtype:choice "
            "output:path progress:callback"),
        "function encode": (isoglot.encode, {"model": w.m, "texts": LEFT}, "model:anything texts:texts"),
        "similarity": (w.m.similarity, {"a": w.vectors, "b": LEFT}, "a:vectors b:vectors"),
        "similarity_pairwise": (w.m.similarity_pairwise, {"a": w.vectors, "b": LEFT}, "a:vectors b:vectors"),
        "for_mteb": (w.m.for_mteb, {}, "name:name"),
        "save": (w.m.save, {"folder": "saved"}, "folder:path name:name weights:choice words:choice"),
        "mine": (isoglot.mine, mine,
            "model:anything sources:texts targets:texts k:count margin:choice direction:choice threshold:anything "
            "gold:column languages:names ids:anything split:switch device:name filters:place computation:place "
            "output:path progress:callback report:callback"),
        "align": (isoglot.align, {"source": LEFT, "target": RIGHT, "model": w.m},
            "source:texts target:texts model:anything most:count skip:number width:count min_score:number split:switch "
            "languages:names device:name output:path format:choice write_ids:switch progress:callback report:callback"),
        "index.update": (lambda **given: Index.build(w.m, LEFT).update(**given), {"sentences": RIGHT},
            "sentences:texts languages:column translations:column ids:column"),
        "index.delete": (lambda **given: Index.build(w.m, LEFT, ids=list("abcd")).delete(**given),
            {"ids": ["a"]}, "ids:names"),
        "mine filters": (options("filters", mining.Filters), {},
            "keep_duplicates:switch drop_identical:switch length_ratio:number check_language:choice"),
        "mine computation": (options("computation", mining.Computation), {},
            "prompt:name pooling:name dtype:choice budget:anything index:choice probes:count cluster:place"),
        "mine output": (options("output", mining.Output), {},
            "path:path format:choice write_ids:switch work:path every:number"),
        "mine vectors": (isoglot.mine, mine | {"model": None, "vectors": np.ones((2, 4, 3), np.float32)},
            "vectors:vectors"),
        "mined.save": (w.mined.save, {"path": "p.tsv"}, "path:path format:choice ids:switch languages:names"),
        "mined.above": (w.mined.above, {}, "threshold:number"),
        "mined.to_frame": (w.mined.to_frame, {}, "library:choice"),
        "build": (Index.build, {"model": w.m, "sentences": LEFT},
            "model:anything sentences:texts languages:column translations:column translation_languages:column "
            "ids:column kind:choice folder:path query_prompt:name prompt:choice pooling:choice device:name "
            "progress:callback report:callback"),
        "open": (Index.open, {}, "folder:path"),
        "exists": (Index.exists, {}, "folder:place"),
        "create": (Index.create, {"folder": None, "origin": w.index.origin}, "folder:path kind:choice"),
        "add": (lambda **given: Index.build(w.m, LEFT).add(**given), {"sentences": RIGHT},
            "sentences:texts languages:column translations:column translation_languages:column ids:column kind:choice "
            "progress:callback"),
        "add_vectors": (w.index.add_vectors, {"sentences": []}, "vectors:vectors"),
        "search": (w.index.search, {"queries": LEFT},
            "queries:vectors k:count languages:names exclude:names effort:count"),
        "vectors": (w.index.vectors, {}, "rows:names"),
        "restructure": (w.index.restructure, {}, "kind:choice"),
        "index.save": (w.index.save, {}, "folder:path"),
        "export": (w.index.export, {"path": "x.tsv"}, "path:path format:choice progress:callback"),
        "evaluate": (isoglot.evaluate, pairs,
            "model:anything tasks:names pairs:pairs sts:column languages:names cache:path precision:choice device:name "
            "output:path seen:names name:name skip_missing:switch report:callback progress:callback"),
        "evaluate in a folder": (isoglot.evaluate, {"model": w.m, "tasks": ["sts17"]}, "data:path"),
        "scores.save": (w.scores.save, {"folder": "scores"}, "folder:path seen:names"),
        "compare": (compare, {}, "system:path names:names tasks:names metrics:names resamples:count seed:count"),
        "compared.save": (w.compared.save, {}, "folder:path"),
        "compared.page": (w.compared.page, {"path": "p.html"}, "path:path seen:names title:name"),
        "plot": (isoglot.plot, {"model": w.m, "texts": LEFT, "method": "pca"},
            "model:vectors texts:column output:path method:choice color:choice languages:column labels:column "
            "limit:count seed:count title:name device:name"),
        "map.save": (w.map.save, {}, "path:path"),
        "search.neighbours": (search.neighbours, near,
            "x:array y:array metric:choice k:count budget:number progress:callback"),
        "search.mine": (search.mine, near,
            "x:array margin:choice direction:choice k:count budget:number progress:callback"),
        "search.margins": (search.margins,
            {"scores": w.vectors[:, :2], "ids": w.found.forward_ids, "other_scores": w.others[:, :2]},
            "scores:array ids:array other_scores:array margin:choice"),
        "search.hard_negatives": (search.hard_negatives,
            {"x": w.vectors, "y": w.others, "gold": ([0], [0]), "count": 2}, "x:array y:array gold:pairs count:count"),
        "search.search_binary": (search.search_binary,
            {"queries": w.vectors, "codes": w.codes, "vectors": w.vectors, "k": 2},
            "queries:array codes:array vectors:array k:count oversampling:count metric:choice"),
        "search.recall": (search.recall, {"x": w.vectors, "y": w.others, "found": w.found},
            "x:array y:array found:anything sample:count seed:count"),
        "quantize_vectors": (quantize_vectors, {"vectors": w.vectors, "kind": "int8"}, "kind:choice"),
        "filter_pairs": (filter_pairs, pairs | {"k": 2},
            "model:anything pairs:column languages:names k:count margin:choice threshold:number nonsense:count"),
        "add_hard_negatives": (add_hard_negatives, pairs | {"count": 1},
            "model:anything pairs:pairs count:count languages:names progress:callback"),
        "average": (average, {"models": [w.m, w.m]}, "models:names weights:names"),
        "fit_whitening": (fit_whitening, two, "model:column texts:texts dim:count progress:callback"),
        "fit_flow": (fit_flow, two,
            "model:column texts:texts batch_size:count lr:number seed:count flow:callback permutation:choice"),
        "trim": (trim, {"model": w.m, "texts": LEFT},
            "model:column minimum_count:count first:count keep_characters:switch"),
        "groups_of": (lambda **given: list(groups_of(**given)), {"data": PAIRS},
            "data:column languages:names hard_negatives:name"),
        "encode_shards": (scale.encode_shards,
            {"model": "static", "inputs": [Path("no.txt")], "output": Path("shards")},
            "model:choice inputs:texts output:place lines:count settings:count cluster:callback progress:callback"),
        "Cluster": (scale.Cluster, {}, "cpus:wide gpus:wide retries:wide"),
        "create_app": (create_app, {"index": w.index},
            "index:column encoder:column name:name effort:whole allow_hosts:names allow_origins:names limits:column"),
        "objectives.build": (objectives.build, {"name": "info_nce", "options": {}, "encoder": w.m},
            "name:choice options:count encoder:column"),
        "InfoNCE": (objectives.InfoNCE, {}, "temperature:wide"),
        "train": (isoglot.train, {"model": w.m, "data": PAIRS, "steps": 1},
            "model:anything data:column dev:pairs objective:choice batch_size:count lr:number warmup:count "
            "precision:choice adapter:choice train_layers:choice freeze_embeddings:switch views:count teacher:choice "
            "languages:choice dev_data:place evaluate_every:count patience:count output:path resume:switch seed:count "
            "device:choice show_progress_bar:switch progress:callback report:callback"),
    }  # fmt: skip


NAMES = [*calls(MagicMock())]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("calls"))
    yield World()
    os.chdir(before)


def foreign(error):
    """Whether an error is not one that this library raises: another kind, or raised elsewhere."""
    if isinstance(error, isoglot.IsoglotError):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    return not (isinstance(error, TypeError | ValueError) and last.filename.startswith(SOURCE) and "raise" in last.line)


def outcomes(world, name, values, accepted):
    """What became of each argument with each of its values, but for what is accepted."""
    found = {}
    for argument, kind in (pair.split(":") for pair in calls(world)[name][2].split()):
        for value in values(kind):
            call, given, _ = calls(world)[name]
            try:
                call(**{**given, argument: value})
            except Exception as error:
                done = f"{type(error).__name__}: {error}" if foreign(error) else "error"
            else:
                done = "taken"
            if done not in accepted:
                found[argument, repr(value)[:40]] = done
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_wrong_values_are_errors_of_the_caller_and_odd_ones_may_be_taken(name, world):
    assert outcomes(world, name, lambda kind: WRONG[kind], ("error",)) == {}
    assert outcomes(world, name, lambda _: ODD, ("error", "taken")) == {}
