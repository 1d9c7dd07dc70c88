"""Tasks: each computes scores from texts and their vectors. To add one, write its file and enter it in `TASKS`."""

from __future__ import annotations

from isoglot.core.plugins import Registry
from isoglot.evaluation.base import Detail, Encode, Metric, Score, Task
from isoglot.evaluation.tasks.analysis import ALIGNMENT, Centroids, SentenceMap, Similarity
from isoglot.evaluation.tasks.bucc import BITEXT, MINING
from isoglot.evaluation.tasks.classification import CLASSIFICATION
from isoglot.evaluation.tasks.clustering import CLUSTERING
from isoglot.evaluation.tasks.corpus_search import CorpusSearch
from isoglot.evaluation.tasks.finetune import PawsXFinetune
from isoglot.evaluation.tasks.language_id import LanguageId, LanguageIdLingua
from isoglot.evaluation.tasks.linked import Linked
from isoglot.evaluation.tasks.questions import QUESTIONS
from isoglot.evaluation.tasks.retrieval import Retrieval, Tatoeba
from isoglot.evaluation.tasks.sts import STS
from isoglot.evaluation.tasks.xsim import XSIM

_TASKS: tuple[Task, ...] = (
    Tatoeba(),
    Retrieval(),
    *XSIM.values(),
    CorpusSearch(),
    *QUESTIONS,
    Linked(),
    *MINING,
    *BITEXT,
    *STS.values(),
    *ALIGNMENT,
    *CLUSTERING,
    *CLASSIFICATION,
    PawsXFinetune(),
    LanguageId(),
    LanguageIdLingua(),
    Similarity(),
    Centroids(),
    SentenceMap(),
)
TASKS: Registry[Task] = Registry(
    "isoglot.tasks",
    {task.name: task for task in _TASKS},
    kind="a Task, which has the method run; name an instance",
    is_valid=lambda found: hasattr(found, "run") and not isinstance(found, type),
)

__all__ = ["TASKS", "Detail", "Encode", "Metric", "Score", "Task"]
