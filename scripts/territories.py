"""Makes a table of titles for `isoglot wikipedia` from CLDR's names of territories: no Wikidata is needed.

    python scripts/territories.py CLDR [--output territories.tsv] [--types territory-types.tsv]

CLDR holds `main/<locale>/territories.json`, as the set `cldr-names` has it. Each line of the table is language, tab,
name, tab, code: `it TAB Francia TAB FR`. Variants of a name (`-alt-`) are further titles of the same code; names that
a locale leaves untranslated, and codes of groups (EU, 001), are left out. The types are all one, `territory`, so any
territory can be the hard negative of any other.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

from isoglot.data.files import atomic_write

TERRITORY = re.compile(r"(?!EU|EZ|QO|UN|XA|XB|ZZ)[A-Z]{2}")


def main() -> None:
    """Write the tables, print how many names and territories there are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cldr", type=Path, help="folder that contains main/<locale>/territories.json")
    parser.add_argument("--output", type=Path, default=Path("territories.tsv"))
    parser.add_argument("--types", type=Path, default=Path("territory-types.tsv"))
    options = parser.parse_args()
    rows = sorted({row for path in options.cldr.glob("main/*/territories.json") for row in names(path)})
    codes = sorted({code for _, _, code in rows})
    with atomic_write(options.output) as file:
        file.writelines(f"{language}\t{name}\t{code}\n" for language, name, code in rows)
    with atomic_write(options.types) as file:
        file.writelines(f"{code}\tterritory\n" for code in codes)
    print(f"{len(rows):,} names of {len(codes)} territories in {len({row[0] for row in rows})} languages")


def names(path: Path) -> Iterator[tuple[str, str, str]]:
    """Language, name and code of the territories in one file."""
    locale = path.parent.name
    found = json.loads(path.read_text(encoding="utf-8"))["main"][locale]["localeDisplayNames"]["territories"]
    for key, name in found.items():
        code = key.partition("-")[0]
        if TERRITORY.fullmatch(code) and name != code:
            yield locale.partition("-")[0], " ".join(name.split()), code


if __name__ == "__main__":
    main()
