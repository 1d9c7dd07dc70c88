"""Tasks: each turns texts and their vectors into scores. A new one is its file and its line in `TASKS`."""

from __future__ import annotations

from isoglot.evaluation.base import Detail, Encode, Metric, Score, Task
from isoglot.evaluation.tasks.alignment import ALIGNMENT
from isoglot.evaluation.tasks.bucc import MINING
from isoglot.evaluation.tasks.bucc_mteb import BITEXT
from isoglot.evaluation.tasks.centroids import Centroids
from isoglot.evaluation.tasks.clustering_sets import MEWSC_16, STC, TABLES, TNEWS
from isoglot.evaluation.tasks.corpus_search import CorpusSearch
from isoglot.evaluation.tasks.few_shot import FewShot
from isoglot.evaluation.tasks.finetune import PawsXFinetune
from isoglot.evaluation.tasks.language_id import LanguageId, LanguageIdLingua
from isoglot.evaluation.tasks.pair_sets import PawsX, Xnli
from isoglot.evaluation.tasks.pairs_probe import PairProbe
from isoglot.evaluation.tasks.retrieval import Retrieval
from isoglot.evaluation.tasks.sentence_map import SentenceMap
from isoglot.evaluation.tasks.similarity import Similarity
from isoglot.evaluation.tasks.sts_english import ENGLISH
from isoglot.evaluation.tasks.sts_sets import MULTILINGUAL
from isoglot.evaluation.tasks.tatoeba import Tatoeba
from isoglot.evaluation.tasks.topics import Mldoc, Mtop, Sib200
from isoglot.evaluation.tasks.xsim import XSIM
from isoglot.evaluation.tasks.zero_shot import ZeroShot
from isoglot.plugins import Registry

_OWN: dict[str, Task] = {
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
    "mtop": FewShot("mtop", Mtop()),
    "mtop/dev": FewShot("mtop/dev", Mtop(), split="dev"),
    "sib-200": FewShot("sib-200", Sib200()),
    "sib-200/zero-shot": ZeroShot("sib-200/zero-shot", Sib200(), None),
    "mldoc": ZeroShot("mldoc", Mldoc()),
    "mldoc/raw": ZeroShot("mldoc/raw", Mldoc(), None),
    "xnli": PairProbe("xnli", Xnli()),
    "paws-x": PairProbe("paws-x", PawsX()),
    "paws-x/finetune": PawsXFinetune(),
    "language-id": LanguageId(),
    "language-id/lingua": LanguageIdLingua(),
    "similarity": Similarity(),
    "centroids": Centroids(),
    "map": SentenceMap(),
}
TASKS: Registry[Task] = Registry(
    "isoglot.tasks",
    _OWN,
    kind="a Task, which has the method run; name an instance",
    is_valid=lambda found: hasattr(found, "run") and not isinstance(found, type),
)

__all__ = ["TASKS", "Detail", "Encode", "Metric", "Score", "Task"]
