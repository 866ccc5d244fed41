"""Each file and folder of the repository that the documents name exists."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from support.places import ROOT

PAGES = [
    *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "README")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
ROOMS = (ROOT, ROOT / "libs/keelman", ROOT / "services/keelman")
NAMED = re.compile(r"`([\w.\-/]+\.(?:py|proto|md)|[\w.\-]+(?:/[\w.\-]+)+/)`")
LINKED = re.compile(r"\]\(([\w.\-/]+\.md)(?:#[\w\-]+)?\)")
OF_EVERY_PROCESS = {"settings.py", "service.py", "api.py"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page: Path) -> None:
    missing = [link for link in LINKED.findall(page.read_text()) if not (page.parent / link).exists()]
    beside: Path | None = None
    for line in page.read_text().splitlines():
        if not line.startswith(" "):
            beside = None
        for name in NAMED.findall(line):
            # A bare name is a neighbour of the last file that was named with its folder.
            if "/" not in name:
                if name not in OF_EVERY_PROCESS and (beside is None or not (beside / name).exists()):
                    missing.append(name)
                continue
            path = next((room / name for room in ROOMS if (room / name).exists()), None)
            if path is None:
                missing.append(name)
            else:
                beside = path.parent if path.is_file() else path
    assert missing == []


def test_no_word_of_the_glossary_has_two_meanings() -> None:
    nouns = (ROOT / "docs" / "glossary.md").read_text().partition("## Verbs")[0]
    words = [word for row in re.findall(r"^\| (.+?) \|", nouns, re.MULTILINE) for word in row.split(", ")]
    assert {word: count for word, count in Counter(words).items() if count > 1} == {"word": 3}  # titles of tables


def test_the_architecture_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) < 120


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"], ids=lambda page: page.name)
def test_lines_of_prose_fit_in_120_columns(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if len(line) > 120 and not line.lstrip().startswith("|")]
    assert [line for line in lines if " " in line.strip().removeprefix("- ")] == []


def test_files_that_a_package_names_are_there() -> None:
    packages = [file for place in ROOMS[1:] for file in place.rglob("__init__.py")]
    named = [
        (file, name)
        for file in packages
        for name in re.findall(r"`([\w/]+\.py)`", ast.get_docstring(ast.parse(file.read_text())) or "")
    ]
    assert len(named) > 20
    # A file of the package, or of a folder below it or next to it.
    missing = [
        f"{file.relative_to(ROOT)}: {name}"
        for file, name in named
        if not any(list(top.glob(form)) for top in file.parents[:2] for form in (name, f"*/{name}"))
    ]
    assert missing == []
