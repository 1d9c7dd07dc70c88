"""Language codes: the only place that converts codes of other systems to those of isoglot.

A language code is ISO 639-3, with `_Script` only where the script is not the usual one: `deu`, `jpn`, `zho_Hans`,
`srp_Latn`. Accepted are ISO 639-1 (`de`), 639-2 (`ger`), 639-3 (`deu`), FLORES (`deu_Latn`), BCP 47 (`de-AT`, `zh-TW`)
and the file names of Tatoeba, LASER and XTREME (`cmn`, `pes`, `swh`); most are looked up with the
`langcodes` library, without its optional `language_data`.

*One language, one code.* A macro-language and the individual language that its code stands for in practice are the
same: cmn zh -> zho, arb ar -> ara, pes prs fa -> fas, swh sw -> swa, ekk et -> est, lvs lv -> lav, zsm ms -> msa,
nob no -> nor, khk mn -> mon, kmr ku -> kur, mhr -> chm. Other members keep their own: yue, wuu, arz, ckb, nno, ind.
*Scripts* are dropped where they are the usual one (`eng_Latn`, `arb_Arab`, `srp_Cyrl`) and kept elsewhere. Chinese has
two usual scripts, so its script is kept whenever it is known, even if only by the country (`zh-TW` -> `zho_Hant`);
`zho` alone means either, and `matches` lets it stand for both. Regions and variants are dropped.
*Codes of Wikipedias* that are not used elsewhere (`simple`, `zh-min-nan`, `bat-smg`) are accepted too; `als`, which is
Albanian everywhere else, is not taken for Alemannic.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from isoglot.core.errors import CorpusError, nearest, quote

if TYPE_CHECKING:
    from langcodes import Language

UNKNOWN = "und"
SKIPPED = "sentences in unknown languages"  # key of the counts
OnUnknown: TypeAlias = Literal["error", "skip"]
LONGEST_CODE = 64  # characters; a longer text is not a code, and nearest codes are not searched for it

# Where our reading differs from the library's. It turns hbs into Serbian and keeps Norwegian apart from Bokmål, which
# no corpus does; corpora write Tagalog and Filipino for the same texts; and Tatoeba has test sets for both kzj and dtp.
_OURS = {
    **{"sh": "hbs", "hbs": "hbs", "kzj": "kzj", "tl": "tgl", "tgl": "tgl", "fil": "tgl"},
    **{"nb": "nor", "nob": "nor", "no": "nor", "nor": "nor"},
}
# Codes in corpora that the library does not know: Wikipedia's, constructed, new and retired languages.
WIKIPEDIAS = {
    **{"bat-smg": "sgs", "be-tarask": "bel", "be-x-old": "bel", "cbk-zam": "cbk", "eml": "egl", "fiu-vro": "vro"},
    **{"map-bms": "jav", "roa-rup": "rup", "roa-tara": "nap", "simple": "eng", "zh-classical": "lzh"},
    **{"zh-min-nan": "nan", "zh-yue": "yue"},
}
_WHOLE = {**WIKIPEDIAS, "isv": "isv", "tok": "tok"}
_ALWAYS_WITH_SCRIPT = {"zho"}
_PART_OF_USUAL = {("kor", "Hang")}
_SCRIPT = re.compile("[-_][A-Za-z]{4}(?![A-Za-z])")
# Valid codes that mean something else as the name of a column.
_NOT_MEANT = {"src", "tgt", "trg"}
_IDS = {"id": "Indonesian", "no": "Norwegian", "nr": "South Ndebele"}  # columns of ids, more often than these
_METADATA = {  # codes of small languages that are more often names of columns
    *("doc", "err", "lbl", "len", "log", "num", "org", "par", "pid", "pos", "row", "sec", "seg", "set", "sid", "sim"),
    *("sub", "sys", "tag", "tid", "txt", "url", "var", "ver"),
}


def canonical(code: str, *, file: str | Path | None = None, line: int | None = None) -> str:
    """The language code for a code of any system; `und` stays `und`.

    Raises `CorpusError` for an unknown language, with the nearest known codes and, if passed, with file and line.
    """
    if (language := _language_code(code)) is None:
        problem = f"unknown language {quote(code, most=40)}: {_advice(code[:LONGEST_CODE])}"
        raise CorpusError(problem, file=file, line=line)
    return language


def canonical_or_skip(
    code: str, skipped: Counter[str] | None, *, file: str | Path | None = None, line: int | None = None
) -> str | None:
    """As `canonical`, but with `skipped` an unknown language is counted there and gives None."""
    if skipped is None or is_language(code):
        return canonical(code, file=file, line=line)
    skipped[SKIPPED] += 1
    return None


def canonical_list(codes: str | Iterable[str], *, file: str | Path | None = None) -> tuple[str, ...]:
    """Language codes from an iterable of codes of any system, or from one string with commas (`"zh,kor"`)."""
    names = codes.split(",") if isinstance(codes, str) else codes
    return tuple(canonical(name, file=file) for name in names)


def is_language(code: str) -> bool:
    """Whether `canonical` accepts the code."""
    return _language_code(code) is not None


def header_languages(names: Sequence[str], asides: Collection[str] = ()) -> list[str | None]:
    """The languages that the headers of columns say, all by codes or all by English names; None for any other header.

    Headers that are `asides` in lower case stay that. Among names, a code such as `key`, which is Kupia, is rather the
    key of a row; and only languages with a code of two letters count, since "Note" might be a name.
    """
    kinds = [name.strip().lower() for name in names]
    others = [name for name, kind in zip(names, kinds, strict=True) if kind not in asides]
    codes = [_language_code(name) for name in others]
    if None in codes:
        short = [_names().get(name.strip().casefold(), "") for name in others]
        if all(len(code) == 2 for code in short):
            codes = [_language_code(code) for code in short]
    languages = iter(codes)
    return [kind if kind in asides else next(languages) for kind in kinds]


def check_id(
    row: Mapping[str, Any], texts: Sequence[str], *, file: str | Path | None = None, line: int | None = None
) -> None:
    """Raise `CorpusError` if a text of the first row is an id or metadata, of a column that would be a language."""
    for name, cell in row.items():
        if name.lower() in _METADATA and cell in texts:
            problem = f"the column {name} would be sentences in the language of this code"
            raise CorpusError(f"{problem}; leave it out, or select languages", file=file, line=line)
        is_id = name.lower() in _IDS and cell in texts and re.search(r"\d|\w[._]\w", cell) and len(cell.split()) == 1
        if is_id and re.search(r"[^\W\d_]", "".join(texts)):  # not one number in all languages
            problem = f"the column {name} would be {_IDS[name.lower()]}, and has ids such as {quote(cell, most=25)}"
            raise CorpusError(f"{problem}; leave it out", file=file, line=line)


def matches(code: str, wanted: Collection[str]) -> bool:
    """Whether a language code is among the requested ones; one without a script means all, `zho` on either side."""
    either = code in _ALWAYS_WITH_SCRIPT and any(one.startswith(f"{code}_") for one in wanted)
    return either or code in wanted or code.partition("_")[0] in wanted


def among(code: str, languages: Sequence[str]) -> bool:
    """Whether the code that a test set uses names one of `languages`; without any, every one does.

    One that names no script (`cmn`) answers for all of them (`zho_Hans`, `zho_Hant`), on either side. Raises
    `CorpusError` for a language that does not exist and that the test set does not use either.
    """
    if not languages or code in languages:
        return True
    wanted = [*map(_base_and_script, languages)]
    base, script = _base_and_script(code) if is_language(code) else ("", "")
    return any(one == base and (other == script or not other or not script) for one, other in wanted)


def _base_and_script(code: str) -> tuple[str, str]:
    """The language and the script of a code, `usual` for a usual one (`srp_Cyrl`), which `canonical` drops."""
    base, _, script = canonical(code).partition("_")
    return base, script or ("usual" if _SCRIPT.search(code) else "")


def _language_code(code: str) -> str | None:
    return _resolve(code.strip()) if len(code) <= LONGEST_CODE else None


@lru_cache(maxsize=4096)
def _resolve(code: str) -> str | None:
    whole = code.replace("_", "-").lower()
    if whole in _WHOLE:
        return _WHOLE[whole]
    primary = whole.partition("-")[0]
    if primary == UNKNOWN:
        return UNKNOWN
    if not primary or primary in _NOT_MEANT:
        return None
    from langcodes import Language  # its tables take longer to import than texts in unknown languages need

    try:
        parsed = Language.get(code, normalize=primary not in _OURS)
    except ValueError:
        return None
    if len(parsed.language or "") not in (2, 3) or not Language.get(code).is_valid():
        return None
    base = _OURS.get(primary) or parsed.prefer_macrolanguage().to_alpha3()
    return base + _script_suffix(base, parsed)


def _script_suffix(base: str, parsed: Language) -> str:
    script = parsed.script or (parsed.maximize().script if parsed.territory else None)
    if script is None or (base, script) in _PART_OF_USUAL:
        return ""
    usual = parsed.make(language=parsed.language).maximize().script
    return f"_{script}" if script != usual or base in _ALWAYS_WITH_SCRIPT else ""


def _advice(code: str) -> str:
    from langcodes.data_dicts import LANGUAGE_ALPHA3

    advice = "write an ISO 639 code such as 'deu', 'de' or 'zho_Hans', or 'und' if the language is unknown"
    word = code.strip()
    if len(word) > 3:  # perhaps a name; the code with the most similar spelling would be that of another language
        language = _language_code(_names().get(word.casefold(), ""))
        return f"did you mean {language!r}?" if language else advice
    codes = [two for two in LANGUAGE_ALPHA3 if len(two) == 2] + [*LANGUAGE_ALPHA3.values()]
    return nearest(word, codes, otherwise=advice)


@cache
def _registry() -> dict[tuple[str, str], list[str]]:
    """English names in the IANA registry that langcodes contains, by kind (language, script) and subtag."""
    from langcodes.registry_parser import parse_registry

    entries = parse_registry()  # type: ignore[no-untyped-call]  # codes of two letters come first
    return {
        (entry["Type"], entry["Subtag"]): entry["Description"]
        for entry in sorted(entries, key=lambda entry: "Deprecated" in entry)
        if entry["Type"] in ("language", "script")
    }


@cache
def _names() -> dict[str, str]:
    """English names of languages, in lower case, with their codes."""
    codes: dict[str, str] = {}
    for (kind, subtag), names in _registry().items():
        for name in names if kind == "language" else ():
            codes.setdefault(name.removesuffix(" (macrolanguage)").casefold(), subtag)
    return codes


@lru_cache(maxsize=1024)
def english_name(code: str) -> str:
    """The English name of a language, with its script if the code has one: `Chinese (Simplified)`; empty if unknown."""
    from langcodes.data_dicts import LANGUAGE_ALPHA3

    base, _, script = (_language_code(code) or UNKNOWN).partition("_")
    short = next((two for two, three in LANGUAGE_ALPHA3.items() if three == base and len(two) == 2), base)
    names = _registry().get(("language", short)) or _registry().get(("language", base))
    if base == UNKNOWN or names is None:
        return ""
    (written,) = _registry().get(("script", script), [""])[:1]
    variant = re.fullmatch(r"Han \((\w+) variant\)", written)
    return names[0].partition(" (")[0] + (f" ({variant[1] if variant else written or script})" if script else "")


@lru_cache(maxsize=1024)
def tag(code: str | None) -> str | None:
    """The BCP 47 tag of a language code of any system, as HTML and TMX have them; None if it is unknown."""
    ours = canonical(code) if code is not None and is_language(code) else UNKNOWN
    if ours == UNKNOWN:
        return None
    from langcodes import standardize_tag

    theirs = standardize_tag(ours)  # of hbs, that of Serbian
    return theirs if canonical(theirs) == ours else ours.replace("_", "-")
