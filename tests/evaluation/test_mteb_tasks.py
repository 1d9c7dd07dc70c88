"""The tables of MTEB's tasks against the package `mteb`, and its statistics against the texts that are scored here."""

import re
from itertools import chain

import pytest

from conftest import DATA, published
from isoglot.evaluation import TASKS
from isoglot.evaluation.mteb import _NOT_IN_SIB, MTEB, _subset
from isoglot.evaluation.sets import sources
from isoglot.evaluation.tasks.sts import read_pairs

# The tasks whose data are public and fetched at once, with languages that tell enough.
SETS = {
    "tatoeba": ("tatoeba-laser", ("kor", "amh", "deu")),
    **{f"sts{year}": ("senteval-en", ()) for year in range(12, 17)},
    "sts17": ("sts17-official", ()),
    "sts-b-multi": ("stsb-multi-mt", ("deu", "zho")),
    "sts-b-multi/dev": ("stsb-multi-mt", ("deu", "zho")),
    "sib-200": ("sib-200", ("kor_Hang", "deu_Latn")),
}
# Blanks around sentences that are in the official files and not in MTEB's copy.
BLANKS = {("sts17", "ara-ara"): 17, ("sts17", "ara-eng"): 2}

pytestmark = pytest.mark.slow  # importing mteb takes as long as a hundred tests


def statistics(mteb, name, split="test"):
    """What MTEB says of its data: subset -> the number of items, and of their texts."""
    found = mteb.get_task(name).metadata.descriptive_stats[split]
    return found.get("hf_subset_descriptive_stats") or {"default": found}


@pytest.mark.parametrize("task", sorted(MTEB))
def test_the_tables_are_those_of_mteb(mteb, task):
    at = MTEB[task]
    metadata = mteb.get_task(at.name).metadata
    assert next(iter(at.fields.values())) == metadata.main_score
    assert at.split in metadata.eval_splits
    languages = {name: list(codes) for name, codes in at.subsets.items()}
    theirs = {name: list(dict.fromkeys(codes)) for name, codes in metadata.hf_subsets_to_langscripts.items()}
    if task == "sib-200":
        assert languages == {}
        assert all(codes == [name.replace("_", "-")] for name, codes in theirs.items())
        assert all(re.fullmatch("[a-z]{3}_[A-Z][a-z]{3}", name) for name in theirs)
        assert len(_NOT_IN_SIB) == 8 == 205 - len(theirs)
        assert not set(_NOT_IN_SIB) & set(theirs)
    else:
        assert languages == theirs
    counts = {name: found["num_samples"] for name, found in statistics(mteb, at.name, at.split).items()}
    assert {name: at.sizes.get(name, at.size) for name in theirs} == counts


@pytest.mark.data
@pytest.mark.parametrize("task", sorted(SETS))
def test_what_is_scored_here_is_what_mteb_scores(mteb, task):
    """As many texts, as many different ones and as many characters, the blanks around them apart."""
    folder, languages = SETS[task]
    published(folder)
    at = MTEB[task]
    known = statistics(mteb, at.name, at.split)
    for ours in TASKS[task].subsets(DATA, languages=languages):
        if subset := _subset(at, ours):
            theirs = [
                value for key, value in known[subset].items() if re.fullmatch("(text|sentence)[12]?_statistics", key)
            ]
            found = texts(task, ours)
            assert {len(side) for side in found} == {at.sizes.get(subset, at.size)}
            assert sorted(len(set(side)) for side in found) == sorted(side["unique_texts"] for side in theirs)
            letters = sum(side["total_text_length"] for side in theirs) - sum(map(len, chain(*found)))
            line_feeds = 2 * at.sizes.get(subset, at.size) if task == "tatoeba" else 0
            assert letters == line_feeds - BLANKS.get((task, ours), 0)


@pytest.mark.data
def test_what_mteb_has_otherwise_is_not_listed(mteb):
    """SentEval's STS-B has blanks around its words, which MTEB's has not; of SICK it tests a part."""
    published("senteval-en")
    stsb, sick = (statistics(mteb, name)["default"] for name in ("STSBenchmark", "SICK-R"))
    assert sum(map(len, chain(*texts("sts-b", "eng")))) - stsb["number_of_characters"] == 3991
    assert (len(texts("sick-r", "eng")[0]), sick["num_samples"]) == (4927, 9927)
    assert not {"sts-b", "sick-r"} & set(MTEB)


def texts(task, subset):
    """The sides of a subset as the task reads them."""
    one = TASKS[task]
    if task == "tatoeba":
        rows = sources(task, ("tatoeba-laser",), DATA)["test", subset].read(task)
    elif task == "sib-200":
        return [sources(task, one.reads, DATA)["test", subset].read(task).texts()]
    else:
        rows = read_pairs(one, DATA, subset)
    return [rows.texts(0), rows.texts(1)]
