"""The most significant faults, the paths spread over them; the whole matrix is `make faults`."""

import asyncio
import os
import signal
from collections.abc import Mapping

import pytest

from chaos.chaos_faults import FAULTS, Fault, in_turn, may_mount, slots
from chaos.chaos_kafka import Topics
from chaos.chaos_paths import PATHS, FileSource
from chaos.chaos_run import scenario
from chaos.chaos_system import System
from keelman.runtime.supervise import Siblings
from support.brokers.kafka_proxy import PRODUCE
from support.eventually import eventually
from support.oracle import judge
from support.worker.processes import WorkerProcess, workers

pytestmark = pytest.mark.e2e
RECORDS = 20_000
SECONDS = 4.0
ALL = tuple(PATHS)


@pytest.mark.parametrize(
    ("faults", "paths"),
    [
        (("slot killed", "worker killed"), ALL),
        (("slot frozen 12 s", "slot to Spark cut"), ("file source", "Kafka sink")),
        (("Spark JVM killed", "slot to broker slow"), ("mirror", "file sink")),
        (("broker killed", "broker restarted"), ("mirror", "Kafka sink")),
    ],
    ids=", ".join,
)
async def test_nothing_is_lost_or_doubled(system: System, faults: tuple[str, ...], paths: tuple[str, ...]) -> None:
    await check(system, {in_turn(*(FAULTS[name] for name in faults)): paths})


async def test_nothing_is_lost_or_doubled_by_what_befalls_one_path_alone(system: System) -> None:
    strikes = {
        FAULTS["EndTxn late"]: ("file source",),
        FAULTS["EndTxn answer lost"]: ("mirror", "Kafka sink"),
        FAULTS["target topic made again"]: ("file source",),
        FAULTS["batches refused as too large"]: ("Java source",),
    }
    if may_mount():  # a full disk needs a file system of its own
        strikes[FAULTS["disk full"]] = ("file sink",)
    await check(system, strikes)


async def check(system: System, faults: Mapping[Fault, tuple[str, ...]]) -> None:
    """Runs all of them side by side, each on its own paths."""
    try:
        async with Siblings() as tasks:
            under_way = [
                tasks.start(scenario(system, paths, fault, seed=1, records=RECORDS, seconds=SECONDS))
                for fault, paths in faults.items()
            ]
            outcomes = [outcome for item in under_way for outcome in await item]
    except (AssertionError, TimeoutError) as error:
        raise AssertionError(f"{error}\n{system.logs()}") from error
    assert [o.path for o in outcomes] == [path for paths in faults.values() for path in paths]
    bad = [f"{o.fault}, {o.path}: {o.report}; {o.notes}" for o in outcomes if not o.clean]
    assert not bad, "\n".join([*bad, system.logs()])


async def test_without_exactly_once_the_same_fault_doubles_records(system: System) -> None:
    group = "twice"
    worker = WorkerProcess(
        system.folder / group,
        system.bootstrap,
        group,
        system.spark.address,
        {"exactly.once.source.support": "disabled"},
    )
    topics = await asyncio.to_thread(Topics, system.bootstrap)
    run = FileSource(system, system.folder, group, RECORDS, seed=1)
    run.file.write_bytes(run.streams[0].text())
    await asyncio.to_thread(run.prepare, topics)
    others = set(slots(system))

    async def first_ones() -> bool:
        return (await asyncio.to_thread(topics.ends, run.output[0]))[1] > 0

    def all_there() -> bool:
        seen = run.seen(topics)
        return judge(run.sent, seen)["lost"] == 0

    async with workers(worker):
        # Some records are in, others are in transit, and their offsets are not written.
        held = system.kafka.catch(PRODUCE, client_id=f"connector-producer-{group}", nth=2)
        await worker.ask("POST", "/connectors", {"name": group, "config": {**run.config(), **SMALL_BATCHES}})
        await held.seen()
        await eventually(first_ones, what="the first records are in")
        for pid in set(slots(system)) - others:
            os.kill(pid, signal.SIGKILL)
        held.release()
        await eventually(lambda: asyncio.to_thread(all_there), every=0.5, what="all records are there")
        report = judge(run.sent, await asyncio.to_thread(run.seen, topics))
        assert report["duplicated"] > 0, str(report)
        assert report["torn"] == 0
        await worker.ask("DELETE", f"/connectors/{group}")
        assert await worker.end() == 0


SMALL_BATCHES = {
    "connector.client.config.override.policy": "All",
    "producer.override.batch.size": "20000",
    "producer.override.max.in.flight.requests.per.connection": "1",
}
