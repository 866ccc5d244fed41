"""Records java.util.regex's results for java_regex_cases.py: `python -m recorded.data.record_java_regex`.

Writes java_regex.json beside it; it needs a JDK of version 17 and fetches Connect's jars (for their JSON library).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from recorded.data.java_regex_cases import PATTERNS, REPLACEMENTS
from recorded.data.record_clients import run_java
from recorded.one_a_line import one_a_line

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Writes the record, a pattern a line."""
    requests: list[dict[str, object]] = [
        {"pattern": p, "texts": texts} for patterns, texts in PATTERNS for p in patterns
    ]
    requests += [{"pattern": p, "text": text, "replacement": new} for p, text, new in REPLACEMENTS]
    lines = asyncio.run(run_java("JavaRegex.java", requests)).strip().split("\n")
    said = one_a_line([json.loads(line) for line in lines], ascii_only=True)
    (HERE / "java_regex.json").write_text(said, encoding="utf-8")


if __name__ == "__main__":
    main()
