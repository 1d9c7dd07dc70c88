"""GNU gettext: the messages of a .po file and their translations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from isoglot.core.errors import CorpusError, naming_extras
from isoglot.data.files import read_lines
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical, canonical_list

_LINE = re.compile(r"line (\d+)")


def read_po(
    path: str | Path, *, languages: str | Sequence[str] = (), counts: Counter[str] | None = None
) -> Iterator[Group]:
    """A group of a message and its translation; of a plural, the singular and the plural with the last of its forms.

    languages   of messages and translations; default: English, or `X-Source-Language`, and `Language` of the header

    Messages that are not translated, fuzzy or obsolete are left out and counted in `counts["untranslated"]`. Raises
    `CorpusError` for a file that is not valid, and for unknown languages.
    """
    with naming_extras():
        import polib
    counts = Counter() if counts is None else counts
    text = "".join(f"{line}\n" for _, line in read_lines(path))
    try:
        entries = polib.pofile(text)
    except (OSError, ValueError, IndexError) as error:
        line = _LINE.search(str(error))
        problem = f"cannot be read as a .po file ({error}); correct it, for instance with: msgfmt --check"
        raise CorpusError(problem, file=path, line=int(line[1]) if line else None) from None
    header = entries.metadata
    pair = canonical_list(languages, file=path) if languages else (
        canonical(header.get("X-Source-Language") or "eng", file=path),
        canonical(header.get("Language") or UNKNOWN, file=path),
    )  # fmt: skip
    if len(pair) != 2:
        raise CorpusError(f"got {len(pair)} languages; pass two, of messages and translations", file=path)
    if not entries:
        raise CorpusError("contains no message; is it a .po file?", file=path)
    for entry in entries:
        forms = [text for _, text in sorted(entry.msgstr_plural.items())]
        texts = [(entry.msgid, entry.msgstr)] if not forms else [(entry.msgid, forms[0])]
        texts += [(entry.msgid_plural, form) for form in forms[1:][-1:]]
        translated = [(text, other) for text, other in texts if text.strip() and other.strip()]
        if entry.obsolete or entry.fuzzy or not translated:
            counts["untranslated"] += 1
            continue
        for text, other in translated:
            yield Group((" ".join(text.split()), " ".join(other.split())), pair)
