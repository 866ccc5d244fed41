"""Spark services on a standalone cluster of two workers: Spark's own programs, on loopback."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.spark.cluster import Cluster
from support.spark.links import Spark, worker

pytestmark = [pytest.mark.component, pytest.mark.slow, pytest.mark.timeout(600)]
RUNNING, PENDING = states.COPY_RUN_STATE_RUNNING, states.COPY_RUN_STATE_PENDING
CORES = 4


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A master and two workers of four cores."""
    new_cluster = Cluster(tmp_path, free_ports(1)[0])
    try:
        await new_cluster.start(workers=2, cores=CORES)
        yield new_cluster
    finally:
        new_cluster.stop()


@contextlib.asynccontextmanager
async def service(cluster: Cluster, name: str, **flags: object) -> AsyncIterator[Spark]:
    """A Spark service on the cluster, which serves."""
    folder = cluster.folder / name
    folder.mkdir()
    started = Spark(folder, master=cluster.master, **flags)
    try:
        await started.serving()
        yield started
    finally:
        started.kill()
        await started.nothing_left()


async def test_two_services_on_one_master_both_get_cores(cluster: Cluster, tmp_path: Path) -> None:
    async with service(cluster, "a") as a, worker(a, "a:8083") as on_a:
        uids = [await on_a.running(tmp_path) for _ in range(4)]
        async with service(cluster, "b") as b, worker(b, "b:8083") as on_b:
            uids = [*uids, *[await on_b.running(tmp_path) for _ in range(4)]]
            assert len(cluster.executors()) >= 2
            sizes = {uid: (tmp_path / uid).stat().st_size for uid in uids}
            await eventually(lambda: all((tmp_path / uid).stat().st_size > sizes[uid] for uid in uids))
