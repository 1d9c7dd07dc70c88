"""XML files as a stream of events or of elements, for TMX, XLIFF, DOCX and Wikipedia dumps.

Expat parses the file block by block, in UTF-8, UTF-16, or the declared encoding of one byte for each character. Only
the file itself is read: the DTD it refers to is not fetched, and a file that declares entities of its own is rejected,
as is one that refers to an entity which only that DTD could declare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from isoglot.core.errors import CorpusError, quote
from isoglot.data.files import CutShortError, read_blocks

DEEPEST = 256  # elements inside each other
LONGEST_TEXT = 1 << 25  # characters of one record, and bytes of one tag, comment or instruction

_PIECE = 1 << 16  # bytes parsed at a time, since their events are in memory together
# Of a tag that is a line break: in TMX, XLIFF 1.2, XLIFF 2, and that of Angular.
_LINE_BREAKS = {("type", "lb"), ("ctype", "lb"), ("subType", "xlf:lb"), ("equiv", "LINE_BREAK")}


class Event(NamedTuple):
    """A tag of an element (`start`, `end`) with its name, or a piece of `text`, and the line where it begins."""

    kind: str
    line: int
    text: str
    attributes: dict[str, str]


def read_events(
    path: str | Path, records: Collection[str], *, blocks: Iterable[bytes] | None = None
) -> Iterator[Event]:
    """The events of a file, or of its `blocks`.

    Kept in memory: the events of a block. What a caller gathers of one record is bounded: from one start of an element
    with a name in `records` (without prefix) to the next there are at most `LONGEST_TEXT` characters.

    Raises `CorpusError` for what `read_blocks` rejects, an encoding that is unknown or does not fit, declared and
    unknown entities, elements nested too deeply or too long, and XML that is not well-formed; `CutShortError` for a
    file that is cut short. All events before the error are yielded first.
    """
    events: list[Event] = []
    parser = _make_parser(path, events)
    depth = size = fed = 0
    blocks = blocks or read_blocks(path, keep_bom=True)
    for piece in (block[start : start + _PIECE] for block in blocks for start in range(0, len(block), _PIECE)):
        problem = _parse(parser, piece, path)
        fed += len(piece)
        if problem is None and fed - max(parser.CurrentByteIndex, 0) > LONGEST_TEXT:
            what = f"a tag or comment of more than {LONGEST_TEXT >> 20} MiB; fix the file"
            problem = CorpusError(what, file=path, line=parser.CurrentLineNumber)
        for event in events:
            depth += (event.kind == "start") - (event.kind == "end")
            if depth > DEEPEST:
                what = f"more than {DEEPEST} elements inside each other, the last <{event.text[:40]}>"
                raise CorpusError(f"{what}; fix the file", file=path, line=event.line)
            if event.kind == "start" and event.text.rpartition(":")[2] in records:
                size = 0
            size += len(event.text) + sum(map(len, event.attributes.values())) + 1  # empty pieces cost memory too
            if size > LONGEST_TEXT:
                what = f"<{' or '.join(records)}> with more than {LONGEST_TEXT >> 20} Mi characters; cut it"
                raise CorpusError(what, file=path, line=event.line)
            yield event
        events.clear()
        if problem is not None:
            raise problem
    try:
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        what = f"the XML is cut short ({expat.ErrorString(error.code)})"
        raise CutShortError(f"{what}; copy or make the file again", file=path, line=error.lineno) from None


def _make_parser(path: str | Path, events: list[Event]) -> Any:
    """A parser that appends to the events."""
    parser = expat.ParserCreate()

    def refuse(problem: str) -> NoReturn:
        raise CorpusError(problem, file=path, line=parser.CurrentLineNumber)

    def declare_entity(name: str, *_rest: object) -> None:
        refuse(f"declares the entity {quote(name, most=40)}; write its text instead, and remove the declaration")

    def skip_entity(name: str, is_parameter: bool) -> None:
        if not is_parameter:
            refuse(f"undefined entity &{name[:40]};, which an XML file must not rely on; write the character")

    def handle(kind: str) -> Any:
        return lambda text, *more: events.append(Event(kind, parser.CurrentLineNumber, text, more[0] if more else {}))

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = handle("start"), handle("end")
    parser.CharacterDataHandler = handle("text")
    parser.EntityDeclHandler, parser.SkippedEntityHandler = declare_entity, skip_entity
    return parser


def _parse(parser: Any, block: bytes, path: str | Path) -> CorpusError | None:
    """What is wrong with a block."""
    try:
        parser.Parse(block, False)
    except expat.ExpatError as error:
        problem = f"not well-formed XML, or not in its encoding ({expat.ErrorString(error.code)})"
        return CorpusError(f"{problem}; pass an XML file, or copy this one again", file=path, line=error.lineno)
    except CorpusError as error:
        return error
    except (LookupError, ValueError):  # of Python's codecs, which expat asks for the declared encoding
        advice = "UTF-8, UTF-16 or one of one byte for each character; convert the file to UTF-8"
        return CorpusError(f"declares an encoding that is not {advice}", file=path, line=1)
    return None


def read_elements(
    path: str | Path, names: Collection[str], heads: Collection[str] = ()
) -> Iterator[tuple[int, Element]]:
    """The elements of these names, whole, and those of `heads` with their attributes alone, each with its line.

    Names are without prefixes. Kept in memory: one block of the file and one element. Raises as `read_events` does.
    """
    builder: TreeBuilder | None = None  # of the element that is open
    depth = first = 0
    for kind, line, text, attributes in read_events(path, names):
        name = text.rpartition(":")[2]
        if kind == "start":
            if builder is None and name in names:
                builder, first = TreeBuilder(), line
            if builder is not None:
                builder.start(name, attributes)
                depth += 1
            elif name in heads:
                yield line, Element(name, attributes)
        elif builder is not None and kind == "text":
            builder.data(text)
        elif builder is not None:
            builder.end(name)
            depth -= 1
            if not depth:
                yield first, builder.close()
                builder = None


def text_of(element: Element | None, hidden: Collection[str]) -> str:
    """The text of an element and of those inside it, except for the `hidden` ones; line breaks are spaces."""
    if element is None:
        return ""
    pieces = [element.text or ""]
    for inner in element:  # at most `DEEPEST` inside each other
        space = "" if _LINE_BREAKS.isdisjoint(inner.attrib.items()) else " "
        pieces += [space, "" if inner.tag in hidden else text_of(inner, hidden), inner.tail or ""]
    return "".join(pieces)
