"""Builds the site of the documentation, build/site, with mkdocs: `make docs`.

The pages of docs/ and of the checkout's root are copied to build/docs, with links that fit their new places. A page
with the comment `<!-- tables: tools/x.py -->` gets the output of that program in place of all text after the comment.
mkdocs then builds them strictly: a link to a missing page or heading ends the build with an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGED = ROOT / "build" / "docs"
OF_THE_ROOT = {
    "README.md": "overview.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "vulnerabilities.md",
}
"""Pages of the checkout's root, by their names in the site: there README.md would be taken for the front page."""
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
TABLES = re.compile(r"^<!-- tables: (\S+) -->$.*", re.MULTILINE | re.DOTALL)


def pages() -> dict[Path, Path]:
    """Returns the pages of the site: the path of each below the checkout, and below build/docs."""
    docs = ROOT / "docs"
    found = {page.relative_to(ROOT): page.relative_to(docs) for page in sorted(docs.rglob("*.md"))}
    return found | {Path(name): Path(staged) for name, staged in OF_THE_ROOT.items()}


def relinked(text: str, page: Path, places: dict[Path, Path]) -> str:
    """Returns a page's text with links that hold in the site. A link to a file that is no page becomes its text."""

    def moved(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / link[2]))
        if target in places:
            there = os.path.relpath(places[target], places[page].parent)
            return f"[{link[1]}]({there}{link[3] or ''})"
        return link[1] if (ROOT / target).exists() else link[0]  # mkdocs reports a link to nothing

    return LINK.sub(moved, text)


def with_tables(text: str) -> str:
    """Returns a page's text with the output of the program that it names."""
    named = TABLES.search(text)
    if named is None:
        return text
    program = [sys.executable, str(ROOT / named[1])]
    output = subprocess.run(program, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    return text[: named.start()] + output


def stage() -> None:
    """Writes the pages of the site to build/docs."""
    shutil.rmtree(STAGED, ignore_errors=True)
    places = pages()

    def write(page: Path) -> None:
        text = relinked((ROOT / page).read_text(encoding="utf-8"), page, places)
        out = STAGED / places[page]
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(with_tables(text), encoding="utf-8")

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(write, places))


def main() -> int:
    """Stages the pages and has the mkdocs that is named on the command line build them."""
    stage()
    words = [sys.argv[1], "build", "--strict", "--config-file", str(ROOT / "mkdocs.yml")]
    return subprocess.run(words, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
