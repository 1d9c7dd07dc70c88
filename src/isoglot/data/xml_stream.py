"""XML files as a stream of events or of elements, for TMX, XLIFF, DOCX and Wikipedia dumps.

Expat parses the file block by block, in UTF-8, UTF-16, or the declared encoding of one byte for each character. Only
the file itself is read: the DTD it refers to is not fetched, and a file that declares entities of its own is rejected,
as is one that refers to an entity which only that DTD could declare.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from isoglot.core.errors import CorpusError
from isoglot.data.files import read_blocks
from isoglot.data.numbers import shown

DEEPEST = 256  # elements inside each other
LONGEST_TEXT = 1 << 25  # characters of one record, and bytes of one tag, comment or instruction

_PIECE = 1 << 16  # bytes parsed at a time


class XmlError(CorpusError):
    """The XML is not well-formed; `why` is the parser's reason, `line` the place."""

    def __init__(self, why: str, *, file: str | Path, line: int) -> None:
        self.why, self.line = why, line
        problem = f"not well-formed XML, cut short or not in its encoding ({why}); copy or make the file again"
        super().__init__(problem, file=file, line=line)


class XmlStream:
    """Calls `start(name, attributes)`, `end(name)` and `text(data)` for the events of a file, or of its `blocks`.

    Kept in memory: a block of the file, the names of the open elements (at most `DEEPEST`) and one tag or comment (at
    most `LONGEST_TEXT` bytes). What the handlers raise ends the reading.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None],
        text: Callable[[str], None],
        blocks: Iterator[bytes] | None = None,
    ) -> None:
        self._path, self._on_start, self._on_end, self._blocks = path, start, end, blocks
        self.depth = 0
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = text
        parser.EntityDeclHandler, parser.SkippedEntityHandler = self._declared, self._skipped

    @property
    def line(self) -> int:
        """The line that the parser has reached."""
        return self._parser.CurrentLineNumber

    def blocks(self) -> Iterator[None]:
        """Parse the file, and yield whenever the handlers have been called for a block of it.

        Raises `CorpusError` for what `read_blocks` rejects, an encoding that is unknown or does not fit, declared and
        unknown entities, and elements nested too deeply or too long; `XmlError` for XML that is not well-formed. The
        handlers are called for everything before the error first. A truncated file is not an error here.
        """
        fed = 0
        for block in _pieces(self._blocks or read_blocks(self._path, keep_bom=True)):
            problem: CorpusError | None = None
            try:
                self._parser.Parse(block, False)
                fed += len(block)
                if fed - max(self._parser.CurrentByteIndex, 0) > LONGEST_TEXT:
                    problem = self.error(f"a tag or comment of more than {LONGEST_TEXT >> 20} MiB; fix the file")
            except expat.ExpatError as error:
                problem = XmlError(expat.ErrorString(error.code), file=self._path, line=error.lineno)
            except CorpusError as error:
                problem = error
            except (LookupError, ValueError):  # of Python's codecs, which expat asks for the declared encoding
                problem = self.error(
                    "declares an encoding that is not UTF-8, UTF-16 or one of one byte for each character; convert the "
                    "file to UTF-8"
                )
            yield
            if problem is not None:
                raise problem

    def close(self) -> None:
        """Raise `XmlError` if the document is not complete."""
        try:
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise XmlError(expat.ErrorString(error.code), file=self._path, line=error.lineno) from None

    def error(self, problem: str) -> CorpusError:
        """A `CorpusError` with the file and the line that was reached."""
        return CorpusError(problem, file=self._path, line=self.line)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"more than {DEEPEST} elements inside each other, the last <{name[:40]}>; fix the file")
        self._on_start(name, attributes)

    def _end(self, name: str) -> None:
        self.depth -= 1
        self._on_end(name)

    def _declared(self, name: str, *_rest: object) -> None:
        raise self.error(f"declares the entity {shown(name)}; write its text instead, and remove the declaration")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            raise self.error(f"undefined entity &{name[:40]};, which an XML file must not rely on; write the character")


class Gathered:
    """Character data of one record, gathered up to `LONGEST_TEXT` characters."""

    def __init__(self, stream: XmlStream, record: str) -> None:
        self._stream, self._record = stream, record
        self._pieces: list[str] = []
        self._size = 0

    def clear(self) -> None:
        """Begin a new record."""
        self._pieces, self._size = [], 0

    def count(self, size: int) -> None:
        """Count characters. Raises `CorpusError` for a record that grows too long."""
        self._size += size + 1  # empty and short pieces cost memory too
        if self._size > LONGEST_TEXT:
            raise self._stream.error(f"<{self._record}> with more than {LONGEST_TEXT >> 20} Mi characters; cut it")

    def add(self, data: str) -> None:
        """Append character data."""
        self.count(len(data))
        self._pieces.append(data)

    def take(self) -> str:
        """The text since the last `take`; it still counts towards the limit."""
        text, self._pieces = "".join(self._pieces), []
        return text


class _Elements:
    """Gathers the elements of some names, and those of `heads` with their attributes alone, each with its line."""

    def __init__(self, path: str | Path, names: Collection[str], heads: Collection[str]) -> None:
        self._names, self._heads = names, heads
        self.ready: list[tuple[int, Element]] = []
        self._builder: TreeBuilder | None = None  # of the element that is open
        self._line = self._depth = 0
        self.stream = XmlStream(path, start=self._start, end=self._end, text=self._text)
        self._size = Gathered(self.stream, " or ".join(names))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if self._builder is None and name in self._names:
            self._builder, self._line, self._depth = TreeBuilder(), self.stream.line, self.stream.depth
            self._size.clear()
        if self._builder is not None:
            self._size.count(len(name) + sum(map(len, attributes.values())))
            self._builder.start(name, attributes)
        elif name in self._heads:
            self.ready.append((self.stream.line, Element(name, attributes)))

    def _text(self, data: str) -> None:
        if self._builder is not None:
            self._size.count(len(data))
            self._builder.data(data)

    def _end(self, name: str) -> None:
        if self._builder is not None:
            self._builder.end(name.rpartition(":")[2])
            if self.stream.depth < self._depth:
                self.ready.append((self._line, self._builder.close()))
                self._builder = None


def read_elements(
    path: str | Path, names: Collection[str], heads: Collection[str] = ()
) -> Iterator[tuple[int, Element]]:
    """The elements of these names, whole, and those of `heads` with their attributes alone, each with its line.

    Names are without prefixes. Kept in memory: one block of the file and one element. Raises `CorpusError` as
    `XmlStream` does, and `XmlError` for a file that is cut short.
    """
    elements = _Elements(path, names, heads)
    for _ in elements.stream.blocks():
        yield from elements.ready
        elements.ready.clear()
    elements.stream.close()


def text_of(element: Element | None, hidden: Collection[str]) -> str:
    """The text of an element and of those inside it, except for the `hidden` ones."""
    if element is None:
        return ""
    pieces = [element.text or ""]
    for inner in element:  # at most `DEEPEST` inside each other
        pieces += ["" if inner.tag in hidden else text_of(inner, hidden), inner.tail or ""]
    return "".join(pieces)


def _pieces(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks in small pieces, since all records of a piece are in memory together."""
    return (block[start : start + _PIECE] for block in blocks for start in range(0, len(block), _PIECE))
