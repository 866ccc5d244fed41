"""Writes docs/configuration.md from the services' settings, so the page cannot differ from the code.

`python tools/document_settings.py` writes it; a unit test fails while it is out of date.
"""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path

from keelman.runtime.main import SERVICES, Program

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
HEAD = """# Configuration

Generated from each service's `settings.py` by `tools/document_settings.py`; do not edit.

A setting is taken from, in this order: the flag (`--heartbeat-seconds`), the environment
(`KEELMAN_STATE_HEARTBEAT_SECONDS`), the TOML file given with `--file` (`heartbeat_seconds`, at the top or under
`[state]`), the default. An unknown key is an error that names the nearest. `keelman <service> config` prints each value
and where it came from.

Two variables concern every process: `KEELMAN_HOME` (where a node keeps its files, `~/.keelman`) and `KEELMAN_CACHE`
(what can be fetched again, `keelman` in the user's cache folder).
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_section(Program.of(name)) for name in SERVICES)


def _section(program: Program) -> str:
    rows = [f"\n## keelman {program.name}\n\n| key | type | default | meaning |\n|---|---|---|---|\n"]
    hints = typing.get_type_hints(program.settings)
    for field in dataclasses.fields(program.settings):
        meta = field.metadata
        kind = _kind(hints[field.name])
        unit = f" ({meta['unit']})" if meta.get("unit") else ""
        choices = f" One of {', '.join(c or '(empty)' for c in meta['choices'])}." if meta.get("choices") else ""
        text = f"{meta.get('help', '')}{unit}{choices}".replace("|", "\\|")
        rows.append(f"| `{field.name}` | {kind} | {_default(field)} | {text} |\n")
    return "".join(rows)


def _kind(hint: typing.Any) -> str:
    name = getattr(hint, "__name__", str(hint)) if not typing.get_args(hint) else str(hint)
    for module in ("pathlib.", "typing.", "builtins."):
        name = name.replace(module, "")
    return name.replace("|", "or")


def _default(field: dataclasses.Field[typing.Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{field.default}`" if field.default not in ("", None) else ""
    if field.default_factory is not dataclasses.MISSING:
        return ""
    return "required"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
