"""Plug-ins: objectives, tasks and readers of other packages, found by name.

A package declares them as entry points of the groups `isoglot.objectives`, `isoglot.tasks` and `isoglot.readers`:

    [project.entry-points."isoglot.readers"]
    csv = "my_package.readers:read_csv"

A module that is imported by `import_module` (`isoglot --import MODULE`) enters its own: `READERS["csv"] = read_csv`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import UserDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from isoglot.core.arguments import check_options
from isoglot.core.errors import PluginError, RecipeError, naming_extras, nearest, quote

T = TypeVar("T")


class Registry(UserDict[str, T]):
    """A mapping from names to objects: registered entries first, then plug-ins.

    A plug-in is imported when its name is looked up. `is_valid` says whether it is of the right `kind`. `handed` are
    the arguments of the objects that recipes do not set.
    """

    def __init__(
        self,
        group: str,
        entries: Mapping[str, T],
        *,
        kind: str,
        is_valid: Callable[[Any], bool],
        handed: Collection[str] = (),
    ) -> None:
        self.group, self.kind, self.is_valid, self.handed = group, kind, is_valid, handed
        self.own_names = frozenset(entries)
        super().__init__(entries)

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self._plugins()

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self.data, *self._plugins()))

    def __len__(self) -> int:
        return len({*self.data, *self._plugins()})

    def __missing__(self, name: str) -> T:
        entry = self._plugins()[name]
        try:
            plugin = entry.load()
        except Exception as error:  # a plug-in may raise anything
            raise PluginError(f"{_origin(entry)} cannot be imported: {type(error).__name__}: {error}") from error
        self.__setitem__(name, plugin, _origin(entry))
        return plugin  # type: ignore[no-any-return]

    def __setitem__(self, name: str, item: T, origin: str = "") -> None:
        if not self.is_valid(item):
            raise PluginError(f"{origin or f'{self.group}: {quote(name)}'} is {quote(item)}, not {self.kind}")
        if self.data.get(name, item) is not item and name in self.own_names:
            raise PluginError(f"{self.group}: {quote(name)} is a name of isoglot; choose another one")
        self.data[name] = item

    def options_of(self, name: str) -> list[str]:
        """The options of an object in a recipe: its arguments, of a function without the first, what it reads."""
        plugin: Any = self[name]
        names = [*inspect.signature(plugin).parameters][0 if isinstance(plugin, type) else 1 :]
        return [option for option in names if option not in self.handed]

    def check(self, name: str, options: Mapping[str, Any], *, where: str = "") -> None:
        """Raise RecipeError for an unknown name, and for an option that the object does not have or of another type.

        The message begins with `where`, the place in the recipe, and names the nearest valid name or option.
        """
        noun = self.group.rpartition(".")[2].removesuffix("s")
        if name not in self:
            raise RecipeError(f"{where and f'{where}: '}unknown {noun} {quote(name)}; {nearest(name, self)}")
        plugin: Any = self[name]
        names = self.options_of(name)
        for option, value in options.items():
            if option not in names:
                place, hint = f"{where}.{option}" if where else quote(option), nearest(option, names)
                raise RecipeError(f"{place}: {noun} {name} has no such setting (value {quote(value)}); {hint}")
        function = plugin.__init__ if isinstance(plugin, type) else plugin  # type: ignore[misc]
        check_options(function, options, where=where or f"{noun} {name}")

    def _plugins(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self.group)}


def import_module(name: str) -> None:
    """Import a module, installed or in the current folder, that registers entries. Raises `PluginError` if it fails."""
    sys.path.append(str(Path.cwd()))
    try:
        importlib.import_module(name)
    except Exception as error:  # a module may raise anything
        problem = f"cannot be imported: {type(error).__name__}: {error}"
        raise PluginError(f"--import {name}: {problem}; check the name, or add its folder to PYTHONPATH") from error


def torch_half(module: str) -> Any:
    """The module `isoglot.MODULE` of the half that needs torch, such as encoders, on which nothing else depends.

    Raises MissingExtraError if torch or transformers is missing.
    """
    with naming_extras():
        return importlib.import_module(f"isoglot.{module}")


def source_of(plugin: object) -> Path | None:
    """The file of the module that defines a plug-in; None for what isoglot defines itself, and without a file."""
    name = str(getattr(plugin, "__module__", ""))
    file = getattr(sys.modules.get(name), "__file__", None)
    return Path(file) if file and not f"{name}.".startswith("isoglot.") else None


def text_of(plugin: Any) -> str:
    """The source of a function, or of the functions of a class, for those of a notebook, which has no file; empty for
    what isoglot defines itself, and where it is not known.
    """
    texts = []
    for function in filter(inspect.isfunction, (plugin, *getattr(plugin, "__dict__", {}).values())):
        with suppress(OSError):
            texts.append(inspect.getsource(function))
    return "" if f"{plugin.__module__}.".startswith("isoglot.") else "".join(texts)


def _origin(entry: EntryPoint) -> str:
    of = f" of {entry.dist.name} {entry.dist.version}" if entry.dist else ""
    return f"plug-in {entry.name!r}{of} ({entry.group}: {entry.value})"
