"""A gateway off loopback: without an access file it admits no caller, unless its settings permit it.

If it ends, it reports the reason first.
"""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import httpx
import pytest

from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.model.errors import PermissionDenied
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from keelman.rpc.health import is_serving
from support.eventually import eventually
from support.gateway.system import running_system

pytestmark = pytest.mark.component


def own_address() -> str:
    """An address of this host that is not a loopback one; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this host has no address but loopback ones")
        return str(probe.getsockname()[0])


async def test_off_loopback_nobody_is_let_in_until_a_setting_says_who(tmp_path: Path) -> None:
    host = own_address()
    settings = {"host": "0.0.0.0", "http-host": "0.0.0.0", "trust": "mesh"}
    async with running_system(tmp_path, {}, settings) as system:
        port, http_port = system.gateway.flags["port"], system.gateway.flags["http-port"]
        assert await is_serving(f"{host}:{port}")
        async with channel(f"{host}:{port}") as link:
            with pytest.raises(PermissionDenied, match=r"set gateway\.access_file, or gateway\.open_access") as refused:
                await stub_of(link, "node", "node").ListNodes(ListNodesRequest())
            assert refused.value.reason == "CLOSED"
        async with httpx.AsyncClient(base_url=f"http://{host}:{http_port}", trust_env=False, timeout=300) as http:
            assert (await http.get("/healthz")).status_code == 200
            for path in ("/", "/metrics", "/clusters/a/connectors", "/v0/nodes", "/v1/connectors", "/_private", "/x"):
                assert (await http.get(path)).status_code == 403, path

        assert system.gateway.stop() == 0
        system.gateway.flags["open-access"] = "true"
        await system.gateway.start()
        async with channel(f"{host}:{port}") as link:
            await stub_of(link, "node", "node").ListNodes(ListNodesRequest())


async def test_one_that_ends_answers_while_it_says_that_it_does_not_serve(tmp_path: Path) -> None:
    async with running_system(tmp_path, {}, {"drain-seconds": "20"}) as system:
        gateway = system.gateway
        url = f"http://127.0.0.1:{gateway.flags['http-port']}"
        async with channel(gateway.address) as link, httpx.AsyncClient(base_url=url, trust_env=False) as http:
            assert (await http.get("/readyz")).status_code == 200
            gateway.process.send_signal(signal.SIGTERM)

            async def says_so() -> bool:
                return not await is_serving(gateway.address)

            await eventually(says_so, what="its health is NOT_SERVING")
            await stub_of(link, "node", "node").ListNodes(ListNodesRequest())
            answer = await http.get("/readyz")
            assert (answer.status_code, answer.json()) == (503, {"status": "draining"})
            assert (await http.get("/healthz")).status_code == 200
        assert gateway.process.poll() is None
        assert gateway.stop() == 3, "a second signal cuts it"
        gateway.flags["drain-seconds"] = "0"
        await gateway.start()
