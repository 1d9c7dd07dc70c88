"""A model of the package whose word table and tokenizer are those of another one, which has them once for both.

Its folder lacks the files of the tokenizer, and its graph the initializers of the word table; a file, `FILE`, names the
other model, the files and the initializers. `complete` makes an ordinary folder of both. Protocol buffers that are
joined are one message, so the whole graph is the part, and behind it a graph of nothing but those initializers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic import BaseModel

from isoglot.data.files import list_files
from isoglot.model import configs, layout
from isoglot.model.wire import Field, message, read_fields

FILE = "isoglot.shared.json"

_GRAPH, _INITIALIZER, _NAME = 7, 5, 8  # fields: of a model, of its graph, of a tensor


class Shared(BaseModel):
    """What a folder lacks: the model that has it, the names of files, and of initializers of the graph."""

    model: str
    files: list[str]
    initializers: list[str]


def read_shared(folder: Path) -> Shared | None:
    """What a folder lacks; None if it is complete. Raises EncoderError."""
    return configs.read(folder / FILE, Shared) if (folder / FILE).is_file() else None


def complete(folder: Path, other: Path, shared: Shared, output: Path) -> None:
    """Write the whole model into an empty folder. Raises EncoderError if a file of either is damaged."""
    for source, names in ((folder, {*list_files(folder)} - {FILE, layout.FILES}), (other, shared.files)):
        for name in names:
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            (output / name).write_bytes((source / name).read_bytes())
    with configs.reading(other / layout.GRAPH):
        table = pick_initializers((other / layout.GRAPH).read_bytes(), shared.initializers)
    (output / layout.GRAPH).write_bytes((folder / layout.GRAPH).read_bytes() + table)


def pick_initializers(model: bytes, names: Collection[str]) -> bytes:
    """A model of nothing but these initializers of another one, in its order. Raises ValueError if one is missing."""
    picked: dict[str, bytes] = {}
    for graph in _parts(model, _GRAPH):
        for tensor in _parts(model, _INITIALIZER, graph):
            name = next((model[part.start : part.end].decode() for part in _parts(model, _NAME, tensor)), "")
            if name in names:
                picked[name] = model[tensor.start : tensor.end]
    if missing := sorted({*names} - picked.keys()):
        raise ValueError(f"it has no initializer {missing[0]}")
    return message(_GRAPH, *((_INITIALIZER, tensor) for tensor in picked.values()))


def _parts(model: bytes, number: int, whole: Field | None = None) -> Iterator[Field]:
    """The fields of this number, of the model or of one of its parts."""
    fields = read_fields(model) if whole is None else read_fields(model, whole.start, whole.end)
    return (part for part in fields if part.number == number)
