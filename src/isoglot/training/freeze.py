"""`isoglot.freeze`: a finished run or sweep as a small folder or archive with which others repeat it.

What is frozen was recorded when the run began: its settings, seeds, versions, device and threads in `run.json` (of a
sweep in `design.json`), with the digest of every file that it read.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import CheckpointError, OutputError
from isoglot.data.files import atomic_write, check_output, digest, read_record
from isoglot.training.recipe import dumps
from isoglot.training.settings import MEMORY, Recipe

_KINDS = (".json", ".jsonl", ".md", ".tex", ".npz", ".html", ".svg")  # results; weights are known by their digests
_LEFT_OUT = {"model", "best", "checkpoints", "tensorboard", "wandb"}
_FILES = Path(__file__).parent / "frozen"  # with the facts of the run in braces


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe that are not defaults, without the places of its files, for TOML."""
    # TOML has no None.
    return recipe.model_dump(mode="json", exclude={"folder", "data"}, exclude_defaults=True, exclude_none=True)


@check_arguments()
def freeze(run: str | Path, output: str | Path) -> None:
    """Freeze a finished run or sweep into a small folder or archive with which others repeat it.

    run     folder of `isoglot.train` with a recipe, of one seed or of several, or of `isoglot sweep`
    output  a new folder, or an archive whose name ends in .zip

    It has the recipe, versions, the seeds, digests of all files that were read, results without weights, a README.md
    and `repeat.sh`, which trains again and compares the results. Data and weights are not in it. Raises
    `CheckpointError` for a folder without a finished run and for a run of data in memory; `OutputError`.
    """
    folder, target = Path(run), Path(output)
    archive = target.suffix == ".zip"
    check_output(target, inputs=[folder], folder=not archive, whole=not archive)
    results = {path: path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()}
    sums = {inner.as_posix(): digest(path) for path, inner in results.items() if _proves(inner)}
    try:
        content = _describe(folder, target.stem if archive else target.name, sums)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:  # JSON of another form
        raise CheckpointError(f"{folder}: the record of the run is damaged ({error}); train again") from error
    ready = {name: text.encode() for name, text in content.items()}
    for path, inner in results.items():
        if path.suffix in _KINDS and not _LEFT_OUT.intersection(inner.parts):
            ready[f"results/{inner.as_posix()}"] = path.read_bytes()
    if not archive:
        for name, text in ready.items():
            with atomic_write(target / name, binary=True) as stream:
                stream.write(text)
        return
    with atomic_write(target, binary=True) as stream, ZipFile(stream, "w", ZIP_DEFLATED) as file:
        for name, text in ready.items():  # without a date: the same run gives the same bytes
            file.writestr(ZipInfo(f"{target.stem}/{name}"), text, ZIP_DEFLATED)


def _describe(folder: Path, name: str, results: Mapping[str, str]) -> dict[str, str]:
    """The files that are written about a run, by their names."""
    content, circumstances, command = _sweep(folder) if (folder / "design.json").exists() else _run(folder)
    files = {path: value for path, value in circumstances["files"].items() if not path.startswith("bundled:")}
    data = {path[5:]: files.pop(path) for path in list(files) if path.startswith("data:")}
    for kind, sums in (("files", files), ("data", data), ("results", results)):
        content[f"{kind}.sha256"] = "".join(f"{value}  {path}\n" for path, value in sums.items())
    versions = {package: version.partition("+")[0] for package, version in circumstances["versions"].items()}
    content["requirements.txt"] = "".join(f"{k}=={v}\n" for k, v in versions.items() if k != "python")
    facts = {**versions, **circumstances, "name": name, "command": command}
    facts["by"] = f", by `{circumstances['command']}`" if circumstances["command"] else ""
    return content | {path.name: path.read_text(encoding="utf-8").format(**facts) for path in sorted(_FILES.iterdir())}


def _proves(path: Path) -> bool:
    """Whether a result is the same in each repetition: logs and items have no times, and weights neither."""
    weights = path.suffix == ".safetensors" and "model" in path.parts
    return path.name in ("log.jsonl", "items.npz") or weights


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_record(path) or {}
    except OutputError as error:  # which speaks of outputs
        raise CheckpointError(f"{path}: is damaged, or not of isoglot; freeze another run, or train again") from error


def _run(folder: Path) -> tuple[dict[str, str], dict[str, Any], str]:
    """The recipe of a run, the circumstances and the command."""
    single = (folder / "run.json").exists()
    paths = [folder / "run.json"] if single else sorted(folder.glob("seed-*/run.json"))
    records = [_read(path) for path in paths]
    if not records or not all("finished" in record for record in records):
        raise CheckpointError(f"{folder}: not a finished run or sweep; `isoglot train` and `isoglot sweep` make such")
    if records[0]["recipe"]["stages"][0]["streams"][0]["sources"][0]["reader"] == MEMORY:
        raise CheckpointError(f"{folder}: a run of data in memory, which is in no file; freeze a run of a recipe")
    settings = {name: value for name, value in records[0]["recipe"].items() if name in Recipe.model_fields}
    recipe = Recipe(**settings | {"seed": min(record["seed"] for record in records)})
    scores = [f"{record['finished']['best']:.6f}" for record in records if record["finished"]["best"] is not None]
    circumstances = records[0] | {"scores": f" Dev scores: {', '.join(scores)}." if scores else ""}
    ranks = records[0]["number of ranks"]
    command = "isoglot" if ranks == 1 else f"torchrun --nproc-per-node {ranks} -m isoglot"
    command += f" train recipe.toml --output repeated --device {circumstances['device']}"
    command += "" if single else f" --seeds {len(records)}"
    return {"recipe.toml": dumps(settings_of(recipe))}, circumstances, command


def _sweep(folder: Path) -> tuple[dict[str, str], dict[str, Any], str]:
    """The design and the recipes of a sweep, the circumstances and the command."""
    record = _read(folder / "design.json")
    if not (folder / "sweep.json").exists():
        raise CheckpointError(f"{folder}: not a finished sweep; run the same command again to finish it")
    seeds, options = record["seeds"], {name: ",".join(record[name]) for name in ("tasks", "languages")}
    if seeds != list(range(seeds[0], seeds[0] + len(seeds))):
        raise CheckpointError(f"{folder}: its seeds are not consecutive, so no command repeats it")
    names = {arm: f"arm-{place}.toml" for place, arm in enumerate(record["recipes"], 1)}
    arms = [{**arm, **({"recipe": names[arm["name"]]} if arm["name"] in names else {})} for arm in record["arms"]]
    content = {names[arm]: dumps(settings) for arm, settings in record["recipes"].items()}
    design = {**record["design"], "arms": arms}
    words = ["isoglot", "sweep", "--arms", "design.toml", "--output", "repeated", "--device", record["device"]]
    words += ["--seed", str(seeds[0]), "--seeds", str(len(seeds)), *(["--keep"] if record["keep"] else [])]
    for name, value in {**options, "precision": record["precision"]}.items():
        words += [f"--{name}", value] if value else []
    return content | {"design.toml": dumps(design)}, record | {"scores": ""}, shlex.join(words)
