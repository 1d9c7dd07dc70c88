"""Read and tokenise the same parallel text with this checkout and with an earlier one, in turns, and compare.

    git worktree add ../before 3e4d702
    python benchmarks/corpus.py --before ../before/src --data FOLDER --tokenizer FOLDER/tokenizer.json

FOLDER contains the data sets of `isoglot data`; the sets read are `--sets`, JSON lines of groups, each up to `--groups`
of them. Both sides read the same files with the reader `jsonl`, drop repeated groups, tokenise and write the table of
token ids to a folder; each run is a process of its own. Printed for each side: sentences per second by the clock, the
same by processor time, and peak memory; then the ratio of the medians over rounds.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from measure import fresh, memory, now

SETS = "tatoeba-pairs/pairs.jsonl.xz aosp-strings/groups.jsonl.xz bible/groups.jsonl.xz gatitos/groups.jsonl.xz"


def one(options: argparse.Namespace) -> None:
    """A run of one side: the modules are those on the path."""
    from tokenizers import Tokenizer

    from isoglot.data.readers import read
    from isoglot.data.table import GroupTable
    from isoglot.encoders.tokenizer import ragged

    try:
        deduplicate = importlib.import_module("isoglot.data.filters").deduplicate
    except ImportError:  # its place in earlier versions
        deduplicate = importlib.import_module("isoglot.data.corpus.select").deduplicate
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    sources = [
        (name, deduplicate(itertools.islice(read("jsonl", options.data / name), options.groups)))
        for name in options.sets
    ]
    with tempfile.TemporaryDirectory() as folder:
        start = now()
        table = GroupTable.build(
            sources, lambda texts: ragged(tokenizer, texts, max_length=256), folder=Path(folder) / "table"
        )
        spent = now().since(start)
        found = {"sentences": table.sentences, "tokens": len(table.ids), "wall": spent.wall, "cpu": spent.cpu}
    options.one.write_text(json.dumps(found | {"peak": memory(peak=True)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="folder src of the earlier checkout")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS.split())
    parser.add_argument("--groups", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options)
        return
    sides = {"before": options.before, "now": Path(__file__).parent.parent / "src"}
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as work:
        for number in range(options.rounds):
            for side, source in sides.items():
                result = Path(work) / f"{side}-{number}.json"
                path = os.pathsep.join([str(source.resolve()), str(Path(__file__).parent)])
                given = [*sys.argv[1:], "--one", str(result)]
                found = fresh(Path(__file__), given, result=result, environment={"PYTHONPATH": path})
                runs[side].append(found)
                rate, work_rate = found["sentences"] / found["wall"], found["sentences"] / found["cpu"]
                print(
                    f"{side}: {found['sentences']:,} sentences, {rate:,.0f} a second, {work_rate:,.0f} a processor "
                    f"second, peak {found['peak']:.0f} MB",
                    flush=True,
                )
    assert len({(found["sentences"], found["tokens"]) for side in runs.values() for found in side}) == 1
    for kind in ("wall", "cpu"):
        before, after = (median(found[kind] for found in runs[side]) for side in sides)
        print(f"{kind}: {before / after:.2f} times as fast")


if __name__ == "__main__":
    main()
