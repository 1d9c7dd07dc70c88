"""Options of verbs from the public functions that they call: name, type, minimum, default and help of each are declared
once, in the signature and the docstring of the function, or in the fields and the docstring of a dataclass.

Sources are parsed and not imported, so that help is fast and needs neither NumPy nor torch.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import operator
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import OptionInfo, ParameterInfo

from isoglot.core import arguments
from isoglot.core.arguments import parts_of, ranges_of
from isoglot.core.errors import IsoglotError

ROOT = Path(__file__).parents[1]
_ITEM = re.compile(r"^(\w+(?:, \w+)*)  +(.*(?:\n {4,}.*)*)", re.MULTILINE)  # of the aligned list in a docstring
_TABLES = {"FORMATS": "data.formats", "POOLINGS": "encoders.pooling"}  # which a text may name instead of their rows
_ROW = re.compile(r'^    "([\w-]+)": (?:Format\(.*\bwritten=True|Pooling\()', re.MULTILINE)
_STRINGS = re.compile(r"(?:Sequence|Collection)\[str\b[\w |]*\]")
_LIST = str | None  # of strings, separated by commas
# Of a union, the first of these.
_TYPES = {"Path": Path, "str": str, "Margin": str, "Direction": str, "bool": bool, "int": int, "float": float}


def finite(value: float | None) -> float | None:
    """Callback of every option of type float; rejects NaN and infinity. NaN would pass every check of a range, and as a
    threshold it would keep everything or nothing.
    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def split(text: str | None) -> list[str]:
    """The comma-separated parts of a text, stripped, without empty ones."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


class Of:
    """The options of a verb that are keyword arguments of a function or fields of a dataclass. For `Annotated`: the
    verb receives them as a dict, without those that are None or an empty list.

    source   module and name, such as "mining.pipeline:mine"
    names    only these; default: all that a command line can pass and that the verb does not declare in another way
    options  what differs on the command line, by argument: other flags, another help text, a metavar; None: left out
    """

    def __init__(self, source: str, *names: str, **options: Any) -> None:
        self.source, self.names, self.options = source, names, options

    def parameters(self, others: Collection[str] = (), docstring: str = "") -> dict[str, inspect.Parameter]:
        """The parameters of a verb by name, without `others`; the verb's docstring may explain them, too."""
        node, text = _definition(self.source)
        helps, overriding = _helps(ast.get_docstring(node) or ""), _helps(docstring)
        parameters = dict[str, inspect.Parameter]()
        others = {*others, *(name for name, option in self.options.items() if option is None)}
        for name, annotation, default in _fields(node):
            kind, minimum = _kind(annotation)
            if kind is not None and (name in self.names if self.names else name not in others):
                value = None if kind is _LIST else _value(default, text)
                info = self.options.get(name) or typer.Option()
                about = overriding.get(name) or info.help or _first_sentence(helps.get(name, ""))
                parameters[name] = _parameter(name, kind, value, info, about, minimum)
        return {name: parameters[name] for name in self.names or parameters}

    def option(self, name: str) -> Any:
        """The option of one argument."""
        return _info(self.parameters()[name])


class Flags(dict[str, str]):
    """The arguments of a call that are not the defaults, with their flags: for a verb with a use that ignores some."""

    def reject(self, reason: str, *taken: str) -> None:
        """Raise IsoglotError, beginning with the reason, for an argument that is not among those `taken`."""
        for name in [name for name in self if name not in taken]:
            raise IsoglotError(f"{reason}; remove {self[name]}")


def _text(module: str) -> str:
    return (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")


@functools.cache
def _definition(source: str) -> tuple[ast.FunctionDef | ast.ClassDef, str]:
    """The definition of a function (of overloads, the last) or a class, and the text of its module."""
    module, _, path = source.partition(":")
    text = part = _text(module)
    for name in path.split("."):
        *_, start = re.finditer(rf"^( *)(?:def|class) {name}\b", part, re.MULTILINE)
        end = re.compile(rf"^ {{0,{len(start[1])}}}[^\s)]", re.MULTILINE).search(part, start.end())
        part = part[start.start() : end.start() if end else None]
    if start[0].lstrip().startswith("def"):  # parsing the body would take most of the time
        part = '"""'.join([*part.split('"""', 2)[:2], ""])
    (node,) = ast.parse(textwrap.dedent(part)).body
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    return node, text


def _fields(node: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Name, annotation and default of each argument or field that has them."""
    if isinstance(node, ast.ClassDef):
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                yield line.target.id, line.annotation, line.value
    else:
        by_place = node.args.args[len(node.args.args) - len(node.args.defaults) :]
        defaults = [*node.args.defaults, *node.args.kw_defaults]
        for one, default in zip([*by_place, *node.args.kwonlyargs], defaults, strict=True):
            if one.annotation is not None and default is not None:
                yield one.arg, one.annotation, default


def _kind(annotation: ast.expr) -> tuple[Any, float | None]:
    """Type on the command line, None if it can't be passed, and minimum of a number."""
    parts, minimum = list[str](), None
    while isinstance(annotation, ast.BinOp):
        parts.append(ast.unparse(annotation.right))
        annotation = annotation.left
    parts.append(ast.unparse(annotation))
    for at, part in enumerate(parts):
        if hasattr(vars(arguments).get(part), "__metadata__") or part.startswith("Annotated["):
            alias = eval(part, vars(arguments))
            parts[at], minimum = alias.__origin__.__name__, alias.__metadata__[0].least
    if any(map(_STRINGS.fullmatch, parts)):
        return _LIST, None
    return next((kind for name, kind in _TYPES.items() if name in parts), None), minimum


def _value(default: ast.expr, text: str) -> Any:
    """The value of a literal, or of a constant of the module or of one that it imports."""
    if not isinstance(default, ast.Name):
        return ast.literal_eval(default)
    if imported := re.search(rf"^from isoglot\.(\S+) import .*\b{default.id}\b", text, re.MULTILINE):
        text = _text(imported[1])
    (constant,) = re.findall(rf"^{default.id} = (.*)", text, re.MULTILINE)
    return ast.literal_eval(constant.partition("#")[0].strip())


def _helps(docstring: str) -> dict[str, str]:
    """The texts of the aligned list in a docstring, by name."""
    items = _ITEM.findall(docstring)
    return {name: " ".join(text.split()) for names, text in items for name in names.split(", ")}


def _first_sentence(text: str) -> str:
    """The part of a text for Python that is for the command line too, in its words."""
    text = text.partition(". ")[0].replace('"', "").replace("None: ", "default: ")
    return re.sub(r"`([a-z]\w*)`", lambda other: _flag(other[1]), text)


def _parameter(
    name: str, kind: Any, default: Any, info: ParameterInfo, text: str, minimum: float | None
) -> inspect.Parameter:
    """The parameter of a verb."""
    info = copy(info)
    if default is False and not _flags(info):
        info.param_decls = (_flag(name),)
    text = re.sub(f"`({'|'.join(_TABLES)})`", lambda table: ", ".join(_ROW.findall(_text(_TABLES[table[1]]))), text)
    about, *defaults = text.rstrip(".").split("; default: ")
    about += ", separated by commas" * (kind is _LIST)
    info.help = f"{'; default: '.join([about[:1].upper() + about[1:], *defaults])}." if about else info.help
    info.min = info.min if minimum is None else minimum
    if kind is _LIST or float in parts_of(kind):
        info.callback = split if kind is _LIST else finite
    kind = kind | None if default is None else kind
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, info], default=default)


def _convert_parameter(one: inspect.Parameter, text: str) -> inspect.Parameter:
    """A parameter of a verb as typer reads it: an argument, or after `*` an option."""
    hints = getattr(one.annotation, "__metadata__", ())
    default = typer.Option if one.kind is inspect.Parameter.KEYWORD_ONLY else typer.Argument
    info: Any = next((hint for hint in hints if isinstance(hint, ParameterInfo)), None) or default()
    kind = functools.reduce(operator.or_, parts_of(one.annotation))
    minimum = next((extent.least for extent in ranges_of(one.annotation)), None)
    return _parameter(one.name, kind, one.default, info, text, minimum)


def expand_options(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb with the options of its `Of`s; help texts are those of the docstring. An argument that the called function
    rejects is an error that names the option.
    """
    signature = inspect.signature(verb, eval_str=True)
    docstring = inspect.getdoc(verb) or ""
    helps = _helps(docstring)
    parts = {name: getattr(one.annotation, "__metadata__", (None,))[0] for name, one in signature.parameters.items()}
    groups = {name: of for name, of in parts.items() if isinstance(of, Of)}
    others = {*(parts.keys() - groups.keys()), *(name for of in groups.values() for name in of.names)}
    expanded = {group: of.parameters(others, docstring) for group, of in groups.items()}
    parameters = dict[str, inspect.Parameter]()
    wanted = [name for name, one in signature.parameters.items() if one.annotation is Flags]
    for name, one in signature.parameters.items():
        if name not in wanted:
            parameters |= expanded[name] if name in expanded else {name: _convert_parameter(one, helps.get(name, ""))}
    infos = {name: _info(one) for name, one in parameters.items()}
    flags = {name: [*_flags(info), _flag(name)][0] for name, info in infos.items() if isinstance(info, OptionInfo)}

    @functools.wraps(verb)
    def run(**values: Any) -> None:
        passed = [name for name, value in values.items() if value not in (parameters[name].default, None, [])]
        used_flags = Flags({name: flags.get(name, infos[name].metavar or name.upper()) for name in passed})
        for group, names in expanded.items():
            settings = {name: values.pop(name) for name in names}
            values[group] = {name: value for name, value in settings.items() if value not in (None, [])}
        try:
            verb(**values, **dict.fromkeys(wanted, used_flags))
        except ValueError as error:
            if not groups:
                raise
            raise IsoglotError(f"{verb.__name__}: {_name_options(str(error), flags)}") from error

    run.__doc__ = _ITEM.sub("", docstring).strip()
    run.__signature__ = signature.replace(parameters=[*parameters.values()])  # type: ignore[attr-defined]
    run.__annotations__ = {name: one.annotation for name, one in parameters.items()}
    return run


def _info(parameter: inspect.Parameter) -> Any:
    return parameter.annotation.__metadata__[0]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _flags(info: Any) -> list[str]:
    """The flags that an option declares."""
    words = (info.default, *(info.param_decls or ()))
    return [word.partition("/")[0] for word in words if isinstance(word, str)]


def _name_options(message: str, flags: Mapping[str, str]) -> str:
    """The message, with options instead of the arguments at its beginning."""
    beginning = re.match(r"(?:\w+(?: and |, ))*\w*", message)[0]  # type: ignore[index]  # it matches at least nothing
    words = re.split(r"( and |, )", beginning)
    if not all(word in flags for word in words[::2]):
        return message
    return "".join(flags.get(word, word) for word in words) + message[len(beginning) :]
