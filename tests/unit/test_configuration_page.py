"""docs/configuration.md says what the settings say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_up_to_date():
    tool = runpy.run_path(str(ROOT / "tools" / "document_settings.py"))
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == tool["page"](), "run python tools/document_settings.py"
