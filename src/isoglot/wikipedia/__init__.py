"""Entity-linked sentences from Wikipedia dumps, as EASE trains on them (Nishikawa et al. 2022, section 3)."""

from isoglot.wikipedia.build import Sources, build
from isoglot.wikipedia.sample import Choice
from isoglot.wikipedia.wikitext import Limits

__all__ = ["Choice", "Limits", "Sources", "build"]
