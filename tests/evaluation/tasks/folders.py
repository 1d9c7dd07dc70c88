"""Small Tatoeba folders for the tests."""

import gzip
import lzma
from pathlib import Path

OPENERS = {"": Path.open, ".gz": gzip.open, ".xz": lzma.open}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with OPENERS.get(path.suffix, Path.open)(path, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
    return path


def tatoeba(folder, pairs):
    """Write `{code: [(foreign, english), ...]}` as the files of LASER."""
    for code, rows in pairs.items():
        for side, place in ((code, 0), ("eng", 1)):
            write(folder / f"tatoeba.{code}-eng.{side}", "".join(f"{row[place]}\n" for row in rows))
    return folder


def numbered(code, count):
    return [(f"{code} {i}", f"english {i}") for i in range(count)]
