"""The environment variables that isoglot reads, here and as defaults of options of the command line."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from datetime import date, datetime, timezone
from pathlib import Path
from types import MappingProxyType

VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "ISOGLOT_CACHE": "Folder of the cache: unpacked models, tables of tokens, vectors.",
        "ISOGLOT_DATA": "Folder of the data sets, and of paths in recipes that begin with `data:`.",
        "ISOGLOT_MODEL": "Model that `isoglot.load()` opens when no name is passed.",
        "ISOGLOT_DEVICE": "Device that `auto` stands for, such as cpu or cuda:1.",
        "ISOGLOT_DEBUG": "If set and not 0, errors are shown with their traceback.",
        "ISOGLOT_LOG": "Level of the log: debug, info, warning or error.",
        "ISOGLOT_LOG_FORMAT": "Format of the log: text, or json for an object in each line.",
        "ISOGLOT_SERVE_TOKEN": "Bearer token that requests to `isoglot serve` must send.",
        "ISOGLOT_SERVE_HOST": "`--host` of `isoglot serve`.",
        "ISOGLOT_SERVE_PORT": "`--port` of `isoglot serve`.",
        "ISOGLOT_SERVE_MODEL": "`--model` of `isoglot serve`.",
        "ISOGLOT_SERVE_EFFORT": "`--effort` of `isoglot serve`.",
        "ISOGLOT_SERVE_HOSTS": "`--allow-host` of `isoglot serve`, several separated by blanks.",
        "ISOGLOT_SERVE_ORIGINS": "`--allow-origin` of `isoglot serve`, several separated by blanks.",
        "ISOGLOT_SERVE_TIMEOUT": "`--timeout` of `isoglot serve`.",
        "ISOGLOT_SERVE_GRACE": "`--grace` of `isoglot serve`.",
        "ISOGLOT_SERVE_LOG": "0 for `--no-access-log` of `isoglot serve`.",
    }
)


def list_unknown() -> list[str]:
    """Names of variables that begin as isoglot's do and are not among them, such as misspelt ones.

    Not those that Kubernetes sets for a service called isoglot.
    """
    names = {name for name in os.environ if name.startswith("ISOGLOT_")} - VARIABLES.keys()
    return sorted(name for name in names if not name.removeprefix("ISOGLOT_").startswith(("SERVICE_", "PORT")))


def cache_folder() -> Path:
    """`$ISOGLOT_CACHE`, or isoglot's folder in the user's cache folder of this operating system."""
    if folder := os.environ.get("ISOGLOT_CACHE"):
        return Path(folder).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("isoglot", appauthor=False)


def data_folder() -> Path:
    """`$ISOGLOT_DATA`, or `data` in the current folder."""
    return Path(os.environ.get("ISOGLOT_DATA") or "data").expanduser()


def default_model() -> str | None:
    """`$ISOGLOT_MODEL`; None if it is not set."""
    return os.environ.get("ISOGLOT_MODEL") or None


def default_device() -> str:
    """`$ISOGLOT_DEVICE`, or `auto`."""
    return os.environ.get("ISOGLOT_DEVICE") or "auto"


def is_debugging() -> bool:
    """Whether `$ISOGLOT_DEBUG` is set to anything but 0."""
    return os.environ.get("ISOGLOT_DEBUG", "0") not in ("", "0")


def serve_token() -> str | None:
    """`$ISOGLOT_SERVE_TOKEN`; None if it is not set. Empty, as by a secret that is missing, it is an error later."""
    return os.environ.get("ISOGLOT_SERVE_TOKEN")


def today() -> date:
    """The date that outputs show: of `$SOURCE_DATE_EPOCH`, which many tools read, in UTC; without it, today."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), timezone.utc).date() if epoch.isdecimal() else date.today()


def command() -> str:
    """How this process was called, as a line for a shell, if by the command line of isoglot; else empty."""
    name = Path(sys.argv[0] or "-")  # isoglot, or isoglot/__main__.py
    if "isoglot" not in (name.stem, name.parent.name if name.stem == "__main__" else ""):
        return ""
    return shlex.join(["isoglot", *sys.argv[1:]])


def log_format() -> str:
    """`$ISOGLOT_LOG_FORMAT` in lower case, or `text`."""
    return (os.environ.get("ISOGLOT_LOG_FORMAT") or "text").lower()


def log_level() -> str:
    """`$ISOGLOT_LOG` in lower case, or `info`."""
    return (os.environ.get("ISOGLOT_LOG") or "info").lower()
