"""A worker started by the flags of Connect's first agents, with requests as in their documentation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.kafka.topics import create_topic
from support.worker.processes import LinkSide
from support.worker.starts import folder_of

pytestmark = pytest.mark.component

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
DOCUMENTED = {
    "name": "couchbase-kafka-connector",
    "config": {
        "connector.class": "org.apache.kafka.connect.couchbase.CouchbaseSourceConnector",
        "topic": "couchbase-kafka-connector",
        "schema.name": "couchbaseschema",
        "couchbase.nodes": "localhost",
        "couchbase.bucket": "PMCONCURRENCY",
        "dcp.maximum.drainrate": "1000",
        "couchbase.dcpConnectionBufferSize": "0",
        "tasks.max": "1",
    },
}
HOST = "[host where the connector is running]"


async def as_printed(port: int, line: str, body: Any = None) -> tuple[int, Any]:
    """Sends a request with the headers that the distributed agent's documentation shows; status and body."""
    raw = b"" if body is None else json.dumps(body, indent=4).encode()
    head = [f"{line} HTTP/1.1", f"Host: {HOST}"]
    if raw:
        head += ["Content-Type: application/json", "Accept: application/json", f"Content-Length: {len(raw)}"]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join([*head, "Connection: close", "", ""]).encode() + raw)
    answer = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(answer[0].split()[1]), json.loads(answer[2]) if answer[2] else None


async def test_the_flags_of_the_first_agents(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    create_topic(bootstrap, "flags", 1)
    async with folder_of(tmp_path / "home") as worker:
        flags = ["-brokers", bootstrap, "-group", "flags", "-cluster", "first", "-registry", "http://127.0.0.1:8081"]
        flags += ["-offsets", "flags-offsets", "-configs=flags-configs", f"--port={worker.port}"]
        await worker.start(*flags, "--spark-address", link[1])
        for line in (
            "cluster    first",
            "topics     flags-configs, flags-offsets, flags-status",
            "registry   http://127.0.0.1:8081\n",
        ):
            assert line in worker.output
        # The documented requests, in their order; the nodes do not answer.
        plugin, printed = "couchbase-kafka-connector", {**DOCUMENTED["config"], "name": DOCUMENTED["name"]}
        status, document = await as_printed(worker.port, "POST /connectors", DOCUMENTED)
        assert (status, document["config"], document["type"]) == (201, printed, "source")
        other = {key.replace("couchbase.bucket", "couchbase.buckets"): text for key, text in printed.items()}
        status, document = await as_printed(worker.port, f"POST /connectors/{plugin}/config", other)
        assert (status, document["config"]) == (200, other)
        assert await as_printed(worker.port, f"DELETE /connectors/{plugin}") == (204, None)
        assert await as_printed(worker.port, f"DELETE /connectors/{plugin}") == (
            404,
            {"error_code": 404, "message": f"Connector {plugin} not found"},
        )
        # A class that is not called.
        config = {"connector.class": SOURCE, "file": "/nowhere/in", "topic": "flags"}
        status, document = await as_printed(worker.port, "POST /connectors/known/config", config)
        assert (status, document["config"], document["name"]) == (201, {**config, "name": "known"}, "known")
        status, document = await as_printed(worker.port, "POST /connectors/known/config", {**config, "batch.size": "7"})
        assert (status, document["config"]["batch.size"]) == (200, "7")
        assert await as_printed(worker.port, "DELETE /connectors/known") == (204, None)
        assert await worker.end() == 0
