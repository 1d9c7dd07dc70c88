"""Hugging Face datasets, and anything that looks like one."""

from __future__ import annotations

import builtins

import pytest

from isoglot.data.readers import from_dataset, read_dataset
from isoglot.data.records import Group
from isoglot.errors import CorpusError

ROWS = [{"id": 1, "a": "Hi", "b": "Hallo", "n": "No"}, {"id": 2, "a": "Yes", "b": None, "n": ""}]


def test_rows_of_dicts():
    groups = list(from_dataset(ROWS, columns={"a": "en", "b": "de"}, hard_negatives={"n": "en"}))
    assert groups == [Group(("Hi", "Hallo"), ("eng", "deu"), "", ("No",), ("eng",)), Group(("Yes",), ("eng",))]


def test_the_translation_column_of_opus():
    rows = [{"id": "0", "translation": {"en": "Hi", "zh_CN": "你好", "fr": None}}]
    assert list(from_dataset(rows)) == [Group(("Hi", "你好"), ("eng", "zho_Hans"))]


@pytest.mark.parametrize(
    "rows, columns, message",
    [
        (ROWS, {"z": "en"}, r"^dataset:1: has no column 'z'; the columns are 'id', 'a'"),
        (ROWS, {"id": "en"}, r"^dataset:1: column 'id' holds a int"),
        (ROWS, {"a": "xx"}, "unknown language 'xx'"),
        (ROWS, {"b": "de"}, r"^dataset:2: holds no text"),
        (ROWS, None, "has no column 'translation'"),
        ([{"translation": {"xx": "Hi"}}], None, "^dataset:1: unknown language 'xx'"),
    ],
)
def test_wrong_columns_are_named(rows, columns, message):
    with pytest.raises(CorpusError, match=message):
        list(from_dataset(rows, columns=columns))


@pytest.mark.parametrize("streaming", [False, True])
def test_real_datasets(streaming):
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list(ROWS * 700)
    rows = dataset.to_iterable_dataset() if streaming else dataset
    groups = list(from_dataset(rows, columns={"a": "en", "b": "de"}))
    assert groups == [Group(("Hi", "Hallo"), ("eng", "deu")), Group(("Yes",), ("eng",))] * 700


def test_real_datasets_with_the_opus_feature():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"translation": datasets.Translation(languages=["en", "de"])})
    dataset = datasets.Dataset.from_list([{"translation": {"en": "Hi", "de": "Hallo"}}], features=features)
    assert {*from_dataset(dataset).__next__().texts} == {"Hi", "Hallo"}


def test_saved_datasets_and_their_splits(tmp_path):
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list(ROWS)
    dataset.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": dataset}).save_to_disk(tmp_path / "many")
    expected = list(from_dataset(ROWS, columns={"a": "en"}))
    assert list(read_dataset(tmp_path / "one", columns={"a": "en"})) == expected
    assert list(read_dataset(tmp_path / "many", columns={"a": "en"}, split="train")) == expected
    with pytest.raises(CorpusError, match="has no split 'test'; give split= as one of train"):
        list(read_dataset(tmp_path / "many", columns={"a": "en"}, split="test"))
    with pytest.raises(CorpusError, match="nothing: cannot be read as a saved dataset"):
        list(read_dataset(tmp_path / "nothing", columns={"a": "en"}))


def test_without_the_library_the_message_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name == "datasets":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(CorpusError, match=r"install isoglot\[datasets\]"):
        list(read_dataset(tmp_path))
