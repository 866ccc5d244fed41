"""Dedicated connectors on a whole system: created, changed, paused, restarted, deleted.

Also over kills of the state service.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from keelman.api.connect.v1.dedicated_connector_pb2 import DEDICATED_CONNECTOR_STATE_FAILED, DedicatedCapacity
from keelman.api.connect.v1.operation_pb2 import OPERATION_ROLLBACK_DONE
from keelman.kafka.cluster_state import CLIENT
from keelman.kafka.topic_brokers import TopicBrokers
from keelman.model.errors import FailedPrecondition
from keelman.rpc.channels import channel
from support.brokers.broker import proxied_broker, started_broker
from support.cli.dedicated_system import System
from support.cli.system import STRING, Keelman
from support.eventually import eventually
from support.proxy import Weather
from support.state.dedicated import FAILED, FILE, Dedicated, file_source

pytestmark = pytest.mark.e2e
PREFIX = "__internal_"
Case = tuple[dict[str, str], str, dict[str, str], str, str]
"""Configuration, brokers, worker properties; the code, and the names in its message."""
BROKEN: dict[str, Case] = {
    "unreachable": ({}, "127.0.0.1:1", {}, "ClusterError.BrokerUnreachable", "127.0.0.1:1"),
    "unknown-class": ({"connector.class": "x.Nothing"}, "", {}, "ConnectorError.ClassNotFound", "x.Nothing"),
    "no-tasks": ({"tasks.max": "0"}, "", {}, "ConnectorError.InvalidConfiguration", "tasks.max"),
    "no-topic": ({"topic": "no spaces here"}, "", {}, "ConnectorError.TaskFailed", "task 0"),
    "not-compacted": (
        {}, "", {"offset.storage.topic": "not-compacted"}, "ClusterError.TopicNotCompacted", "not-compacted"
    ),
}  # fmt: skip


async def copied(output: Path, lines: list[str]) -> None:
    """Waits until a sink has written exactly these lines."""
    expected = "".join(f"{line}\n" for line in lines)
    await eventually(lambda: output.exists() and output.read_text() == expected, what=f"{output} is complete")


def file_sink(output: Path, topic: str) -> dict[str, str]:
    return {"connector.class": f"{FILE}SinkConnector", "file": str(output), "topics": topic, "tasks.max": "1"}


async def test_a_source_and_a_sink_go_on_where_they_were(system: System, tmp_path: Path) -> None:
    """Each is deleted and created again under its connector's name.

    The source continues by its own offset topic, the sink by its group.
    """
    path, output = tmp_path / "in.txt", tmp_path / "out.txt"
    path.write_text("one\ntwo\n")
    own = {"offset.storage.topic": "dedicated-positions", "offset.flush.interval.ms": "500"}
    converters = {"key.converter": STRING, "value.converter": STRING}
    names = {"topic_prefix": PREFIX, "topic_suffix": "u-1"}
    await asyncio.gather(
        system.create("source-1", file_source(path, "lines"), connector="lines", properties=own, **names),
        system.create("sink-1", file_sink(output, "lines"), connector="out", properties=own, topic_prefix=PREFIX),
    )
    await copied(output, ["one", "two"])
    topics = [f"{PREFIX}{what}_lines_u-1" for what in ("configs", "status")]
    assert await system.partitions(*topics, "dedicated-positions") == {
        topics[0]: (1, "compact"), topics[1]: (5, "compact"), "dedicated-positions": (25, "compact"),
    }  # fmt: skip
    processes = system.workers("source-1")
    assert processes
    await system.deleted("source-1", "sink-1")
    assert not any(map(psutil.pid_exists, processes))
    assert len(await system.partitions(*topics)) == 2, "internal topics stay"
    with path.open("a") as file:
        file.write("three\n")
    await asyncio.gather(
        system.create("source-2", file_source(path, "lines"), connector="lines", properties=own | converters),
        system.create("sink-2", file_sink(output, "lines"), connector="out", topic_prefix=PREFIX),
    )
    await copied(output, ["one", "two", "three"])


async def test_updates_are_checked_and_taken_back(system: System, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("one\n")
    await system.create("changed", file_source(path, "first"))
    dedicated = system.dedicated
    before = (await dedicated.get("changed")).status.version
    await system.done(await dedicated.update("changed", config=file_source(path, "second"), version=before))
    actual_dedicated = await dedicated.get("changed")
    assert (actual_dedicated.spec.config["topic"], actual_dedicated.status.version != before) == ("second", True)

    for broken, reason in (
        (file_source(path, "third", **{"tasks.max": "0"}), "CONFIG_REFUSED"),
        (file_source(path, "no spaces here"), "TASK_FAILED"),
    ):
        answer = await dedicated.update("changed", config=broken)
        if reason == "TASK_FAILED":
            await system.begun(answer, 2)
            with path.open("a") as file:
                file.write("one more\n")
        operation = await dedicated.ended(answer)
        assert (operation.state, operation.rollback) == (FAILED, OPERATION_ROLLBACK_DONE), operation
        assert operation.error.reason == reason, operation
        assert (operation.change.former.config["topic"], operation.change.wanted.config) == ("second", broken)
        actual_dedicated = await dedicated.get("changed")
        assert actual_dedicated.spec.config["topic"] == "second"
        assert await dedicated.state("changed") == "RUNNING"

    await system.done(await dedicated.update("changed", capacity=DedicatedCapacity(count=2)))
    assert (await dedicated.get("changed")).status.workers == 2
    refused = await dedicated.ended(await dedicated.update("changed", node_selector={"zone": "nowhere"}))
    assert (refused.error.reason, refused.rollback) == ("NO_NODE", OPERATION_ROLLBACK_DONE), refused
    assert not (await dedicated.get("changed")).spec.node_selector

    await system.done(await dedicated.pause("changed"))
    assert await dedicated.state("changed") == "PAUSED"
    with pytest.raises(FailedPrecondition, match="skip_health_check"):
        await dedicated.update("changed", config=file_source(path, "fourth"))
    await system.done(await dedicated.update("changed", config=file_source(path, "fourth"), skip_health_check=True))
    assert await dedicated.state("changed") == "PAUSED"
    await system.done(await dedicated.resume("changed"))
    await system.done(await dedicated.restart("changed"))
    assert await dedicated.state("changed") == "RUNNING"


async def test_what_does_not_come_up_says_why(system: System, tmp_path: Path) -> None:
    """All connectors at once; the faults of some are corrected, the others are deleted."""
    path = tmp_path / "in.txt"
    path.write_text("one\n")
    async with TopicBrokers.open({"bootstrap.servers": system.servers}) as there:
        await there.create("not-compacted", 1, 1, {"cleanup.policy": "delete"})
    await asyncio.gather(*(says_why(system, name, path) for name in BROKEN))


async def says_why(system: System, name: str, path: Path) -> None:
    config, brokers, properties, code, named = BROKEN[name]
    dedicated = system.dedicated
    expected_file_source = file_source(path, name) | config
    answer = await dedicated.create(name, expected_file_source, brokers or system.servers, properties=properties)
    operation = await dedicated.ended(answer, seconds=300)
    # A task runs before it writes, so that its create may have succeeded.
    assert code.endswith("TaskFailed") or operation.state == FAILED, operation

    async def failed() -> Any:
        status = (await dedicated.get(name)).status
        return status if status.state == DEDICATED_CONNECTOR_STATE_FAILED else None

    # One read: a task that is tried again is RUNNING in between.
    status = await eventually(failed, what=f"{name} has failed")
    assert status.code == code, (status, system.keelman.logs())
    assert named in status.message
    if name in ("no-tasks", "no-topic"):
        await system.done(await dedicated.update(name, config=file_source(path, name)))
    else:
        await system.deleted(name)


@pytest.mark.slow
async def test_brokers_out_of_reach_are_the_cause_until_they_are_back(system: System, tmp_path: Path) -> None:
    path, dedicated = tmp_path / "in.txt", system.dedicated
    path.write_text("one\n")

    async def status() -> Any:
        return (await dedicated.get("away")).status

    async with started_broker(tmp_path / "kafka") as broker:
        await system.done(await dedicated.create("away", file_source(path, "t"), broker.bootstrap))
        await broker.end()

        async def failed() -> Any:
            actual_status = await status()
            return actual_status if actual_status.state == DEDICATED_CONNECTOR_STATE_FAILED else None

        result = await eventually(failed, what="it has failed")
        assert result.code == "ClusterError.BrokerUnreachable", (result, system.keelman.logs())
        assert broker.bootstrap in result.message
        await broker.start()

        async def runs() -> bool:
            return await dedicated.state("away") == "RUNNING"

        await eventually(runs, what="it runs again by itself")
        assert not (await status()).code
        await system.deleted("away")


@pytest.mark.slow
async def test_brokers_that_its_workers_alone_do_not_reach_are_the_cause(system: System, tmp_path: Path) -> None:
    """E.g. a host with another firewall than the state service's: packets to the brokers get no answer."""
    path, dedicated = tmp_path / "in.txt", system.dedicated
    path.write_text("one\n")
    async with proxied_broker(tmp_path / "kafka") as proxy:

        async def failed(begun: float) -> float:
            """Seconds until it has failed since `begun`, with the cause."""

            async def has_failed() -> Any:
                status = (await dedicated.get("cut-off")).status
                return status if status.state == DEDICATED_CONNECTOR_STATE_FAILED else None

            result = await eventually(has_failed, what="it has failed")
            assert result.code == "ClusterError.BrokerUnreachable", (result, system.keelman.logs())
            assert proxy.address in result.message
            return time.monotonic() - begun

        proxy.affects, proxy.weather = (lambda tunnel: tunnel.client_id != CLIENT), Weather(frozen=True)
        begun = time.monotonic()
        await dedicated.create("cut-off", file_source(path, "t"), proxy.address)
        took = [await failed(begun)]
        proxy.weather = Weather()
        await system.done(await dedicated.restart("cut-off"))
        assert await dedicated.state("cut-off") == "RUNNING"
        begun, proxy.weather = time.monotonic(), Weather(frozen=True)
        took.append(await failed(begun))
        print(f"FAILED {took[0]:.1f} s after the create, {took[1]:.1f} s after one that ran was cut off")
        proxy.weather = Weather()

        async def runs() -> bool:
            return await dedicated.state("cut-off") == "RUNNING"

        await eventually(runs, what="it runs again by itself")
        await system.deleted("cut-off")
    assert max(took) < 60, "30 s, on a machine that has nothing else to do"


async def test_a_delete_in_the_middle_of_anything(system: System, tmp_path: Path) -> None:
    path, dedicated = tmp_path / "in.txt", system.dedicated
    path.write_text("one\n")
    config = file_source(path, "t")
    for attempt in range(2):
        await dedicated.create("brief", config, "127.0.0.1:1" if attempt == 0 else system.servers)
        await asyncio.sleep(0)
        deleting = await dedicated.delete("brief")
        assert (await dedicated.delete("brief")).operation.name == deleting.operation.name
        await system.done(deleting)
        assert await dedicated.state("brief") == "GONE"
        await eventually(lambda: not system.workers("brief"), what="no process is left")
    await system.create("brief", config)
    await dedicated.update("brief", config=file_source(path, "u"))
    await system.done(await dedicated.delete("brief"))
    assert not system.workers("brief")


async def killed_at(system: System, answer: Any, step: int) -> None:
    """Kills the state service once a step of an operation has begun."""
    await system.begun(answer, step)
    os.kill(system.keelman.pid_of("state"), signal.SIGKILL)


@pytest.mark.slow
async def test_kills_of_the_state_service_between_steps(own: Keelman, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("one\n")
    await own.ok("up", "--detach", "--free-ports")
    servers = (await own.item("bc", "default"))["status"]["bootstrap_servers"]
    async with channel(own.system["state"]) as link:
        system = System(own, Dedicated(link), servers)
        dedicated = system.dedicated
        config = file_source(path, "t")
        creates = {step: await dedicated.create(f"killed-{step}", config, servers) for step in (1, 4)}
        for step, answer in creates.items():
            await killed_at(system, answer, step)
        for step, answer in creates.items():
            await system.eventually_done(answer)
            assert await dedicated.state(f"killed-{step}") == "RUNNING"
        answer = await dedicated.update("killed-1", config=config | {"topic": "u"})
        await killed_at(system, answer, 2)
        await system.eventually_done(answer)
        assert (await dedicated.get("killed-1")).spec.config["topic"] == "u"
        assert await dedicated.state("killed-1") == "RUNNING"
        answer = await dedicated.delete("killed-4")
        await killed_at(system, answer, 1)
        await system.eventually_done(answer)
        assert await dedicated.state("killed-4") == "GONE"
        assert not system.workers("killed-4")
