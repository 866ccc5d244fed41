"""docs/api.md says what the protos say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_is_up_to_date() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "document_api.py"))
    written = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert written == tool["page"](), "run python tools/document_api.py"


def test_all_that_a_gateway_serves_is_on_it_and_each_link_goes_somewhere() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "document_api.py"))
    contract = tool["Contract"].read()
    assert len(contract.served()) == len(tool["SERVED"])
    headings = {line[4:].lower().replace(".", "") for line in tool["page"]().splitlines() if line.startswith("### ")}
    linked = {part.partition(")")[0] for part in tool["page"]().split("](#")[1:]}
    assert linked <= headings
