"""Options of verbs from the functions that they call: each type, minimum, default and text is declared once."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from command_line import as_function, runner

from isoglot.cli import encode, evaluation, models, pairs, signatures, training, wikipedia
from isoglot.cli.signatures import Of, expand_options
from isoglot.core.arguments import PositiveInt, Range, check_arguments
from isoglot.core.errors import IsoglotError
from isoglot.data.formats import FORMATS
from isoglot.encoders.pooling import POOLINGS

SOURCE = '''
from isoglot.cli.values import FEW
LIMIT = 20  # sentences

@dataclass
class Options:
    """What differs.

    size   first size; None: the best
    names  names of things. For Python, a list
    """

    size: Annotated[float, Range(1)] | None = None
    names: Sequence[str] = ()
    other: Options | None = None


@overload
def work(texts: str, *, count: int = 1) -> str: ...
def work(
    texts: Sequence[str], limit: PositiveInt = LIMIT, *, count: NonNegativeInt = FEW, kind: Literal["a"] | str = "a",
    fast: bool = False, path: str | Path | None = None, steps: int | Sequence[int] = 3, report: Any = None,
) -> list[str]:
    """Work.

    texts        the texts
    limit        maximum number of texts
    count, kind  "one" of two, as of `limit`
                 and of `other`
    fast         do less
    """
'''


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setattr(signatures, "ROOT", tmp_path)
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "values.py").write_text("FEW = 2\n")
    (tmp_path / "module.py").write_text(SOURCE)
    signatures._definition.cache_clear()
    yield
    signatures._definition.cache_clear()


def described(parameters):
    infos = {name: one.annotation.__metadata__[0] for name, one in parameters.items()}
    return {
        name: (one.annotation.__origin__, infos[name].min, one.default, infos[name].help)
        for name, one in parameters.items()
    }


def test_a_function_declares_options(source):
    about = "One of two, as of --limit and of --other."
    assert described(Of("module:work").parameters(others=("path",))) == {
        "limit": (int, 1, 20, "Maximum number of texts."),
        "count": (int, 0, 2, about),
        "kind": (str, None, "a", about),
        "fast": (bool, None, False, "Do less."),
        "steps": (int, None, 3, None),
    }
    assert [*Of("module:work", "kind", "limit").parameters()] == ["kind", "limit"]
    with pytest.raises(KeyError):
        Of("module:work", "texts").parameters()


def test_a_dataclass_declares_options(source):
    assert described(Of("module:Options").parameters()) == {
        "size": (float | None, 1, None, "First size; default: the best."),
        "names": (str | None, None, None, "Names of things, separated by commas."),
    }


@check_arguments()
def called(*, size: float = 2.0, names: Any = ()) -> None:
    raise ValueError(f"names and size are {names}, {size}; they differ")


def verb(
    file: Path,
    *,
    settings: Annotated[dict[str, Any], Of("module:Options")],
    number: Annotated[PositiveInt, typer.Option("-n")] = 1,
    share: Annotated[float, Range(0)] | None = None,
    flag: bool = False,
) -> None:
    """Do it.

    In the folder.

    file    a file. It is read
    number  of files; default: one
    share   of all
    names   other names
    """
    given.update(settings, file=file, number=number, share=share, flag=flag)
    if flag:
        called(**settings)


given: dict[str, Any] = {}


def test_a_verb_is_expanded(source):
    expanded = expand_options(verb)
    assert expanded.__doc__ == "Do it.\n\nIn the folder."
    assert [*inspect.signature(expanded).parameters] == ["file", "size", "names", "number", "share", "flag"]
    run = runner(verb=verb)
    run("a.txt", "--names", "a, b,", "-n", 3)
    assert given == {"file": Path("a.txt"), "names": ["a", "b"], "number": 3, "share": None, "flag": False}
    for words in (["-n", 0], ["--size", "0.5"], ["--share", "nan"], ["--size", "inf"]):
        with pytest.raises(AssertionError, match="Invalid value"):
            run("a.txt", *words)


def test_an_error_about_an_argument_names_the_option(source):
    with pytest.raises(IsoglotError, match=r"^verb: --names and --size are \['a'\], 3\.0; they differ$"):
        as_function(verb)(Path("x"), flag=True, size=3.0, names=["a"])


VERBS = [pairs.mine, training.sweep, models.trim, pairs.filter, wikipedia.wikipedia, evaluation.plot]


@pytest.mark.parametrize("verb", VERBS)
def test_options_are_those_of_the_imported_functions(verb):
    """What is read from the source equals what Python makes of it."""
    for one in inspect.signature(verb, eval_str=True).parameters.values():
        of = getattr(one.annotation, "__metadata__", [None])[0]
        if isinstance(of, Of):
            module, _, path = of.source.partition(":")
            target: Any = importlib.import_module(f"isoglot.{module}")
            for name in path.split("."):
                target = getattr(target, name)
            actual = inspect.signature(target).parameters
            for name, made in of.parameters().items():
                assert made.default == actual[name].default or (made.default, actual[name].default) == (None, ())


def test_help_lists_what_a_table_declares():
    """A format or a pooling that is added is in the help of every verb."""
    (pooling,) = Of("model.loading:load", "pooling").parameters().values()
    (form,) = Of("mining.pipeline:Output", "format").parameters().values()
    written = [name for name, one in FORMATS.items() if one.written]
    assert {*POOLINGS} == {*pooling.annotation.__metadata__[0].help.rstrip(".").partition(": ")[2].split(", ")}
    assert f": {', '.join(written)} or moses" in form.annotation.__metadata__[0].help
    assert all(f" {name}" in encode.FORMAT for name in encode.FORMATS.values())
