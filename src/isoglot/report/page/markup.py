"""HTML, made so that nothing of the data can become markup: only `element` and `text` make `Html`, and both escape."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NewType

from langcodes import Language

from isoglot.data.languages import is_language
from isoglot.report.page.words import search_words

Html = NewType("Html", str)

_VOID = {"meta", "input"}


def text(value: object) -> Html:
    """Anything as text."""
    return Html(html.escape(str(value), quote=True))


def element(name: str, /, *children: Html, **attributes: str | None) -> Html:
    """An element. Attributes that are None are left out; `class_` and `aria_label` stand for `class`, `aria-label`."""
    known = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    inner = "".join(f' {key}="{text(value)}"' for key, value in known.items())
    return Html(f"<{name}{inner}>" if name in _VOID else f"<{name}{inner}>{''.join(children)}</{name}>")


def join(parts: Iterable[Html]) -> Html:
    """One after the other, a line each."""
    return Html("\n".join(parts))


def document(title: str, body: Iterable[Html], *, style: Html, images: bool = False) -> str:
    """A whole HTML document. The browser itself refuses to fetch anything, whatever the document might hold.

    `images`: pictures may be in it, as data.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy + "; img-src data:" * images),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", text(title)),
        element("style", style),
    ]
    whole = element("html", element("head", join(head)), element("body", join(body)), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def sentence(value: str, *, language: str | None = None) -> Html:
    """A cell of text whose direction the browser finds in the text itself."""
    return element("td", text(value), dir="auto", lang=tag(language))


def number(value: str, *, bold: bool = False, note: str = "") -> Html:
    """A cell of a number, with a smaller note behind it."""
    shown = element("b", text(value)) if bold else text(value)
    return element("td", shown, *([Html(" "), element("small", text(note))] if note else []), class_="n")


def table(header: Sequence[tuple[str, bool]], bodies: Iterable[Sequence[Html]], *, label: str) -> Html:
    """A table in a box that scrolls sideways. `header` says of each column whether it holds numbers."""
    cells = [
        # Names of models are paths: they are broken after a slash where they must be.
        element("th", Html(text(name).replace("/", "/<wbr>")), scope="col", class_="n" if numbers else None)
        for name, numbers in header
    ]
    head = element("thead", element("tr", *cells))
    body = [element("tbody", join(rows)) for rows in bodies if rows]
    return element("div", element("table", head, *body), class_="scroll", role="region", aria_label=label, tabindex="0")


def folded(summary: Html, *content: Html, subset: str | None = None, opened: bool = False) -> Html:
    """Content that is shown when its summary is clicked. The box that chooses languages finds it by its `subset`."""
    known = search_words(subset) if subset else None
    return element("details", element("summary", summary), *content, data_words=known, open="" if opened else None)


@lru_cache(maxsize=1024)
def tag(language: str | None) -> str | None:
    """The BCP 47 tag of a language code of any system, for `lang`; None for what is no language."""
    if language is None or not is_language(language):
        return None
    found = str(Language.get(language).to_tag())
    return found if found != "und" else None
