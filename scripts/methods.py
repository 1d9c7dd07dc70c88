"""Each method against its controls: the designs of methods.toml, as one table each.

    python scripts/methods.py DATA OUTPUT [--only mpcl,soft] [--seeds 3] [--jobs 2] [--steps 2] [--languages deu]

The same as `isoglot sweep --arms scripts/methods.toml --entry NAME --output OUTPUT/NAME --files OUTPUT` for each, after
mining the hard negatives that a design reads from OUTPUT/negatives. EASE reads OUTPUT/wikipedia, which
`isoglot wikipedia` and `isoglot entities OUTPUT/wikipedia --model multilingual-e5-small` make.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from isoglot import recipe as recipes
from isoglot.data.readers.jsonl import write_jsonl
from isoglot.errors import IsoglotError
from isoglot.mining.negatives import add_hard_negatives, read_pairs
from isoglot.report.sweep import Design, read_design, sweep
from isoglot.settings import BUNDLED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DESIGNS = Path(__file__).with_suffix(".toml")


def mine_negatives(design: Design, data: Path, output: Path) -> None:
    """Mine the files negatives/<pair>.jsonl that the recipes of a design read and that do not exist."""
    if (wanted := design.negatives) is None:
        return
    stands = {"data:": f"{data}/", "bundled:": f"{BUNDLED}/"}
    places = [
        Path(place.replace(mark, stands[mark])) for place in wanted["leakage"] for mark in stands if mark in place
    ]
    loaded = [recipes.load(arm.recipe or design.recipe, [*design.set, *arm.set]) for arm in design.arms]
    sources = [s for recipe in loaded for stage in recipe.stages for stream in stage.streams for s in stream.sources]
    for path in {output / source.path: None for source in sources if source.path.startswith("negatives/")}:
        if not path.exists():
            print(f"mining hard negatives of {path.stem}", file=sys.stderr, flush=True)
            pairs = data / wanted["pairs"] / path.stem
            groups = read_pairs(pairs, languages=path.stem.split("-"), leakage=places)
            write_jsonl(path, add_hard_negatives(wanted["model"], groups, count=3))


def main() -> None:
    known = list(tomllib.loads(DESIGNS.read_text(encoding="utf-8")))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--only", default=",".join(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--steps", type=int, default=0, help="steps of every stage, for a first look")
    parser.add_argument("--languages", default="", help="languages of every task, for a first look")
    parser.add_argument("--keep", action="store_true", help="leave models and checkpoints")
    words = parser.parse_args()
    data, output = words.data.resolve(), words.output.resolve()
    languages = [code for code in words.languages.split(",") if code]
    try:
        designs = {name: read_design(DESIGNS, name) for name in words.only.split(",")}
        for name, design in designs.items():
            mine_negatives(design, data, output)
            made = sweep(
                design, output / name, seeds=words.seeds, languages=languages, data=data, files=output,
                jobs=words.jobs, steps=words.steps, keep=words.keep,
            )  # fmt: skip
            print(made.to_markdown())
    except IsoglotError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
