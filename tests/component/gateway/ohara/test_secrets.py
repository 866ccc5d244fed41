"""Settings that Ohara does not know and that are named like secrets: kept, and returned to their sender."""

from __future__ import annotations

from typing import Any

import pytest

from support.gateway.ohara.clients import JsClient, brokers, no_brokers

pytestmark = pytest.mark.component
HIDDEN_IN_LISTS = ("brokers", "workers", "topics")
KINDS = [*HIDDEN_IN_LISTS, "zookeepers", "objects", "volumes", "pipelines"]


def minimal(kind: str, own: dict[str, Any]) -> dict[str, Any]:
    """The least fields of a kind's creation, beside its name and group. `own`: the key of its brokers."""
    fields = {} if kind in ("topics", "objects", "pipelines") else {"nodeNames": ["node00"]}
    fields |= {"brokerClusterKey": own} if kind in ("topics", "workers") else {}
    fields |= {"zookeeperClusterKey": own} if kind == "brokers" else {}
    return fields | ({"path": "/data"} if kind == "volumes" else {})


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_named_like_a_secret_comes_back_to_who_sent_it(wire: JsClient, group: str, kind: str) -> None:
    own = await brokers(wire, "bk", group, start=False)
    more = {"my.password": "of mine", "nested": {"api.token": "t", "n": 1}}
    fields = await wire.create(kind, group=group, name="s", **minimal(kind, own), **more)
    assert fields.items() >= more.items()
    assert await wire.get(kind, "s", group) == fields
    more |= {"my.password": "another"}
    assert (await wire.update(kind, "s", group, **{"my.password": "another"})).items() >= more.items()
    assert (await wire.get(kind, "s", group)).items() >= more.items()
    assert (await wire.update(kind, "s", group, tags={"a": "b"})).items() >= more.items(), (
        "fields that are not sent stay"
    )
    (listed,) = await wire.list(kind, group=group, name="s")
    if kind in HIDDEN_IN_LISTS:
        assert (listed["my.password"], listed["nested"]) == ("[hidden]", {"api.token": "[hidden]", "n": 1})
        await wire.update(kind, "s", group, **{"my.password": listed["my.password"], "nested": listed["nested"]})
        assert (await wire.get(kind, "s", group)).items() >= more.items(), (
            "a hidden value that is sent back keeps the stored one"
        )
    await wire.delete(kind, "s", group)
    await no_brokers(wire, "bk", group)
