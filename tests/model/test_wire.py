"""Fields of protocol buffers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.model.wire import field, message, read_fields, read_varint, varint

NUMBERS = st.integers(1, 1 << 20)
VALUES = st.one_of(st.integers(0, (1 << 64) - 1), st.binary(max_size=300), st.floats(width=32, allow_nan=False))


@given(st.integers(0, (1 << 64) - 1), st.binary(max_size=5))
def test_a_number_is_read_back_with_the_place_behind_it(value, rest):
    written = varint(value)
    assert read_varint(written + rest, 0) == (value, len(written))


@given(NUMBERS, st.lists(st.tuples(NUMBERS, VALUES), max_size=6))
def test_fields_are_read_back_in_order(number, fields):
    data = message(number, *fields)
    (whole,) = read_fields(data)
    assert (whole.number, whole.end) == (number, len(data))
    parts = [*read_fields(data, whole.start, whole.end)]
    assert [part.number for part in parts] == [number for number, _ in fields]
    for part, (_, value) in zip(parts, fields, strict=True):
        if isinstance(value, bytes):
            assert data[part.start : part.end] == value
        elif isinstance(value, int):
            assert read_varint(data, part.start) == (value, part.end)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:1],
        lambda data: b"\x0b" + data,
        lambda data: data + b"\x12\x7f",
        lambda data: data + b"\x80" * 11,
    ],
)
def test_damaged_messages_are_errors(damage):
    with pytest.raises(ValueError, match="damaged"):
        [*read_fields(damage(field(2, b"three")))]
