"""Scenarios with sinks of acme.CallSinkConnector on a Connect worker, and the calls that their tasks recorded.

Each scenario is a connector of its own with a topic of its own; all of them are played at once, on one worker.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer

from recorded.java.sink_play import SEEN_SECONDS, Acts, Ask, Play
from support.eventually import eventually
from support.kafka.topics import add_partitions, create_topic

FLUSH_MS = 2000
AT_ONCE = 8
GROUP = {"scheduled.rebalance.max.delay.ms": "1000"}
WORKER = {"offset.flush.interval.ms": str(FLUSH_MS), "task.shutdown.graceful.timeout.ms": "5000"}


Steps = Callable[[Play], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A connector's configuration and the steps that follow. With `waits`, calls without records are compared too."""

    steps: Steps
    config: Mapping[str, str] = field(default_factory=dict)
    partitions: int = 1
    waits: bool = False
    tasks: int = 1
    alone: bool = False
    """Whether its group contains no other connector, and gets and loses a worker."""


async def _life(play: Play) -> None:
    await play.send(3)
    await play.create()
    await play.until("preCommit {0=3}")
    await play.send(2)
    await play.until("put 0@3-4")
    await play.until("preCommit {0=5}")
    await play.until("preCommit {0=5}")
    await play.delete()


def _copies(count: int, *lines: str) -> Steps:
    """Sends so many records, expects these calls, and deletes the connector."""

    async def steps(play: Play) -> None:
        await play.send(count)
        await play.create()
        for line in lines:
            await play.until(line)
        await play.delete()

    return steps


def _restarted(count: int, line: str, group: int) -> Steps:
    """Sends records and waits for a call; once its group shows an offset, restarts the connector, and deletes it."""

    async def steps(play: Play) -> None:
        await play.send(count)
        await play.create()
        await play.until(line)
        await play.until_group(group)
        await play.order("POST", "restart?includeTasks=true&onlyFailed=false")
        await play.until("stop")
        await play.until("open [0] of [0]")
        if group < count:
            await play.until(f"put 0@{max(0, group)}-{count - 1}")
        await play.delete()

    return steps


def _fails(count: int, group: int, more: int = 0) -> Steps:
    """Sends so many records, and `more` after their commit; the task fails, and its group shows an offset."""

    async def steps(play: Play) -> None:
        if count:
            await play.send(count)
        await play.create()
        if more:
            await play.until(f"put 0@0-{count - 1}")
            await play.send(more)
        await play.until_state("FAILED")
        await play.until("stop")
        await play.until_group(group)

    return steps


async def _idle(play: Play) -> None:
    await play.create()
    for _ in range(3):
        await play.until("empty")
    await play.until("preCommit {0=0}")
    await play.delete()


def _idle_until(*lines: str) -> Steps:
    """Sends no records, expects these calls, and deletes the connector."""

    async def steps(play: Play) -> None:
        await play.create()
        for line in lines:
            await play.until(line)
        await play.delete()

    return steps


async def _paused(play: Play) -> None:
    await play.send(3)
    await play.create()
    await play.until("put 0@0-2")
    await play.order("PUT", "pause")
    await play.until("preCommit {0=3}")
    await play.until_state("PAUSED")
    await play.send(2)
    await play.order("PUT", "resume")
    await play.until("put 0@3-4")
    await play.delete()


async def _stopped(play: Play) -> None:
    await play.send(3)
    await play.create()
    await play.until("put 0@0-2")
    await play.order("PUT", "stop")
    await play.until("stop")
    await play.until_group(3)
    await play.send(2)
    await play.order("PUT", "resume")
    await play.until("put 0@3-4")
    await play.delete()


async def _configured(play: Play) -> None:
    await play.send(3)
    await play.create()
    await play.until("put 0@0-2")
    await play.create(other="new")
    await play.until("stop")
    await play.send(2)
    await play.until("put 0@3-4")
    await play.delete()


async def _joined(play: Play) -> None:
    """Another member takes one partition of two, and gives it back."""
    async with _other_member(play, "range"):
        await play.until("close [0, 1] of [0, 1]")
    await play.until("open [0, 1] of [0, 1]")
    await play.delete()


async def _joined_step_by_step(play: Play) -> None:
    """Another member with the cooperative strategy takes one partition of two, and gives it back."""
    async with _other_member(play, "cooperative-sticky"):
        pass
    await play.until("open [1] of [0, 1]")
    await play.delete()


@asynccontextmanager
async def _other_member(play: Play, strategy: str) -> AsyncIterator[None]:
    """Creates the sink; in the block another member of its group has one partition of its two."""
    await play.send(3, 0)
    await play.send(2, 1)
    await play.create()
    await play.until("preCommit {0=3, 1=2}")
    settings = {"group.id": f"connect-{play.name}", "partition.assignment.strategy": strategy}
    other = Consumer({"bootstrap.servers": play.bootstrap, "enable.auto.commit": False, **settings})
    other.subscribe([play.name])

    async def has_one() -> bool:
        await asyncio.to_thread(other.poll, 0.1)
        return len(other.assignment()) == 1

    await eventually(has_one, seconds=SEEN_SECONDS, what="another has a partition")
    yield
    await asyncio.to_thread(other.close)


async def _one_two_one(play: Play) -> None:
    """The connector has one task, then two, then one, for four partitions."""
    await play.create()
    await play.until("open [0, 1, 2, 3] of [0, 1, 2, 3]")
    await play.send_all(3, 4)
    await play.create(tasks_max="2")
    await play.until("open [0, 1] of [0, 1]")
    await play.until("open [2, 3] of [2, 3]", 1)
    await play.send_all(2, 4)
    await play.create(tasks_max="1")
    await play.until("stop", 1)
    await play.until("open [0, 1, 2, 3] of [0, 1, 2, 3]")
    await play.send_all(2, 4)
    await play.delete()


async def _more_partitions(play: Play) -> None:
    """The topic has two partitions, then four."""
    await play.create(tasks_max="2")
    await play.until("open [0] of [0]")
    await play.until("open [1] of [1]", 1)
    await play.send_all(3, 2)
    await asyncio.to_thread(add_partitions, play.bootstrap, play.name, 4)
    await play.until("open [0, 1] of [0, 1]")
    await play.until("open [2, 3] of [2, 3]", 1)
    await play.send(3, 2, 3)
    await play.send_all(2, 4)
    await play.delete()
    await play.until("stop", 1)


async def _another_worker(play: Play) -> None:
    """A second worker takes one task of two, and gives it back."""
    await play.create(tasks_max="2")
    await play.until("open [0, 1] of [0, 1]")
    await play.until("open [2, 3] of [2, 3]", 1)
    await play.send_all(3, 4)
    for starts, act in ((3, "join"), (4, "leave")):
        await play.acts[act]()
        await play.until_started(starts)
        await play.send_all(2, 4)
    await play.delete(stops=0)
    await play.until_stopped()


async def _steered(play: Play) -> None:
    """The sink pauses one partition of two, and resumes it when the other has records."""
    await play.send(3, 0)
    await play.create()
    await play.until("  pause 0")
    await play.until("preCommit {0=3, 1=0}")
    await play.send(2, 0)
    await play.send(2, 1)
    await play.until("  resume 0")
    await play.until("put 0@3-4")
    await play.delete()


def _errors(**more: str) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in more.items()}


TOLERANT = _errors(
    errors_tolerance="all",
    errors_deadletterqueue_topic_name="call-sinks-dead",
    errors_deadletterqueue_topic_replication_factor="1",
)

COOPERATIVE = {
    "consumer.override.partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
}
FRESH = {"consumer.override.metadata.max.age.ms": "1000"}
ONCE_MORE = ("preCommit {0=3}", "empty", "preCommit {0=3}")
"""Calls after three records."""

SCENARIOS: dict[str, Scenario] = {
    "life": Scenario(_life),
    "no records": Scenario(_idle, waits=True),
    "two partitions, records in one": Scenario(_copies(3, "put 0@0-2", "preCommit {0=3, 1=0}"), partitions=2),
    "preCommit returns less": Scenario(_restarted(3, "preCommit {0=3}", 2), {"script": "preCommit *: hold 1"}),
    "preCommit returns nothing": Scenario(_restarted(3, "preCommit {0=3}", -1001), {"script": "preCommit *: none"}),
    "preCommit returns null": Scenario(_fails(3, 3), {"script": "preCommit 1: null"}),
    "preCommit returns more": Scenario(
        _restarted(3, "preCommit {0=3}", 3), {"script": "preCommit 1: ahead 5, strange"}
    ),
    "preCommit throws": Scenario(
        _copies(3, "put 0@0-2", "put 0@0-2", "preCommit {0=3}"), {"script": "preCommit 1: fail"}
    ),
    "preCommit throws behind a commit": Scenario(
        _copies(3, "preCommit {0=3}", "  fail", "preCommit {0=3}"), {"script": "preCommit 2: fail"}
    ),
    "preCommit always throws": Scenario(
        _copies(3, "put 0@0-2", "put 0@0-2", "put 0@0-2"), {"script": "preCommit *: fail"}
    ),
    "flush throws": Scenario(_copies(3, "put 0@0-2", "put 0@0-2", "flush {0=3}"), {"script": "flush 1: error"}),
    "put asks to be called again": Scenario(
        _copies(3, "  retriable", "  retriable", "put 0@0-2", "preCommit {0=3}"),
        {"script": "put 1: timeout 300, retriable; put 2: timeout 300, retriable"},
    ),
    "put asks to be called again, no time": Scenario(
        _copies(3, "  retriable", "put 0@0-2", *ONCE_MORE), {"script": "put 1: retriable"}, waits=True
    ),
    "put asks to be called again, much later": Scenario(
        _copies(3, "  retriable", "put 0@0-2", *ONCE_MORE),
        {"script": "put 1: timeout 30000, retriable"},
        waits=True,
    ),
    "put asks to be called again and is stopped": Scenario(
        _copies(3, "  retriable", "  retriable"), {"script": "put *: timeout 300, retriable"}
    ),
    "put of nothing asks to be called again": Scenario(
        _idle_until("  retriable", "empty", "preCommit {0=0}"),
        {"script": "empty 1: timeout 300, retriable"},
        waits=True,
    ),
    "put fails": Scenario(_fails(3, -1001), {"script": "put 1: fail"}),
    "put fails behind another": Scenario(_fails(3, 3, 2), {"script": "put 2: fail"}),
    "put throws an error": Scenario(_fails(3, -1001), {"script": "put 1: error"}),
    "put of nothing fails": Scenario(_fails(0, -1001), {"script": "empty 1: fail"}, waits=True),
    "start fails": Scenario(_fails(0, -1001), {"script": "start 1: fail"}),
    "open fails": Scenario(_fails(3, -1001), {"script": "open 1: fail"}),
    "close fails": Scenario(_copies(3, "preCommit {0=3}"), {"script": "close 1: fail"}),
    "goes back in put": Scenario(
        _copies(3, "put 0@0-2", "put 0@1-2", "preCommit {0=3}"), {"script": "put 1: offset 0 1"}
    ),
    "goes back in open": Scenario(_copies(3, "put 0@2-2", "preCommit {0=3}"), {"script": "open 1: offset 0 2"}),
    "goes on ahead in open": Scenario(_copies(3, "put 0@1-2"), {"script": "open 1: offsets 0 1"}),
    "goes back in preCommit": Scenario(
        _copies(3, "put 0@0-2", "put 0@1-2", "preCommit {0=3}"), {"script": "preCommit 1: offset 0 1"}
    ),
    "goes back in put and asks to be called again": Scenario(
        _copies(3, "  retriable", "put 0@0-2", "put 0@1-2"), {"script": "put 1: offset 0 1, timeout 300, retriable"}
    ),
    "goes back in close": Scenario(_restarted(3, "preCommit {0=3}", 3), {"script": "close 1: offset 0 1"}),
    "pauses and resumes": Scenario(_steered, {"script": "put 1: pause 0; put 2: resume 0"}, partitions=2),
    "pauses what is not its own": Scenario(_copies(3, "put 0@0-2"), {"script": "put 1: pause 7, resume 7"}),
    "pauses in open": Scenario(
        _copies(3, "empty", "put 0@0-2", *ONCE_MORE), {"script": "open 1: pause 0; empty 1: resume 0"}, waits=True
    ),
    "wants to be called soon": Scenario(
        _copies(3, "put 0@0-2", "empty", "empty"), {"script": "put 1: timeout 200; empty 1: timeout 200"}, waits=True
    ),
    "asks for a commit": Scenario(_copies(3, "put 0@0-2", "preCommit {0=3}"), {"script": "put 1: request"}),
    "asks for a commit in a put of nothing": Scenario(
        _idle_until("empty", "preCommit {0=0}", "empty"), {"script": "empty 1: request"}, waits=True
    ),
    "reports a bad record": Scenario(
        _copies(3, "  reported", "preCommit {0=3}"), {"script": "put 1: report 1", **TOLERANT}
    ),
    "reports a bad record, none is tolerated": Scenario(
        _copies(3, "  thrown ConnectException"), {"script": "put 1: report 1", "errors.log.enable": "true"}
    ),
    "reports a bad record to nobody": Scenario(
        _copies(3, "  no reporter", "preCommit {0=3}"), {"script": "put 1: report 1"}
    ),
    "all records are dropped": Scenario(
        _copies(3, "empty", "preCommit {0=3}"),
        {"transforms": "drop", "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter"},
    ),
    "paused and resumed": Scenario(_paused),
    "stopped and resumed": Scenario(_stopped),
    "configured anew": Scenario(_configured),
    "another member": Scenario(_joined, partitions=2),
    "another member, step by step": Scenario(_joined_step_by_step, COOPERATIVE, partitions=2),
    "one task, two, one": Scenario(_one_two_one, partitions=4, tasks=2),
    "another worker joins and leaves": Scenario(_another_worker, partitions=4, tasks=2, alone=True),
    "more partitions": Scenario(_more_partitions, FRESH, partitions=2, tasks=2),
}


async def play_all(
    bootstrap: str, ask: Ask, folder: Path, only: Sequence[str] = (), *, turn: str = "", acts: Acts | None = None
) -> dict[str, list[str]]:
    """Plays the scenarios, or only these, several at a time; returns the compared calls of each.

    The calls end with BUT and a reason if a scenario was not completed. Another `turn` uses other connectors. With
    `acts`, the actions on the group, the scenarios run that need the group to themselves; without, all others.
    """
    folder.mkdir(parents=True, exist_ok=True)
    turns = asyncio.Semaphore(AT_ONCE)
    names = [name for name, value in SCENARIOS.items() if value.alone == bool(acts) and (not only or name in only)]

    async def played(name: str) -> list[str]:
        scenario, connector = SCENARIOS[name], f"calls-{re.sub('[^a-z]+', '-', name.lower())}{turn}"
        play = Play(bootstrap, ask, connector, scenario.config, folder, scenario.tasks, acts or {})
        async with turns:
            await asyncio.to_thread(create_topic, bootstrap, connector, scenario.partitions)
            try:
                await scenario.steps(play)
            except AssertionError as error:
                return [*play.told(scenario.waits), f"BUT {error}"]
        return play.told(scenario.waits)

    result = await asyncio.gather(*map(played, names))
    return dict(zip(names, result, strict=True))
