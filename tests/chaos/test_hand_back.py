"""After kills in the middle of transactions Apache Kafka Connect takes over, without exactly-once, and continues."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from chaos.chaos_faults import slots
from chaos.chaos_feed import LAST_PART, Feed, Watch
from chaos.chaos_kafka import Topics
from chaos.chaos_paths import FileSink, FileSource, Mirror, Run
from chaos.chaos_system import GROUP, System
from keelman.runtime.supervise import Siblings
from support.brokers.kafka_proxy import END_TXN, Fate
from support.eventually import eventually
from support.oracle import judge
from support.servers.connect_worker import ConnectProcess

# Ends the workers of the system that all of this folder share, so it is the last file of it.
pytestmark = pytest.mark.e2e
RECORDS = 20_000
SECONDS = 4.0


async def killed_in_a_transaction(system: System, run: Run) -> None:
    """The slots are killed while the end of the path's transaction is in transit, which then never arrives."""
    caught = system.kafka.catch(END_TXN, Fate.DROP, transactional_id=run.transactional_id)
    await caught.seen(90)
    for pid in slots(system):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


async def test_a_java_worker_goes_on_where_the_killed_and_recovered_ones_stopped(
    system: System, tmp_path: Path
) -> None:
    topics = await asyncio.to_thread(Topics, system.bootstrap)
    runs: list[Run] = [
        kind(system, tmp_path, name, RECORDS, seed=1)
        for kind, name in ((FileSource, "in"), (Mirror, "over"), (FileSink, "out"))
    ]
    for run in runs:
        await asyncio.to_thread(run.prepare, topics)
        result = await system.ask("POST", "/connectors", {"name": run.name, "config": run.config()})
        assert result.status_code == 201, result.text
    feed, watch = Feed(runs, system.bootstrap, SECONDS), Watch(runs, topics)
    async with Siblings() as tasks:
        tasks.start(asyncio.to_thread(watch.work))
        feeding = tasks.start(feed.run())
        try:
            for run in (runs[0], runs[1], runs[0]):
                await killed_in_a_transaction(system, run)
            part = int(RECORDS * (1 - LAST_PART)) - 10
            await eventually(lambda: all(watch.visible[r.name] >= part for r in runs), what="keelman recovered")
            await system.retire()
            java = ConnectProcess(tmp_path / "java", system.bootstrap, GROUP)
            await java.start()
            try:
                feed.finish()
                await feeding
                await eventually(
                    lambda: all(watch.visible[r.name] >= r.records for r in runs),
                    what=f"all arrived; {watch.visible}",
                )
            finally:
                await java.end()
        finally:
            watch.stop()
    written = await asyncio.to_thread(topics.read, runs[0].output[0], aborted=True)
    assert len(written) > RECORDS, "no kill left an aborted record, so this test showed nothing"
    for run in runs:
        report = judge(run.sent, await asyncio.to_thread(run.seen, topics))
        assert report.clean, f"{run.kind}: {report}\n{java.output[-3000:]}"
