"""Procedures of several API calls, on real workers.

They continue at a former connector's offsets, revert an update, and restart failed tasks.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keelman.kafka.topic_brokers import TopicBrokers
from support.cli.system import FILE
from support.connectors.pair_wheel import CLASS, pair_wheel, starts
from support.eventually import eventually
from support.gateway.managed_connect.world import PROPERTIES, World, connector, file_source, plugins
from support.kafka.topics import ends_of, messages

pytestmark = [pytest.mark.component, pytest.mark.slow]
PREFIX = "__amazon_msk_connect_"
PARTITIONS = {"configs": 1, "offsets": 25, "status": 5}


def own_topics(arn: str) -> dict[str, str]:
    """The names of a connector's internal topics, by their content."""
    _, name, suffix = arn.split("/")
    return {what: f"{PREFIX}{what}_{name}_{suffix}" for what in PARTITIONS}


async def partitions(world: World, *topics: str) -> dict[str, tuple[int, str]]:
    """Partitions and cleanup.policy of the existing ones of these topics."""
    async with TopicBrokers.open({"bootstrap.servers": world.bootstrap}) as brokers:
        actual_topics = (await brokers.describe(topics)).topics
        configs = await brokers.configs(list(actual_topics))
    return {
        name: (len(value.partitions), configs[name]["cleanup.policy"].value or "")
        for name, value in actual_topics.items()
    }


def with_offsets_in(world: World, name: str, topic: str) -> dict[str, Any]:
    """The member workerConfiguration that names an offset topic."""
    content = b64encode(PROPERTIES + f"offset.storage.topic={topic}\n".encode()).decode()
    worker_configuration = world.sdk.create_worker_configuration(name=name, propertiesFileContent=content)
    return {"workerConfigurationArn": worker_configuration["workerConfigurationArn"], "revision": 1}


async def created(world: World, name: str, config: dict[str, str], **more: Any) -> str:
    """The ARN of a new connector that runs."""
    arn: str = world.sdk.create_connector(**connector(name, world.bootstrap, config, **more))["connectorArn"]
    await world.state(arn, "RUNNING", seconds=300)
    return arn


async def deleted(world: World, arn: str) -> None:
    world.sdk.delete_connector(connectorArn=arn)
    await world.gone(arn)


async def wrote(output: Path, text: str) -> None:
    """Waits until a sink has written exactly this."""
    await eventually(lambda: output.exists() and output.read_text() == text, what=f"{output} has {text!r}")


async def test_a_connector_goes_on_where_one_of_its_name_was(world: World, tmp_path: Path) -> None:
    """A source continues by the offset topic that it created itself; a sink by its group, with any offset topic."""
    path, output = tmp_path / "in.txt", tmp_path / "out.txt"
    path.write_text("one\ntwo\n")
    source = file_source(path, "continued")
    sink = {"connector.class": f"{FILE}SinkConnector", "file": str(output), "topics": "continued", "tasks.max": "1"}
    unused = "offsets-of-a-sink"
    of_sink = with_offsets_in(world, "of-a-sink", unused)
    first = await asyncio.gather(
        created(world, "continued", source), created(world, "continued-out", sink, workerConfiguration=of_sink)
    )
    await wrote(output, "one\ntwo\n")
    topics = own_topics(first[0])
    expected = {topics[what]: (count, "compact") for what, count in PARTITIONS.items()}
    assert await partitions(world, *topics.values()) == expected
    assert await partitions(world, unused) == {unused: (25, "compact")}
    for arn in first:
        await deleted(world, arn)
    assert await partitions(world, *topics.values()) == expected, "internal topics stay"

    with path.open("a") as file:
        file.write("three\n")
    of_source = with_offsets_in(world, "of-the-former", topics["offsets"])
    second = await asyncio.gather(
        created(world, "continued", source, workerConfiguration=of_source),
        created(world, "continued-out", sink, workerConfiguration=of_sink),
    )
    await wrote(output, "one\ntwo\nthree\n")
    actual_partitions = await partitions(world, *own_topics(second[0]).values())
    assert sorted(actual_partitions) == sorted(own_topics(second[0])[what] for what in ("configs", "status"))
    written = await asyncio.to_thread(ends_of, world.bootstrap, unused)
    assert not any(written.values()), "a sink's offsets are its group's"
    for arn in second:
        await deleted(world, arn)


async def test_connectors_share_an_offset_topic(world: World, tmp_path: Path) -> None:
    shared = with_offsets_in(world, "shared", "shared-offsets")
    files = {name: tmp_path / name for name in ("sharing-a", "sharing-b")}
    for file in files.values():
        file.write_text("one\n")
    first = await asyncio.gather(
        *(created(world, n, file_source(f, n), workerConfiguration=shared) for n, f in files.items())
    )

    async def copied(*lines: str) -> None:
        for topic in files:
            await eventually(lambda topic=topic: _lines(world, topic) == [*lines], what=f"{topic}: {lines}")

    await copied("one")
    for arn in first:
        await deleted(world, arn)
    for file in files.values():
        with file.open("a") as more:
            more.write("two\n")
    second = await asyncio.gather(
        *(created(world, n, file_source(f, n), workerConfiguration=shared) for n, f in files.items())
    )
    await copied("one", "two")
    for arn in second:
        await deleted(world, arn)


def _lines(world: World, topic: str) -> list[str]:
    return [(message.value() or b"").decode() for message in messages(world.bootstrap, topic)]


async def test_an_update_that_fails_is_taken_back_and_says_so(world: World, tmp_path: Path) -> None:
    sdk, path = world.sdk, tmp_path / "in.txt"
    path.write_text("one\n")
    config = file_source(path, "taken-back")
    arn = await created(world, "taken-back", config)
    version = sdk.describe_connector(connectorArn=arn)["currentVersion"]

    async def fails(steps: list[str], code: str, named: str, **change: Any) -> None:
        begun = sdk.update_connector(connectorArn=arn, currentVersion=version, **change)["connectorOperationArn"]

        def over() -> dict[str, Any] | None:
            before = sdk.describe_connector(connectorArn=arn)["connectorState"]
            described: dict[str, Any] = sdk.describe_connector_operation(connectorOperationArn=begun)
            if described["connectorOperationState"] == "ROLLBACK_COMPLETE":
                return described
            assert described["connectorOperationState"] in ("PENDING", "UPDATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"), (
                described
            )
            assert before == "UPDATING"
            with path.open("a") as file:  # a task that has nothing to write does not notice it
                file.write("more\n")
            return None

        operation = await eventually(over, every=0.2, what="it is taken back")
        assert [operation_step["stepState"] for operation_step in operation["operationSteps"]] == steps, operation
        assert operation["errorInfo"]["code"] == code, operation
        assert named in operation["errorInfo"]["message"]
        assert operation["endTime"] >= operation["creationTime"]
        after = await world.state(arn, "RUNNING", seconds=300)
        assert (after["connectorConfiguration"], after["currentVersion"]) == (config, version)
        assert after["capacity"] == connector("x", "y", {})["capacity"]

    undone, failed = "CANCELLED", "FAILED"
    await fails(
        [undone, failed, undone, undone], "ConnectorError.InvalidConfiguration", "tasks.max",
        connectorConfiguration={**config, "tasks.max": "0"},
    )  # fmt: skip
    await fails(
        [undone, undone, failed, undone], "ConnectorError.TaskFailed", "task 0",
        connectorConfiguration={**config, "topic": "no spaces here"},
    )  # fmt: skip
    await fails(
        [undone, failed, undone, undone], "ClusterError.TopicNotCompacted", "not-compacted-either",
        workerConfiguration=await _of_a_topic_that_is_not_compacted(world),
    )  # fmt: skip
    stored = {**config, "topic": "no spaces either"}
    begun = sdk.update_connector(
        connectorArn=arn, currentVersion=version, connectorConfiguration=stored, skipHealthValidation=True
    )
    await world.operation(begun["connectorOperationArn"], "UPDATE_COMPLETE")
    with path.open("a") as file:
        file.write("more\n")
    state = await world.state(arn, "FAILED")
    assert (state["connectorConfiguration"], state["stateDescription"]["code"]) == (stored, "ConnectorError.TaskFailed")
    await deleted(world, arn)


async def _of_a_topic_that_is_not_compacted(world: World) -> dict[str, Any]:
    topic = "not-compacted-either"
    async with TopicBrokers.open({"bootstrap.servers": world.bootstrap}) as brokers:
        await brokers.create(topic, 1, 1, {"cleanup.policy": "delete"})
    return with_offsets_in(world, "of-a-topic-that-is-not-compacted", topic)


async def test_a_restart_of_failed_tasks_leaves_the_others_running(world: World, tmp_path: Path) -> None:
    sdk = world.sdk
    folder = world.keelman.home / "plugin-store" / "connectors"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = pair_wheel(folder)
    location = {"s3Location": {"bucketArn": "arn:aws:s3:::connectors", "fileKey": wheel.name}}
    plugin = sdk.create_custom_plugin(name="pair", contentType="ZIP", location=location)["customPluginArn"]
    await eventually(
        lambda: sdk.describe_custom_plugin(customPluginArn=plugin)["customPluginState"] == "ACTIVE", what="it is there"
    )
    config = {"connector.class": CLASS, "folder": str(tmp_path), "topic": "pair", "tasks.max": "2"}
    arn = await created(world, "pair", config, plugins=plugins(plugin))

    def restarted(**how: Any) -> Callable[[], Any]:
        return world.operation(
            sdk.restart_connector(connectorArn=arn, **how)["connectorOperationArn"], "RESTART_COMPLETE"
        )

    assert [starts(tmp_path, number) for number in (0, 1)] == [1, 1]
    (tmp_path / "fails-1").touch()
    state = await world.state(arn, "FAILED")
    assert state["stateDescription"]["code"] == "ConnectorError.TaskFailed"
    assert "task 1" in state["stateDescription"]["message"]
    (tmp_path / "fails-1").unlink()
    await restarted(onlyFailedTasks=True)
    await world.state(arn, "RUNNING", seconds=300)
    assert [starts(tmp_path, number) for number in (0, 1)] == [1, 2], "the running operation continued"
    await restarted(onlyFailedTasks=True)
    assert [starts(tmp_path, number) for number in (0, 1)] == [1, 2], "nothing had failed"
    await restarted()
    await world.state(arn, "RUNNING", seconds=300)
    assert [starts(tmp_path, number) for number in (0, 1)] == [2, 3]
    await deleted(world, arn)
    sdk.delete_custom_plugin(customPluginArn=plugin)
