"""Copies of the test server's bucket to a topic: their configuration and their results."""

from __future__ import annotations

import json
from collections import Counter

from support.couchbase.server import CouchbaseServer
from support.kafka.topics import messages

HANDLERS = "com.couchbase.connect.kafka.handler.source."
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


def official(name: str, server: CouchbaseServer) -> dict[str, str]:
    """The configuration of a task of the official connector that reads all vbuckets to topic `name`."""
    return {
        "connector.class": "com.couchbase.connect.kafka.CouchbaseSourceConnector",
        "couchbase.seed.nodes": server.seeds,
        "couchbase.username": "Administrator",
        "couchbase.password": "password",
        "couchbase.bucket": "travel",
        "couchbase.source.handler": f"{HANDLERS}RawJsonSourceHandler",
        "couchbase.topic": name,
        "couchbase.partitions": f"0..{len(server.vbuckets) - 1}",
        "key.converter": TEXT,
        "value.converter": BYTES,
        "name": name,
    }


def first(name: str, server: CouchbaseServer) -> dict[str, str]:
    """The configuration of the connector of 2016, which reads all vbuckets to topic `name`-travel."""
    return {
        "connector.class": "org.apache.kafka.connect.couchbase.CouchbaseSourceConnector",
        "topic": f"{name}-",
        "schema.name": "couchbaseschema",
        "couchbase.nodes": server.seeds,
        "couchbase.buckets": "travel",
        "dcp.maximum.drainrate": "1000",
        "couchbase.dcpConnectionBufferSize": "0",
        "couchbase.partitions": f"0..{len(server.vbuckets) - 1}",
        "key.converter": TEXT,
        "value.converter": JSON,
        "name": name,
    }


def numbers(bootstrap: str, topic: str) -> Counter[int]:
    """The number of copies of each document, by its number; deletions have none."""
    return Counter(json.loads(m.value())["n"] for m in messages(bootstrap, topic) if m.value() is not None)
