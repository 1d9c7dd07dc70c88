"""The page of what tasks really give: their own tables of details are those that the page draws and lists."""

import re
from base64 import b64decode

import numpy as np
import pytest
from cases import all_cases, by_text
from folders import write
from page_results import cells

from isoglot.evaluation import TASKS
from isoglot.evaluation.scores import Scores
from isoglot.report.page import page

CASES = all_cases()


def results(task, folder):
    CASES[task].write(folder)
    return Scores(TASKS[task].run(by_text, folder), "m")


@pytest.mark.parametrize(
    "task, sections",
    [
        ("similarity", {"similarity"}),
        ("centroids", {"similarity"}),
        pytest.param("map", {"maps"}, marks=pytest.mark.slow),
        ("tatoeba", {"mistakes"}),
        ("sts17", {"mistakes"}),
        ("bucc/oracle", {"mistakes", "tables"}),
        ("nearest", {"hits"}),
        ("tnews", {"tables"}),
        ("alignment/sts17", {"alignment"}),
    ],
)
def test_the_details_of_a_task_have_their_sections(task, sections, tmp_path):
    document = page([results(task, tmp_path)])
    found = set(re.findall(r'<section[^>]*id="(\w+)"', document))
    assert found & {"similarity", "maps", "mistakes", "hits", "tables", "alignment"} == sections
    assert all(len(cells(document, section)) > 1 or "<img" in document for section in sections)


def test_languages_that_share_no_sentences_leave_a_gap_in_the_heat_map(tmp_path):
    lines = [f"deu {i}\teng {i}\t" for i in range(4)] + [f"\teng {i}\tkor {i}" for i in range(4)]
    write(tmp_path / "retrieval.tsv", "deu\teng\tkor\n" + "\n".join(lines) + "\n")
    scores = TASKS["similarity"].run(by_text, tmp_path)
    assert "" in np.array(next(score.details[0].rows for score in scores if score.details), object)
    section = page([Scores(scores, "m")]).split('id="similarity"')[1].split("</section>")[0]
    picture = b64decode(re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', section)[1]).decode()
    assert len(re.findall(r"text-anchor: middle[^>]*>-?\d?\.\d+<", picture)) == 7  # of nine cells
