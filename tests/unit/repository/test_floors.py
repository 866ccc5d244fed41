"""The rooms of every folder are floors: imports between them form no circle. A room is a file or a subfolder; imports
under TYPE_CHECKING count like any other. A folder's own `__init__` is no room."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from support.places import ROOT

PACKAGES = (ROOT / "libs", ROOT / "services")


@functools.cache
def sources() -> dict[str, Path]:
    """Every module of our own by its dotted name; a folder's `__init__` has the folder's name."""
    actual_sources = {}
    for package in PACKAGES:
        for file in (package / "keelman").rglob("*.py"):
            if package / "keelman" / "api" not in file.parents:
                parts = file.relative_to(package).with_suffix("").parts
                actual_sources[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return actual_sources


def imports_of(module: str, text: str, is_package: bool, modules: set[str]) -> Iterator[str]:
    """Names of the modules, out of `modules`, that a module with this text imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            source = ".".join([*package, *([node.module] if node.module else [])])
            members = [f"{source}.{alias.name}" for alias in node.names]
            names = [member if member in modules else source for member in members]
        else:
            continue
        yield from (name for name in names if name in modules and name != module)


@functools.cache
def imports() -> set[tuple[str, str]]:
    """Pairs of our modules: the first imports the second."""
    modules = set(sources())
    return {
        (module, name)
        for module, file in sources().items()
        for name in imports_of(module, file.read_text(), file.name == "__init__.py", modules)
    }


def circle_of_rooms(folder: str, pairs: set[tuple[str, str]]) -> list[str]:
    """The rooms of the folder that import each other in a circle, the first also last; empty if they are floors."""
    rooms: dict[str, set[str]] = defaultdict(set)
    prefix = f"{folder}."
    for importer, imported in pairs:
        if importer.startswith(prefix) and imported.startswith(prefix):
            upper, lower = (name.removeprefix(prefix).partition(".")[0] for name in (importer, imported))
            if upper != lower:
                rooms[upper].add(lower)
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def folders() -> list[str]:
    """The dotted name of every folder that has a module somewhere below it."""
    parents = {name.rsplit(".", depth)[0] for name in sources() for depth in range(1, name.count(".") + 1)}
    return sorted(parents)


@pytest.mark.parametrize("folder", folders())
def test_rooms_are_floors(folder: str) -> None:
    assert circle_of_rooms(folder, imports()) == []


def test_circle_through_a_subfolder_and_type_checking_is_seen() -> None:
    texts = {
        "keelman.a.upper.part": "from keelman.a import lower",
        "keelman.a.lower": "if TYPE_CHECKING:\n    from .upper.part import Part",
        "keelman.a.leaf": "import asyncio",
    }
    pairs = {(module, name) for module, text in texts.items() for name in imports_of(module, text, False, set(texts))}
    assert set(circle_of_rooms("keelman.a", pairs)) == {"upper", "lower"}
    assert circle_of_rooms("keelman.a.upper", pairs) == []
    assert circle_of_rooms("keelman", pairs) == []
