"""Gives up a broker's old self before the broker starts again, when it is alone.

Kafka 4.3 loses transaction markers otherwise. A broker that ended, killed or in the order that we have it end in
(properties.py), is still registered as alive in its own metadata. Started again, it takes up its transaction
coordinators from there; as soon as its new registration is accepted, the partitions of the transactions that they were
about to complete have no leader for a moment; it takes them for deleted ("Couldn't find leader endpoint ... likely
deleted already and hence can be skipped") and completes the transactions without their markers. Every read_committed
reader of such a partition then waits for ever. The evidence is in
docs/decisions/0001-fence-a-killed-broker-before-it-starts.md.

So its controller runs first, without the broker, until the old registration has lapsed. With other controllers alive
the cluster does that by itself while the broker is away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from keelman.broker.jvm import Files, Jvm, started
from keelman.broker.properties import CONTROLLER, written
from keelman.broker.storage import META
from keelman.model.errors import Unavailable
from keelman.runtime.logging import get_logger
from keelman.runtime.supervise import first_of

log = get_logger()

SESSION_MS, BEAT_MS = 400, 100  # nobody is there to beat: only the old self's session runs out
IDLE_MS = 100  # it writes something at least that often
FENCED = "Fencing broker"
LOGS = "__cluster_metadata-0/*.log"
ALREADY_SECONDS = 5.0
POLL_SECONDS = 0.05
END_SECONDS = 10.0


def has_run(data: Path) -> bool:
    """Whether the folder's broker ran before, so that its old self may still be registered."""
    return (data / META).is_file() and any(data.glob(LOGS))


def controller_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of the same server without its broker."""
    listeners = properties["listeners"].split(",")
    changed = {
        **properties,
        "process.roles": "controller",
        "listeners": next(one for one in listeners if one.startswith(f"{CONTROLLER}://")),
        "broker.session.timeout.ms": str(SESSION_MS),
        "broker.heartbeat.interval.ms": str(BEAT_MS),
        "metadata.max.idle.interval.ms": str(IDLE_MS),
    }
    for key in ("advertised.listeners", "inter.broker.listener.name"):
        del changed[key]
    return changed


async def fence_old_self(properties: Mapping[str, str], files: Files, command: Callable[[Path], list[str]]) -> None:
    """Runs the controller alone until it has given the old registration up.

    `command` makes the command line for a properties file. Raises Unavailable or Internal when the controller does not
    run. Cancelling ends the controller.
    """
    begun = time.monotonic()
    file = files.home / "controller.properties"
    file.write_text(written(controller_properties(properties)), encoding="latin-1")
    async with started(command(file), files) as jvm:
        await first_of(jvm.ended(), _fenced(jvm, files.data))
        if not await jvm.drain(END_SECONDS):
            raise Unavailable("the controller did not end after it had fenced the broker")
    log.info("old_self_fenced", seconds=round(time.monotonic() - begun, 2))


async def _fenced(jvm: Jvm, data: Path) -> None:
    """Returns when the controller fenced the broker and wrote that down, or had nothing to fence for long enough."""
    active_since: float | None = None
    while FENCED not in (text := jvm.told()):
        if active_since is None and "Activated periodic tasks" in text:
            active_since = time.monotonic()
        if active_since is not None and time.monotonic() - active_since > ALREADY_SECONDS:
            log.info("no_old_self", seconds=ALREADY_SECONDS)
            return
        await asyncio.sleep(POLL_SECONDS)
    # It says so before it writes: what it writes next stands behind it.
    size = _metadata_bytes(data)
    async with asyncio.timeout(END_SECONDS):
        while _metadata_bytes(data) == size:  # noqa: ASYNC110  (another process's file)
            await asyncio.sleep(POLL_SECONDS)


def _metadata_bytes(data: Path) -> int:
    return sum(file.stat().st_size for file in data.glob(LOGS))
