"""Fields of protocol buffers, which files of sentencepiece and of ONNX consist of, without the packages of these."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_WIDTHS = {1: 8, 5: 4}  # bytes of a value, by how it is stored


class Field(NamedTuple):
    """A field of a message: its number, and the places where its value begins and ends."""

    number: int
    start: int
    end: int


def message(number: int, *fields: tuple[int, int | float | bytes]) -> bytes:
    """A field that is a message of other fields."""
    return field(number, b"".join(field(*each) for each in fields))


def field(number: int, value: int | float | bytes) -> bytes:
    """A field with its number: an integer, a float32 or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    """A number, seven bits in a byte."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """A number and the place behind it. Raises ValueError for one that does not end."""
    value = 0
    for count, byte in enumerate(data[place : place + 10]):
        value |= (byte & 127) << 7 * count
        if byte < 128:
            return value, place + count + 1
    raise ValueError(f"the number at byte {place:,} is damaged")


def read_fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """The fields of the message between two places. Raises ValueError for one that is damaged."""
    place, end = start, len(data) if end is None else end
    while place < end:
        key, value = read_varint(data, place)
        if key & 7 == 2:
            size, value = read_varint(data, value)
            after = value + size
        else:
            after = value + _WIDTHS[key & 7] if key & 7 in _WIDTHS else read_varint(data, value)[1]
        if after > end or key & 7 in (3, 4, 6, 7):
            raise ValueError(f"field {key >> 3} at byte {place:,} is damaged")
        yield Field(key >> 3, value, after)
        place = after
