"""Entity-linked sentences from Wikipedia dumps, as EASE trains on them (Nishikawa et al. 2022, section 3)."""

from isoglot.data.wikipedia.build import Listener, build
from isoglot.data.wikipedia.choose import Choice
from isoglot.data.wikipedia.sentences import Limits
from isoglot.data.wikipedia.sources import Sources

__all__ = ["Choice", "Limits", "Listener", "Sources", "build"]
