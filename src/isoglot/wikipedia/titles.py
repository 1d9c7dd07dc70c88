"""Titles as MediaWiki understands them: namespaces, prefixes of other wikis, sections, the case of the first letter.

A dump names its namespaces in its own language only, while links may also use the English names and aliases that no
dump lists. An unlisted alias of "File" is recognized by the extension of a file name; other unlisted aliases are taken
for article titles, which then have no identifier. The prefixes of Wikipedias are a fixed list, because three-letter
codes of languages without a Wikipedia also begin ordinary titles.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from isoglot.data.languages import WIKIPEDIAS, canonical

# Codes of Wikipedias, open and closed, as they stand before a colon in links between languages.
WIKIS = frozenset((Path(__file__).parent / "wikis.txt").read_text(encoding="utf-8").split())
# Codes of Wikipedias that are not the ISO 639 codes of their language.
_NOT_ISO = {**WIKIPEDIAS, "als": "gsw", "nrm": "nrf"}
# Those whose language has another Wikipedia too, by their names in Wikidata.
SECOND = {name: name for name in ("simple", "be-x-old", "map-bms", "roa-tara")} | {"be-tarask": "be-x-old"}
_PROJECTS = """
    b c commons d doi dbdump m mail mediawikiwiki meta metawikipedia mw n nost oldwikisource outreach phab q rev s
    species toollabs v voy w wikibooks wikidata wikimedia wikinews wikipedia wikiquote wikisource wikispecies
    wikiversity wikivoyage wikt wiktionary wmf"""
_OTHERS = """talk user user_talk project project_talk file_talk image_talk mediawiki mediawiki_talk template
    template_talk help help_talk category_talk portal portal_talk module module_talk draft timedtext"""
_NAMESPACES = {"media": -2, "special": -1, "file": 6, "image": 6, "category": 14, **dict.fromkeys(_OTHERS.split(), 1)}
_MEDIA = re.compile(
    r"\.(jpe?g|png|svg|gif|tiff?|webp|xcf|bmp|og[gva]|opus|web[mp]|mp[34]|mpe?g|wav|flac|mid|pdf|djvu|stl)\s*$", re.I
)
_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u00ad]")
_SPACES = re.compile(r"[\s_]+")
_DOTTED = frozenset({"az", "kaa", "tr"})

ARTICLE, OTHER, HIDDEN = "article", "other", "hidden"


@dataclass(frozen=True, slots=True)
class Names:
    """Names used by one Wikipedia: its code, lower-case namespaces with their numbers, its letter case."""

    wiki: str
    namespaces: Mapping[str, int]
    first_letter: bool = True


def find_language(wiki: str, *, file: str | Path | None = None) -> str:
    """Language code of a Wikipedia: `als` is Alemannic (gsw), `simple` English. Raises `CorpusError`."""
    return _NOT_ISO.get(wiki) or canonical(wiki, file=file)


def make_key(code: str, *, file: str | Path | None = None, line: int | None = None) -> str:
    """One key for all names of a Wikipedia: `deu`, `de` and `DE` are equal; `simple` differs from `en`.

    Raises `CorpusError` for an unknown language.
    """
    wiki = code.strip().lower().replace("_", "-")
    return SECOND.get(wiki) or _NOT_ISO.get(wiki) or canonical(code, file=file, line=line)


def resolve(link: str, names: Names) -> tuple[str, str]:
    """The kind of a link's target, and its title in normal form.

    `ARTICLE` with the title; `OTHER`: shown, but not an article of this Wikipedia (its title is empty); `HIDDEN`:
    files, categories and links to the same page in other languages, which are not part of the text.
    """
    is_shown = link.lstrip().startswith(":")
    prefix, colon, _ = link.strip().lstrip(":").partition(":")
    name = _SPACES.sub("_", prefix.strip().lower())
    if colon and name:
        space = names.namespaces.get(name, _NAMESPACES.get(name))
        is_wiki = space is None and name.replace("_", "-") in WIKIS
        if is_wiki or space in (6, 14) or (_MEDIA.search(link) and not is_shown):
            return (OTHER if is_shown else HIDDEN), ""
        if space is not None or name in _PROJECTS.split():
            return OTHER, ""
    title = normal(link, names)
    return (ARTICLE, title) if title else (OTHER, "")


def normal(title: str, names: Names) -> str:
    """The page title of a link's target, without section, underscores and direction marks."""
    text = html.unescape(title) if "&" in title else title
    text = text.partition("#")[0]
    if "%" in text:
        with suppress(UnicodeDecodeError):
            text = unquote(text, errors="strict")
    text = _SPACES.sub(" ", _MARKS.sub("", text)).strip().lstrip(":").strip()
    return _capital(text[:1], names.wiki) + text[1:] if names.first_letter else text


def _capital(letter: str, wiki: str) -> str:
    if letter == "i" and wiki in _DOTTED:
        return "İ"
    if "\u10d0" <= letter <= "\u10ff":  # Georgian has capitals in Unicode, but not in its Wikipedia
        return letter
    upper = letter.upper()
    return upper if len(upper) == 1 else letter
