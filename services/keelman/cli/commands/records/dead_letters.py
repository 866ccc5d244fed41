"""`keelman dead-letters` and `replay`: the records that a connector could not copy, shown and sent back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from keelman.cli.client.rest import ConnectorRest, Where
from keelman.cli.options import Name, TextForm, command_group, duration_of
from keelman.cli.output.printing import TEXT_FORMATS, checked_format, print_document, value_text
from keelman.cli.waiting import progress_line
from keelman.connect.bad_records.replayed import COUNTS, MAX_EXAMPLES
from keelman.connect.offsets import in_json
from keelman.model.errors import InvalidArgument

app = command_group()
MEANINGS = {
    "sent": "sent back",
    "failed": "failed again and stay dead letters",
    "lost": "without a complete record, stay dead letters",
    "dropped": "dropped by a transform",
    "filtered": "not selected, stay dead letters",
}
_AGO = re.compile(r"(\d+)([smhd])")


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
        answer = await rest.ask("GET", f"/dead-letters?records={records}")
        if form != "text":
            print_document(answer, form)
            return
        least = "" if answer["complete"] else "at least "
        waiting = f"{least}{answer['waiting']} of them not replayed"
        letters = "dead letter" if answer["letters"] == 1 and not least else "dead letters"
        print(f"{least}{answer['letters']} {letters} in topic {answer['topic']}, {waiting}")
        for kind in answer["kinds"]:
            print(f"  {kind['letters']:>8}  {_kind_text(kind)}")
        for letter in answer["newest"]:
            print("\n".join(letter_lines(letter)))

    return where.ask_connector(name, body)


@app.command()
def replay(
    name: Name,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the result; send nothing.")] = False,
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
    request: dict[str, Any] = {"dry_run": dry_run}
    request |= {key: text for key, text in (("to", to), ("stage", stage), ("exception", exception)) if text}
    if begin:
        request["since"] = since(begin)
    if most is not None:
        request["most"] = most

    async def body(rest: ConnectorRest) -> None:
        counts, examples = await _replay_all(rest, request)
        if form != "text":
            print_document({**counts, "examples": examples}, form)
            return
        for text in replay_lines(counts, examples):
            print(text)

    return where.ask_connector(name, body)


async def _replay_all(rest: ConnectorRest, options: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Sends requests until all letters were read, or the requested number was sent. Returns counts and examples."""
    total: dict[str, Any] = dict.fromkeys(COUNTS, 0)
    kinds: dict[tuple[str, str], dict[str, Any]] = {}
    request, examples = dict(options), list[Any]()
    with progress_line() as line:
        while True:
            answer = await rest.ask("POST", "/dead-letters/replay", request)
            _add(total, kinds, answer)
            examples = [*examples, *answer["examples"]][:MAX_EXAMPLES]
            if answer["cursor"] is None or total["sent"] >= options.get("most", float("inf")):
                break
            line.show(f"connector/{rest.name}: {total['sent']} sent back")
            request["cursor"] = answer["cursor"]
            if "most" in options:
                request["most"] = options["most"] - total["sent"]
    counts = {**{k: answer[k] for k in ("connector", "topic", "dry_run")}, **total, "kinds": list(kinds.values())}
    return counts, examples


def since(text: str) -> str:
    """A time for the wire: as given, or of `90m`, `12h`, `7d` ago. Raises InvalidArgument."""
    try:
        seconds = duration_of(text.strip(), _AGO)
        if seconds is not None:
            return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()
        datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise InvalidArgument.of("--since", text, "a time such as 2026-05-01T12:00:00Z, or 90m, 12h, 7d ago") from None
    return text


def letter_lines(letter: Mapping[str, Any]) -> list[str]:
    """A dead letter for people."""
    origin = letter["origin"] or {}
    place = f"{origin.get('topic') or 'unknown topic'}"
    if origin.get("offset") is not None:
        place += f"-{origin['partition']}@{origin['offset']}"
    elif origin.get("source_offset") is not None:
        place += f" from {in_json(origin['source_partition'] or {})} at {in_json(origin['source_offset'])}"
    state = letter.get("outcome") or ("replayed" if letter.get("replayed") else "waiting")
    lines = [
        f"{letter['partition']}@{letter['offset']} {state}: {_kind_text(letter)}",
        f"  of {place}: {letter['message'] or ''}",
    ]
    if letter.get("why") and not (letter["message"] and letter["why"].endswith(" ".join(letter["message"].split()))):
        lines.append(f"  {letter['why']}")
    return [*lines, f"  key {value_text(letter['key'])}  value {value_text(letter['value'])}"]


def replay_lines(counts: Mapping[str, Any], examples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What became of a replay, for people."""
    if counts["dry_run"]:
        yield f"nothing was sent: the result of a replay of topic {counts['topic']} would be this"
    for key in COUNTS:
        if counts[key] or key == "sent":
            yield f"{counts[key]:>8}  {MEANINGS[key]}"
    for kind in counts["kinds"]:
        parts = ", ".join(f"{kind[key]} {key}" for key in COUNTS if kind.get(key))
        yield f"          {_kind_text(kind)}: {parts}"
    for example in examples:
        yield from letter_lines(example)


def _add(total: dict[str, Any], kinds: dict[tuple[str, str], dict[str, Any]], answer: Mapping[str, Any]) -> None:
    for key in COUNTS:
        total[key] += answer[key]
    for row in answer["kinds"]:
        kind = kinds.setdefault(
            (row["stage"], row["exception"]), {"stage": row["stage"], "exception": row["exception"]}
        )
        for key in COUNTS:
            if key in row:
                kind[key] = kind.get(key, 0) + row[key]


def _kind_text(letter: Mapping[str, Any]) -> str:
    exception = (letter.get("exception") or "").rpartition(".")[2]
    return f"{letter.get('stage') or 'no headers with a reason'}{f' {exception}' if exception else ''}"
