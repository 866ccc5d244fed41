"""Prints the tables of docs/configuration.md, made from the services' settings; `make docs` puts them into the site."""

from __future__ import annotations

import dataclasses
import typing

from keelman.runtime.main import SERVICES, Program


def tables() -> str:
    """Returns the tables of the page."""
    return "".join(_section(Program.of(name)) for name in SERVICES)


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
    print(tables(), end="")
