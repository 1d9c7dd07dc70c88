"""Tasks: each turns texts and their vectors into scores. A new one is its file and its line in `TASKS`."""

from __future__ import annotations

from isoglot.evaluation.alignment import ALIGNMENT
from isoglot.evaluation.base import Detail, Encode, Score, Task
from isoglot.evaluation.bucc import MINING
from isoglot.evaluation.bucc_mteb import BITEXT
from isoglot.evaluation.centroids import Centroids
from isoglot.evaluation.clustering_sets import MEWSC_16, STC, TABLES, TNEWS
from isoglot.evaluation.corpus_search import CorpusSearch
from isoglot.evaluation.retrieval import Retrieval
from isoglot.evaluation.sentence_map import SentenceMap
from isoglot.evaluation.similarity import Similarity
from isoglot.evaluation.sts_english import ENGLISH
from isoglot.evaluation.sts_sets import MULTILINGUAL
from isoglot.evaluation.tatoeba import Tatoeba
from isoglot.evaluation.xsim import XSIM

TASKS: dict[str, Task] = {
    "tatoeba": Tatoeba(),
    "retrieval": Retrieval(),
    **XSIM,
    "nearest": CorpusSearch(),
    **{task.name: task for task in MINING},
    **{task.name: task for task in BITEXT},
    **ENGLISH,
    **MULTILINGUAL,
    **ALIGNMENT,
    "mewsc-16": MEWSC_16,
    "stc": STC,
    "tnews": TNEWS,
    "clustering": TABLES,
    "similarity": Similarity(),
    "centroids": Centroids(),
    "map": SentenceMap(),
}

__all__ = ["TASKS", "Detail", "Encode", "Score", "Task"]
