"""Group tables: what goes in comes out, from memory and from a folder."""

import random

import numpy as np
import pytest

from damage import cut_short, missing
from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.table import GroupTable
from toys import ToyEncoder, toy_groups

ENCODER = ToyEncoder()
GROUPS = [
    Group(("ab", "c"), ("deu", "eng"), key="k", extras={"entity": 3, "hard": (1, 2)}),
    Group(("def",), ("fra",), "", ("no", "not"), ("eng", "eng"), extras={"entity": 5, "hard": (3, 4)}),
    Group(("xy", "z"), ("deu", "eng"), key="k", extras={"entity": 7, "hard": (5, 6)}),
]


@pytest.fixture(params=["memory", "folder"])
def table(request, tmp_path):
    folder = tmp_path / "table" if request.param == "folder" else None
    return GroupTable.build([("one", GROUPS[:2]), ("two", GROUPS[2:])], ENCODER.tokenize, folder=folder)


def test_columns(table):
    assert (len(table), table.sentences) == (3, 7)
    assert [table.languages[i] for i in table.lang] == ["deu", "eng", "fra", "eng", "eng", "deu", "eng"]
    assert table.slot.tolist() == [0, 1, 0, -1, -2, 0, 1]
    assert table.group_ends.tolist() == [2, 5, 7]
    assert [table.sources[i] for i in table.source] == ["one", "one", "two"]
    assert table.key[0] == table.key[2] != table.key[1]
    assert table.extras["entity"].tolist() == [3, 5, 7]
    assert table.extras["hard"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert table.lengths(np.arange(7)).tolist() == [2, 1, 3, 2, 3, 2, 1]
    ids, lengths = table.tokens(np.array([5, 0]))
    assert (ids - 1).tolist() == [ord(c) for c in "xyab"]
    assert lengths.tolist() == [2, 2]


def test_groups_without_a_key_are_like_no_other():
    table = GroupTable.build([("s", toy_groups([1] * 50))], ENCODER.tokenize)
    assert len(set(table.key.tolist())) == 50


@pytest.mark.parametrize(("fault", "name"), [(cut_short, "ids.bin"), (missing, "ends.bin"), (cut_short, "table.json")])
def test_a_table_in_a_folder_is_mapped_and_damage_is_named(tmp_path, fault, name):
    GroupTable.build([("s", toy_groups([2] * 9))], ENCODER.tokenize, folder=tmp_path / "t")
    assert isinstance(GroupTable.open(tmp_path / "t").ids, np.memmap)
    fault(tmp_path / "t" / name, random.Random(0))
    with pytest.raises(CorpusError, match="token cache is damaged"):
        GroupTable.open(tmp_path / "t")


@pytest.mark.parametrize("second", [{}, {"score": 1.0, "label": 2}])
def test_groups_whose_numbers_differ_are_refused(second):
    """A column with holes would shift silently."""
    groups = [Group(("a",), ("eng",), extras={"score": 0.5}), Group(("b",), ("eng",), extras=second)]
    # The source is named, though the next one is read already.
    for wrong, sources in {"one": [groups, groups[:1]], "two": [groups[:1], groups[1:]]}.items():
        with pytest.raises(CorpusError, match=rf"source {wrong}: 'b' has the numbers .* where others have \['score'\]"):
            GroupTable.build(zip(("one", "two"), sources, strict=True), ENCODER.tokenize)
    lists = [Group(("a",), ("eng",), extras={"e": numbers}) for numbers in ((1, 2), (1,))]
    with pytest.raises(CorpusError, match="'e' is one number in some groups and a list in others"):
        GroupTable.build([("a", lists)], ENCODER.tokenize)


@pytest.mark.parametrize("folder", [None, "table"])
def test_whole_numbers_stay_whole_until_a_fraction_is_met(folder, tmp_path, monkeypatch):
    """Labels and rows of tables are numbers to count with; a score of 1 among fractions is not."""
    monkeypatch.setattr("isoglot.data.table.BLOCK", 2)
    values = [(1, 4), (2, 5), (3, 6.5), (4, 7)]
    groups = [Group(("a",), ("eng",), extras={"label": whole, "score": score}) for whole, score in values]
    place = tmp_path / folder if folder else None
    table = GroupTable.build([("x", groups)], ENCODER.tokenize, folder=place)
    assert table.extras["label"].dtype == np.int64
    assert table.extras["label"].tolist() == [1, 2, 3, 4]
    assert table.extras["score"].dtype == np.float32
    assert table.extras["score"].tolist() == [4, 5, 6.5, 7]
