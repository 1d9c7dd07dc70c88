"""A searchable collection of sentences: vectors in shards, texts in SQLite, FAISS for approximate search."""

from isoglot.core.errors import SearchError
from isoglot.index.index import Added, Index
from isoglot.index.origin import Origin
from isoglot.index.reading import read_sentences
from isoglot.index.scale import Scale
from isoglot.index.store import Sentence
from isoglot.index.view import Hit

__all__ = ["Added", "Hit", "Index", "Origin", "Scale", "SearchError", "Sentence", "read_sentences"]
