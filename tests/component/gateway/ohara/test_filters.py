"""The objects in a list of the Ohara API, by the fields that its query names."""

from __future__ import annotations

from typing import Any

import pytest

from support.gateway.ohara.clients import JsClient, OharaWorld, brokers

pytestmark = pytest.mark.component
GROUP = "filters"
BROKERS = {"group": GROUP, "name": "bk"}
FILTERS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "abc"),
    ({"name": "a"}, "a"),
    ({"name": "A"}, ""),
    ({"name": ""}, "abc"),
    ({"": "a"}, "abc"),
    ({"state": "none"}, "abc"),
    ({"state": "NONE"}, "abc"),
    ({"state": "RUNNING"}, ""),
    ({"clientPort": 20001}, "a"),
    ({"clientPort": "20001"}, "a"),
    ({"clientPort": 20001.0}, "a"),
    ({"clientPort": "x"}, ""),
    ({"xms": 2048, "name": "b"}, "b"),
    ({"xms": 2048, "name": "nobody"}, ""),
    ({"flag": True}, "a"),
    ({"flag": "false"}, "b"),
    ({"flag": "none"}, "c"),
    ({"flag": "nonsense"}, ""),
    ({"nodeNames": ["node00"]}, "abc"),
    ({"nodeNames": ["node01"]}, "b"),
    ({"nodeNames": ["node01", "node00"]}, "b"),
    ({"nodeNames": ["node02"]}, ""),
    ({"nodeNames": "node00"}, ""),
    ({"aliveNodes": []}, "abc"),
    ({"tags": {"a": "b"}}, "ab"),
    ({"tags": {"a": "b", "deep": {"x": 1}}}, "b"),
    ({"tags": {"deep": {"x": 2}}}, ""),
    ({"tags": {}}, "abc"),
    ({"tags": "{"}, ""),
    ({"brokerClusterKey": BROKERS}, "abc"),
    ({"brokerClusterKey": {"name": "bk"}}, "abc"),
    ({"brokerClusterKey": {"group": "x", "name": "bk"}}, ""),
    ({"group.id": "mine"}, "c"),
    ({"unknown": "x"}, ""),
    ({"unknown": "none"}, "abc"),
)


@pytest.fixture(scope="module")
async def three(world: OharaWorld) -> JsClient:
    """Worker clusters a, b and c of the group "filters"."""
    api = world.js
    await brokers(api, "bk", GROUP, start=False)
    own = {"group": GROUP, "nodeNames": ["node00"], "brokerClusterKey": BROKERS}
    tags = {"a": "b", "deep": {"x": 1, "y": 2}}
    await api.create("workers", **own, name="a", clientPort=20001, flag=True, tags={"a": "b"})
    await api.create("workers", **own | {"nodeNames": ["node00", "node01"]}, name="b", flag=False, tags=tags)
    await api.create("workers", **own, name="c", **{"group.id": "mine"})
    return api


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=repr)
async def test_a_list_is_filtered_by_any_field(three: JsClient, filters: dict[str, Any], expected: str) -> None:
    listed = await three.list("workers", group=GROUP, **filters)
    assert "".join(sorted(w["name"] for w in listed)) == expected


async def test_last_modified_filters_too(three: JsClient) -> None:
    single_three = await three.get("workers", "b", GROUP)
    listed = await three.list("workers", lastModified=single_three["lastModified"], group=GROUP)
    assert "b" in [w["name"] for w in listed]
