"""Prints answers as table, wide, json, yaml or name. Progress and remarks go to stderr, answers to stdout.

JSON and YAML are the wire contract's JSON mapping with the protos' own field names; a list is {"items": [...]}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict

from keelman.cli.kinds import COPY_RUNS, OPERATIONS, PLUGINS, Kind
from keelman.cli.output.columns import COLUMNS, key_of
from keelman.cli.output.lines import plugin_lines
from keelman.cli.output.widths import GAP, fitted_widths
from keelman.model.errors import InvalidArgument

FORMATS = ("table", "wide", "json", "yaml", "name")
WATCH_FORMATS = ("table", "wide", "json")
TEXT_FORMATS = ("text", "json", "yaml")
LONGEST = 160
WIDEST = 32_767
_HINTS = {
    OPERATIONS: ": copy runs that ended long ago are not kept",
    COPY_RUNS: ": tasks with nothing to copy are parked; --ended shows former copy runs too",
    PLUGINS: ": no plugin was uploaded; --cluster shows the classes that a cluster's workers can run",
}


def checked_format(word: str, legal: Sequence[str] = FORMATS) -> str:
    """Returns the format. Raises InvalidArgument for an unknown one."""
    if word not in legal:
        raise InvalidArgument.of("-o", word, "one of " + ", ".join(legal))
    return word


def plain(resource: Any) -> dict[str, Any]:
    """Returns a resource as JSON-able values; fields without presence are always included, even zeros."""
    if is_dataclass(resource):
        return asdict(resource)  # type: ignore[arg-type]
    return MessageToDict(resource, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def print_list(kind: Kind, resources: Sequence[Any], form: str, *, state: str = "") -> None:
    """Prints resources; `state` is the state that they were selected by, for the message about an empty list."""
    match form:
        case "json" | "yaml":
            print_document({"items": [plain(r) for r in resources]}, form)
        case "name":
            for resource in resources:
                print(on_one_line(f"{kind.singular}/{key_of(kind, resource)}"))
        case _:
            if resources:
                _print_table(kind, resources, wide=form == "wide")
            else:
                which = f" in state {state}" if state else _HINTS.get(kind, "")
                print(f"no {kind.plural}{which}", file=sys.stderr)


def print_one(kind: Kind, resource: Any, form: str) -> None:
    """Prints one resource."""
    if form in ("json", "yaml"):
        print_document(plain(resource), form)
    else:
        print_list(kind, [resource], form)


def print_document(document: Any, form: str) -> None:
    """Prints JSON-able values as json or yaml."""
    if form == "json":
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    print(as_yaml(document), end="")


def as_yaml(document: Any) -> str:
    """Returns JSON-able values as YAML; texts of several lines are blocks, if YAML allows it."""
    import yaml  # noqa: PLC0415

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: Any, value: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return str(yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120))


def table(kind: Kind, resources: Sequence[Any], *, wide: bool, room: int = 0) -> Any:
    """Returns the table of these resources for rich; `room` is the terminal's width to shorten it for, 0 for none."""
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    printed = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    columns = [c for c in COLUMNS[kind.plural] if wide or not c.wide]
    lines = plugin_lines(resources) if kind is PLUGINS else resources
    rows = [[on_one_line(column.cell(line)) or "-" for column in columns] for line in lines]
    natural = [max(map(cell_len, cells)) for cells in zip([c.title for c in columns], *rows, strict=True)]
    widths = fitted_widths(columns, natural, room) if room and not wide else natural
    for column, width in zip(columns, widths, strict=True):
        justify: Any = "right" if column.number else "left"
        printed.add_column(column.title, justify=justify, no_wrap=True, max_width=width)
    for row in rows:
        printed.add_row(*map(Text, row))
    return printed


def cut_text(value: Any) -> str:
    """Returns a foreign text or JSON-able value for people: cut if it is long, without terminal control characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = on_one_line(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "\u2026"


def value_text(value: Any) -> str:
    """Returns a key, value or header of a record's JSON form for people, with the name of its schema."""
    schema = ""
    if isinstance(value, dict):
        schema = f" : {value['schema']}" if value.get("schema") else ""
        for key in ("text", "base64", "value"):
            if key in value:
                value = f"base64 {value[key]}" if key == "base64" else value[key]
                break
    return cut_text(value) + schema


def on_one_line(text: str) -> str:
    """Returns a text with control characters written out, as \\n: names and error texts may come from others."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _print_table(kind: Kind, resources: Sequence[Any], *, wide: bool) -> None:
    from rich.console import Console  # noqa: PLC0415

    # A pipe has no width, and a wide table is never shortened: both get lines of any length.
    if wide or not sys.stdout.isatty():
        whole = Console(width=WIDEST, highlight=False)
        with whole.capture() as printed:
            whole.print(table(kind, resources, wide=wide), crop=False, overflow="ignore", soft_wrap=True)
        # Removes from each line the blanks that pad the last column.
        print("\n".join(map(str.rstrip, printed.get().rstrip("\n").split("\n"))))
    else:
        console = Console(highlight=False)
        console.print(table(kind, resources, wide=False, room=console.width))
