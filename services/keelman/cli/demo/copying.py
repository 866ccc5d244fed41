"""Does the copy itself: creates worker cluster, topic and connectors, for the job to watch until OUTPUT is whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, CONNECTOR_STATE_PAUSED, CONNECTOR_STATE_STOPPED
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.node.v1.workload_pb2 import WorkloadState
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.demo.attempt import Decision, Pair
from keelman.cli.demo.phases import Phases
from keelman.cli.machine.up import BROKER_CLUSTER
from keelman.cli.waiting import until
from keelman.engine.sink.exactly_once.journal import journal_path
from keelman.kafka.data_topics import create_topic, delete_topics
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, KeelmanError, NotFound, Unavailable
from keelman.runtime.supervise import Siblings, deadline

WORKER_CLUSTER = "demo"
CLUSTER_SECONDS = 900.0  # no less than `keelman up` gives the brokers: a busy machine needs minutes
CALM_SECONDS = 60.0  # how long a FAILED connector or a lost gateway is tolerated
SETTLE_SECONDS = 300.0  # how long a group that begins or moves may refuse a request
POLL_SECONDS = 0.2
STRING = "org.apache.kafka.connect.storage.StringConverter"


@dataclass(frozen=True, slots=True)
class Copy:
    """The parts of a copy: names of the topic and of both connectors; addresses of brokers and workers."""

    topic: str
    source: str
    sink: str
    input: Path
    output: Path
    bootstrap_servers: str
    rest_url: str


def connectors_of(stem: str, input_path: Path, output: Path) -> dict[str, dict[str, str]]:
    """Returns names and configurations of an attempt's two connectors, as a user would POST them to Connect."""
    both = {"tasks.max": "1", "key.converter": STRING, "value.converter": STRING}
    kafka = "org.apache.kafka.connect.file.FileStream"
    return {
        f"{stem}-source": {
            **both,
            "connector.class": f"{kafka}SourceConnector",
            "file": str(input_path),
            "topic": stem,
        },
        f"{stem}-sink": {**both, "connector.class": f"{kafka}SinkConnector", "file": str(output), "topics": stem},
    }


async def begin_copy(
    gateway: Gateway,
    brokers_ready: Callable[[], Awaitable[None]],
    pair: Pair,
    decision: Decision,
    *,
    phases: Phases,
    show: Callable[[str], None],
) -> Copy:
    """Creates all missing parts of the copy; returns the copy. It can be called again."""
    async with Siblings() as siblings:
        watcher = siblings.start(_time_starts(gateway, phases))
        await _worker_cluster(gateway)
        show("starting the broker, the Spark service and a worker")
        await brokers_ready()
        cluster = await _wait_running(gateway)
        watcher.cancel()
    phases.end("spark")
    phases.end("worker")
    with phases.phase("connectors"):
        servers = (await gateway.get(kinds.BROKER_CLUSTERS, BROKER_CLUSTER)).status.bootstrap_servers
        client = {"bootstrap.servers": servers}
        stem = pair.stem(decision.attempt)
        former = [c for c in await _connectors(gateway) if c.startswith(pair.prefix) and not c.startswith(f"{stem}-")]
        if decision.fresh:
            await _begin_fresh(gateway, client, pair, decision, [*former, f"{stem}-source", f"{stem}-sink"])
        else:
            pair.write(decision.attempt)
        await _retry(partial(create_topic, client, stem, partitions=1))
        for name, config in connectors_of(stem, pair.input, pair.output).items():
            show(f"connector {name}")
            await _retry(partial(_connector, gateway, name, config))
    url = cluster.status.rest_urls[0] if cluster.status.rest_urls else ""
    return Copy(stem, f"{stem}-source", f"{stem}-sink", pair.input, pair.output, servers, url)


async def _time_starts(gateway: Gateway, phases: Phases) -> None:
    """Measures from when the Spark service and the worker begin to when they run."""

    async def all_run() -> bool:
        running = set()
        for workload in await gateway.list(kinds.WORKLOADS):
            noun = workload.name.partition("/")[0]
            if noun in ("spark", "worker") and workload.status.state >= WorkloadState.WORKLOAD_STATE_PREPARING:
                phases.begin(noun)
                if workload.status.state == WorkloadState.WORKLOAD_STATE_RUNNING:
                    phases.end(noun)
                    running.add(noun)
        return running == {"spark", "worker"}

    try:
        await until(all_run, every=POLL_SECONDS)
    except KeelmanError:
        return  # the times are only shown: the copy itself waits elsewhere, and fails there


async def _worker_cluster(gateway: Gateway) -> None:
    async def broker_cluster_exists() -> bool:
        try:
            await gateway.get(kinds.BROKER_CLUSTERS, BROKER_CLUSTER)
        except NotFound:
            return False
        return True

    no_brokers = Unavailable(f"broker cluster {BROKER_CLUSTER} was not created in {CLUSTER_SECONDS:.0f} s")
    async with deadline(CLUSTER_SECONDS, no_brokers):
        await until(broker_cluster_exists, every=POLL_SECONDS)
    try:
        cluster = await gateway.get(kinds.WORKER_CLUSTERS, WORKER_CLUSTER)
    except NotFound:
        cluster = await gateway.create(
            kinds.WORKER_CLUSTERS, WORKER_CLUSTER, WorkerClusterSpec(broker_cluster=BROKER_CLUSTER, count=1)
        )
    if cluster.spec.broker_cluster != BROKER_CLUSTER:
        raise FailedPrecondition(f"worker cluster {WORKER_CLUSTER} is on broker cluster {cluster.spec.broker_cluster}")
    for kind, name in ((kinds.BROKER_CLUSTERS, BROKER_CLUSTER), (kinds.WORKER_CLUSTERS, WORKER_CLUSTER)):
        await gateway.act("start", kind, name)


async def _wait_running(gateway: Gateway) -> Any:
    """Waits until all workers of the cluster run; returns the cluster."""
    latest: Any = None

    async def runs() -> bool:
        nonlocal latest
        latest = await gateway.get(kinds.WORKER_CLUSTERS, WORKER_CLUSTER)
        return bool(latest.status.state == ClusterState.CLUSTER_STATE_RUNNING and latest.status.ready_workers > 0)

    late = Unavailable(f"worker cluster {WORKER_CLUSTER} does not run after {CLUSTER_SECONDS:.0f} s")
    try:
        async with deadline(CLUSTER_SECONDS, late):
            await until(runs, every=POLL_SECONDS)
    except Unavailable as error:
        if error is late and latest is not None and latest.status.message:
            raise Unavailable(f"{late.message}: {latest.status.message}") from None
        raise
    return latest


async def _begin_fresh(
    gateway: Gateway, client: dict[str, str], pair: Pair, decision: Decision, connectors: Sequence[str]
) -> None:
    """Removes former attempts. OUTPUT is removed only when no copy run can write it any more; the new attempt is
    recorded last, so that a run that follows a kill in between removes them again."""
    present = set(await _connectors(gateway))
    for name in connectors:
        if name in present:
            await _retry(partial(_forget, gateway, name))
    await until(lambda: _none_copies(gateway, pair.prefix), every=POLL_SECONDS)
    stems = {c.rpartition("-")[0] for c in connectors}
    await _retry(partial(delete_topics, client, sorted(stems)))
    journal_path(pair.output).unlink(missing_ok=True)
    pair.output.unlink(missing_ok=True)
    pair.write(decision.attempt)


async def _none_copies(gateway: Gateway, prefix: str) -> bool:
    runs = await gateway.list(kinds.COPY_RUNS, cluster=WORKER_CLUSTER)
    return not any(r.connector.startswith(prefix) for r in runs)


async def _forget(gateway: Gateway, name: str) -> None:
    try:
        await gateway.act("delete", kinds.CONNECTORS, name, cluster=WORKER_CLUSTER)
    except NotFound:
        return


async def _connector(gateway: Gateway, name: str, config: dict[str, str]) -> None:
    try:
        await gateway.create_connector(WORKER_CLUSTER, name, config)
    except AlreadyExists:
        connector = await gateway.get(kinds.CONNECTORS, name, cluster=WORKER_CLUSTER)
        if connector.state in (CONNECTOR_STATE_PAUSED, CONNECTOR_STATE_STOPPED):
            await gateway.act("resume", kinds.CONNECTORS, name, cluster=WORKER_CLUSTER)
        elif CONNECTOR_STATE_FAILED in (connector.state, *(t.state for t in connector.tasks)):
            await gateway.act("restart", kinds.CONNECTORS, name, cluster=WORKER_CLUSTER)


async def _connectors(gateway: Gateway) -> list[str]:
    connectors = await _retry(lambda: gateway.list(kinds.CONNECTORS, cluster=WORKER_CLUSTER))
    return [c.name for c in connectors]


async def _retry(call: Callable[[], Awaitable[Any]]) -> Any:
    """Calls until there is an answer: a group that has just begun, or moves, refuses for a moment, and a killed process
    may be reported as running until it is checked."""
    end = asyncio.get_running_loop().time() + SETTLE_SECONDS
    while True:
        try:
            return await call()
        except (Unavailable, Conflict):
            if asyncio.get_running_loop().time() > end:
                raise
        await asyncio.sleep(POLL_SECONDS)
