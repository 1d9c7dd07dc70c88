"""What is done to groups between reader and batch: join, de-duplicate, select languages, remove test sentences.

Every function takes an iterable of groups and gives an iterator, so they chain without holding the corpus. What
happened to how many groups is added to the `counts` passed to it, a `Counter` of participles ("leaked", "repeated"),
complete when the iterator is exhausted.
"""

from __future__ import annotations

from isoglot.data.corpus.hashes import Seen
from isoglot.data.corpus.join import join
from isoglot.data.corpus.leaks import files_in, normalise, remove_leaks, test_sentences
from isoglot.data.corpus.select import deduplicate, select_languages

__all__ = [
    "Seen",
    "deduplicate",
    "files_in",
    "join",
    "normalise",
    "remove_leaks",
    "select_languages",
    "test_sentences",
]
