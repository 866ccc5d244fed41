"""The source stays readable: modules, functions and folders are small, and tests lie where their subject is."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from support.places import ROOT

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_FILES = 22
"""In one folder; a reader takes in about 20 at once. Migrations are read one by one."""
PACKAGES = (ROOT / "libs" / "keelman", ROOT / "services" / "keelman")
WITHOUT_SOURCE = {"repository", "supply", "support"}
LAYERS = (
    {"model"},
    {"runtime"},
    {"rpc", "kafka", "connect", "couchbase"},
    {"engine", "workers"},
    {"connectors"},
    {"gateway", "state", "agent", "worker", "spark", "broker", "kafka_connect"},
    {"cli"},
)
"""From the bottom, as in import-linter's contract."""
IMPURE = {
    "asyncio",
    "time",
    "random",
    "os",
    "socket",
    "subprocess",
    "threading",
    "grpc",
    "aiokafka",
    "httpx",
    "pyspark",
}


def modules() -> Iterator[Path]:
    """Our modules, without generated ones."""
    for package in PACKAGES:
        for file in sorted(package.rglob("*.py")):
            if package / "api" not in file.parents:
                yield file


@functools.cache
def parsed(file: Path) -> ast.Module:
    """A module, parsed once for all tests."""
    return ast.parse(file.read_text())


def test_no_module_is_too_long() -> None:
    tests = (ROOT / "tests").rglob("*.py")
    lines = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in (*modules(), *tests)}
    assert {file: number for file, number in lines.items() if number > MAX_MODULE_LINES} == {}


def test_no_function_is_too_long() -> None:
    answer = {}
    for file in modules():
        if "migrations" in file.parts:
            continue  # the length of a step is that of its tables
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    answer[f"{file.relative_to(ROOT)}:{node.name}"] = lines
    assert answer == {}


def test_no_folder_is_too_full() -> None:
    files = Counter(
        str(file.parent.relative_to(ROOT))
        for file in modules()
        if file.name != "__init__.py" and "migrations" not in file.parts
    )
    assert {folder: number for folder, number in files.items() if number > MAX_FILES} == {}


def test_each_package_says_what_is_in_it() -> None:
    for file in modules():
        if file.name == "__init__.py" and "migrations" not in file.parts:
            assert ast.get_docstring(parsed(file)), file


def test_what_calls_itself_pure_imports_no_clock_chance_or_network() -> None:
    answer = {}
    for file in modules():
        tree = parsed(file)
        if re.search(r"\b[Pp]ure\.$", (ast.get_docstring(tree) or "").partition("\n\n")[0]):
            names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
            names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            if wrong := {name.partition(".")[0] for name in names} & IMPURE:
                answer[str(file.relative_to(ROOT))] = wrong
    assert answer == {}


def test_no_module_names_one_of_a_higher_layer_in_a_string() -> None:
    """An import by name evades the contract of the layers: the higher layer must pass the object in."""
    height = {package: level for level, packages in enumerate(LAYERS) for package in packages}
    answer = {}
    for file in modules():
        own = height.get(file.relative_to(next(p for p in PACKAGES if p in file.parents)).parts[0], len(LAYERS))
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = re.fullmatch(r"keelman\.(\w+)\.[\w.]+(:\w+)?", node.value)
                if named and height.get(named[1], 0) > own:
                    answer[f"{file.relative_to(ROOT)}:{node.lineno}"] = node.value
    assert answer == {}


def test_unit_tests_are_in_folders_like_those_of_their_subjects() -> None:
    rooms = {folder.relative_to(package) for package in PACKAGES for folder in package.rglob("*") if folder.is_dir()}
    tests = ROOT / "tests" / "unit"
    folders = {file.parent.relative_to(tests) for file in tests.rglob("test_*.py")}
    assert {str(folder) for folder in folders - rooms} == WITHOUT_SOURCE


def test_each_suite_of_e2e_has_its_row() -> None:
    tests = ROOT / "tests" / "e2e"
    rows = {line.split("`")[1] for line in (tests / "README.md").read_text().splitlines() if line.startswith("| `")}
    assert rows == {file.name for file in tests.glob("test_*.py")}
