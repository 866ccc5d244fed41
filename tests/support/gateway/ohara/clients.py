"""Clients of the Ohara API as its users have them, over real HTTP, and the checks of every answer.

`Wire` sends exactly its arguments. `JsClient` behaves as Ohara's user interface: it sends the typed values and nothing
else, and updates with the whole object, less its name and group. `ScalaClient` behaves as Ohara's library: it fills in
every default itself and refuses answers that its readers cannot take.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from support.eventually import eventually
from support.gateway.ohara.schemas import Schemas
from support.gateway.system import System, running_system

Json = Any
SECONDS = 120.0
"""So long the JS client waits for any answer."""
ACCEPTED = "The request has been accepted for processing, but the processing has not been completed."
NO_SUCH = "java.util.NoSuchElementException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
ILLEGAL_STATE = "java.lang.IllegalStateException"
UNSUPPORTED = "java.lang.UnsupportedOperationException"
DATA_CHECK = "oharastream.ohara.configurator.route.DataCheckException"
BAD_VALUE = "spray.json.DeserializationException"
BAD_JSON = "spray.json.JsonParser$ParsingException"
STATUS = {
    NO_SUCH: 400,
    "oharastream.ohara.agent.NoSuchClusterException": 400,
    ILLEGAL_ARGUMENT: 400,
    BAD_VALUE: 400,
    BAD_JSON: 400,
    ILLEGAL_STATE: 500,
    UNSUPPORTED: 500,
    DATA_CHECK: 500,
}
"""The status of each documented exception; 404 has a code of its own."""
RUN_TIME = {"aliveNodes", "lastModified", "state", "error", "partitionInfos", "nodeMetrics", "tasksStatus"}
NODES = {"node00": "127.0.0.1", "node01": "127.0.0.2", "node02": "127.0.0.3"}
"""Nodes with their agents, and their addresses: a worker has the same port on each of its nodes."""
NULLS = ("/inspect/", "/validate/")
"""Answers with definitions in them; only these may contain null."""


def key(name: str, group: str = "default") -> str:
    """A key as messages print it."""
    return orjson.dumps({"group": group, "name": name}).decode()


def faults(value: Json, path: str = "$", *, nulls: bool = False) -> Iterator[str]:
    """The places of empty strings and nulls in an answer."""
    if value == "" or (value is None and not nulls):
        yield f"{path} is {value!r}"
    for name, part in value.items() if isinstance(value, dict) else ():
        yield from faults(part, f"{path}.{name}", nulls=nulls)
    for number, part in enumerate(value) if isinstance(value, list) else ():
        yield from faults(part, f"{path}[{number}]", nulls=nulls)


def judge(answer: httpx.Response, schemas: Schemas | None = None) -> None:
    """Asserts the rules for every answer; with `schemas`, also that it has its documented form."""
    request = answer.request
    media = answer.headers.get("content-type", "")
    about = f"{request.method} {request.url}: {answer.status_code} {answer.text[:600]}"
    judge_parts(request.method, request.url.path, answer.status_code, media, answer.content, about, schemas)


def judge_parts(  # noqa: PLR0917
    method: str, path: str, status: int, media: str, content: bytes, about: str, schemas: Schemas | None = None
) -> None:
    """Asserts the rules for every answer: a documented status, the body that belongs to it, nothing empty in it."""
    media = media.partition(";")[0]
    assert status in {200, 202, 204, 400, 404, 500}, about
    if status == 204:
        assert content == b"", about
    elif status == 202:
        assert (media, content) == ("text/plain", ACCEPTED.encode()), about
    elif not path.startswith("/v0/downloadFile") or status != 200:
        assert media == "application/json", about
        body = orjson.loads(content)
        if status == 200:
            actual_faults = list(faults(body, nulls=any(part in path for part in NULLS)))
            assert not actual_faults, f"{actual_faults}: {about}"
        else:
            _judge_error(status, body, about)
        if schemas is not None:
            schemas.check(method, path, status, body)


def _judge_error(status: int, body: Json, about: str) -> None:
    expected = {"code", "message", "stack"} | ({"apiUrl"} if status == 404 else set())
    assert set(body) == expected, about
    assert all(isinstance(body[name], str) and body[name] for name in expected), about
    assert "Traceback" not in body["stack"], about
    if status == 404:
        assert body["code"].startswith("Unsupported API: "), about
        assert body["stack"] == "N/A", about
        assert body["message"].startswith("please see link to find the available APIs. input url:"), about
    else:
        assert STATUS.get(body["code"]) == status, about
        assert body["message"] != "unknown", about


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of the API."""

    status: int
    code: str
    message: str


class Wire:
    """Sends requests to `/v0` of a gateway and judges each answer."""

    schemas: Schemas | None = None
    """The schemas that answers must match, too; `documented` sets it."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def documented(self) -> None:
        """Checks every answer from now on against the document that the gateway serves."""
        self.schemas = Schemas(await self.ok("GET", "/openapi.json"))

    async def send(self, method: str, path: str, body: Json = None, **query: Json) -> httpx.Response:
        """Sends one request; returns its answer unchanged. Values of `query` other than text are sent as JSON."""
        params = {k: v if isinstance(v, str) else orjson.dumps(v).decode() for k, v in query.items()}
        answer = await self.client.request(method, f"/v0{path}", json=body, params=params or None)
        judge(answer, self.schemas)
        return answer

    async def ok(self, method: str, path: str, body: Json = None, **query: Json) -> Json:
        """The JSON of an answer that must be 200."""
        answer = await self.send(method, path, body, **query)
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text}"
        return orjson.loads(answer.content)

    async def refused(self, method: str, path: str, body: Json = None, **query: Json) -> Refusal:
        """The error of a call that must be refused."""
        answer = await self.send(method, path, body, **query)
        assert answer.status_code >= 400, f"{method} {path}: {answer.status_code} {answer.text}"
        tree = orjson.loads(answer.content)
        return Refusal(answer.status_code, tree["code"], tree["message"])

    async def create(self, kind: str, **settings: Json) -> Json:
        """Creates an object with a POST of these settings."""
        return await self.ok("POST", f"/{kind}", settings)

    async def get(self, kind: str, name: str, group: str = "default") -> Json:
        """GET of one object."""
        return await self.ok("GET", f"/{kind}/{quote(name, safe='')}", group=group)

    async def list(self, kind: str, **filters: Json) -> list[Json]:
        """All objects that pass these filters."""
        jsons: list[Json] = await self.ok("GET", f"/{kind}", **filters)
        return jsons

    async def act(self, kind: str, name: str, verb: str, group: str = "default", **query: Json) -> None:
        """A PUT action, which must be accepted."""
        answer = await self.send("PUT", f"/{kind}/{name}/{verb}", group=group, **query)
        assert answer.status_code == 202, f"{kind}/{name}/{verb}: {answer.status_code} {answer.text}"

    async def delete(self, kind: str, name: str, group: str = "default") -> None:
        """A DELETE, which must succeed."""
        answer = await self.send("DELETE", f"/{kind}/{name}", group=group)
        assert answer.status_code == 204, f"{kind}/{name}: {answer.status_code} {answer.text}"

    async def reaches(self, kind: str, name: str, state: str | None, group: str = "default", **more: float) -> Json:
        """Waits until the object has this state; None: no state at all."""

        async def there() -> Json:
            actual_self = await self.get(kind, name, group)
            assert actual_self.get("state") == state, actual_self
            return actual_self

        return await eventually(there, what=f"{kind}/{name} is {state}", **more)

    async def without(self, kind: str, name: str, group: str = "default") -> None:
        """Stops and deletes a cluster, whatever its state."""
        await self.act(kind, name, "stop", group, force="true")
        await self.reaches(kind, name, None, group)
        await self.delete(kind, name, group)


class JsClient(Wire):
    """As Ohara's user interface: any 2xx is a success, and the user sees `message` on an error."""

    async def update(self, kind: str, name: str, group: str = "default", **typed: Json) -> Json:
        """PUT of the whole object, run-time fields and all, less its name and group."""
        whole = await self.get(kind, name, group) | typed
        body = {k: v for k, v in whole.items() if k not in {"name", "group"}}
        return await self.ok("PUT", f"/{kind}/{name}", body, group=group)


SCALA_READS: Mapping[str, Mapping[type, str]] = {
    "zookeepers": {str: "group name imageName", list: "nodeNames aliveNodes", int: "lastModified clientPort"},
    "brokers": {str: "group name imageName", list: "nodeNames aliveNodes", int: "lastModified clientPort jmxPort"},
    "workers": {
        str: "group name imageName group.id config.storage.topic offset.storage.topic status.storage.topic",
        list: "nodeNames aliveNodes freePorts pluginKeys sharedJarKeys",
        int: "lastModified clientPort jmxPort xms xmx offset.storage.partitions status.storage.replication.factor",
        dict: "brokerClusterKey tags routes",
    },
    "nodes": {str: "hostname user password state", list: "services resources", int: "port lastModified", dict: "tags"},
    "files": {str: "group name", list: "classInfos", int: "size lastModified", dict: "tags"},
    "connectors": {
        str: "group name connector.class",
        list: "topicKeys tasksStatus aliveNodes columns",
        int: "lastModified tasks.max",
        dict: "workerClusterKey nodeMetrics tags",
    },
    "topics": {
        str: "group name",
        list: "partitionInfos",
        int: "numberOfPartitions numberOfReplications lastModified",
        dict: "brokerClusterKey nodeMetrics tags",
    },
    "objects": {str: "group name", int: "lastModified", dict: "tags"},
    "volumes": {str: "group name path", list: "nodeNames", int: "lastModified", dict: "tags"},
    "pipelines": {str: "group name", list: "endpoints objects jarKeys", int: "lastModified", dict: "tags"},
}
"""The fields that the Scala client's readers require, by kind: names by type."""


class ScalaClient(Wire):
    """As Ohara's library: it fills in every default before it sends a request, and reads strictly."""

    def __init__(self, client: httpx.AsyncClient, seed: int = 0) -> None:
        super().__init__(client)
        self._chance = random.Random(seed)

    def hex25(self) -> str:
        """A name in the form that the library generates."""
        return f"{self._chance.getrandbits(100):025x}"

    def port(self) -> int:
        """Any port: the server decides whether it is free, when the cluster starts."""
        return self._chance.randrange(20_000, 30_000)

    def worker(self, **fields: Json) -> Json:
        """The whole body of a creation, as the library sends it."""
        topics = {f"{kind}.storage.topic": self.hex25() for kind in ("config", "offset", "status")}
        numbers = {
            f"{kind}.storage.{what}": 1
            for kind in ("config", "offset", "status")
            for what in ("partitions", "replication.factor")
        }
        return {
            "group": "default",
            "name": self.hex25(),
            "imageName": "oharastream/connect-worker:0.11.1",
            "group.id": self.hex25(),
            "clientPort": self.port(),
            "jmxPort": self.port(),
            "freePorts": [],
            "xms": 1024,
            "xmx": 1024,
            "pluginKeys": [],
            "sharedJarKeys": [],
            "routes": {},
            "tags": {},
            **topics,
            **numbers,
            **fields,
        }

    async def create(self, kind: str, **settings: Json) -> Json:
        """POST with every default filled in; the answer must contain the values that were sent."""
        sent = self.worker(**settings) if kind == "workers" else settings
        answer = await super().create(kind, **sent)
        self.read(kind, answer)
        if kind == "workers":
            own = {k: v for k, v in sent.items() if not k.endswith("Key") and not k.endswith("Keys")}
            assert own.items() <= answer.items(), {k: (v, answer.get(k)) for k, v in own.items() if answer.get(k) != v}
        return answer

    async def get(self, kind: str, name: str, group: str = "default") -> Json:
        """One object, read strictly."""
        actual_super = await super().get(kind, name, group)
        self.read(kind, actual_super)
        return actual_super

    async def list(self, kind: str, **filters: Json) -> list[Json]:
        """Objects, each read strictly."""
        actual_kind = await super().list(kind, **filters)
        for item in actual_kind:
            self.read(kind, item)
        return actual_kind

    def read(self, kind: str, value: Json) -> None:
        """Asserts that the library's readers accept this object."""
        for type_, name in [(t, n) for t, names in SCALA_READS.get(kind, {}).items() for n in names.split()]:
            assert name in value, f"{kind}: no {name} in {value}"
            assert isinstance(value[name], type_), f"{kind}: {name} is {value[name]!r}"
            assert not isinstance(value[name], bool), f"{kind}: {name} is {value[name]!r}"
        for name in ("state", "error"):
            assert isinstance(value.get(name, "absent"), str), value


@dataclass(frozen=True, slots=True)
class OharaWorld:
    """A system with nodes and their agents, and its clients."""

    system: System
    js: JsClient
    scala: ScalaClient

    @property
    def v0(self) -> str:
        """The URL of the API."""
        return f"{self.system.http}/v0"


@asynccontextmanager
async def client_of(http: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the time limit that users have."""
    async with httpx.AsyncClient(base_url=http, timeout=SECONDS, trust_env=False) as client:
        yield client


@asynccontextmanager
async def ohara_world(folder: Path, hosts: Mapping[str, str] = NODES, **settings: str) -> AsyncIterator[OharaWorld]:
    """A state service, a gateway and obedient agents, with every node in `/v0/nodes`."""
    async with running_system(folder, hosts, **settings) as system, client_of(system.http) as client:
        world = OharaWorld(system, JsClient(client), ScalaClient(client))
        for item in (world.js, world.scala):
            await item.documented()
        for node in hosts:
            await world.js.create("nodes", hostname=node, user="user", password="secret")

        async def available() -> bool:
            return {n["state"] for n in await world.js.list("nodes")} == {"AVAILABLE"}

        await eventually(available, what="every node is available")
        yield world


async def brokers(wire: Wire, name: str, group: str = "default", *, start: bool = True, nodes: Json = ()) -> Json:
    """A zookeeper and a broker cluster of this name, as every Ohara client creates them; the broker cluster's key."""
    at = list(nodes or ["node00"])
    new_brokers = {"group": group, "name": name}
    await wire.create("zookeepers", **new_brokers, nodeNames=at[:1])
    await wire.create("brokers", **new_brokers, nodeNames=at, zookeeperClusterKey=new_brokers)
    if start:
        await wire.act("zookeepers", name, "start", group)
        await wire.reaches("zookeepers", name, "RUNNING", group)
        await wire.act("brokers", name, "start", group)
        await wire.reaches("brokers", name, "RUNNING", group)
    return new_brokers


async def no_brokers(wire: Wire, name: str, group: str = "default") -> None:
    """Deletes such a pair."""
    await wire.without("brokers", name, group)
    await wire.without("zookeepers", name, group)
