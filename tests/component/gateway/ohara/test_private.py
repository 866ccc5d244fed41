"""DELETE /_private: off by default, and with the token when it is on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from keelman.runtime.processes.ports import free_ports
from support.gateway.ohara.clients import JsClient, OharaWorld, client_of, key
from support.gateway.system import Process

pytestmark = pytest.mark.component


async def wipe(client: httpx.AsyncClient, body: Any, token: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return await client.request("DELETE", "/_private", json=body, headers=headers)


async def test_it_is_off(wire: JsClient) -> None:
    answer = await wipe(wire.client, {"groups": ["default"], "kinds": ["node"]}, "any")
    assert (answer.status_code, answer.json()["code"]) == (404, "Unsupported API: _private")


async def test_it_wipes_what_is_named_for_who_has_the_token(
    world: OharaWorld, wire: JsClient, group: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    port, http = free_ports(2)
    flags = {"port": str(port), "http-port": str(http), "state-address": world.system.state.address}
    flags |= {"ohara-wipe-token-file": str(file), "ohara-cover-passwords": "true"}
    gateway = Process("gateway", flags, tmp_path / "gateway.log")
    await gateway.start()
    try:
        async with client_of(f"http://127.0.0.1:{http}") as client:
            covered = (await client.get("/v0/nodes/node02")).json()
            assert covered["password"] == "******"
            assert (await client.put("/v0/nodes/node02", json=covered)).status_code == 200
            assert (await wire.get("nodes", "node02"))["password"] == "secret", "the covered value came back"

            named = {"group": group, "name": "zk"}
            await wire.create("zookeepers", **named, nodeNames=["node00"])
            await wire.create("brokers", group=group, name="bk", nodeNames=["node00"], zookeeperClusterKey=named)
            await wire.create("objects", group=group, name="kept")
            body = {"groups": [group], "kinds": ["zookeeper", "broker"]}
            for token in ("", "wrong", "s3cretX"):
                refused = await wipe(client, body, token)
                assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
            for wrong in (None, [], {"groups": [group]}, {"groups": "a", "kinds": []}, {"groups": [], "kinds": ["no"]}):
                assert (await wipe(client, wrong, "s3cret")).status_code == 400
            assert (await client.get("/_private")).status_code == 404
            await wire.act("zookeepers", "zk", "start", group)
            refused = await wipe(client, {"groups": [group], "kinds": ["zookeeper"]}, "s3cret")
            assert f"zookeeper {key('zk', group)} is not deleted" in refused.json()["message"]
            await wire.act("zookeepers", "zk", "stop", group)
            assert (await wipe(client, body, "s3cret")).status_code == 204
            assert [await wire.list(kind, group=group) for kind in ("brokers", "zookeepers")] == [[], []]
            assert len(await wire.list("objects", group=group)) == 1
            file.write_text("")
            assert (await wipe(client, body)).status_code == 401, "a missing token belongs to no caller"
            file.unlink()
            assert (await wipe(client, body, "s3cret")).status_code == 500
    finally:
        gateway.stop()
