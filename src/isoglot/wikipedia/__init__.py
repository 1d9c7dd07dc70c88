"""Entity-linked sentences from Wikipedia dumps, as EASE trains on them (Nishikawa et al. 2022, section 3)."""

from isoglot.wikipedia.build import Listener, build
from isoglot.wikipedia.choose import Choice
from isoglot.wikipedia.sentences import Limits
from isoglot.wikipedia.sources import Sources

__all__ = ["Choice", "Limits", "Listener", "Sources", "build"]
