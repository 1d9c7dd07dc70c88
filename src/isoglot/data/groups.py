"""Groups: sentences that mean the same. Every reader yields them, and `groups_of` makes them of data in memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isnan
from pathlib import Path
from typing import Any, TypeAlias

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import CorpusError, quote
from isoglot.core.numbers import fits
from isoglot.data.languages import UNKNOWN, canonical, canonical_list, canonical_or_skip, check_id, is_language, matches

Languages: TypeAlias = str | Sequence[str] | Mapping[str, str] | None
Row: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Mapping[str, str]  # the language of each column that is read

# Names of columns that specify the role of a sentence, not its language: queries and positives.
_ROLES = (
    ("source", "target"), ("src", "tgt"), ("query", "pos"), ("query", "positive"), ("anchor", "positive"),
    ("sentence1", "sentence2"), ("premise", "hypothesis"), ("text", "translation"), ("text", ""), ("sentence", ""),
)  # fmt: skip
_HARD = re.compile(r"(hard_)?neg(ative)?s?(_?\d+)?")  # beside a pair: hard negatives
_OF_TEST_SETS = ("label", "id", "name", "places")  # keys of imported test sets other than their texts; skipped
_PARTS = ("texts", "langs", "key", "hard_negatives", "hard_langs", "extras")  # the keys of a group with all its fields
_PAIRED = {"texts", "langs"}
_BLOCK = 1000  # rows read from a dataset at a time
_PASS = (
    "pass a list of pairs of strings, a list of Groups or of strings, a DataFrame, a datasets.Dataset, or a dict of "
    "columns such as {'en': [...], 'de': [...]}"
)


@dataclass(frozen=True, slots=True)
class Group:
    """Sentences that mean the same thing: one is monolingual text, two a pair, sixty a news line in sixty languages.

    `langs` holds one code per text (ISO 639-3, `zho_Hans` where a script matters, `und` when unknown). Groups whose
    `key` is equal mean the same and are never negatives of each other; an empty key means "like no other group".
    `hard_negatives` are hard negative sentences of this group, with one code each in `hard_langs`. `extras` has one
    number, or one fixed-length tuple of numbers, per name: an entity's row, a label.
    """

    texts: tuple[str, ...]
    langs: tuple[str, ...]
    key: str = ""
    hard_negatives: tuple[str, ...] = ()
    hard_langs: tuple[str, ...] = ()
    extras: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not type(self.texts) is type(self.langs) is type(self.hard_negatives) is type(self.hard_langs) is tuple:
            for name in ("texts", "langs", "hard_negatives", "hard_langs"):
                value = getattr(self, name)
                if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
                    raise TypeError(f"{name} of a Group is {quote(value)}; pass a tuple of strings")
                object.__setattr__(self, name, tuple(value))
        if len(self.texts) != len(self.langs) or len(self.hard_negatives) != len(self.hard_langs):
            numbers = f"{len(self.texts)} texts with {len(self.langs)} langs, {len(self.hard_negatives)} hard negatives"
            raise ValueError(f"every sentence needs its language: {numbers} with {len(self.hard_langs)} hard_langs")


@check_arguments()
def groups_of(
    data: Any,
    languages: Languages = None,
    *,
    hard_negatives: Mapping[str, str] | None = None,
    skipped: Counter[str] | None = None,
    name: str = "data",
) -> Iterator[Group]:
    """Groups from data in memory.

    data       a list or any other iterable of pairs (or longer tuples) of strings, of strings, of Groups or of dicts;
               what `mine` and `align` return; a pandas or polars DataFrame, a pyarrow Table, a `datasets.Dataset`, or a
               dict of columns. Columns are named by language (`en`, `deu`), or `source` and `target`, `anchor`,
               `positive` and `negative`, `text`, as for `group_of`; numbers (`score`, `label`) become extras
    languages  codes of the sentences of a row in their order, or one code for all; by default the names of the columns,
               or `und`. Of columns that are named by language, only these are read. A dict such as `{"english": "en"}`
               names the columns that are read
    hard_negatives  such a dict of the columns that contain hard negatives
    skipped    counts sentences in unknown languages, which are left out; without it such a sentence is an error
    name       what errors call the data

    Raises TypeError for data of another kind and for a sentence that is not a string, and `CorpusError` for any other
    mistake in a row; both name the row, counted from 1.
    """
    rows = None if isinstance(data, type) else _rows(data, name)
    if rows is None and (isinstance(data, (str, bytes)) or not isinstance(data, Iterable)):
        hint = "; read a file with isoglot.data.readers.read" if isinstance(data, (str, Path)) else ""
        raise TypeError(f"{name} is {_kind(data)}; {_PASS}{hint}")
    columns = {} if not isinstance(languages, Mapping) else {name: canonical(code) for name, code in languages.items()}
    hard = {name: canonical(code) for name, code in (hard_negatives or {}).items()}
    codes = () if languages is None or isinstance(languages, Mapping) else canonical_list(languages)
    names: Any = data if isinstance(data, Mapping) else getattr(data, "column_names", getattr(data, "columns", ()))
    present = [canonical(str(one)) for one in names if is_language(str(one))] if rows and not roles_in(names) else []
    if present and (absent := [code for code in codes if not any(matches(one, (code,)) for one in present)]):
        raise CorpusError(f"{name} has no column in {', '.join(absent)}; it has {', '.join(present)}")
    # Two or three lists, or rows of an array, of more items than there are lists: columns.
    is_table = isinstance(data, (list, tuple, ValuesView)) or len(getattr(data, "shape", ())) == 2
    sides = list(data) if rows is None and is_table and len(data) < 4 else []
    lengths = {len(side) if isinstance(side, list) or len(getattr(side, "shape", ())) == 1 else 0 for side in sides}
    if len(sides) > 1 and len(lengths) == 1 and (length := max(lengths)) > len(sides) and length != len(codes):
        problem = f"{name} is {len(sides)} lists of {length:,} items"
        raise TypeError(f"{problem}; pass list(zip(a, b)) if they are columns, or tuples if they are groups")
    return _read_rows(data if rows is None else rows, codes, columns, hard, skipped, name)


def short_row(groups: Iterable[Group]) -> int:
    """The number, from 1, of the first group that is one sentence without a translation; 0 if there is none."""
    return next((number for number, group in enumerate(groups, 1) if len(group.texts) < 2), 0)


def group_of(row: Row, languages: Sequence[str] = (), *, skipped: Counter[str] | None = None) -> Group:
    """The group of one row, in one of these shapes, which are recognized by their keys.

        {"eng": "Hello.", "deu": "Hallo.", "score": 1.2}                      translations; numbers become extras
        {"translation": {"en": "Hello.", "de": "Hallo."}}                     the same, as OPUS writes it
        {"texts": [...], "langs": [...], "key": "...", "hard_negatives": [...], "hard_langs": [...], "extras": {...}}
        {"query": "...", "pos": [...], "neg": [...]}, {"anchor": ..., "positive": ..., "negative": ...}
        {"source": ..., "target": ...}, {"sentence1": ..., "sentence2": ..., "label": 1}
        {"text": "..."}, {"text": "...", "lang": "eng"}
        {"text": "...", "language": "eng", "translation": "...", "translation_language": "deu"}

    `languages` are language codes of the sentences without one, in their order, or one code for all; hard negatives
    have that of the positive, and may be in columns `negatives`, `negative_1`, `negative_2` and so on. A null or blank
    sentence is left out; so is, if `skipped` counts them, a sentence in an unknown language, and the group may then be
    empty. Raises `CorpusError`, without a place, for any other shape, labels in words, and a row without text.
    """
    if "texts" in row:
        if row.keys() == _PAIRED and (plain := _plain_row(row)):
            return plain
        if unknown := sorted(row.keys() - {*_PARTS, *_OF_TEST_SETS}):
            raise CorpusError(f"{unknown[0]!r} is not a part of a group; the parts are {', '.join(_PARTS)}")
        texts = _pair_codes(row, "texts", "langs", languages, skipped)
        positive = [code for _, code in texts[1:2] or texts]
        hard = _pair_codes(row, "hard_negatives", "hard_langs", positive, skipped)
        group = Group(*unzip(texts), _key(row), *unzip(hard), _extras(row.get("extras") or {}))
    elif roles := roles_in(row):
        group = _read_roles(row, roles, languages, skipped)
    else:
        if "translation" in row:
            if not isinstance(row["translation"], Mapping):
                raise CorpusError("'translation' must contain an object of language and sentence")
            # A translation may come with ids and file names; only the key and numbers are used here.
            others = {name: value for name, value in row.items() if name == "key" or isinstance(value, (int, float))}
            row = others | dict(row["translation"])
        group = _read_languages(row, skipped)
    if not group.texts and skipped is None:
        raise CorpusError("contains no text in any language; remove it")
    return group


def roles_in(names: Container[str]) -> tuple[str, str] | None:
    """The names among these that specify the role of a sentence and not its language; None if there are none."""
    return next((roles for roles in _ROLES if roles[0] in names and (not roles[1] or roles[1] in names)), None)


def _rows(data: Any, called: str) -> Iterator[dict[str, Any]] | None:
    """The rows of data with columns; None for other data."""
    if hasattr(data, "column_names") and hasattr(data, "iter"):  # datasets; cell by cell it is many times slower
        blocks = data.with_format(None).iter(_BLOCK)
        return (dict(zip(block, row, strict=True)) for block in blocks for row in zip(*block.values(), strict=True))
    columns: dict[str, list[Any]]
    if isinstance(data, Mapping):
        if splits := [str(name) for name, value in data.items() if hasattr(value, "column_names")]:
            raise TypeError(f"{called} is a dict of splits; pass one of them, such as {called}[{splits[0]!r}]")
        if any(isinstance(value, (str, Mapping)) or not isinstance(value, Iterable) for value in data.values()):
            raise TypeError(f"{called} is a dict whose values are not columns; {_PASS}")
        columns = {str(name): list(value) for name, value in data.items()}
    elif hasattr(data, "dtypes") and hasattr(data, "columns"):  # pandas, polars
        if repeated := [str(column) for column, count in Counter(data.columns).items() if count > 1]:
            raise ValueError(f"{called} has several columns named {repeated[0]!r}; rename all but one")
        columns = {str(name): data[name].to_list() for name in data.columns}
    elif hasattr(data, "to_pydict"):  # pyarrow
        columns = data.to_pydict()
    else:
        return None
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name!r}: {len(values):,}" for name, values in columns.items())
        raise ValueError(f"the columns of {called} differ in length ({lengths})")
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _read_rows(
    data: Any, codes: Sequence[str], columns: Columns, hard: Columns, skipped: Counter[str] | None, called: str
) -> Iterator[Group]:
    """The groups with text; an error names the row, counted from 1. The arguments are those of `groups_of`."""
    codes_by_count: dict[int, tuple[str, ...]] = {}  # of plain tuples, which mostly have one length
    for number, item in enumerate(data, 1):
        try:
            item = item._asdict() if hasattr(item, "_fields") and roles_in(item._fields) else item  # mined pairs
            if isinstance(item, Group):
                group = _convert_codes(item)
            elif isinstance(item, Mapping):
                row = {name: plain_cell(value) for name, value in item.items()}
                negatives = unzip(_select_cells(row, hard))
                row = {name: value for name, value in row.items() if name not in hard} if hard else row
                group = _read_columns(row, columns) if columns else _read_row(row, codes, skipped)
                if number == 1 and not columns and not roles_in(row):
                    check_id(row, group.texts)
                group = replace(group, hard_negatives=negatives[0], hard_langs=negatives[1]) if hard else group
            else:
                texts = _texts(item, f"row {number} of {called}")
                if len(texts) not in codes_by_count:
                    codes_by_count[len(texts)] = _codes(codes, len(texts))
                group = Group(texts, codes_by_count[len(texts)])
        except CorpusError as error:
            raise CorpusError(f"row {number} of {called}: {error}") from None
        if group.texts:
            yield group


def _read_row(row: Row, codes: Sequence[str], skipped: Counter[str] | None) -> Group:
    """The group of a row by `group_of`, with the sentences in the languages of `codes` only, if there are any."""
    group = group_of(row, codes, skipped=skipped)
    if not codes or all(matches(code, codes) for code in group.langs):
        return group
    pairs = [pair for pair in zip(group.texts, group.langs, strict=True) if matches(pair[1], codes)]
    if not pairs:
        raise CorpusError(f"contains no text in {', '.join(codes)}; remove it")
    return Group(*unzip(pairs), group.key, group.hard_negatives, group.hard_langs, group.extras)


def _read_columns(row: Row, columns: Columns) -> Group:
    """The group of the columns that are named."""
    if not (texts := _select_cells(row, columns)):
        raise CorpusError("contains no text in any language; remove it")
    return Group(*unzip(texts))


def _select_cells(row: Row, columns: Columns) -> list[tuple[str, str]]:
    """The sentences of some columns, each with the language of its column."""
    if missing := [name for name in columns if name not in row]:
        raise CorpusError(f"has no column {missing[0]!r}; the columns are {', '.join(map(repr, row))}")
    return [(text, code) for name, code in columns.items() for text in _sentences(row, name) if text.strip()]


def _convert_codes(group: Group) -> Group:
    """The group with canonical language codes; `Group` itself doesn't convert them, since readers make millions."""
    try:
        langs, hard = (_convert(codes) or canonical_list(codes) for codes in (group.langs, group.hard_langs))
    except TypeError:
        problem = f"a language is not a string ({quote(group.langs + group.hard_langs)}); pass a code, or 'und'"
        raise CorpusError(problem) from None
    return group if (langs, hard) == (group.langs, group.hard_langs) else replace(group, langs=langs, hard_langs=hard)


def _texts(item: Any, where: str) -> tuple[str, ...]:
    item = item.tolist() if hasattr(item, "tolist") else item  # a row of an array
    if not isinstance(item, Sequence):
        raise TypeError(f"{where} is {_kind(item)}; {_PASS}")
    texts = (item,) if isinstance(item, str) else tuple(item)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{where} contains {_kind(text)} instead of a sentence; remove it")
        if not text.strip():
            raise CorpusError("contains an empty sentence; remove the row")
    return texts


def _plain_row(row: Row) -> Group | None:
    """Fast path: the group of a row with known languages and no blank sentence; None for any other row."""
    texts, langs = row["texts"], row["langs"]
    try:
        codes = _convert(tuple(langs))
    except TypeError:
        return None
    is_plain = type(texts) is list and type(langs) is list and codes is not None and len(codes) == len(texts) > 0
    is_plain = is_plain and all(type(text) is str and text and not text.isspace() for text in texts)
    return Group(tuple(texts), codes) if is_plain and codes else None


@lru_cache(1 << 14)
def _convert(langs: tuple[str, ...]) -> tuple[str, ...] | None:
    """The codes of the languages; None if one is not known."""
    if not all(isinstance(code, str) and is_language(code) for code in langs):
        return None
    return tuple(map(canonical, langs))


def _pair_codes(
    row: Row, name: str, langs: str, languages: Sequence[str], skipped: Counter[str] | None
) -> list[tuple[str, str]]:
    texts = _sentences(row, name)
    codes: Sequence[str | None] = [canonical_or_skip(code, skipped) for code in _sentences(row, langs)]
    if row.get(langs) is None:
        codes = _codes(languages, len(texts))
    if len(codes) != len(texts):
        raise CorpusError(f"{len(texts)} sentences with {len(codes)} languages in {langs!r}; each needs one")
    return [(text, code) for text, code in zip(texts, codes, strict=True) if code and text.strip()]


def _key(row: Row) -> str:
    return "" if row.get("key") is None else str(row["key"])


# Keys that may be numbers and are no extras: the group's, and those of `isoglot mine --write-ids`.
_NAMES = ("key", "source_id", "target_id")


def _read_roles(row: Row, roles: Sequence[str], languages: Sequence[str], skipped: Counter[str] | None) -> Group:
    row = {**row, "language": row["lang"]} if row.get("lang") and "language" not in row else row
    if roles[0] == "text" and row.get("language"):
        names = [str(row.get(name) or UNKNOWN) for name in ("language", "translation_language")[: 1 + bool(roles[1])]]
        languages = [canonical_or_skip(name, skipped) or "" for name in names]
    first, others = (list(_sentences(row, name)) for name in roles)
    if roles[1] and not (first and others):  # a null sentence still consumes its language code
        missing = [""] * max(1, len(languages) - len(first or others))
        first, others = first or missing, others or (missing if first else [])
    texts = first + others
    words = [one for one in ("label", "gold_label") if isinstance(row.get(one), str) and row[one].strip()]
    if words and roles[0] in ("query", "anchor", "sentence1", "premise"):  # others are translations
        problem = f"{words[0]!r} contains {_kind(row[words[0]])}, and pairs of every label would count as translations"
        raise CorpusError(f"{problem}; write numbers for pair_softmax, read NLI with the reader nli, or leave it out")
    hard = [text for key in row if roles[1] and _HARD.fullmatch(key) for text in _sentences(row, key) if text.strip()]
    codes = _codes(languages, len(texts))
    pairs = [(text, code) for text, code in zip(texts, codes, strict=True) if code and text.strip()]
    hard_codes = _codes((codes[len(first) :] or codes)[:1], len(hard))  # those of the positive
    numbers = {name: value for name, value in row.items() if isinstance(value, (int, float)) and name not in _NAMES}
    extras = {name: _number(value, name) for name, value in numbers.items()}
    return Group(*unzip(pairs), _key(row), tuple(hard), hard_codes, extras)


def _read_languages(row: Row, skipped: Counter[str] | None) -> Group:
    texts: list[tuple[str, str]] = []
    numbers: dict[str, float] = {}
    cells = {name: value for name, value in row.items() if name not in _NAMES and value is not None}
    for name, value in cells.items():
        if isinstance(value, (int, float)):
            numbers[name] = _number(value, name)
        elif isinstance(value, str):
            try:
                code = canonical_or_skip(name, skipped) if value.strip() else canonical(name)
            except CorpusError as error:
                raise CorpusError(f"{error}; or name the columns source and target, or anchor and positive") from None
            texts += [(value, code)] if code and value.strip() else []
        else:
            raise CorpusError(f"{name!r} contains {_kind(value)} where a sentence is expected")
    return Group(*unzip(texts), _key(row), extras=numbers)


def _codes(codes: Sequence[str], count: int) -> tuple[str, ...]:
    """One code for each of `count` sentences."""
    if len(codes) > 1:
        if len(codes) != count:
            raise CorpusError(f"{count} sentences with {len(codes)} languages ({', '.join(codes)}); each needs one")
        return tuple(codes)
    return (codes[0] if codes else UNKNOWN,) * count


def _sentences(row: Row, name: str) -> Sequence[str]:
    value = row.get(name)
    if value is None:
        return []
    sentences = [value] if isinstance(value, str) else value
    if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
        raise CorpusError(f"{name!r} contains {_kind(value)} where a sentence or a list of sentences is expected")
    return sentences


def unzip(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences and their languages apart."""
    pairs = [*pairs]
    return tuple(text for text, _ in pairs), tuple(code for _, code in pairs)


def _extras(values: Any) -> dict[str, float | tuple[float, ...]]:
    if not isinstance(values, Mapping):
        raise CorpusError("'extras' must contain an object of name and number, or name and list of numbers")
    extras: dict[str, float | tuple[float, ...]] = {}
    for name, value in values.items():
        numbers = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(number, (int, float)) for number in numbers):
            raise CorpusError(f"the extra {name!r} must be a number or a list of numbers, not {quote(value)}")
        checked = tuple(_number(number, name) for number in numbers)
        extras[name] = checked if isinstance(value, (list, tuple)) else checked[0]
    return extras


def _number(value: float, name: str) -> float:
    if not fits(value):
        problem = f"{name!r} contains {quote(value)}; a number must be finite in float32, or a whole one of 64 bits"
        raise CorpusError(problem)
    return value


def plain_cell(value: Any) -> Any:
    """A cell as a plain Python value: NumPy numbers are converted, missing values become None."""
    if value is None or isinstance(value, str):
        return value
    value = value.tolist() if hasattr(value, "tolist") else value
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and isnan(value))
    return None if missing else value


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return f"a string ({quote(value)})"
    return "None" if value is None else f"a value of type {type(value).__name__}"
