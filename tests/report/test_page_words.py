"""The words by which the box of the page finds a subset."""

from __future__ import annotations

import pytest
from isoglot.report.page.words import search_words
from page_results import errors_into, small

from isoglot.report.page import page


@pytest.mark.parametrize(
    "subset, found, not_found",
    [
        ("jpn-eng", {"ja", "jpn", "en", "eng", "jpn-eng"}, {"jav", "jv", "jp", "j"}),
        ("jav-eng", {"jv", "jav"}, {"ja"}),
        ("cmn-eng", {"zh", "zho", "cmn", "chi"}, {"wuu"}),
        ("zho_Hans", {"zho_hans", "zh", "cmn"}, {"zho_hant"}),
        ("nob-eng", {"nb", "no", "nor", "nob"}, {"nn"}),
        ("tgl-eng", {"tl", "fil", "tgl"}, set()),
        ("xx-kor", {"ko", "kor"}, set()),
        ("deu", {"de", "ger", "deu"}, {"d"}),
        ("eng-agnews", {"agnews", "en"}, {"news"}),
        ("mean", {"mean"}, {"m"}),
    ],
)
def test_every_code_of_a_language_finds_it_and_no_part_of_one(subset, found, not_found):
    known = search_words(subset).split(" ")
    assert found <= {*known}
    assert not not_found & {*known}
    assert len(known) == len(set(known))


def test_means_into_a_language_are_chosen_by_it_and_the_mean_of_all_stays():
    document = page([small("m", *errors_into(["deu", "kor", "tur"]))]).split('id="scores"')[1]
    assert f'<tr data-words="{search_words("xx-kor")}">' in document
    assert '<tr><th scope="row">mean' in document
