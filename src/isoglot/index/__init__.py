"""A searchable collection of sentences in a folder: vectors in one file, texts in SQLite, FAISS to search them."""

from __future__ import annotations

from isoglot.errors import SearchError
from isoglot.index.build import add_sentences
from isoglot.index.export import export
from isoglot.index.index import Hit, Index
from isoglot.index.origin import Origin
from isoglot.index.reading import read_sentences
from isoglot.index.store import Sentence

__all__ = ["Hit", "Index", "Origin", "SearchError", "Sentence", "add_sentences", "export", "read_sentences"]
