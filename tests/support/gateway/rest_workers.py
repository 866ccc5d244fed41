"""Workers that answer Connect's REST API as Apache Kafka Connect does, in the tests' own process."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from typing import Any
from urllib.parse import unquote

import orjson

OLD = [(b"age", b"75"), (b"warning", b'110 - "as known at 2026-01-01T00:00:00Z: the brokers do not answer"')]
"""Headers of an answer that a worker gives while no broker answers."""


class Connectors(dict[str, dict[str, Any]]):
    """The configurations of a cluster's connectors; the uid of each, and the id of the request that created it."""

    def __init__(self) -> None:
        super().__init__()
        self.uids: dict[str, str] = {}
        self.request_ids: dict[str, str] = {}


class Worker:
    """A worker's REST API: connectors in memory, shared by a cluster's workers; and a record of its requests."""

    def __init__(self, url: str, connectors: Connectors) -> None:
        self.url = url
        self.connectors = connectors
        self.asked: list[tuple[str, bytes]] = []
        self.refusal: tuple[int, str] | None = None
        self.frozen = False
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        method, raw = scope["method"], scope["raw_path"]
        self.asked.append((method, raw + (b"?" + scope["query_string"] if scope["query_string"] else b"")))
        if self.frozen:
            await asyncio.Event().wait()
        parts = [unquote(p) for p in raw.decode().split("/")[1:]]
        if parts[0] == "echo":
            await self._echo(scope, receive, send)
        elif parts[0] == "stream":
            await self._stream(send)
        else:
            body = b""
            more = True
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
            request_id = dict(scope["headers"]).get(b"keelman-request-id", b"").decode()
            status, answer, headers = self._connect(method, parts, scope["query_string"].decode(), body, request_id)
            if parts[0] == "connectors" and status < 300 and answer and "config" in answer:
                headers = [*headers, (b"keelman-uid", self.connectors.uids.get(answer["name"], "").encode())]
            await _answer(send, status, b"" if answer is None else orjson.dumps(answer), headers)

    def _connect(  # noqa: PLR0911
        self, method: str, parts: list[str], query: str, body: bytes, request_id: str
    ) -> tuple[int, Any, list[Any]]:
        if self.refusal and parts[0] == "connectors":
            return *_error(*self.refusal), []
        match method, parts:
            case "GET", [""]:
                return 200, {"version": "4.3.0", "commit": "unknown", "kafka_cluster_id": "k"}, []
            case "GET", ["connectors"]:
                if "expand" not in query:
                    return 200, sorted(self.connectors), []
                both = {n: {"info": self._info(n), "status": self._status(n)} for n in self.connectors}
                return 200, both, []
            case "POST", ["connectors"]:
                tree = orjson.loads(body)
                name = tree["name"]
                location = [(b"location", f"{self.url}/connectors/{name}".encode())]
                if name in self.connectors and request_id and request_id == self.connectors.request_ids.get(name):
                    return 201, self._info(name), location
                if name in self.connectors:
                    return *_error(409, f"Connector {name} already exists"), []
                if "connector.class" not in tree["config"]:
                    return *_error(400, "Connector config {} contains no connector type"), []
                self.connectors[name] = tree["config"] | {"name": name}
                self.connectors.uids[name], self.connectors.request_ids[name] = uuid.uuid4().hex, request_id
                return 201, self._info(name), location
            case _, ["connectors", name, *_] if name not in self.connectors:
                return *_error(404, f"Connector {name} not found"), []
            case "GET", ["connectors", name]:
                return 200, self._info(name), []
            case "GET", ["connectors", name, "status"]:
                if self.connectors[name].get("young"):
                    return *_error(404, f"No status found for connector {name}"), []
                return 200, self._status(name), []
            case "PUT", ["connectors", name, "config"]:
                self.connectors[name] = orjson.loads(body) | {"name": name}
                return 200, self._info(name), []
            case "DELETE", ["connectors", name]:
                del self.connectors[name]
                return 204, None, []
            case "PUT", ["connectors", _, "pause" | "resume"]:
                return 202, None, []
            case ("PUT", ["connectors", _, "stop"]) | ("POST", ["connectors", _, "restart"]):
                return 204, None, []
        return *_error(404, "HTTP 404 Not Found"), []

    def _info(self, name: str) -> dict[str, Any]:
        tasks = [{"connector": name, "task": 0}]
        return {"name": name, "config": self.connectors[name], "tasks": tasks, "type": "source"}

    def _status(self, name: str) -> dict[str, Any]:
        worker = self.url.removeprefix("http://")
        own = {"state": "RUNNING", "worker_id": worker, "version": "1"}
        failed = own | {"state": "FAILED", "trace": "java.lang.Oops"}
        task = own if self.connectors[name].get("healthy") else failed
        return {"name": name, "connector": own, "tasks": [{"id": 0} | task], "type": "source"}

    async def _echo(self, scope: Any, receive: Any, send: Any) -> None:
        size, digest, more = 0, hashlib.sha256(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))
            digest.update(message.get("body", b""))
            more = message.get("more_body", False)
        told = {
            "method": scope["method"],
            "target": (scope["raw_path"] + b"?" + scope["query_string"]).decode(),
            "headers": [[k.decode(), v.decode()] for k, v in scope["headers"]],
            "size": size,
            "sha256": digest.hexdigest(),
        }
        headers = [(b"x-answer", b"1"), (b"x-answer", b"2"), (b"connection", b"x-hop"), (b"x-hop", b"1"), *OLD]
        await _answer(send, 299, orjson.dumps(told), headers)

    async def _stream(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"first\n", "more_body": True})
        await self.go_on.wait()
        await send({"type": "http.response.body", "body": b"last\n"})


def _error(status: int, message: str) -> tuple[int, Any]:
    return status, {"error_code": status, "message": message}


async def _answer(send: Any, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    if body:
        headers = [*headers, (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
