"""Damage to files of any format: one generator for all tests that read what was spoiled.

`damage` draws a fault: of bytes, of lines, of names, or of a value of the format that the suffix says.
"""

import gzip
import json
import math
import re

import numpy as np
from safetensors.numpy import load_file, save_file

EXTREMES = [
    *("", " ", "nan", "inf", "-inf", "-1", "0", "1", "1e400", str(2**63), str(2**64), "-0", "1_0", "x" * 5000),
    *("\ud800", "../..", ".", "a.deu", "model", "\n", "=", ",", "[", "%s", "{}", "\x1b[31m", "٣", "a\0b"),
]
VALUES = [
    *(None, True, False, -1, 0, 1, 2**63, 10**400, 1e308, -1e308, math.nan, math.inf, "", " ", "x" * 5000, "a\0b"),
    *("../../a.deu", "/etc", "\ud800", "[", [], {}, [[]], [None], {"a": 1}, ["a", 1], [1e308, math.nan], "eng", "\n"),
]


def arbitrary(path, draw):
    path.write_bytes(draw.randbytes(draw.choice([1, 10, 1000])))


def empty(path, _):
    path.write_bytes(b"")


def cut_short(path, draw):
    path.write_bytes(path.read_bytes()[: draw.randrange(max(1, path.stat().st_size))])


def longer(path, draw):
    path.write_bytes(path.read_bytes() + draw.choice([b"\0", b"x", b"\n\n", b"\xff", b"{}", b"\t" * 9, b"]"]))


def zipped(path, draw):
    data = gzip.compress(path.read_bytes(), mtime=0)
    path.write_bytes(data[: draw.choice([len(data), len(data) // 2])])


def carriage_returns(path, _):
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))


def utf16(path, _):
    path.write_bytes(path.read_bytes().decode("latin1").encode("utf-16"))


def changed_bytes(path, draw):
    data = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 3, 30]) if data else 0):
        data[draw.randrange(len(data))] = draw.choice([0, 255, 10, 9, 34, draw.randrange(256)])
    path.write_bytes(data)


def changed_line(path, draw):
    rows = path.read_bytes().split(b"\n")
    at = draw.randrange(len(rows))
    rows[at] = draw.choice([b"", b" ", b"\t", b"\0", b"\xff", b"nan", b"-1", b"null", b"[" * 5000, b"x" * 100_000,
                            rows[at] + b"\t" + rows[at], rows[at][:3], rows[0]])  # fmt: skip
    path.write_bytes(b"\n".join(rows))


def folder(path, _):
    path.unlink()
    path.mkdir()


def missing(path, _):
    path.unlink()


def link_to_itself(path, _):
    path.unlink()
    path.symlink_to(path.name)


def changed_cell(path, draw):
    """Of a table: one value; of TOML: what stands behind a key."""
    text = path.read_bytes().decode(errors="surrogateescape")
    cells = list(re.finditer(r"(?<=[\t= \[,:])[^\t\n=,\[\]{}]+", text))
    if cells:
        cell = draw.choice(cells)
        value = draw.choice([*EXTREMES, *(json.dumps(value) for value in VALUES)])
        text = text[: cell.start()] + value + text[cell.end() :]
    path.write_bytes(text.encode(errors="surrogatepass") if "\ud800" in text else text.encode(errors="surrogateescape"))


def changed_value(path, draw):
    """Of JSON, or one line of it: one value is another, or absent."""
    rows, alone = path.read_text(encoding="utf-8").split("\n"), True
    try:
        found = json.loads("\n".join(rows))
    except ValueError:
        alone, at = False, draw.randrange(max(1, len(rows) - 1))
        found = json.loads(rows[at].rstrip(",") or "{}")
    holder = [found]
    place: object = 0
    inside: object = holder
    while isinstance(inside[place], dict | list) and inside[place] and draw.random() < 0.85:  # type: ignore[index]
        inside = inside[place]  # type: ignore[index]
        place = draw.choice(sorted(inside)) if isinstance(inside, dict) else draw.randrange(len(inside))
    if inside is not holder and draw.random() < 0.2:
        del inside[place]  # type: ignore[attr-defined]
    else:
        inside[place] = draw.choice(VALUES)  # type: ignore[index]
    text = json.dumps(holder[0], ensure_ascii=draw.random() < 0.5)
    if not alone:
        rows[at] = text
        text = "\n".join(rows)
    path.write_bytes(text.encode(errors="surrogatepass"))


ODD = [
    *(np.zeros(shape, np.float32) for shape in ((0, 8), (20, 0), (20, 8))), np.float32(1),
    *(np.full((20, 8), value, np.float32) for value in (np.nan, 3e38)),
    *(np.ones((20, 8), kind) for kind in (np.int64, np.complex64, np.float16, ">f8")), np.ones((20, 8, 2), np.float32),
    np.array([["a"] * 8] * 20), np.array([[{}] * 8] * 20, dtype=object), np.zeros(20, [("a", "f4")]),
]  # fmt: skip


def odd_table(path, draw):
    """Of a NumPy file: another table; of several in one: one of them, or one value of it."""
    odd = draw.choice(ODD)
    if path.suffix == ".npz":
        with np.load(path) as found:
            tables = dict(found)
        tables[draw.choice([*tables, "a/b", "x"])] = odd
        np.savez(path, **tables)
    elif path.suffix == ".npy":
        found = np.load(path)
        if draw.random() < 0.5 and found.size and found.dtype.kind == "f":
            found[draw.randrange(len(found))] = draw.choice(
                [np.nan, np.inf, -np.inf, 0, 3e38 % np.finfo(found.dtype).max]
            )
        else:
            found = odd
        np.save(path, found, allow_pickle=True)


def odd_weights(path, draw):
    found = load_file(path)
    name = draw.choice(sorted(found))
    table = np.array(found[name])
    flat = table.reshape(-1)
    kind = draw.randrange(4)
    if kind == 0 and flat.size and table.dtype.kind == "f":
        flat[draw.randrange(flat.size) :: 7] = draw.choice([np.nan, np.inf, 3e38, 0, -1e30])
        found[name] = table
    elif kind == 1:
        del found[name]
    elif kind == 2:
        found[name] = table[: len(table) // 2] if table.ndim else table
    else:
        found[name] = table.astype(draw.choice([np.int32, np.float16, np.float64, np.uint8]))
    save_file(found, path)


FAULTS = [arbitrary, empty, cut_short, longer, zipped, carriage_returns, utf16, changed_bytes, changed_line, folder,
          missing, link_to_itself]  # fmt: skip
KINDS = {
    **dict.fromkeys((".json", ".jsonl", ".page"), changed_value),
    **dict.fromkeys((".toml", ".tsv", ".tmx", ".xml", ".md", ".txt"), changed_cell),
    **dict.fromkeys((".npy", ".npz"), odd_table),
    ".safetensors": odd_weights,
}


def damage(path, draw):
    """Spoil a file by a fault that is drawn, half of the time one of its format; the name of the fault."""
    fitting = [KINDS[path.suffix]] * len(FAULTS) if path.suffix in KINDS else []
    fault = draw.choice([*FAULTS, *fitting])
    try:
        fault(path, draw)
    except UnicodeDecodeError:
        fault = changed_bytes
        fault(path, draw)
    return fault.__name__
