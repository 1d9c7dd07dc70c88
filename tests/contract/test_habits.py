"""Habits of notebooks with sentence-transformers, pandas and datasets: each works, or one sentence answers it."""

import copy
import pickle

import datasets
import numpy as np
import pandas as pd
import pytest
import torch

import isoglot
from conftest import SENTENCES, build_tokenizer
from isoglot.encoders import StaticEncoder

LEFT, RIGHT = SENTENCES[:4], SENTENCES[4:8]
PAIRS = list(zip(LEFT, RIGHT, strict=True))
GOLD = [1.0, 2.0, 3.0, 5.0]


class Foreign:
    """A model of another library."""

    def __init__(self, model):
        self.model = model

    def encode(self, texts, **settings):
        return self.model.encode(texts).tolist()


def trained(model, data, **settings):
    return isoglot.train(model, data, steps=1, **settings).encode(LEFT).shape == (4, 8)


WORKS = {
    "encode a string": lambda m: m.encode("one").shape == (8,),
    "encode a list": lambda m: m.encode(LEFT).shape == (4, 8),
    "encode nothing": lambda m: m.encode([]).shape == (0, 8),
    "encode a tuple, a generator": lambda m: np.array_equal(m.encode(tuple(LEFT)), m.encode(t for t in LEFT)),
    "encode a part of a series": lambda m: m.encode(pd.Series(SENTENCES)[2:5]).shape == (3, 8),
    "encode an array of strings": lambda m: m.encode(np.array(LEFT)).shape == (4, 8),
    "map a dataset": lambda m: (
        datasets.Dataset.from_dict({"t": LEFT}).map(lambda rows: {"v": m.encode(rows["t"])}, batched=True).shape
        == (4, 2)
    ),
    "tensors": lambda m: isinstance(m.encode(LEFT, convert_to_tensor=True), torch.Tensor),
    "queries and documents": lambda m: m.encode_query("a").shape == m.encode_document("a").shape == (8,),
    "similarity of vectors": lambda m: m.similarity(m.encode(LEFT), m.encode(RIGHT)).shape == (4, 4),
    "similarity of texts": lambda m: m.similarity("a cat", LEFT).shape == (1, 4),
    "similarity of pairs": lambda m: np.allclose(
        m.similarity_pairwise(LEFT, RIGHT), np.diag(m.similarity(LEFT, RIGHT)), atol=1e-6
    ),
    "to a device": lambda m: m.to("cpu").device == torch.device("cpu"),
    "repr": lambda m: "dim=8" in repr(m),
    "pickle and copy": lambda m: np.array_equal(
        pickle.loads(pickle.dumps(m)).encode(LEFT), copy.deepcopy(m).encode(LEFT)
    ),
    "train on pairs": lambda m: trained(m, PAIRS),
    "train on zip": lambda m: trained(m, zip(LEFT, RIGHT, strict=True)),
    "train on a frame": lambda m: trained(m, pd.DataFrame(PAIRS, columns=["anchor", "positive"])),
    "train on a dataset": lambda m: trained(m, datasets.Dataset.from_dict({"en": LEFT, "de": RIGHT})),
    "evaluate pairs": lambda m: len(isoglot.evaluate(m, pairs=PAIRS).to_frame()) > 0,
    "evaluate rated pairs": lambda m: isoglot.evaluate(m, sts=[(*pair, i) for i, pair in enumerate(PAIRS)])[0].n == 4,
    "evaluate a model of another library": lambda m: (
        isoglot.evaluate(Foreign(m), pairs=PAIRS)[0].value == isoglot.evaluate(m, pairs=PAIRS)[0].value
    ),
    "compare two results": lambda m: (
        "accuracy" in str(isoglot.compare(*[isoglot.evaluate(m, pairs=PAIRS)] * 2, names=["a", "b"], resamples=20))
    ),
    "mine lists": lambda m: len(list(isoglot.mine(m, LEFT, RIGHT))) == len(isoglot.mine(m, LEFT, RIGHT).to_frame()) > 0,
    "mine tensors of vectors": lambda m: np.array_equal(
        isoglot.search.mine(torch.tensor(m.encode(LEFT), requires_grad=True), m.encode(RIGHT)).score,
        isoglot.search.mine(m.encode(LEFT), m.encode(RIGHT)).score,
    ),
    "mine one list": lambda m: len(isoglot.mine(m, LEFT)) > 0,
    "index and search": lambda m: isoglot.Index.build(m, pd.Series(LEFT)).search(LEFT[1], k=1)[0].text == LEFT[1],
    "plot lists and dicts": lambda m: all(
        len(isoglot.plot(m, some, method="pca").places) == 4 for some in (LEFT, {"en": LEFT[:2], "de": RIGHT[:2]})
    ),
    "sentence-transformers' names": lambda m: all(
        (m.encode(**{name: LEFT}, device="cpu", convert_to_numpy=True) == m.encode(LEFT)).all()
        for name in ("sentences", "inputs")
    ),
    "a list of tensors": lambda m: (
        [tuple(row.shape) for row in m.encode(LEFT[:2], convert_to_numpy=False)] == [(8,)] * 2
    ),
    "similarity_fn_name": lambda m: m.similarity_fn_name == "cosine",
    "Tab": lambda m: "load" in dir(isoglot),
}

ANSWERED = {
    "texts with NaN": (lambda m: m.encode(pd.Series(["a", float("nan")])), TypeError, "text 1 is nan"),
    "vectors": (lambda m: m.encode(m.encode(LEFT)), TypeError, r"text 0 is array\(.{,90}, a ndarray"),
    "a whole frame": (lambda m: m.encode(pd.DataFrame({"t": LEFT})), TypeError, r"table\['text'\]"),
    "a whole dataset": (lambda m: m.encode(datasets.Dataset.from_dict({"t": LEFT})), TypeError, r"table\['text'\]"),
    "a number": (lambda m: m.encode(3), TypeError, "each item a string, got int 3"),
    "a name of a model to encode": (lambda m: isoglot.encode("small", LEFT), TypeError, r"isoglot\.load\('small'\)"),
    "no texts": (lambda m: m.encode(), TypeError, "texts, sentences, inputs"),
    "texts twice": (lambda m: m.encode(LEFT, sentences=LEFT), TypeError, "texts and sentences"),
    "a device to encode": (lambda m: m.encode(LEFT, device="xpu:3"), isoglot.IsoglotError, "'xpu:3'"),
    "tokens of a static model": (
        lambda m: m.encode(LEFT, output_value="token_embeddings"),
        isoglot.IsoglotError,
        "use a transformer",
    ),
    "an unknown output": (lambda m: m.encode(LEFT, output_value="tokens"), ValueError, "token_embeddings"),
    "all outputs": (lambda m: m.encode(LEFT, output_value=None), TypeError, "must be .*token_embeddings"),
    "another similarity": (lambda m: setattr(m, "similarity_fn_name", "dot"), ValueError, "is the cosine, got 'dot'"),
    "a misspelt setting": (lambda m: m.encode(LEFT, batchsize=2), TypeError, "did you mean 'batch_size'"),
    "texts to the module": (lambda m: m(LEFT), TypeError, r"encoder\.encode\(texts\)"),
    "a setting that is an argument": (
        lambda m: setattr(m, "truncate_dim", 4),
        AttributeError,
        r"encode\(texts, truncate_dim=",
    ),
    "a default prompt": (lambda m: setattr(m, "default_prompt_name", "query"), AttributeError, "use prompt"),
    "no length": (lambda m: setattr(m, "max_seq_length", None), TypeError, "got None"),
    "a length of 0": (lambda m: setattr(m, "max_seq_length", 0), ValueError, "at least 1"),
    "a batch size by its place": (lambda m: m.encode(LEFT, 32), TypeError, r"takes texts without a name"),
    "cosines of bits": (
        lambda m: m.similarity(m.encode(LEFT, output_precision="ubinary"), LEFT),
        ValueError,
        "uint8 are steps or bits",
    ),
    "a backend": (lambda m: isoglot.load("isoglot-static", backend="onnx"), TypeError, "pass engine"),
    "a model by another name": (lambda m: isoglot.load(model_name_or_path="x"), TypeError, "pass name"),
    "dimensions of a model": (lambda m: isoglot.load("isoglot-static", truncate_dim=4), TypeError, "to encode"),
    "another device": (
        lambda m: isoglot.load("isoglot-static").to("cuda"),
        AttributeError,
        r"isoglot\.load\(name, device=",
    ),
    "fit": (lambda m: m.fit(PAIRS), AttributeError, r"isoglot\.train\(model, pairs\)"),
    "save_pretrained": (lambda m: m.save_pretrained("x"), AttributeError, r"save\(folder\)"),
    "a misspelt function": (lambda m: isoglot.loda, AttributeError, "did you mean 'load'"),
    "an unknown device": (lambda m: isoglot.load(device="xpu:3"), isoglot.IsoglotError, "'xpu:3'"),
    "train on all splits": (
        lambda m: isoglot.train(m, datasets.DatasetDict(train=datasets.Dataset.from_dict({"en": LEFT, "de": RIGHT}))),
        TypeError,
        r"data\['train'\]",
    ),
    "report_to": (lambda m: isoglot.train(m, PAIRS, report_to="wandb"), TypeError, "pass track"),
    "fp16": (lambda m: isoglot.train(m, PAIRS, fp16=True), TypeError, "pass precision='bfloat16'"),
    "a rate of 0": (lambda m: isoglot.train(m, PAIRS, lr=0), ValueError, "lr: must be at least 1e-30"),
    "None in dev": (lambda m: isoglot.train(m, PAIRS, dev=[("a", None)]), TypeError, "row 1 of dev contains None"),
    "a number as dev": (lambda m: isoglot.train(m, PAIRS, dev=3), TypeError, "^dev is"),
    "a blank in pairs": (lambda m: isoglot.evaluate(m, pairs=[("a", "")]), isoglot.IsoglotError, "row 1 of pairs: "),
    "learning_rate": (lambda m: isoglot.train(m, PAIRS, learning_rate=0.1), TypeError, "pass lr"),
    "masked vectors": (
        lambda m: isoglot.evaluate(lambda texts: np.ma.masked_less(np.ones((len(texts), 2)), 2), pairs=PAIRS),
        isoglot.IsoglotError,
        "masked",
    ),
    "models to compare": (lambda m: isoglot.compare(m, m), TypeError, r"a result of isoglot\.evaluate"),
    "mine vectors": (lambda m: isoglot.mine(m, m.encode(LEFT), m.encode(RIGHT)), TypeError, "list of sentences"),
    "mine a frame of vectors": (lambda m: isoglot.search.mine(pd.DataFrame(m.encode(LEFT))), TypeError, "to_numpy"),
    "Index(...)": (lambda m: isoglot.Index(m, LEFT), TypeError, r"Index\.build"),
    "top_k": (lambda m: isoglot.Index.build(m, LEFT).search("a", top_k=2), TypeError, "pass k"),
}


@pytest.fixture(scope="module")
def model():
    return StaticEncoder.create(build_tokenizer(), 8, seed=1)


@pytest.mark.parametrize("habit", WORKS)
def test_a_habit_works(model, habit):
    assert WORKS[habit](model)


@pytest.mark.parametrize("habit", ANSWERED)
def test_a_habit_is_answered_in_one_sentence(model, habit):
    call, kind, answer = ANSWERED[habit]
    with pytest.raises(kind, match=answer) as raised:
        call(model)
    assert "\n" not in str(raised.value)


def columns(kind, values):
    """A column of a library."""
    if kind == "datasets":
        return datasets.Dataset.from_dict({"x": values})["x"]
    if kind == "pandas":
        return pd.Series(values)
    library = pytest.importorskip("polars" if kind == "polars" else "pyarrow")
    if kind == "polars":
        return library.Series(values)
    return library.array(values) if kind == "pyarrow" else library.chunked_array([values[:1], values[1:]])


TAKE_COLUMNS = {
    "encode": lambda m, c: np.array_equal(m.encode(c(LEFT)), m.encode(LEFT)),
    "similarity": lambda m, c: np.array_equal(m.similarity(c(LEFT), c(RIGHT)), m.similarity(LEFT, RIGHT)),
    "mine": lambda m, c: (
        [*isoglot.mine(m, c(LEFT), c(RIGHT), ids=[c(["1", "2", "3", "4"]), c(["5", "6", "7", "8"])])]
        == [*isoglot.mine(m, LEFT, RIGHT, ids=[["1", "2", "3", "4"], ["5", "6", "7", "8"]])]
    ),
    "search": lambda m, c: (
        isoglot.Index.build(m, LEFT).search(c(RIGHT), k=2) == isoglot.Index.build(m, LEFT).search(RIGHT, k=2)
    ),
    "build": lambda m, c: (
        isoglot.Index.build(
            m,
            c(LEFT),
            languages=c(["eng"] * 4),
            translations=c(RIGHT),
            translation_languages=c(["deu"] * 4),
            ids=c(["a", "b", "c", "d"]),
        ).search(LEFT[0], k=4)
        == isoglot.Index.build(
            m, LEFT, languages="eng", translations=RIGHT, translation_languages="deu", ids=[*"abcd"]
        ).search(LEFT[0], k=4)
    ),
    "add": lambda m, c: isoglot.Index.build(m, LEFT).add(c(RIGHT), ids=c(["a", "b", "c", "d"])).new == 4,
    "evaluate": lambda m, c: (
        isoglot.evaluate(m, pairs={"en": c(LEFT), "de": c(RIGHT)})[0].value
        == isoglot.evaluate(m, pairs={"en": LEFT, "de": RIGHT})[0].value
    ),
    "evaluate rows": lambda m, c: (
        isoglot.evaluate(m, pairs=[*zip(c(LEFT), c(RIGHT), strict=True)])[0].value
        == isoglot.evaluate(m, pairs=PAIRS)[0].value
    ),
    "evaluate rated rows": lambda m, c: (
        [*isoglot.evaluate(m, sts={"sentence1": c(LEFT), "sentence2": c(RIGHT), "score": c(GOLD)})]
        == [*isoglot.evaluate(m, sts=[*zip(LEFT, RIGHT, GOLD, strict=True)])]
    ),
    "plot": lambda m, c: (
        isoglot.plot(m, c(LEFT), labels=c([*"abab"]), languages=c(["eng", "deu", "fra", "spa"]), method="pca").sentences
        == isoglot.plot(m, LEFT, labels=[*"abab"], languages=["eng", "deu", "fra", "spa"], method="pca").sentences
    ),
    "train": lambda m, c: trained(m, {"en": c(LEFT), "de": c(RIGHT)}, dev={"en": c(LEFT), "de": c(RIGHT)}),
}


@pytest.mark.parametrize("kind", ["pyarrow", "chunked", "pandas", "polars", "datasets"])
@pytest.mark.parametrize("name", TAKE_COLUMNS)
def test_a_column_of_any_library_is_a_list(model, name, kind):
    assert TAKE_COLUMNS[name](model, lambda values: columns(kind, values))


@pytest.mark.parametrize("languages", [None, "en,de"])
@pytest.mark.parametrize(
    "rows", [{"en": LEFT, "de": [*RIGHT[:1], None, *RIGHT[2:]]}, [{"en": "a", "de": "b"}, {"en": "c"}]]
)
def test_a_row_without_its_translation_is_never_left_out(model, rows, languages):
    codes = languages and languages.split(",")
    with pytest.raises(isoglot.IsoglotError, match="row 2 of pairs"):
        isoglot.evaluate(model, pairs=rows, languages=codes or ())
    with pytest.raises(ValueError, match="row 2 of dev"):
        isoglot.train(
            model, PAIRS, dev=rows, languages=None if isinstance(rows, dict) or codes is None else codes, steps=1
        )
