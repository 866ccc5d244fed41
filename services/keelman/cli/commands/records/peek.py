"""`keelman peek`: the last records of a topic."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from google.protobuf.duration_pb2 import Duration

from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.client.topics import resource_of
from keelman.cli.kinds import TOPICS
from keelman.cli.options import TextForm, command_group
from keelman.cli.output.printing import TEXT_FORMATS, checked_format, cut_text, print_document
from keelman.kafka.browsing import PeekedRecord, last_records
from keelman.model.errors import NotFound

app = command_group()
PEEK_TIME = Duration(seconds=25)  # within the time of a call


@app.command()
def peek(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Its name, or that of its resource; see `keelman get topics`.")
    ],
    *,
    records: Annotated[
        int, typer.Option("-n", "--records", metavar="N", help="How many of the last records to show.", min=1, max=1000)
    ] = 5,
    brokers: Annotated[
        str, typer.Option("--broker-cluster", metavar="BC", help="Its broker cluster [the only one].")
    ] = "",
    output: TextForm = "text",
    target: GatewayTarget,
) -> int:
    """Show the last committed records of a topic: key, value and headers, as text where they are text."""
    form = checked_format(output, TEXT_FORMATS)

    async def body(client: Gateway) -> None:
        if (resource := await resource_of(client, brokers, topic)) is not None:
            answer = await client.call("Peek", TOPICS, name=resource.name, limit=records, timeout=PEEK_TIME)
            peeked_records: Sequence[PeekedRecord] = [peeked(record) for record in reversed(answer.records)]
        else:
            cluster = brokers or await client.only_broker_cluster()
            try:
                peeked_records = await last_records(await client.client_properties(cluster), topic, records)
            except NotFound as error:
                raise NotFound(f"{error.message} on broker cluster {cluster!r}: see `keelman get topics`") from None
        if form != "text":
            print_document({"topic": topic, "records": [document(record) for record in peeked_records]}, form)
            return
        if not peeked_records:
            typer.echo(f"topic {topic} has no records", err=True)
        for record in peeked_records:
            print("\n".join(lines(record)))

    return target.run(body)


def peeked(record: Any) -> PeekedRecord:
    """A record as the state service has read it."""

    def of(message: Any, field: str) -> Any:
        return getattr(message, field) if message.HasField(field) else None

    headers = tuple((header.key, of(header, "value")) for header in record.headers)
    return PeekedRecord(
        record.partition, record.offset, of(record, "timestamp_ms"), of(record, "key"), of(record, "value"), headers
    )


def document(record: PeekedRecord) -> dict[str, Any]:
    """A record as JSON-able values; bytes that are no text are {"base64": ...}."""
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _as_text(record.key),
        "value": _as_text(record.value),
        "headers": [{"key": name, "value": _as_text(raw)} for name, raw in record.headers],
    }


def lines(record: PeekedRecord) -> Iterator[str]:
    """A record for people."""
    at = ""
    if record.timestamp_ms is not None:
        at = f"  {datetime.fromtimestamp(record.timestamp_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
    yield f"{record.partition}@{record.offset}{at}  key {_text(record.key)}"
    yield f"  {_text(record.value)}"
    if record.headers:
        yield "  headers " + ", ".join(f"{cut_text(name)}={_text(raw)}" for name, raw in record.headers)


def _text(raw: bytes | None) -> str:
    shown = _as_text(raw)
    return f"base64 {cut_text(shown['base64'])}" if isinstance(shown, dict) else cut_text(shown)


def _as_text(raw: bytes | None) -> Any:
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}
