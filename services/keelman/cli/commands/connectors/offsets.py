"""`keelman offsets get`, `set` and `reset`: a connector's offsets, read and changed through REST."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from keelman.cli.client.rest import ConnectorRest, Where
from keelman.cli.options import Name, TextForm, Yes, command_group
from keelman.cli.output.printing import TEXT_FORMATS, checked_format, cut_text, print_document
from keelman.connect.offsets import in_json
from keelman.model.errors import FailedPrecondition, InvalidArgument

app, offsets = command_group(), command_group()
app.add_typer(offsets, name="offsets", help="Show, set or reset the offsets of a connector.")
_AT = re.compile(r"([a-zA-Z0-9._-]+):(\d+)=(\d+|null)")
AT = "TOPIC:PARTITION=OFFSET, or =null to delete it, e.g. lines:0=42"
ENTRIES = '{"offsets": [{"partition": {...}, "offset": {...}}]}, as `offsets get -o json` prints it'


@offsets.command("get")
def get_offsets(name: Name, *, output: TextForm = "text", where: Where) -> int:
    """Show the committed offsets of a connector."""
    form = checked_format(output, TEXT_FORMATS)

    async def body(rest: ConnectorRest) -> None:
        answer = await rest.ask("GET", "/offsets")
        if form != "text":
            print_document(answer, form)
        elif not answer["offsets"]:
            print(f"connector {rest.full} has no committed offsets", file=sys.stderr)
        else:
            print("\n".join(offset_lines(answer["offsets"])))

    return where.ask_connector(name, body)


@offsets.command("set")
def set_offsets(
    name: Name,
    *,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="T:P=OFFSET", help="Of a sink: topic, partition, next offset; may be repeated."),
    ] = None,
    partition: Annotated[
        str, typer.Option("--partition", metavar="JSON", help="Of a source: which partition, with --offset.")
    ] = "",
    offset: Annotated[
        str, typer.Option("--offset", metavar="JSON", help="Of a source: its new offset; null deletes it.")
    ] = "",
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Offsets as `offsets get -o json` prints them.")
    ] = None,
    where: Where,
) -> int:
    """Set offsets of a stopped connector.

    With --at, with --partition and --offset, or from a file.
    """
    entries = entries_of(at or (), partition, offset, file)

    async def body(rest: ConnectorRest) -> None:
        print((await _change(rest, "PATCH", {"offsets": entries}))["message"])

    return where.ask_connector(name, body)


@offsets.command("reset")
def reset_offsets(name: Name, *, yes: Yes = False, where: Where) -> int:
    """Forget all offsets of a stopped connector.

    It begins again when it is resumed. Needs a confirmation on a terminal.
    """
    if not yes and sys.stdin.isatty():
        typer.confirm(f"delete all offsets of connector {name}?", abort=True, err=True)

    async def body(rest: ConnectorRest) -> None:
        print((await _change(rest, "DELETE"))["message"])

    return where.ask_connector(name, body)


async def _change(rest: ConnectorRest, method: str, body: Any = None) -> Any:
    """Raises FailedPrecondition that names the command to type first where the connector is not stopped."""
    try:
        return await rest.ask(method, "/offsets", body)
    except InvalidArgument as error:
        if "must be in the STOPPED state" not in error.message:
            raise
        state = (await rest.ask("GET", "/status"))["connector"]["state"]
        first = f"`keelman stop connector {rest.full} --wait`"
        raise FailedPrecondition(
            f"connector {rest.full} is {state}: its offsets can be changed only while it is STOPPED: {first} first"
        ) from None


def entries_of(at: Sequence[str], partition: str, offset: str, file: Path | None) -> list[dict[str, Any]]:
    """The offsets that the options mean, in Connect's form. Raises InvalidArgument."""
    if bool(partition) != bool(offset):
        raise InvalidArgument("--partition and --offset: only together: the partition, and its new offset")
    if sum((bool(at), bool(partition), file is not None)) != 1:
        raise InvalidArgument(
            "use exactly one of --at (of a sink), --partition with --offset (of a source), and --file"
        )
    if file is not None:
        return _file_entries(file)
    if partition:
        return [{"partition": _object("--partition", partition), "offset": _object("--offset", offset, null=True)}]
    entries = []
    for text in at:
        match = _AT.fullmatch(text)
        if match is None:
            raise InvalidArgument.of("--at", text, AT)
        to = None if match[3] == "null" else {"kafka_offset": int(match[3])}
        entries.append({"partition": {"kafka_topic": match[1], "kafka_partition": int(match[2])}, "offset": to})
    return entries


def _file_entries(file: Path) -> list[dict[str, Any]]:
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"--file: {file}: {getattr(error, 'strerror', None) or error}") from None
    entries = tree.get("offsets") if isinstance(tree, dict) else None
    legal = isinstance(entries, list) and all(isinstance(e, dict) and {*e} == {"partition", "offset"} for e in entries)
    if not entries or not legal:
        raise InvalidArgument(f"--file: {file}: expected {ENTRIES}")
    return list(entries)


def _object(option: str, text: str, *, null: bool = False) -> Any:
    try:
        tree = json.loads(text)
    except ValueError:
        tree = ...
    if not isinstance(tree, dict) and not (null and tree is None):
        example = '{"position": 0}' if null else '{"filename": "/tmp/in.txt"}'
        raise InvalidArgument.of(option, text, f"a JSON object{' or null' if null else ''}, e.g. {example}")
    return tree


def offset_lines(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each partition: of a sink as --at takes it, of a source both JSON objects."""
    lines = []
    for entry in entries:
        part, to = entry["partition"], entry["offset"]
        if {*part} == {"kafka_topic", "kafka_partition"}:
            lines.append(f"{part['kafka_topic']}:{part['kafka_partition']}={(to or {}).get('kafka_offset', 'null')}")
        else:
            lines.append(f"{cut_text(in_json(part))}  {cut_text(in_json(to) if to is not None else 'null')}")
    return lines
