"""Fences the earlier registration of a broker that is its cluster's only controller before it starts again.

Kafka 4.3 loses transaction markers otherwise. A broker that ended, by a kill or by the shutdown that properties.py
configures, is still registered as alive in its own metadata. On restart it loads its transaction coordinators from
there. As soon as its new registration is accepted, the partitions of the transactions that the coordinators were about
to complete have no leader for a moment. The broker takes them for deleted ("Couldn't find leader endpoint ... likely
deleted already and hence can be skipped") and completes the transactions without their markers. Every read_committed
reader of such a partition then waits for ever. The evidence is in
docs/decisions/0001-fence-a-killed-broker-before-it-starts.md.

So the controller runs first, without the broker, until the old registration has lapsed. If other controllers are alive,
the cluster does that by itself while the broker is away. Brokers without their own controller also see this controller
while it runs alone, and keep their sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from keelman.broker.jvm import BrokerFiles, started
from keelman.broker.properties import CONTROLLER, SESSION_MS_ALONE, written
from keelman.broker.storage import META
from keelman.runtime.home import write_file
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of

log = get_logger()

SESSION_MS, BEAT_MS = 400, 100  # no broker sends heartbeats: only the old registration's session expires
SESSION_MS_AMONG, BEAT_MS_AMONG = 3_000, 1_000  # further brokers send a heartbeat each second
IDLE_MS = 100  # the interval at which the controller writes an empty record
LOGS = "__cluster_metadata-0/*.log"
# A BrokerRegistrationChangeRecord (frame 1, key 17): version, broker, epoch, tagged fields with `fenced` as the first.
# Source: BrokerRegistrationChangeRecord.json and NoOpRecord.json in metadata/src/main/resources/common/metadata, Kafka.
FENCED = rb"\x01\x11.%s.{8}[\x01-\x7f]\x00\x01\x01"
IDLE = b"\x01\x08\x01\x14\x00\x00\x00"  # no key, four bytes: frame 1, key 20, version 0, no fields; no headers
MAX_IDLE = 50  # 5 s of a controller that is awake: more than a session
POLL_SECONDS = 0.05
END_SECONDS = 10.0


def has_run(data: Path) -> bool:
    """Tells whether the folder's broker ran before, so that its earlier registration may still exist."""
    return (data / META).is_file() and any(data.glob(LOGS))


def controller_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties of the same server without its broker."""
    listeners = properties["listeners"].split(",")
    alone = properties["broker.session.timeout.ms"] == str(SESSION_MS_ALONE)
    changed = {
        **properties,
        "process.roles": "controller",
        "listeners": next(listener for listener in listeners if listener.startswith(f"{CONTROLLER}://")),
        "broker.session.timeout.ms": str(SESSION_MS if alone else SESSION_MS_AMONG),
        "broker.heartbeat.interval.ms": str(BEAT_MS if alone else BEAT_MS_AMONG),
        "metadata.max.idle.interval.ms": str(IDLE_MS),
    }
    for key in ("advertised.listeners", "inter.broker.listener.name"):
        del changed[key]
    return changed


async def fence_old_self(
    properties: Mapping[str, str], files: BrokerFiles, command: Callable[[Path], list[str]]
) -> None:
    """Runs the controller alone until it has fenced the old registration.

    `command` builds the command line for a properties file. Raises Internal if the controller does not run.
    Cancellation ends the controller.
    """
    begun, ends = time.monotonic(), _ends(files.data)
    file = files.root / "controller.properties"
    write_file(file, written(controller_properties(properties)).encode("latin-1"))
    async with started(command(file), files) as jvm:
        await first_of(jvm.ended(), _await_fenced(files.data, ends, int(properties["node.id"])))
        await jvm.drain(END_SECONDS)  # or is killed: its records are on disk already
    log.info("old_self_fenced", seconds=round(time.monotonic() - begun, 2))


def is_over(written: bytes, node_id: int) -> bool | None:
    """Tells whether the old registration is fenced, from the controller's writes to the metadata log since its start.

    False if there was nothing to fence for long enough, None if neither is known yet. Only written records count: the
    controller announces the fencing in its own log before it writes the record, and never writes it if it is stopped in
    between. The broker would then be refused as a duplicate for the whole session time of a lone broker.
    """
    if re.search(FENCED % re.escape(node_id.to_bytes(4, "big")), written, re.DOTALL):
        return True
    return False if written.count(IDLE) >= MAX_IDLE else None


async def _await_fenced(data: Path, ends: Mapping[Path, int], node_id: int) -> None:
    while (over := is_over(_since(data, ends), node_id)) is None:  # noqa: ASYNC110  (another process's file)
        await asyncio.sleep(POLL_SECONDS)
    if not over:
        log.info("no_old_self", idle_records=MAX_IDLE)


def _ends(data: Path) -> dict[Path, int]:
    return {file: file.stat().st_size for file in data.glob(LOGS)}


def _since(data: Path, ends: Mapping[Path, int]) -> bytes:
    """Returns the bytes that the metadata log got beyond these ends. A killed broker's log may end in half a batch,
    which is replaced: it is no longer than the first batches that a controller writes, which do not matter here."""
    texts = []
    for file in sorted(data.glob(LOGS)):
        with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
            stream.seek(ends.get(file, 0))
            texts.append(stream.read())
    return b"".join(texts)
