"""Small dumps, written by hand: a head with the namespaces of a Wikipedia, and pages as title and wikitext."""

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from isoglot.wikipedia.titles import Names

SPACES = {
    "en": ("File", "Category"),
    "ja": ("ファイル", "Category"),
    "ar": ("ملف", "تصنيف"),
    "de": ("Datei", "Kategorie"),
}


def names(wiki="en"):
    file, category = SPACES[wiki]
    return Names(wiki, {"talk": 1, "user": 2, "wikipedia": 4, file.lower(): 6, "template": 10, category.lower(): 14})


def head(wiki="en"):
    spaces = [(0, ""), *((number, name.title()) for name, number in names(wiki).namespaces.items())]
    lines = "".join(f'<namespace key="{number}" case="first-letter">{name}</namespace>\n' for number, name in spaces)
    return (
        f'<mediawiki xml:lang="{wiki}">\n<siteinfo>\n<dbname>{wiki}wiki</dbname>\n'
        f"<base>https://{wiki}.wikipedia.org/wiki/Main</base>\n<namespaces>\n{lines}</namespaces>\n</siteinfo>\n"
    )


def page(title, text="", *, redirect=None, ns=0):
    lead = f"<redirect title={quoteattr(redirect)} />" if redirect else ""
    return (
        f"<page>\n<title>{escape(title)}</title>\n<ns>{ns}</ns>\n<id>1</id>\n{lead}\n"
        f'<revision>\n<id>2</id>\n<text xml:space="preserve">{escape(text)}</text>\n</revision>\n</page>\n'
    )


def xml(*pages, wiki="en"):
    return head(wiki) + "".join(pages) + "</mediawiki>\n"


def write(path, *pages, wiki="en") -> Path:
    path = Path(path)
    path.write_text(xml(*pages, wiki=wiki), encoding="utf-8")
    return path
