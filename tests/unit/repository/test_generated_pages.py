"""The pages of the documentation that `make docs` makes from the code, and the front page that leads to all pages."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from support.places import ROOT

DOCS = ROOT / "docs"
BUILDER = runpy.run_path(str(ROOT / "tools" / "build_docs.py"))
NAMED = {
    page.name: match[1]
    for page in sorted(DOCS.glob("*.md"))
    if (match := BUILDER["TABLES"].search(page.read_text(encoding="utf-8")))
}
LINK = re.compile(r"\]\(([\w.\-/]+\.md)(?:#[\w\-]+)?\)")


def program(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / f"document_{name}.py"))


def test_each_program_that_documents_the_code_has_its_page() -> None:
    programs = {f"tools/{file.name}" for file in (ROOT / "tools").glob("document_*.py")}
    assert set(NAMED.values()) == programs
    assert len(NAMED) == len(programs)


def test_each_setting_is_on_the_page_of_configuration() -> None:
    tool = program("settings")
    page = tool["tables"]()
    for service in tool["SERVICES"]:
        section = page.partition(f"\n## keelman {service}\n")[2].partition("\n## ")[0]
        fields = [field.name for field in tool["dataclasses"].fields(tool["Program"].of(service).settings)]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == fields


def test_each_client_property_is_on_its_page() -> None:
    tool = program("clients")
    page, rows = tool["tables"](), [row.name for row in tool["TABLE"]]
    assert all(page.count(f"\n| `{name}` |") == rows.count(name) for name in rows)


def test_all_that_a_gateway_serves_is_on_the_page_of_the_api_and_each_link_goes_somewhere() -> None:
    tool = program("api")
    assert len(tool["Contract"].read().served()) == len(tool["SERVED"])
    page = tool["tables"]()
    headings = {line[4:].lower().replace(".", "") for line in page.splitlines() if line.startswith("### ")}
    linked = {part.partition(")")[0] for part in page.split("](#")[1:]}
    assert linked <= headings


def test_each_module_of_the_sdk_is_there() -> None:
    modules = [name for names in program("sdk")["MODULES"].values() for name in names]
    sources = [ROOT / "libs" / "keelman" / "connect" / f"{name.replace('.', '/')}.py" for name in modules]
    assert [file for file in sources if not file.exists()] == []


def test_links_hold_in_the_site() -> None:
    relinked, places = BUILDER["relinked"], BUILDER["pages"]()
    text = "[a](../README.md#x) [b](../../protos/buf.yaml) [c](0001.md) [d](https://x.example) [e](../index.md)"
    page = Path("docs/decisions/README.md")
    places[Path("docs/decisions/0001.md")] = Path("decisions/0001.md")
    assert relinked(text.replace("../README", "../../README"), page, places) == (
        "[a](../overview.md#x) [b](../../protos/buf.yaml) [c](0001.md) [d](https://x.example) [e](../index.md)"
    )
    assert relinked("[all](../protos/keelman/api)", Path("docs/api.md"), places) == "all"


def test_the_front_page_leads_to_every_page() -> None:
    linked = {(DOCS / link).resolve() for link in LINK.findall((DOCS / "index.md").read_text(encoding="utf-8"))}
    assert {page.name for page in DOCS.glob("*.md") if page.resolve() not in linked} == {"index.md"}


@pytest.mark.parametrize(
    ("question", "page", "answer"),
    [
        ("a PostgreSQL table", "copying-a-table.md", "keelman create connector inventory/orders"),
        ("what a viewer", "access.md", "| `viewer` | see all resources"),
        ("was restarted", "restarts.md", "## What the reasons mean"),
    ],
)
def test_the_front_page_answers_in_one_click(question: str, page: str, answer: str) -> None:
    lines = (DOCS / "index.md").read_text(encoding="utf-8").split("\n- ")
    assert any(question in line and f"({page})" in line for line in lines)
    assert answer in (DOCS / page).read_text(encoding="utf-8")


def test_each_decision_has_its_line() -> None:
    folder = DOCS / "decisions"
    lines = (folder / "README.md").read_text(encoding="utf-8")
    titles = {page.name: page.read_text(encoding="utf-8").partition("\n")[0] for page in folder.glob("0*.md")}
    assert set(re.findall(r"\((\d{4}[\w\-]+\.md)\)", lines)) == set(titles)
