"""The error of indexes, beside those of `isoglot.errors`."""

from __future__ import annotations

from isoglot.errors import IsoglotError


class SearchError(IsoglotError):
    """An index cannot be made, read, added to or searched; the message names the folder, and what to do."""
