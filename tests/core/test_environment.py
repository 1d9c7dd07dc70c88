"""The environment variables: what each changes, and that no other module reads one."""

import json
import re
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isoglot.core import environment

SOURCE = Path(environment.__file__).parents[1]


def test_the_cache_folder_follows_the_environment(monkeypatch):
    monkeypatch.setenv("ISOGLOT_CACHE", "/a")
    assert environment.cache_folder() == Path("/a")
    monkeypatch.delenv("ISOGLOT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert environment.cache_folder() == Path("/b/isoglot")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert environment.cache_folder() == Path("~/.cache/isoglot").expanduser()


def test_an_unknown_variable_is_reported(monkeypatch, caplog):
    from isoglot.cli.main import app

    monkeypatch.setenv("ISOGLOT_TOKEN", "secret")
    monkeypatch.setenv("ISOGLOT_SERVICE_HOST", "10.0.0.1")  # set by Kubernetes
    CliRunner().invoke(app, ["models", "list"])
    (message,) = [record.getMessage() for record in caplog.records if "environment" in record.getMessage()]
    assert "ISOGLOT_TOKEN" in message
    assert "ISOGLOT_SERVE_TOKEN" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("variable", "function", "unset"),
    [
        ("ISOGLOT_DATA", environment.data_folder, Path("data")),
        ("ISOGLOT_MODEL", environment.default_model, None),
        ("ISOGLOT_DEVICE", environment.default_device, "auto"),
        ("ISOGLOT_LOG", environment.log_level, "info"),
        ("ISOGLOT_LOG_FORMAT", environment.log_format, "text"),
    ],
)
def test_a_variable_replaces_the_default(monkeypatch, variable, function, unset):
    for nothing in (None, ""):
        monkeypatch.delenv(variable, raising=False) if nothing is None else monkeypatch.setenv(variable, nothing)
        assert function() == unset
    monkeypatch.setenv(variable, "other")
    assert str(function()) == "other"


def test_the_log_is_json_if_asked(monkeypatch, capsys):
    from isoglot.cli.console import LOG
    from isoglot.cli.main import app, main

    monkeypatch.setenv("ISOGLOT_LOG_FORMAT", "json")
    LOG.getChild("serve").info("%(method)s %(status)d", {"method": "GET", "status": 200})
    monkeypatch.setattr("sys.argv", ["isoglot", "models", "get", "no-such-model"])
    with pytest.raises(SystemExit):
        main()
    request, *_, error = map(json.loads, capsys.readouterr().err.splitlines())
    assert request.items() >= {"level": "info", "logger": "isoglot.serve", "method": "GET", "status": 200}.items()
    assert datetime.fromisoformat(request["time"]).tzinfo is not None
    assert (error["level"], error["logger"]) == ("error", "isoglot")
    assert "no-such-model" in error["message"]
    monkeypatch.setenv("ISOGLOT_LOG_FORMAT", "xml")
    assert CliRunner().invoke(app, ["models", "list"]).exit_code == 2


def test_a_token_that_is_empty_is_not_none(monkeypatch):
    """A secret that is missing must not open the server: `create_app` raises for a blank token."""
    monkeypatch.delenv("ISOGLOT_SERVE_TOKEN", raising=False)
    assert environment.serve_token() is None
    monkeypatch.setenv("ISOGLOT_SERVE_TOKEN", "")
    assert environment.serve_token() == ""


@pytest.mark.parametrize(("value", "debugging"), [("", False), ("0", False), ("1", True), ("yes", True)])
def test_debugging_is_on_unless_zero_or_empty(monkeypatch, value, debugging):
    monkeypatch.setenv("ISOGLOT_DEBUG", value)
    assert environment.is_debugging() is debugging


def test_every_variable_that_is_read_is_listed_and_on_its_page():
    code = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    page = (SOURCE.parent.parent / "docs" / "environment.md").read_text(encoding="utf-8")
    assert set(re.findall(r'"(ISOGLOT_[A-Z_]+)"', code)) == set(environment.VARIABLES)
    assert set(re.findall(r"`(ISOGLOT_[A-Z_]+)`", page)) == set(environment.VARIABLES)
