"""Options shared by several verbs, and the conversion of their values into arguments of the library."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoglot.cli import console
from isoglot.cli.signatures import Of
from isoglot.core import environment
from isoglot.core.errors import EncoderError, IsoglotError, OutputError, nearest

if TYPE_CHECKING:
    from isoglot.model import Model
    from isoglot.scale import Cluster

Settings = dict[str, Any]


Columns = Annotated[
    str,
    typer.Option(
        help="Columns of a table to read, such as english=en,german=de, or name for the column of the sentences; "
        "default: those named text, source and target, or by language."
    ),
]
ModelName = Annotated[str, typer.Argument(help="Model: a folder, a packaged name, or a hub id in the local cache.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Output folder.")]


def model_and_files(words: Sequence[str], *, most: int | None = None, default: str = "") -> tuple[str, list[str]]:
    """Split the arguments [MODEL] FILE... into the model (the default one if the first argument is a file) and the
    files. A file, `-`, CODE=FILE, and a folder without a model are data. Raises `EncoderError` if there are no files,
    or more than `most`.
    """
    from isoglot.model.finding import default_name

    first, *files_after = words
    if _is_data(first):
        model, files = default or default_name(), list(words)
        console.say(f"model: {model}")
    else:
        model, files = first, files_after
    if not files:
        kind = "is a model" if _is_model(first) else "is neither a file nor a model"
        raise EncoderError(f"{first}: {kind}; pass the files to read, such as: [MODEL] FILE")
    if most is not None and len(files) > most:
        what = "a file and no model" if model != first else f"the model, and {len(files)} files follow"
        raise EncoderError(f"{first}: is {what}; at most {most} file{'s' * (most > 1)} can be read here")
    return model, files


def _is_data(word: str) -> bool:
    path, source = Path(word), Path(word.partition("=")[2] or word)
    if str(source) == "-" or path.is_file():
        return True
    return (path.is_dir() and not _is_model(word)) or (source != path and source.exists())


def _is_model(word: str) -> bool:
    from isoglot.model import layout, packaged

    return layout.is_model(Path(word)) or (word in packaged.names() and not Path(word).exists())


def data_folder_if_there() -> Path | None:
    """The folder of the data sets, None if it does not exist."""
    return folder if (folder := environment.data_folder()).is_dir() else None


_DATA = {"show_default": "$ISOGLOT_DATA or data"}
Data = Annotated[Path, typer.Option(default_factory=environment.data_folder, help="Folder of the data sets.", **_DATA)]
DataIfThere = Annotated[
    Path | None,
    typer.Option(default_factory=data_folder_if_there, help="Folder in which to look for the data sets.", **_DATA),
]


def loading(*names: str) -> Of:
    """The options of `isoglot.load`, with the device."""
    return Of("model.loading:load", *names, "device", device=typer.Option(metavar="DEVICE"))


Loading = Annotated[Settings, loading("pooling", "prompt")]
Device = Annotated[str, loading().option("device")]
Shard = Annotated[str | None, typer.Option(metavar="I/N")]
NEIGHBOURS = typer.Option("-k", "--neighbours")
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as optimizer.lr=1e-4; repeatable."),
]
Workers = Annotated[
    Settings,
    Of("scale.work:Cluster", "address", "cpus", "gpus", address=typer.Option("--ray", metavar="ADDRESS"),
       cpus=typer.Option("--cores", help="CPU cores per worker; requires --ray."),
       gpus=typer.Option(help="Accelerators per encoding worker, such as 1 or 0.5; requires --ray.")),
]  # fmt: skip


def cluster_of(workers: Settings, shard: str | None = None) -> Cluster | None:
    """The cluster of `--ray`, None without it; with a `--shard`, its worker that is this process."""
    from isoglot.scale import Cluster

    if "address" in workers or shard is not None:
        return Cluster(**workers)
    if workers != {"cpus": 1, "gpus": 0}:
        raise IsoglotError("--cores and --gpus need --ray; remove them, or add --ray")
    return None


def shard_of(words: str | None, verb: str) -> tuple[int, int] | None:
    """The numbers of `--shard 3/64`, None without it. Raises IsoglotError."""
    if words is None:
        return None
    numbers = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,8})", words)
    if numbers is None or int(numbers[1]) > int(numbers[2]):
        raise IsoglotError(f"{verb}: --shard is {words!r}; write it as 3/64, from 1/64 to 64/64")
    return int(numbers[1]), int(numbers[2])


def check_stdout(output: Path, as_json: bool) -> None:
    """Raise an error if the output and `--json` would both be written to stdout."""
    if as_json and str(output) == "-":
        raise typer.BadParameter("--json and --output - both write to stdout; pass --output FILE")


def set_level(level: str | None, *, quiet: bool) -> None:
    """Apply `--log-level` and `--quiet`."""
    if level is not None and level.lower() not in console.LEVELS:
        raise typer.BadParameter(f"{level!r} is not a log level; {nearest(level, console.LEVELS)}")
    if quiet or level is not None:
        console.LOG.setLevel("WARNING" if quiet else str(level).upper())


def open_encoder(name: str | None, *, device: str, precision: str | None = None, **settings: Any) -> Model:
    """Open a model on a device and report device and precision on stderr."""
    from isoglot.model import load

    model = load(name, device=device, **settings)
    with naming(model.name):
        console.say(model.describe(precision))
    return model


@contextmanager
def naming(place: object, *caught: type[Exception], error: type[IsoglotError] = EncoderError) -> Iterator[None]:
    """Raise `error`, with the place that is wrong, for one of these exceptions; default: a ValueError."""
    kinds = caught or (ValueError,)
    try:
        yield
    except kinds as problem:
        raise error(f"{place}: {problem}") from problem


def output_format(path: Path, formats: Mapping[str, str], *, option: str | None = None) -> str:
    """The format of an output, from the suffix of its name or from `--format`, which must agree.

    formats   format by suffix, such as {".npy": "npy"}; the first is used for names without suffix

    Raises `OutputError`, which lists the suffixes.
    """
    from isoglot.data.formats import format_of

    if option is None and not path.suffix:
        return next(iter(formats.values()))
    form = format_of(path, formats, given=option, advice="or pass --format")
    if (by_name := formats.get(path.suffix.lower(), form)) != form:
        raise OutputError(f"{path}: the name is of format {by_name}, but --format is {form}; change one of them")
    return form


def import_function(option: str, name: str, expected: str) -> Callable[..., Any]:
    """Import the function `module:name`, also from the current folder. Raises `IsoglotError` with what is expected."""
    module, _, attribute = name.partition(":")
    sys.path.append(str(Path.cwd()))
    try:
        value = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # such as a SyntaxError of the module
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise IsoglotError(f"{option} {name}: {kind}{error}; pass {expected}") from error
    if not callable(value):
        raise IsoglotError(f"{option} {name}: not callable but {type(value).__name__}; pass {expected}")
    function: Callable[..., Any] = value
    return function
