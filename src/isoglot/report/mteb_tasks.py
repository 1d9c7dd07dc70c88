"""Where the tasks stand with MTEB: its name for each, its subsets with their languages, and how many items they have.

What is special here: a task is listed only when its texts are MTEB's too. The numbers of items, and the lengths of the
texts by which that was told, are those that mteb 2.26 gives in its `descriptive_stats`:

- `sts12` to `sts16`: equal; MTEB's copy is SentEval's text, in words between blanks and in lower case;
- `sts17`: equal but for about a dozen blanks around Arabic sentences; `tatoeba`: equal but for a line feed at the end
  of each of MTEB's sentences; `sts-b-multi` and `sib-200`: equal;
- `sts22`, `mtop`, `sts-b/mteb`, `sick-r/mteb` and `bucc/mteb...` read MTEB's own copy, or the files it was made of;
- not listed are `sts-b`, whose text MTEB has as it was before SentEval took it, and `sick-r`, which is the test part
  of what MTEB takes whole (4,927 of 9,927 pairs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Languages as MTEB writes them: a code of three letters and the script.
_TWO_LETTERS = {
    "ar": "ara-Arab",
    "de": "deu-Latn",
    "en": "eng-Latn",
    "es": "spa-Latn",
    "fr": "fra-Latn",
    "hi": "hin-Deva",
    "it": "ita-Latn",
    "ko": "kor-Hang",
    "nl": "nld-Latn",
    "pl": "pol-Latn",
    "pt": "por-Latn",
    "ru": "rus-Cyrl",
    "th": "tha-Thai",
    "tr": "tur-Latn",
    "zh": "cmn-Hans",
}
_TATOEBA_SCRIPTS = {
    "Arab": "ara arq arz pes uig urd",
    "Armn": "hye",
    "Beng": "ben",
    "Cyrl": "bel bul kaz mhr mkd mon orv rus srp tat ukr",
    "Deva": "awa hin mar max",
    "Ethi": "amh",
    "Geor": "kat",
    "Grek": "ell",
    "Hang": "kor",
    "Hans": "cmn wuu",
    "Hant": "yue",
    "Hebr": "heb yid",
    "Jpan": "jpn",
    "Khmr": "khm",
    "Mlym": "mal",
    "Taml": "tam",
    "Telu": "tel",
    "Tfng": "ber",
    "Thai": "tha",
    "Latn": "afr ang ast aze bos bre cat cbk ceb ces cha cor csb cym dan deu dsb dtp epo est eus fao fin fra fry gla "
    "gle glg gsw hrv hsb hun ido ile ina ind isl ita jav kab kur kzj lat lfn lit lvs nds nld nno nob nov oci pam pms "
    "pol por ron slk slv spa sqi swe swg swh tgl tuk tur tzl uzb vie war xho zsm",
}
_BITEXT = {"accuracy": "accuracy", "precision": "precision", "recall": "recall", "f1": "f1"}
_CORRELATIONS = {"spearman": "cosine_spearman", "pearson": "cosine_pearson"}
_TOPICS = {"accuracy": "accuracy", "f1/macro": "f1"}


@dataclass(frozen=True, slots=True)
class MtebTask:
    """Where a task of ours stands with MTEB: its name, the split, its metrics as MTEB's fields, which is the main one.

    `subsets` are MTEB's, each with its languages; empty where they are named as ours are, by language and script.
    `sizes` are the items of a subset in the split, `size` those of every other subset.
    """

    name: str
    fields: Mapping[str, str]
    main: str
    size: int = 0
    split: str = "test"
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def items(self, subset: str) -> int:
        """How many items MTEB's subset has."""
        return self.sizes.get(subset, self.size)


def _pairs(text: str) -> dict[str, tuple[str, ...]]:
    """Subsets such as `de-en`, with their languages; `en-en` is of one."""
    return {name: tuple(dict.fromkeys(_TWO_LETTERS[code] for code in name.split("-"))) for name in text.split()}


def _sizes(text: str, ending: str = "") -> dict[str, int]:
    """Subsets and their items, one after the other."""
    words = text.split()
    return {name + ending: int(size) for name, size in zip(words[::2], words[1::2], strict=True)}


_TATOEBA = {
    f"{code}-eng": (f"{code}-{script}", "eng-Latn")
    for script, codes in _TATOEBA_SCRIPTS.items()
    for code in codes.split()
}
_TATOEBA_SIZES = _sizes(
    "amh 168 ang 134 arq 911 arz 477 ast 127 awa 231 bos 354 ceb 600 cha 137 csb 253 cym 575 dsb 479 fao 262 fry "
    "173 gla 829 gsw 117 hsb 483 hye 742 jav 205 kat 746 kaz 575 khm 722 kur 410 mal 687 max 284 mon 440 nov 257 "
    "orv 835 pms 525 slv 823 swg 112 swh 390 tam 307 tel 234 tha 548 tuk 203 tzl 104 uzb 428 xho 142 yid 848",
    "-eng",
)
_STS17 = _pairs("ko-ko ar-ar en-ar en-de en-en en-tr es-en es-es fr-en it-en nl-en")
_STS22_V2_SIZES = _sizes(
    "ar 193 de 514 de-en 158 de-fr 74 de-pl 28 en 197 es 200 es-en 365 es-it 212 fr 101 fr-pl 8 it 407 pl 182 "
    "pl-en 48 ru 265 tr 208 zh 637 zh-en 161"
)
_STS22_SIZES = _sizes(
    "ar 195 de 514 de-en 160 de-fr 75 de-pl 28 en 197 es 205 es-en 374 es-it 218 fr 104 fr-pl 8 it 408 pl 187 "
    "pl-en 49 ru 271 tr 211 zh 656 zh-en 168"
)
_STS22 = _pairs(" ".join(_STS22_SIZES))
_STSB = _pairs("en de es fr it nl pl pt ru zh")
_MTOP_SIZES = _sizes("de 3549 en 4386 es 2998 fr 3193 hi 2789 th 2765")
_BUCC_SIZES = _sizes("de-en 9580 fr-en 9086 ru-en 14435 zh-en 1899")
_BUCC = _pairs(" ".join(_BUCC_SIZES))
_ENGLISH = {"default": ("eng-Latn",)}
_ENGLISH_SIZES = {12: 3108, 13: 1500, 14: 3750, 15: 3000, 16: 1186}
_ALL = {f"{kind}/all": name for kind, name in _CORRELATIONS.items()}
_XX_EN = {f"{name}/xx-en": name for name in ("accuracy", "f1")}
_MULTI = "STSBenchmarkMultilingualSTS"

MTEB: dict[str, MtebTask] = {
    "tatoeba": MtebTask("Tatoeba", _XX_EN, "f1", 1000, subsets=_TATOEBA, sizes=_TATOEBA_SIZES),
    "bucc/mteb": MtebTask("BUCC", _BITEXT, "f1", subsets=_BUCC, sizes=_BUCC_SIZES),
    "bucc/mteb-v2": MtebTask("BUCC.v2", _BITEXT, "f1", subsets=_BUCC, sizes=_BUCC_SIZES),
    **{
        f"sts{year}": MtebTask(f"STS{year}", _ALL, "cosine_spearman", size, subsets=_ENGLISH)
        for year, size in _ENGLISH_SIZES.items()
    },
    "sts-b/mteb": MtebTask("STSBenchmark", _ALL, "cosine_spearman", 1379, subsets=_ENGLISH),
    "sick-r/mteb": MtebTask("SICK-R", _ALL, "cosine_spearman", 9927, subsets=_ENGLISH),
    "sts17": MtebTask("STS17", _CORRELATIONS, "cosine_spearman", 250, subsets=_STS17, sizes={"ko-ko": 2846}),
    "sts22": MtebTask("STS22.v2", _CORRELATIONS, "cosine_spearman", subsets=_STS22, sizes=_STS22_V2_SIZES),
    "sts22/v1": MtebTask("STS22", _CORRELATIONS, "cosine_spearman", subsets=_STS22, sizes=_STS22_SIZES),
    "sts-b-multi": MtebTask(_MULTI, _CORRELATIONS, "cosine_spearman", 1379, subsets=_STSB),
    "sts-b-multi/dev": MtebTask(_MULTI, _CORRELATIONS, "cosine_spearman", 1500, "dev", _STSB),
    "mtop": MtebTask(
        "MTOPDomainClassification", _TOPICS, "accuracy", subsets=_pairs(" ".join(_MTOP_SIZES)), sizes=_MTOP_SIZES
    ),
    "sib-200": MtebTask("SIB200Classification", _TOPICS, "accuracy", 204),
}
