"""`keelman apply` while others change the resources that it has read: real gateway, real state service."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.manifests.carrying_out import TRIES, carry_out, plan_and_write
from keelman.cli.manifests.reading import read_manifests
from keelman.cli.selectors import selector
from keelman.model.errors import Conflict, NotFound
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.gateway.system import System, running_system

pytestmark = pytest.mark.component
Between = Callable[[Gateway], Awaitable[Any]]
CLUSTER = """
kind: broker-cluster
name: ext
labels: {app: shop}
spec: {external: {bootstrap_servers: '127.0.0.1:1'}}
"""
TOPIC = """
---
kind: topic
name: orders
labels: {app: shop}
goal: ABSENT
spec: {broker_cluster: ext, partitions: 3}
"""


class Late(Gateway):
    """Runs another client's action right before each write, or before the first so many."""

    def __init__(self, to: Any, between: Between, times: int) -> None:
        super().__init__(to)
        self._others = Gateway(to)
        self._between = between
        self.left = times

    async def write_batch(self, writes: Sequence[Any], *, validate_only: bool) -> Any:
        if not validate_only and self.left:
            self.left -= 1
            await self._between(self._others)
        return await super().write_batch(writes, validate_only=validate_only)


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with running_system(tmp_path_factory.mktemp("system")) as system:
        yield system


@pytest_asyncio.fixture
async def to(system: System, tmp_path: Path) -> AsyncIterator[Any]:
    """A channel to a gateway that knows the resources of CLUSTER and TOPIC."""
    async with channel(system.gateway.address) as connection:
        gateway = Gateway(connection)
        await applied(gateway, tmp_path, CLUSTER + TOPIC)
        yield connection
        for kind, name in ((kinds.TOPICS, "orders"), (kinds.TOPICS, "more"), (kinds.BROKER_CLUSTERS, "ext")):
            with contextlib.suppress(NotFound):
                await gateway.act("delete", kind, name)
        await eventually(lambda: is_empty(gateway))


async def is_empty(gateway: Gateway) -> bool:
    return not await gateway.list(kinds.BROKER_CLUSTERS)


async def applied(gateway: Gateway, folder: Path, text: str, *, prune: str = "") -> list[str]:
    """The lines of `keelman apply` for each resource of a file of this text."""
    (file := folder / "file.yaml").write_text(text)
    messages: list[str] = []
    plan = await plan_and_write(gateway, read_manifests([str(file)]), selector([prune]).takes if prune else None)
    await carry_out(gateway, plan, messages.append, seconds=None)
    return messages


def with_extra(spec: Any) -> list[str]:
    """Sets a field that no manifest names, as another program does."""
    spec.extra.update({"theirs": spec.extra["theirs"] + 1 if "theirs" in spec.extra else 1})
    return ["extra"]


async def test_what_others_own_is_not_taken_back_to_what_was_read(to: Any, tmp_path: Path) -> None:
    late = Late(to, lambda others: others.update(kinds.TOPICS, "orders", with_extra), 2)
    assert await applied(late, tmp_path, CLUSTER + TOPIC.replace("3", "6")) == ["topic/orders changed: partitions"]
    actual_late = await late.get(kinds.TOPICS, "orders")
    assert (actual_late.spec.partitions, actual_late.spec.extra["theirs"]) == (6, 2)


async def test_one_that_is_changed_each_time_is_left_as_it_is(to: Any, tmp_path: Path) -> None:
    late = Late(to, lambda others: others.update(kinds.TOPICS, "orders", with_extra), TRIES)
    with pytest.raises(Conflict, match=r"^topic/orders: changed by others since they were read: apply again$"):
        await applied(late, tmp_path, CLUSTER + TOPIC.replace("3", "6"))
    assert (await late.get(kinds.TOPICS, "orders")).spec.partitions == 3


async def test_one_that_others_delete_or_make_meanwhile_is_made_or_changed(to: Any, tmp_path: Path) -> None:
    deleting = Late(to, lambda others: others.act("delete", kinds.TOPICS, "orders"), 1)
    assert await applied(deleting, tmp_path, CLUSTER + TOPIC.replace("3", "6")) == [
        "topic/orders created: being applied as ABSENT"
    ]
    more = TOPIC.replace("orders", "more")

    async def make(others: Gateway) -> None:
        await applied(others, tmp_path, CLUSTER + more)

    making = Late(to, make, 1)
    assert await applied(making, tmp_path, CLUSTER + more.replace("3", "9")) == ["topic/more changed: partitions"]


async def test_one_that_others_take_out_of_the_labels_is_not_pruned(to: Any, tmp_path: Path) -> None:
    def without_labels(spec: Any) -> list[str]:
        spec.labels.clear()
        return ["labels"]

    change = CLUSTER.replace(":1'", ":2'")
    late = Late(to, lambda others: others.update(kinds.TOPICS, "orders", without_labels), 1)
    printed = await applied(late, tmp_path, change, prune="app=shop")
    assert printed == [
        "broker-cluster/ext changed: external.bootstrap_servers",
        "topic/orders left alone: another change took the labels of -l from it",
    ]
    assert (await late.get(kinds.TOPICS, "orders")).spec.partitions == 3
    await late.update(kinds.TOPICS, "orders", lambda spec: spec.labels.update(app="shop") or ["labels"])
    assert await applied(late, tmp_path, change, prune="app=shop") == ["topic/orders removed"]
    with pytest.raises(NotFound):
        await late.get(kinds.TOPICS, "orders")
