"""A worker's listeners when it ends, and its requests to workers that refuse it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from starlette.requests import Request

from keelman.runtime.http.server import serve_http
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import Siblings
from keelman.runtime.tls.contexts import client_context, server_context
from keelman.worker.config.typed import checked
from keelman.worker.rest.answers import SHUTTING_DOWN, STARTING
from keelman.worker.rest.application import RestApi
from keelman.worker.rest.forwarding.peers import Peers
from keelman.worker.rest.front import front as front_module
from keelman.worker.rest.front.front import open_front, peer_tls
from support.certificates import PASSWORD, Authority
from support.eventually import eventually
from support.worker_properties import OF_A_GROUP

HALF = b"Host: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 15\r\n\r\n"
BODY = b'{"level":"OFF"}'


class Closing:
    """A worker's listeners, the admin listener apart, with a request on each whose body is incomplete."""

    def __init__(self) -> None:
        self.ports = free_ports(2)
        main, admin = (f"http://127.0.0.1:{port}" for port in self.ports)
        self.properties = checked({**OF_A_GROUP, "listeners": main, "admin.listeners": admin})
        self.opened, self.ends = asyncio.Event(), asyncio.Event()

    async def serve(self) -> None:
        api = RestApi(peer_tls(self.properties))
        async with open_front(api.app, self.properties):
            self.opened.set()
            await self.ends.wait()
        await api.close()

    async def refuse_all(self) -> bool:
        """Whether no port takes connections."""
        for port in self.ports:
            try:
                (await asyncio.open_connection("127.0.0.1", port))[1].close()
            except ConnectionRefusedError:
                continue
            return False
        return True

    @contextlib.asynccontextmanager
    async def begun(self) -> AsyncIterator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
        """Sends a request with an incomplete body to each listener, and tells the server to end."""
        await self.opened.wait()
        clients = [await asyncio.open_connection("127.0.0.1", port) for port in self.ports]
        paths = ("/connectors/x/config", "/admin/loggers/far.away")
        for (reader, writer), path in zip(clients, paths, strict=True):
            writer.write(f"PUT {path} HTTP/1.1\r\n".encode() + HALF)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        self.ends.set()
        yield clients
        for _, writer in clients:
            writer.close()


async def test_all_listeners_close_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No listener accepts a connection while another still answers its requests."""
    monkeypatch.setattr(front_module, "LAST_SECONDS", 600.0)
    closing = Closing()
    async with Siblings() as siblings, asyncio.timeout(60):
        served = siblings.start(closing.serve())
        async with closing.begun() as clients:
            await eventually(closing.refuse_all, seconds=30)
            for _, writer in clients:
                writer.write(BODY)
            answers = [await reader.read() for reader, _ in clients]
        await served
    assert STARTING.encode() in answers[0], "it has no group behind it"
    assert answers[1].startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(("more", "is_warned"), [({}, True), ({"rest.advertised.host.name": "h"}, False)])
async def test_a_worker_that_tells_others_no_host_says_so(more: dict[str, str], is_warned: bool) -> None:
    properties = checked({**OF_A_GROUP, "listeners": "http://0.0.0.0:0", **more})
    with structlog.testing.capture_logs() as logged:
        async with open_front(RestApi(peer_tls(properties)).app, properties) as front:
            assert front.worker.startswith("h:" if more else "0.0.0.0:")
    assert ("worker_advertises_no_host" in [entry["event"] for entry in logged]) == is_warned


async def test_who_is_still_sending_at_the_end_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the form of all errors."""
    monkeypatch.setattr(front_module, "LAST_SECONDS", 0.0)
    closing = Closing()
    async with Siblings() as siblings, asyncio.timeout(60):
        served = siblings.start(closing.serve())
        async with closing.begun() as clients:
            answers = [await reader.read() for reader, _ in clients]
        await served
    for answer in answers:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 500 ")
        assert json.loads(body) == {"error_code": 500, "message": SHUTTING_DOWN}


@pytest.mark.parametrize(("trusted", "alert"), [(True, "unknown ca"), (False, "certificate verify failed")])
async def test_who_is_refused_by_another_worker_does_not_try_again(tmp_path: Path, trusted: bool, alert: str) -> None:
    """The certificate of either side will not become valid: the client gets the error at once."""
    ours, theirs = Authority("ours"), Authority("theirs")

    def stores(authority: Authority, name: str, trust: Authority) -> dict[str, str]:
        own = authority.issue(name, "127.0.0.1").write_pkcs12(tmp_path / f"{name}.p12")
        trust_store = trust.write_trust(tmp_path / f"{name}-trust.p12")
        return {
            "ssl.keystore.location": str(own),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.location": str(trust_store),
            "ssl.truststore.password": PASSWORD,
            "ssl.client.auth": "required",
        }

    async def nobody(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    async def body() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    tls = server_context(stores(theirs, "leader", theirs))
    peers = Peers(client_context(stores(ours, "follower", theirs if trusted else ours)))
    scope = {"type": "http", "method": "PUT", "raw_path": b"/connectors/x/stop", "headers": [], "query_string": b""}
    try:
        async with serve_http(nobody, host="127.0.0.1", port=0, label="test", tls=tls) as port:
            answer = await peers.answer(Request(scope, body), f"https://127.0.0.1:{port}/", [], leader="")
    finally:
        await peers.close()
    assert (answer.response.status_code, answer.again, answer.lost) == (500, False, False)
    assert alert in json.loads(bytes(answer.response.body))["message"]
