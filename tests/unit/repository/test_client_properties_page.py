"""docs/client-properties.md says what the table says."""

import runpy

from support.places import ROOT


def test_the_page_is_up_to_date():
    tool = runpy.run_path(str(ROOT / "tools" / "document_clients.py"))
    written = (ROOT / "docs" / "client-properties.md").read_text(encoding="utf-8")
    assert written == tool["page"](), "run python tools/document_clients.py"
    rows = [row.name for row in tool["TABLE"]]
    assert all(written.count(f"\n| `{name}` |") == rows.count(name) for name in rows)
