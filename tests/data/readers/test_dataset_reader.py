"""Datasets saved in a folder."""

from __future__ import annotations

import builtins

import pytest

from isoglot.core.errors import CorpusError
from isoglot.data import Group
from isoglot.data.readers import read_dataset

ROWS = [{"id": 1, "a": "Hi", "b": "Hallo", "n": "No"}, {"id": 2, "a": "Yes", "b": None, "n": ""}]


def test_saved_datasets_and_their_splits(tmp_path):
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list(ROWS)
    dataset.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": dataset}).save_to_disk(tmp_path / "many")
    expected = [Group(("Hi",), ("eng",)), Group(("Yes",), ("eng",))]
    assert list(read_dataset(tmp_path / "one", columns={"a": "en"})) == expected
    assert list(read_dataset(tmp_path / "many", columns={"a": "en"}, split="train")) == expected
    for path, options, problem in [
        ("many", {"split": "test"}, "'test'.*train"),
        ("nothing", {}, "nothing: "),
        ("one", {"columns": {"z": "en"}}, "one: row 1 .*'z'"),
    ]:
        with pytest.raises(CorpusError, match=problem):
            list(read_dataset(tmp_path / path, **{"columns": {"a": "en"}, **options}))


def test_without_the_library_the_message_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name == "datasets":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(CorpusError, match=r"install isoglot\[datasets\]"):
        list(read_dataset(tmp_path))
