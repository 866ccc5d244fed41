"""`/v0/logs`: the logs of a cluster's processes, whole or of the last seconds, and the log of this gateway. They are
streamed, so that no log has to fit into memory."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import orjson
from starlette.responses import Response, StreamingResponse

from keelman.api.node.v1 import agent_service_pb2 as agent
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.gateway.ohara.clusters.known_clusters import KINDS, PLACED, WORKER, ZOOKEEPER, KnownClusters, read_known
from keelman.gateway.ohara.nodes.containers import processes_of
from keelman.gateway.ohara.nodes.log_text import json_string, since
from keelman.gateway.ohara.nodes.view import CONFIGURATOR, NO_GROUP
from keelman.gateway.ohara.routes import Endpoint
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.wire.call import JSON_TYPE, OharaCall
from keelman.gateway.ohara.wire.errors import OharaError, bad_value
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.own_lines import OWN

NO_SUCH_CLUSTER = "oharastream.ohara.agent.NoSuchClusterException"
MAX_LINES = 1_000_000
"""The limit of an agent: a whole log, unless it is very long."""
NO_PROCESS = b"a zookeeper is a stand-in here and has no process: brokers need none\n"

ReadLog = Callable[[str, str, agent.StreamLogsRequest], AsyncIterator[agent.StreamLogsResponse]]
"""Reads a workload's log from the agent at an address."""
Log = tuple[str, AsyncIterator[bytes]]
"""The name of a host, and the lines of a log there."""


def log_endpoints(control: OharaControl, read_log: ReadLog) -> list[Endpoint]:
    """Returns the endpoints GET logs/{kind}s/{name} and logs/configurator, and the same below log/."""

    def of(kind: str) -> Callable[[OharaCall], Awaitable[Response]]:
        async def logs(call: OharaCall) -> Response:
            moment, key = _moment(call), ObjectKey(call.group, call.variables["name"])
            directory = await read_known(control, PLACED if kind == WORKER else kind)
            cluster = directory.get(kind, key)
            if cluster is None or not cluster.life.state:
                raise OharaError(400, NO_SUCH_CLUSTER, f"cluster:{key} does not exist")
            if kind == ZOOKEEPER:
                return _answer(key, [(node, _lines(NO_PROCESS)) for node in cluster.life.alive_nodes])
            logs = [
                (directory.hosts.shown(process.node), _log(process, directory, read_log))
                for process in processes_of(cluster)
            ]
            return _answer(key, [(host, since(lines, moment)) for host, lines in logs])

        return logs

    async def own(call: OharaCall) -> Response:
        host = socket.gethostname()
        return _answer(ObjectKey(NO_GROUP, host), [(host, since(_lines(OWN.text().encode()), _moment(call)))])

    return [
        *(Endpoint("GET", f"{word}/{kind}s/{{name}}", of(kind)) for kind in KINDS for word in ("logs", "log")),
        *(Endpoint("GET", f"{word}/{CONFIGURATOR}", own) for word in ("logs", "log")),
    ]


def _moment(call: OharaCall) -> datetime | None:
    """Returns the time of the first line to return; None for all lines."""
    text = call.parameter("sinceSeconds")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise bad_value(f'sinceSeconds: "{text}" is not a number of seconds')
    now = datetime.now(UTC)
    seconds = int(text[:20])
    return now - timedelta(seconds=seconds) if seconds < now.timestamp() else None


async def _log(process: Workload, directory: KnownClusters, read_log: ReadLog) -> AsyncIterator[bytes]:
    """Yields all lines of a process, or one line with the reason if they cannot be read."""
    host = directory.hosts.all.get(process.node)
    address = "" if host is None else host.node.status.agent_address
    if not address:
        yield f"the log of {process.name} cannot be read: its node's agent has no address\n".encode()
        return
    request = agent.StreamLogsRequest(workload=process.name, tail_lines=MAX_LINES)
    try:
        async with aclosing(read_log(process.node, address, request)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece.lines
    except KeelmanError as error:
        yield f"the log of {process.name} cannot be read: {error.message}\n".encode()


async def _lines(text: bytes) -> AsyncIterator[bytes]:
    yield text


def _answer(key: ObjectKey, logs: Sequence[Log]) -> Response:
    """Returns an answer that streams the logs one after another."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"clusterKey":' + orjson.dumps(key.json) + b',"logs":['
        for number, (host, lines) in enumerate(logs):
            yield (b"," if number else b"") + b'{"hostname":' + orjson.dumps(host) + b',"value":'
            async for piece in json_string(lines):
                yield piece
            yield b"}"
        yield b"]}"

    return StreamingResponse(pieces(), media_type=JSON_TYPE)
