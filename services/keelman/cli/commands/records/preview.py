"""`keelman preview`: a few real records, before and after each step of a connector."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from keelman.cli.client.rest import ConnectorRest, Where
from keelman.cli.configuration import given_config
from keelman.cli.options import Name, TextForm, command_group
from keelman.cli.output.printing import TEXT_FORMATS, checked_format, print_document, value_text
from keelman.model.errors import NotFound

app = command_group()
BEGINNING = "beginning"
SHOWN = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")


@app.command()
def preview(
    name: Name,
    *,
    config_file: Annotated[
        Path | None,
        typer.Option("--config-file", "--config", metavar="FILE", help="Try this configuration, .json or .properties."),
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="K=V", help="Try it with this value; may be repeated.")
    ] = None,
    records: Annotated[int, typer.Option("--records", metavar="N", help="How many to show.", min=1, max=100)] = 5,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="Where to begin: committed or beginning of a source, end or beginning of a sink.",
        ),
    ] = "",
    output: TextForm = "text",
    where: Where,
) -> int:
    """Show a few real records through each step of a connector, before and after. Nothing is written."""
    form, (whole, values_given) = checked_format(output, TEXT_FORMATS), given_config(config_file, values)

    async def body(rest: ConnectorRest) -> None:
        request: dict[str, Any] = {"records": records}
        if begin:
            request["from"] = begin
        if whole is not None or values_given:
            request["config"] = {**(await _read_config(rest) if whole is None else whole), **values_given}
        answer = await rest.ask("POST", "/preview", request)
        if form != "text":
            print_document(answer, form)
            return
        for line in preview_lines(answer):
            print(line)
        if not answer["records"]:
            where = "" if answer["from"] == BEGINNING else f" from {answer['from']}; --from beginning may show some"
            print(f"no records{where}", file=sys.stderr)

    return where.ask_connector(name, body)


async def _read_config(rest: ConnectorRest) -> dict[str, Any]:
    try:
        config: dict[str, Any] = await rest.ask("GET", "/config")
    except NotFound:
        return {}
    return config


def preview_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """A preview for people: for each step its changes."""
    for number, entry in enumerate(answer["records"], 1):
        yield f"record {number}: {entry['outcome']}"
        before: Mapping[str, Any] = {}
        for step in entry["steps"]:
            name = step.get("alias") or step["step"]
            record = step["record"]
            if record is None:
                yield f"  {name:<14} dropped{_predicate_text(step)}"
                break
            changed = [
                f"{k} {value_text(record[k])}"
                for k in SHOWN
                if record.get(k) != before.get(k, before) and _has(record, k)
            ]
            words = "not applied" if step.get("applied") is False else "  ".join(changed) or "unchanged"
            yield f"  {name:<14} {words}{_predicate_text(step)}"
            before = record
        if "error" in entry:
            error = entry["error"]
            yield f"  {error['step']:<14} {error['stage']}: {error['class'].rpartition('.')[2]}: {error['message']}"
            yield f"  {'':<14} {error['then']}"
    if answer["new_schemas"]:
        yield f"schemas would be registered for: {', '.join(answer['new_schemas'])}"


def _predicate_text(step: Mapping[str, Any]) -> str:
    test = step.get("predicate")
    if test is None:
        return ""
    return f"  ({test['alias']} is {'true' if test['holds'] else 'false'}{', negated' if test['negate'] else ''})"


def _has(record: Mapping[str, Any], key: str) -> bool:
    return record.get(key) not in (None, []) or key in ("key", "value")
