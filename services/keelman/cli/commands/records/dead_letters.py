"""`keelman dead-letters` and `replay`: the records that a connector could not copy, shown and sent back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from keelman.cli.client.rest import ConnectorRest, Where
from keelman.cli.options import Name, TextForm, command_group
from keelman.cli.output.printing import TEXT_FORMATS, checked_format, print_document, value_text
from keelman.cli.waiting import progress_line
from keelman.connect.bad_records.replayed import COUNTS, MAX_EXAMPLES
from keelman.connect.offsets import in_json
from keelman.model.errors import InvalidArgument

app = command_group()
MEANINGS = {
    "sent": "sent back",
    "failed": "failed again, and stay",
    "lost": "without a complete record, and stay",
    "dropped": "dropped by a transform",
    "filtered": "not selected, and stay",
}
_AGO = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@app.command("dead-letters")
def dead_letters(
    name: Name,
    *,
    records: Annotated[
        int, typer.Option("--records", metavar="N", help="How many of the newest to show.", min=0, max=100)
    ] = 5,
    output: TextForm = "text",
    where: Where,
) -> int:
    """Show how many dead letters a connector has, of which kinds, and the newest."""
    form = checked_format(output, TEXT_FORMATS)

    async def body(rest: ConnectorRest) -> None:
        found = await rest.ask("GET", f"/dead-letters?records={records}")
        if form != "text":
            print_document(found, form)
            return
        least = "" if found["complete"] else "at least "
        waiting = f"{least}{found['waiting']} of them not replayed"
        letters = "dead letter" if found["letters"] == 1 and not least else "dead letters"
        print(f"{least}{found['letters']} {letters} in topic {found['topic']}, {waiting}")
        for one in found["kinds"]:
            print(f"  {one['letters']:>8}  {_kind_text(one)}")
        for one in found["newest"]:
            print("\n".join(letter_lines(one)))

    return where.ask_connector(name, body)


@app.command()
def replay(
    name: Name,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    to: Annotated[
        str, typer.Option("--to", metavar="TOPIC", help="Of a sink: send them to this topic, unchanged.")
    ] = "",
    stage: Annotated[
        str, typer.Option("--stage", metavar="STAGE", help="Only those of this stage, e.g. VALUE_CONVERTER.")
    ] = "",
    exception: Annotated[
        str, typer.Option("--exception", metavar="CLASS", help="Only those with this exception.")
    ] = "",
    begin: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Only records since then: a time, or 90m, 12h, 7d ago.")
    ] = "",
    most: Annotated[int | None, typer.Option("--most", metavar="N", help="Send at most N.", min=1)] = None,
    output: TextForm = "text",
    where: Where,
) -> int:
    """Send a connector's dead letters back, each exactly once; those that fail again stay."""
    form = checked_format(output, TEXT_FORMATS)
    asked: dict[str, Any] = {"dry_run": dry_run}
    asked |= {key: text for key, text in (("to", to), ("stage", stage), ("exception", exception)) if text}
    if begin:
        asked["since"] = since(begin)
    if most is not None:
        asked["most"] = most

    async def body(rest: ConnectorRest) -> None:
        counts, examples = await _replay_all(rest, asked)
        if form != "text":
            print_document({**counts, "examples": examples}, form)
            return
        for text in replay_lines(counts, examples):
            print(text)

    return where.ask_connector(name, body)


async def _replay_all(rest: ConnectorRest, asked: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Asks until all is looked at, or as many are sent as were wanted: counts, and examples."""
    total: dict[str, Any] = dict.fromkeys(COUNTS, 0)
    kinds: dict[tuple[str, str], dict[str, Any]] = {}
    request, examples = dict(asked), list[Any]()
    with progress_line() as line:
        while True:
            found = await rest.ask("POST", "/dead-letters/replay", request)
            _add(total, kinds, found)
            examples = [*examples, *found["examples"]][:MAX_EXAMPLES]
            if found["cursor"] is None or total["sent"] >= asked.get("most", float("inf")):
                break
            line.show(f"connector/{rest.name}: {total['sent']} sent back")
            request["cursor"] = found["cursor"]
            if "most" in asked:
                request["most"] = asked["most"] - total["sent"]
    counts = {**{k: found[k] for k in ("connector", "topic", "dry_run")}, **total, "kinds": list(kinds.values())}
    return counts, examples


def since(text: str) -> str:
    """A time for the wire: as given, or of `90m`, `12h`, `7d` ago. Raises InvalidArgument."""
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return (datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).isoformat()
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgument.of("--since", text, "a time such as 2026-05-01T12:00:00Z, or 90m, 12h, 7d ago") from None
    return text


def letter_lines(one: Mapping[str, Any]) -> list[str]:
    """A dead letter for people."""
    origin = one["origin"] or {}
    place = f"{origin.get('topic') or 'unknown topic'}"
    if origin.get("offset") is not None:
        place += f"-{origin['partition']}@{origin['offset']}"
    elif origin.get("source_offset") is not None:
        place += f" from {in_json(origin['source_partition'] or {})} at {in_json(origin['source_offset'])}"
    state = one.get("outcome") or ("replayed" if one.get("replayed") else "waiting")
    lines = [f"{one['partition']}@{one['offset']} {state}: {_kind_text(one)}", f"  of {place}: {one['message'] or ''}"]
    if one.get("why") and not (one["message"] and one["why"].endswith(" ".join(one["message"].split()))):
        lines.append(f"  {one['why']}")
    return [*lines, f"  key {value_text(one['key'])}  value {value_text(one['value'])}"]


def replay_lines(counts: Mapping[str, Any], examples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What became of a replay, for people."""
    if counts["dry_run"]:
        yield f"nothing was sent: this is what a replay of topic {counts['topic']} would do now"
    for key in COUNTS:
        if counts[key] or key == "sent":
            yield f"{counts[key]:>8}  {MEANINGS[key]}"
    for one in counts["kinds"]:
        parts = ", ".join(f"{one[key]} {key}" for key in COUNTS if one.get(key))
        yield f"          {_kind_text(one)}: {parts}"
    for one in examples:
        yield from letter_lines(one)


def _add(total: dict[str, Any], kinds: dict[tuple[str, str], dict[str, Any]], found: Mapping[str, Any]) -> None:
    for key in COUNTS:
        total[key] += found[key]
    for one in found["kinds"]:
        kind = kinds.setdefault(
            (one["stage"], one["exception"]), {"stage": one["stage"], "exception": one["exception"]}
        )
        for key in COUNTS:
            if key in one:
                kind[key] = kind.get(key, 0) + one[key]


def _kind_text(one: Mapping[str, Any]) -> str:
    exception = (one.get("exception") or "").rpartition(".")[2]
    return f"{one.get('stage') or 'no headers with a reason'}{f' {exception}' if exception else ''}"
