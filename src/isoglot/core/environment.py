"""The environment variables that isoglot reads, here and as defaults of options of the command line."""

from __future__ import annotations

import os
import shlex
import sys
from datetime import date, datetime, timezone
from pathlib import Path

# What is read below, and by options of `isoglot serve`; docs/environment.md says what for.
_OF_SERVE = ("TOKEN", "HOST", "PORT", "MODEL", "EFFORT", "HOSTS", "ORIGINS", "TIMEOUT", "GRACE", "LOG")
_NAMES = ("CACHE", "DATA", "MODEL", "DEVICE", "DEBUG", "LOG", "LOG_FORMAT", *(f"SERVE_{name}" for name in _OF_SERVE))
VARIABLES = tuple(f"ISOGLOT_{name}" for name in _NAMES)


def list_unknown() -> list[str]:
    """Names of variables that begin as isoglot's do and are not among them, such as misspelt ones.

    Not those that Kubernetes sets for a service called isoglot.
    """
    names = {name for name in os.environ if name.startswith("ISOGLOT_")}.difference(VARIABLES)
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
