"""Quantised weights: size, time and memory of opening, and cosine with the vectors of the float32 model.

    python benchmarks/weights.py multilingual-e5-small --texts sentences.txt
    python benchmarks/weights.py run/model --texts sentences.txt --forms int8 int8,int4

A form is that of the matrices, and after a comma that of the word table. Every opening is a process of its own; the
forms take turns, `--repeats` times, and the medians are shown. Seconds are those of the processor, with what
transformers imports late; memory is the peak of the process, which includes the libraries.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from measure import fresh, memory, now

FORMS = ("float32", "float16", "int8", "int8,int4", "int4")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--texts", type=Path, required=True, help="file of sentences to compare vectors on")
    parser.add_argument("--most", type=int, default=1000, help="number of sentences")
    parser.add_argument("--forms", nargs="+", default=FORMS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def opening(folder: str, result: Path) -> None:
    """Open a model, in a process of its own."""
    import torch
    import transformers

    import isoglot
    from isoglot.encoders import loading

    torch.set_num_threads(1)
    _ = transformers.AutoModel, isoglot.load, loading
    began = now()
    isoglot.load(folder, device="cpu")
    passed = now().since(began)
    result.write_text(json.dumps({"cpu": passed.cpu, "wall": passed.wall, "memory": memory(peak=True)}))


def main() -> None:
    """Convert, measure and print the table."""
    options = arguments()
    if options.result:
        return opening(options.model, options.result)
    import numpy as np

    import isoglot

    encoder = isoglot.load(options.model, device="cpu")
    lines = [line for line in options.texts.read_text(encoding="utf-8").split("\n") if line.strip()][: options.most]
    exact = encoder.encode(lines, normalize_embeddings=True)
    print("| matrices | words | MB | open, CPU s | peak MB | cosine: mean | 1st percentile | least |")
    print("|---|---|---:|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as place:
        folders, runs = dict[str, Path](), dict[str, list[dict[str, float]]]()
        for form in options.forms:
            weights, _, words = form.partition(",")
            folders[form], runs[form] = Path(place, form), []
            encoder.save(folders[form], weights=weights, words=words or None)
        for _ in range(options.repeats):
            for form, folder in folders.items():
                result = Path(place, "result.json")
                found = fresh(
                    Path(__file__), [str(folder), "--texts", "-", "--result", str(result)], result=result,
                    environment={"OMP_NUM_THREADS": "1"},
                )  # fmt: skip
                runs[form].append(found)
        for form, folder in folders.items():
            vectors = isoglot.load(folder, device="cpu").encode(lines, normalize_embeddings=True)
            show(form, folder, runs[form], np.sort((vectors * exact).sum(1)))
    return None


def show(form: str, folder: Path, runs: list[dict[str, float]], cosines: Any) -> None:
    """One row."""
    weights, _, words = form.partition(",")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
    seconds, peak = (statistics.median(run[name] for run in runs) for name in ("cpu", "memory"))
    low = cosines[len(cosines) // 100]
    print(f"| {weights} | {words or weights} | {size:.1f} | {seconds:.2f} | {peak:,.0f} | {cosines.mean():.5f} | "
          f"{low:.5f} | {cosines[0]:.5f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
