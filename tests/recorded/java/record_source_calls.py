"""Records how Kafka Connect calls a Java source task: writes source_calls.json beside this file.

Run it by hand when the steps or the connector change: `python -m recorded.java.record_source_calls`. It starts a broker
and real workers, exactly-once and not, with the connector of support.java.kit, and plays everything twice: notes that
differ between the two turns cannot be compared.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from recorded.java.call_sink_steps import GROUP
from recorded.java.source_calls_steps import (
    GUARANTEES,
    IN_A_GROUP,
    IN_ONE_PROCESS,
    THROUGH_A_WORKER,
    WORKER,
    Case,
    compared,
    play,
)
from support.brokers.broker import running_broker
from support.java.kit import compiled
from support.servers.connect_worker import ConnectProcess

FILE = Path(__file__).with_name("source_calls.json")
COMMAND = "python -m recorded.java.record_source_calls"
TURNS = ("first", "second")


def unlike(notes: Mapping[str, list[str]], cases: Mapping[str, Case], *, exactly_once: bool) -> dict[str, list[str]]:
    """The compared notes of cases in which a worker differs from both turns of Kafka Connect."""
    tree = json.loads(FILE.read_text())[{once: name for name, once in GUARANTEES.items()}[exactly_once]]
    actual_unlike = {}
    for name, case in cases.items():
        how = {"exactly_once": exactly_once, "fails": case.fails, "either": name in IN_A_GROUP}
        turns, ours = [compared(item, **how) for item in tree[name]], compared(notes[name], **how)
        if ours not in turns:
            actual_unlike[name] = ours
    return actual_unlike


async def _recorded(servers: str, place: Path, classes: Path, *, exactly_once: bool) -> Mapping[str, list[list[str]]]:
    """Both turns of each case."""
    support = "enabled" if exactly_once else "disabled"
    properties = {"exactly.once.source.support": support, **WORKER, **GROUP}
    group = f"calls-{support}"
    item, other = (
        ConnectProcess(place / name, servers, group, properties, more_jars=(classes,)) for name in ("one", "other")
    )
    acts = {"bounce": lambda: _bounced(item), "join": other.start, "leave": other.end}
    cases = {**IN_ONE_PROCESS[exactly_once], **THROUGH_A_WORKER[exactly_once]}
    fields = {"exactly_once": exactly_once, "group": group}
    answer: dict[str, list[list[str]]] = {}
    await item.start()
    try:
        for turn in TURNS:
            notes = await play(item.ask, servers, place / turn, cases, name=f"{support}-{turn}", **fields)
            for n, (name, case) in enumerate(IN_A_GROUP.items() if exactly_once else ()):
                alone = f"{support}-{turn}-group-{n}"
                notes |= await play(item.ask, servers, place / turn, {name: case}, name=alone, acts=acts, **fields)
            for case, lines in notes.items():
                answer.setdefault(case, []).append(lines)
    finally:
        for worker in (other, item):
            if worker.child is not None:
                await worker.end()
    return answer


async def _bounced(worker: ConnectProcess) -> None:
    await worker.end()
    await worker.start()


async def main() -> None:
    """Records everything."""
    recorded: dict[str, object] = {"recorded by": COMMAND}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "classes").mkdir()
        classes = await compiled(folder / "classes")
        async with running_broker(folder / "broker") as servers:
            for guarantee, once in GUARANTEES.items():
                recorded[guarantee] = await _recorded(servers, folder / guarantee, classes, exactly_once=once)
    FILE.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
