"""Arguments of public functions are of the kinds of their annotations; columns of other libraries are lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from isoglot.core.arguments import Range, as_python, check_arguments, check_options
from isoglot.core.errors import IsoglotError, RecipeError


class Model:
    pass


@check_arguments(n="pass count", names="pass a list")
def call(
    count: int = 1,
    *others: str,
    share: float | None = None,
    switch: bool = False,
    folder: str | Path | None = None,
    names: Sequence[str | None] = (),
    texts: str | Iterable[str] = (),
    report: Callable[[str], None] | None = None,
    options: Mapping[str, int] | None = None,
    form: Literal["a", "b"] = "a",
    model: str | Model = "m",
    data: Any = None,
    work: Any = lambda: None,
) -> Any:
    """A function with an argument of each kind."""
    work()
    return count, others, share, switch, folder, names, texts, data


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": True}, "call: count: must be a whole number, got bool True"),
        ({"count": 2.0}, "got float 2.0"),
        ({"count": "2"}, "got str '2'"),
        ({"count": None}, "got None"),
        ({"count": np.array(2.0)}, "got float 2.0"),
        ({"share": "half"}, "a number or None"),
        ({"share": True}, "got bool"),
        ({"switch": "no"}, "True or False"),
        ({"switch": 1}, "True or False"),
        ({"folder": 5}, "a string or a path or None, got int 5"),
        ({"folder": b"x"}, "got bytes"),
        ({"names": "abc"}, "a list, each item a string or None, got str 'abc'; pass a list"),
        ({"names": [1]}, "a list"),
        ({"names": np.ones(2)}, "a list"),
        ({"names": {"a": 1}}, "a list"),
        ({"texts": 3}, "got int 3"),
        ({"texts": {"a": 1}}, "got dict"),
        ({"report": 5}, "a function or None"),
        ({"options": [1]}, "a dict or None"),
        ({"form": 1}, "'a' or 'b'"),
        ({"counts": 1}, "did you mean 'count'"),
        ({"n": 1}, "pass count"),
    ],
)
def test_another_kind_is_a_type_error_that_names_the_argument(given, message):
    with pytest.raises(TypeError) as raised:
        call(**given)
    assert message in str(raised.value)


@pytest.mark.parametrize("given", [(True,), (1, "a", 5)])
def test_arguments_by_place_are_checked_too(given):
    with pytest.raises(TypeError, match=r"count|others"):
        call(*given)


def test_values_of_these_kinds_pass_unchanged():
    assert call(np.int64(3), "a", share=np.float32(0.5), switch=np.bool_(True), folder=Path("x"))[:2] == (3, ("a",))
    assert call(names=[None, "a"])[5] == [None, "a"]
    assert call(names=np.array(["a"]))[5].tolist() == ["a"]
    assert call(model=Model())  # classes are left to the function
    assert call(share=2)[2] == 2
    rows = [["a", "b"], ["c", "d"]]
    assert call(data=rows)[-1] == rows


def test_a_small_number_of_numpy_does_not_overflow():
    assert call(np.int8(100))[0] * 100 == 10_000


def test_a_number_that_is_too_large_is_named():
    with pytest.raises(ValueError, match="share: is NaN"):
        call(share=float("nan"))
    with pytest.raises(ValueError, match="count is 1000000000000000000000000000000, which is too large"):
        call(10**30, work=lambda: [0] * 10**30)
    assert call(10**30)[0] == 10**30  # where it does not matter
    with pytest.raises(OverflowError):
        call(work=lambda: [0] * 10**30)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_user(name):
    with pytest.raises(IsoglotError):
        call(work=lambda: Path(name).read_text())


def test_other_errors_of_files_stay(tmp_path):
    with pytest.raises(FileNotFoundError):
        call(work=lambda: (tmp_path / "none").read_text())


def test_a_mask_is_never_dropped():
    masked = np.ma.masked_less(np.eye(2), 0.5)
    for data, where in ((masked, "data"), ([masked[0], masked[1]], r"data\[0\]"), ({"a": masked}, r"data\['a'\]")):
        with pytest.raises(ValueError, match=f"{where} has masked values"):
            call(data=data)
    assert type(call(data=np.ma.array(np.eye(2)))[-1]) is np.ndarray


def test_columns_of_pyarrow_become_lists():
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.array(["a", None])
    for one in (column, pyarrow.chunked_array([["a"], [None]]), column.dictionary_encode()):
        assert as_python(one, "x") == ["a", None]
    assert as_python([column, column], "x") == [["a", None]] * 2
    assert as_python({"de": column}, "x") == {"de": ["a", None]}
    assert as_python([*zip(column, column, strict=True)], "x") == [("a", "a"), (None, None)]
    table = pyarrow.table({"de": column})
    assert as_python(table, "x") is table


def test_a_list_in_itself_ends():
    rows: list[Any] = []
    rows.append(rows)
    assert as_python(rows, "x")


def read(
    path: str,
    *,
    names: list[str] | None = None,
    codes: tuple[str, ...] = (),
    kinds: set[str] = frozenset(),
    columns: dict[str, str] | None = None,
    share: Literal["auto"] | Annotated[float, Range(0, 1)] = "auto",
    number: Literal[1, 2] = 1,
) -> None:
    """A reader of another package."""


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *((name, value) for name in ("names", "codes", "kinds") for value in (3, "eng", ["eng", 3])),
        *(("columns", value) for value in (3, ["eng"], {"eng": 3})),
        *(("share", value) for value in ("half", True, [0.5], -0.1, 1.1)),
        *(("number", value) for value in (3, "a", True, "1")),
    ],
)
def test_an_option_of_another_kind_is_an_error_with_its_place(option, value):
    with pytest.raises(RecipeError, match=rf"^here\.{option}: "):
        check_options(read, {option: value}, where="here")


def test_options_of_these_kinds_pass():
    options = {"names": ["eng"], "codes": ["eng"], "kinds": ["a"], "columns": {"eng": "text"}, "number": 2}
    for share in ("auto", 0.5, 1):
        check_options(read, {**options, "share": share}, where="here")


def test_the_items_of_a_tuple_of_several_kinds_are_left_to_the_function():
    @check_arguments()
    def add(*terms: tuple[float, str]) -> Any:
        return terms

    assert add((1.0, "a"), (2, "b")) == ((1.0, "a"), (2, "b"))
    with pytest.raises(TypeError, match="terms: must be a list, got float"):
        add(1.0)
