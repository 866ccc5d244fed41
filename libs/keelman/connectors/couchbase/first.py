"""The Couchbase connector of 2016: one task, mutations alone, at most so many a second."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keelman.connect.config.definition import ConfigDef
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.plugin import Connector, Direction, Reader
from keelman.connect.records import Offset, Partition
from keelman.connect.schema import Field, Schema, Struct
from keelman.connect.tasks.source_task import SourceTask
from keelman.connectors.couchbase import partitions
from keelman.connectors.couchbase.keys import access_of, first_keys, reached_by, without_tls
from keelman.connectors.couchbase.official import PARTITIONS, map_of
from keelman.connectors.couchbase.reader import CouchbaseReader, TopicRows
from keelman.couchbase.changes import StreamOptions
from keelman.couchbase.frames import Opcode
from keelman.couchbase.messages import document
from keelman.couchbase.seeds import BucketAccess, seeds_of
from keelman.couchbase.vbucket import Event, Position

_REQUIRED = ("topic", "schema.name", "couchbase.nodes", "couchbase.bucket", "dcp.maximum.drainrate")
_TEXT = Schema("string", optional=True)


class CouchbaseSource2016(Connector):
    """Its keys, its records; offsets as the official connector has them."""

    names = ("org.apache.kafka.connect.couchbase.CouchbaseSourceConnector",)
    version = "1.0.0"
    direction = Direction.SOURCE
    runs_on = "anywhere"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Those of 2016, and how today's clusters are reached."""
        return first_keys()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValueError]:
        """The checks of the connector itself, in its order and words."""
        for key in _REQUIRED:
            if not _given(config, key):
                return [ConfigValueError(key, None, whole=f"Configuration must include '{key}' setting")]
        if "," in config["topic"]:
            text = "Configuration should have a single topic when used as a source"
            return [ConfigValueError("topic", config["topic"], whole=text)]
        names = {
            config[key].strip() for key in ("couchbase.bucket", "couchbase.buckets") if config.get(key, "").strip()
        }
        if len(names) > 1 or "," in next(iter(names)):
            return [ConfigValueError("couchbase.buckets", ",".join(sorted(names)), "names one bucket")]
        try:
            seeds_of(_nodes(config))
        except ValueError as error:
            return [ConfigValueError("couchbase.nodes", config["couchbase.nodes"], str(error))]
        return without_tls(config, first_keys().parse(config))

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """The vbuckets in runs. Raises ConnectError, RetriableConnectError."""
        count = len(map_of(_access(config)).vbuckets)
        # One task alone holds a rate for all of them.
        return [{**config, PARTITIONS: partitions.written(run)} for run in partitions.dealt(count, 1)]

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Within a branch of a vbucket's history."""
        return True

    @classmethod
    def open_task_reader(
        cls, config: Mapping[str, str], task: SourceTask, offset: Callable[[Partition], Offset | None]
    ) -> Reader:
        """The reader of the bucket. Raises ConnectError."""
        parsed = first_keys().parse(config)
        bucket = _bucket(config)

        def partition(vbucket: int) -> Partition:
            return partitions.partition(bucket, vbucket)

        starts = {number: _start(bucket, number, offset) for number in partitions.read(config.get(PARTITIONS, ""))}
        return CouchbaseReader(
            _access(config, task),
            StreamOptions(buffer_bytes=int(parsed["couchbase.dcpConnectionBufferSize"]), polling_seconds=0),
            starts,
            partition,
            FirstRecords(config["topic"].strip() + bucket, config["schema.name"].strip(), bucket),
            properties=reached_by({**parsed, "couchbase.username": _user(parsed, bucket)}, _nodes(config), bucket),
            rate=int(parsed["dcp.maximum.drainrate"]),
            beat=task.beat,
        )


class FirstRecords:
    """A struct of bucket, document and body for each mutation."""

    def __init__(self, topic: str, schema: str, bucket: str) -> None:
        self._topic, self._bucket = topic, bucket
        fields = tuple(Field(name, _TEXT) for name in ("bucket", "document", "body"))
        self._schema = Schema("struct", name=schema, fields=fields)

    def rows(self, events: Sequence[Event]) -> Sequence[TopicRows]:
        """All in one topic."""
        rows = TopicRows(self._topic, self._schema)
        for event in events:
            if event.kind != Opcode.MUTATION:
                continue
            values: dict[str, Any] = {
                "bucket": self._bucket,
                "document": event.key.decode("utf-8", "replace"),
                "body": document(event).decode("utf-8", "replace"),
            }
            rows.add(event, event.key, Struct(self._schema, values))
        return (rows,) if rows.events else ()

    def first(self, begins: Mapping[int, Position], fresh: Sequence[int]) -> Sequence[TopicRows]:
        """None."""
        return ()


def _given(config: Mapping[str, str], key: str) -> str:
    value = config.get(key, "").strip()
    return value or (config.get("couchbase.buckets", "").strip() if key == "couchbase.bucket" else "")


def _bucket(config: Mapping[str, str]) -> str:
    return _given(config, "couchbase.bucket")


def _nodes(config: Mapping[str, str]) -> list[str]:
    return [part for part in re.split(r"[,;]", config.get("couchbase.nodes", "")) if part.strip()]


def _user(parsed: Mapping[str, Any], bucket: str) -> str:
    return str(parsed["couchbase.username"] or bucket)


def _access(config: Mapping[str, str], task: SourceTask | None = None) -> BucketAccess:
    """Without a user: that of before Couchbase 5.0, which is the bucket, with an empty password."""
    parsed = dict(first_keys().parse(config))
    bucket = _bucket(config)
    parsed["couchbase.username"] = _user(parsed, bucket)
    return access_of(parsed, _nodes(config), bucket, task)


def _start(bucket: str, vbucket: int, offset: Callable[[Partition], Offset | None]) -> Position:
    saved = offset(partitions.partition(bucket, vbucket))
    if saved is not None:
        return partitions.position(saved)
    old = offset({bucket: vbucket})
    count = None if old is None else old.get(str(vbucket))
    if count is None:
        return Position()
    if isinstance(count, bool) or not isinstance(count, int):
        raise ConnectError(f"The source offset of vbucket {vbucket} is not a number: {count!r}")
    return Position(count, None)
