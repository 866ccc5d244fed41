"""docs/configuration.md says what the settings say."""

import runpy

from support.places import ROOT


def test_the_page_is_up_to_date():
    tool = runpy.run_path(str(ROOT / "tools" / "document_settings.py"))
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == tool["page"](), "run python tools/document_settings.py"
