"""Makes the checksums of the catalogue of data sets from a local copy of the sets.

    python scripts/catalogue.py --data DATA [--output src/isoglot/data/sets/files] [NAME ...]

DATA holds a folder for each set, in the layout that `isoglot data get` makes. For every set of the catalogue that is
there and is not taken as its publisher gives it at the time, `files/<set>.tsv` is written anew: sha256, bytes, lines
and path of each file, all of the decompressed content. Licences, readmes and scripts are left out. The same DATA gives
the same bytes.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from isoglot.data.files import atomic_write
from isoglot.data.sets.catalogue import FILES, catalogue, find, manifest
from isoglot.data.sets.content import measure

NO_DATA = re.compile(r"SOURCE|checksums\.tsv|.*licen[cs]e.*|.*readme.*|.*\.pl|\..*", re.IGNORECASE)


def main() -> None:
    """Write the checksums of each set, print how many files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    parser.add_argument("--output", type=Path, default=FILES / "files")
    parser.add_argument("names", nargs="*", help="sets; default: all that are there")
    options = parser.parse_args()
    for one in [find(name) for name in options.names] or catalogue().values():
        folder = options.data / one.name
        if not folder.is_dir() or one.unpacked or one.hub or one.manual:
            continue
        files = {path.relative_to(folder).as_posix(): measure(path) for path in data_files(folder)}
        with atomic_write(options.output / f"{one.name}.tsv") as stream:
            stream.write(manifest(files))
        print(f"{one.name}: {len(files)} files, {sum(content.lines for content in files.values()):,} lines")


def data_files(folder: Path) -> list[Path]:
    """Every file below the folder but licences, readmes, scripts and hidden ones."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not NO_DATA.fullmatch(path.name))


if __name__ == "__main__":
    main()
