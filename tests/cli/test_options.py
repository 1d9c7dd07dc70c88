"""Functions that options name as `module:name`."""

import math

import pytest

from isoglot.cli.options import import_function
from isoglot.core.errors import IsoglotError


def test_a_function_is_imported():
    assert import_function("--function", "math:sqrt", "module:name") is math.sqrt


@pytest.mark.parametrize(
    "code, message",
    [
        ("def f(:", "SyntaxError: .*broken"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("{}['key']", "KeyError: 'key'"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("", "AttributeError: .*'f'"),
    ],
)
def test_what_a_module_raises_is_an_import_error(code, message, tmp_path, monkeypatch):
    name = f"broken_{abs(hash(code))}"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(IsoglotError, match=f"--function {name}:f: {message}.*; pass module:name"):
        import_function("--function", f"{name}:f", "module:name")
