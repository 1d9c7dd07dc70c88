"""Settings written as TOML: what is read back is the same."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from isoglot.recipe import tomllib
from isoglot.toml import dumps

VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab. =#\"'[é", max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["name", "streams", "stages", "a b", "x"]), VALUES))
def test_what_is_written_is_read_back(data):
    assert tomllib.loads(dumps(data)) == data


def test_long_values_are_broken_and_tables_have_headers():
    stream = {"sources": [{"path": f"file-{number}"} for number in range(9)], "batching": {"size": 8}}
    written = dumps({"streams": [stream], "optimizer": {"lr": 1e-5}, "name": "x"})
    assert max(map(len, written.splitlines())) <= 120
    assert written.startswith('name = "x"\n\n[[streams]]\n')
    assert {"batching = { size = 8 }", "[optimizer]", "lr = 1e-5"} <= set(written.splitlines())
