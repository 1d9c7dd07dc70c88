"""Every code system leads to the same house code, and unknown languages are rejected with advice."""

import pytest

from isoglot.core.errors import CorpusError
from isoglot.data.languages import among, canonical, canonical_list, header_languages, is_language, matches, tag

SAME = {
    "deu": "de deu ger DE deu_Latn de-AT de-1996", "zho": "zh zho chi cmn",
    "zho_Hans": "zho_Hans cmn_Hans zh-CN zh-Hans zh_CN zho-CN zh-SG", "zho_Hant": "zho_Hant zh-Hant zh-TW zh-HK",
    "ara": "ar ara arb arb_Arab", "fas": "fa fas per pes pes_Arab", "swa": "sw swa swh swh_Latn",
    "est": "et est ekk est_Latn", "lav": "lv lav lvs", "nor": "no nor nb nob nob_Latn", "msa": "ms msa may zsm",
    "ell": "el ell gre ell_Grek", "mon": "mn mon khk", "kur": "ku kur kmr", "tgl": "tl tgl fil tgl_Latn",
    "hbs": "sh hbs", "srp": "sr srp srp_Cyrl", "srp_Latn": "sr-Latn srp_Latn", "kor": "ko kor kor_Hang ko-KR",
    "jpn": "ja jpn jpn_Jpan", "hau": "ha hau hau_NG", "por": "pt pt-BR por_Latn", "heb": "he iw heb", "ind": "id ind",
    "und": "und",
    # Wikipedias, and retired and new codes
    "egl": "eml egl", "bel": "be-x-old", "nan": "zh-min-nan", "eng": "simple", "sgs": "bat-smg", "rup": "roa_rup rup",
    "jav": "map-bms", "isv": "isv", "tok": "tok", "vro": "vro", "nds": "nds-nl nds", "lzh": "zh-classical",
}  # fmt: skip
# The file names of the Tatoeba test by Artetxe and Schwenk.
TATOEBA = """
afr amh ang ara arq arz ast awa aze bel ben ber bos bre bul cat cbk ceb ces cha cmn cor csb cym dan deu dsb dtp ell epo
est eus fao fin fra fry gla gle glg gsw heb hin hrv hsb hun hye ido ile ina ind isl ita jav jpn kab kat kaz khm kor kur
kzj lat lfn lit lvs mal mar max mhr mkd mon nds nld nno nob nov oci orv pam pes pms pol por ron rus slk slv spa sqi srp
swe swg swh tam tat tel tgl tha tuk tur tzl uig ukr urd uzb vie war wuu xho yid yue zsm
"""
TATOEBA_CODES = TATOEBA.split()


@pytest.mark.parametrize("code, names", SAME.items())
def test_one_language_has_one_code(code, names):
    assert {canonical(name) for name in names.split()} == {code}


def test_the_house_code_is_its_own_house_code():
    for name in [*TATOEBA_CODES, *SAME, *(name for names in SAME.values() for name in names.split())]:
        assert canonical(canonical(name)) == canonical(name), name
    assert len(TATOEBA_CODES) == len({canonical(name) for name in TATOEBA_CODES}) == 112


@pytest.mark.parametrize("name", ["xx", "", "zz-top", "english", "The cat sat.", "x-private", "src", "tgt", "deu_Xxxx"])
def test_unknown_languages_are_refused(name):
    assert not is_language(name)
    with pytest.raises(CorpusError, match="unknown language"):
        canonical(name)


@pytest.mark.parametrize(
    "names, languages",
    [
        (("German", " english"), ["deu", "eng"]),
        (("zh-Hans", "key"), ["zho_Hans", "key"]),
        (("key", "English"), ["key", None]),
        (("English", "Klingon"), [None, None]),
        (("Note", "x" * 99), [None, None]),
    ],
)
def test_headers_are_all_codes_or_all_names_of_languages_that_have_two_letters(names, languages):
    assert header_languages(names) == languages


NAMES = {"german": "deu", "Chinese": "zho", "Malay": "msa", "Norwegian ": "nor", "KLINGON": "tlh", "dew": "de"}


@pytest.mark.parametrize("name", [*NAMES, "deutsch", "germane", "chin", "deuu", "The cat sat."])
def test_a_name_is_answered_with_its_code_and_other_words_with_none_that_is_spelt_similarly(name):
    advice = f"did you mean '{NAMES[name]}'" if name in NAMES else "write an ISO 639 code"
    with pytest.raises(CorpusError, match=rf"^a\.tsv:7: unknown language '{name}': {advice}"):
        canonical(name, file="a.tsv", line=7)


def test_a_code_without_script_stands_for_all_its_scripts():
    assert canonical_list("zh, kor") == canonical_list(["cmn", "ko"]) == ("zho", "kor")
    assert matches("zho_Hant", {"zho"})
    assert matches("zho", {"zho"})
    assert matches("zho", {"zho_Hant"})  # it means either: a search for zh-TW in an index of zh found nothing
    assert not matches("srp", {"srp_Latn"})  # it has a usual script
    assert not matches("zho_Hans", {"zho_Hant", "yue"})


@pytest.mark.parametrize(
    "code, asked, is_among",
    [
        *(("zho_Hant", "zho_Hant", True), ("zho_Hant", "zh", True), ("cmn", "zho_Hant", True)),
        *(("zho_Hans", "zho_Hant", False), ("zh-TW", "zh-CN", False)),
        # The usual script is one of two here, too, although `canonical` drops it.
        *(("kas_Arab", "kas_Deva", False), ("kas_Deva", "kas_Arab", False), ("srp", "srp_Latn", True)),
    ],
)
def test_a_language_in_another_script_is_not_among_those_asked_for(code, asked, is_among):
    assert among(code, ["deu", asked]) == is_among


def test_tags_stand_for_the_same_language():
    codes = ("deu", "zho_Hant", "srp_Latn", "nor", "tgl", "hbs", "kzj")
    assert [tag(code) for code in codes] == ["de", "zh-Hant", "sr-Latn", "no", "fil", "hbs", "kzj"]
    assert [canonical(tag(code)) for code in codes] == [*codes]
