"""The official Couchbase source connector's configuration, records and offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from keelman.connect.config.definition import ConfigDef
from keelman.connect.converters.configured import converter_for
from keelman.connect.errors import ConfigValueError, ConnectError, DataError
from keelman.connect.plugin import Connector, Direction, Reader
from keelman.connect.records import Headers, Offset, Partition
from keelman.connect.tasks.source_task import SourceTask
from keelman.connect.watches import Watch
from keelman.connectors.couchbase import documents, keys, partitions
from keelman.connectors.couchbase.documents import SKIPPED
from keelman.connectors.couchbase.reader import CouchbaseReader, TopicRows, connect_errors
from keelman.connectors.couchbase.values import seconds, size_bytes, wrong_contexts
from keelman.couchbase.changes import StreamOptions
from keelman.couchbase.cluster import BucketCluster
from keelman.couchbase.cluster_map import ClusterMap
from keelman.couchbase.manifest import DEFAULT, Collection
from keelman.couchbase.seeds import BucketAccess
from keelman.couchbase.vbucket import Event, HistoryPlace, Position
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.side_loop import KAFKA_LOOP

PARTITIONS, TASK_ID, CLUSTER_UUID = "couchbase.partitions", "couchbase.maybe.task.id", "couchbase.cluster.uuid"
INITIAL_KEY = b"__COUCHBASE_INITIAL_OFFSET_TOMBSTONE__a54ee32b-4a7e-4d98-aa36-45d8417e942a"
PASSED = ""
"""In place of a topic: the changes of such a collection are passed over."""
_PLACEHOLDERS = ("bucket", "scope", "collection")
WARN_SECONDS = 10.0

_log = get_logger()


class CouchbaseSource(Connector):
    """A task for each run of vbuckets."""

    names = ("com.couchbase.connect.kafka.CouchbaseSourceConnector",)  # its short name is both connectors'
    version = "4.3.5"
    direction = Direction.SOURCE
    runs_on = "anywhere"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The official connector's."""
        return keys.official_keys()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValueError]:
        """Keys for one collection that can only be set for all; a scope and collections both; a bucket that is none;
        records without a topic."""
        parsed = keys.official_keys().parse(config)
        problems = [*wrong_contexts(config), *keys.without_tls(config, parsed)]
        if not parsed["couchbase.bucket"]:
            problems.append(
                ConfigValueError("couchbase.bucket", "", whole="Missing required config property: couchbase.bucket")
            )
        if parsed["couchbase.scope"] and parsed["couchbase.collections"]:
            text = "couchbase.scope and couchbase.collections exclude each other: set one of them"
            problems.append(ConfigValueError("couchbase.scope", parsed["couchbase.scope"], text))
        return problems or keys.without_topic(config, parsed)

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """The vbuckets in runs. Raises ConnectError, RetriableConnectError."""
        parsed = keys.official_keys().parse(config)
        cluster_map = map_of(keys.access_of(parsed, parsed["couchbase.seed.nodes"], parsed["couchbase.bucket"]))
        return [
            {
                **config,
                PARTITIONS: partitions.written(run),
                TASK_ID: f"maybe-{task}",
                CLUSTER_UUID: cluster_map.cluster_uuid,
            }
            for task, run in enumerate(partitions.dealt(len(cluster_map.vbuckets), max_tasks))
        ]

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Within a branch of a vbucket's history."""
        return True

    @classmethod
    def resting(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Watch | None:
        """Returns a watch on all vbuckets, if each has an offset to continue from."""
        parsed = keys.official_keys().parse(config)
        bucket, seeds = parsed["couchbase.bucket"], parsed["couchbase.seed.nodes"]
        if parsed["couchbase.connector.name.in.offsets"] or not _resumes(parsed):
            return None
        return partitions.watch(config.get(PARTITIONS, ""), bucket, offset, keys.reached_by(parsed, seeds, bucket))

    @classmethod
    def open_task_reader(
        cls, config: Mapping[str, str], task: SourceTask, offset: Callable[[Partition], Offset | None]
    ) -> Reader:
        """The reader of the task's vbuckets. Raises ConnectError."""
        parsed = keys.official_keys().parse(config)
        bucket = parsed["couchbase.bucket"]
        name = task.connector if parsed["couchbase.connector.name.in.offsets"] else ""

        def partition(vbucket: int) -> Partition:
            return partitions.partition(bucket, vbucket, name)

        numbers = partitions.read(config.get(PARTITIONS, ""))
        starts = {number: _start(parsed["couchbase.stream.from"], offset(partition(number))) for number in numbers}
        options = StreamOptions(
            selection=keys.selection_of(parsed),
            no_value=parsed["couchbase.no.value"],
            xattrs=parsed["couchbase.xattrs"],
            buffer_bytes=size_bytes(parsed["couchbase.flow.control.buffer"]),
            polling_seconds=seconds(parsed["couchbase.persistence.polling.interval"]),
        )
        return CouchbaseReader(
            keys.access_of(parsed, parsed["couchbase.seed.nodes"], bucket, task),
            options,
            starts,
            partition,
            OfficialRecords(config, parsed, task.worker),
            properties=keys.reached_by(parsed, parsed["couchbase.seed.nodes"], bucket),
            resumes=_resumes(parsed),
            most=parsed["couchbase.batch.size.max"],
            beat=task.beat,
        )


class OfficialRecords:
    """Makes records of changes with the handler that is configured."""

    def __init__(
        self, config: Mapping[str, str], parsed: Mapping[str, Any], worker: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """`worker`: its properties, which may name the header converter. Raises ConfigValueError where that is none."""
        self._bucket = parsed["couchbase.bucket"]
        self._handler = documents.SERVED[parsed["couchbase.source.handler"]]
        self._no_value = parsed["couchbase.no.value"]
        self._topic, self._topics = parsed["couchbase.topic"], keys.topics_of(config, parsed)
        self._headers, self._prefix = parsed["couchbase.headers"], parsed["couchbase.header.name.prefix"]
        self._converter = converter_for("header", config, worker)
        self._system = parsed["couchbase.event.filter"] == keys.ALL_PASS_SYSTEM
        self._black_hole, self._initial = parsed["couchbase.black.hole.topic"], parsed["couchbase.initial.offset.topic"]
        self._saved_or_now = parsed["couchbase.stream.from"] == "SAVED_OFFSET_OR_NOW"
        self._named: dict[Collection, str] = {}
        self._no_json, self._warned_at = 0, float("-inf")

    def rows(self, events: Sequence[Event]) -> Sequence[TopicRows]:
        """By topic, those that are passed over in the topic for them."""
        by_topic: dict[str, TopicRows] = {}
        passed = TopicRows(self._black_hole)
        value, bucket, no_value, all_keys = self._handler.value, self._bucket, self._no_value, self._system
        current: Collection | None = None
        rows: TopicRows | None = None
        for event in events:
            if event.collection is not current:
                current = event.collection
                rows = None if current is None else self._rows_of(current, by_topic)
            if current is None:
                continue
            key = event.key
            row = SKIPPED if rows is None or (key[:5] == b"_txn:" and not all_keys) else value(event, bucket, no_value)
            if row is SKIPPED or rows is None:
                if rows is not None and (all_keys or key[:5] != b"_txn:"):
                    self._warn(event)
                passed.add(event, b"ignored-%d" % event.vbucket, None)
                continue
            rows.add(event, key, row)
        if self._headers:
            for rows in by_topic.values():
                rows.headers = self._headers_of(rows.events)
        parts = [*by_topic.values(), passed] if self._black_hole else [*by_topic.values()]
        return [part for part in parts if part.events]

    def _headers_of(self, events: Sequence[Event]) -> list[Headers]:
        """The headers of some records as the connector's header converter writes them. Raises ConnectError."""
        columns = documents.headers(events, self._bucket, self._headers, self._prefix)
        try:
            raw = [self._converter.from_connect(column) for _, column in columns]
        except DataError as error:
            raise ConnectError(f"header.converter {self._converter.name} cannot write the headers: {error}") from error
        names = [name for name, _ in columns]
        return [list(zip(names, row, strict=True)) for row in zip(*raw, strict=True)]

    def _warn(self, event: Event) -> None:
        """Logs a document that is passed over because it is no JSON: now and then, with how many there were."""
        self._no_json += 1
        now = time.monotonic()
        if now - self._warned_at >= WARN_SECONDS:
            _log.warning(
                "couchbase_no_json", bucket=self._bucket, collection=str(event.collection),
                document=event.key.decode("utf-8", "replace"), passed_over=self._no_json,
            )  # fmt: skip
            self._no_json, self._warned_at = 0, now

    def _rows_of(self, collection: Collection, by_topic: dict[str, TopicRows]) -> TopicRows | None:
        """Returns the topic for the records of a collection; None if its changes are passed over."""
        topic = self._named.get(collection)
        if topic is None:
            topic = self._name(collection)
        if topic == PASSED:
            return None
        rows = by_topic.get(topic)
        if rows is None:
            rows = by_topic[topic] = TopicRows(topic, self._handler.schema)
        return rows

    def first(self, begins: Mapping[int, Position], fresh: Sequence[int]) -> Sequence[TopicRows]:
        """A record for each vbucket that begins with now, where there is a topic for them."""
        if not self._initial or not self._saved_or_now or not fresh:
            return ()
        rows = TopicRows(self._initial)
        for vbucket in fresh:
            seqno, place = begins[vbucket]
            event = Event(0, vbucket, seqno, place or HistoryPlace(), None, b"", b"", 0, 0, 0, 0, 0, 0, 0)
            rows.add(event, INITIAL_KEY, None)
        return (rows,)

    def _name(self, collection: Collection) -> str:
        """Returns the topic of a collection; PASSED for a system collection that the filter leaves out."""
        scope = collection.scope
        if not self._system and (scope.startswith("%") or (scope.startswith("_") and scope != DEFAULT)):
            self._named[collection] = PASSED
            return PASSED
        topic = self._topics.get(collection, self._topic)
        for name, value in zip(_PLACEHOLDERS, (self._bucket, *collection), strict=True):
            topic = topic.replace("${%s}" % name, value)  # noqa: UP031  braces stand for themselves
        self._named[collection] = topic.replace("%", "_")
        return self._named[collection]


def map_of(access: BucketAccess) -> ClusterMap:
    """The bucket's map now. Raises ConnectError, RetriableConnectError."""

    async def asked() -> ClusterMap:
        return await BucketCluster(access).bootstrap()

    with connect_errors():
        return KAFKA_LOOP.call(asked())


def _resumes(parsed: Mapping[str, Any]) -> bool:
    """Returns whether a restarted task continues from its offsets."""
    return str(parsed["couchbase.stream.from"]).startswith("SAVED")


def _start(stream_from: str, saved: Offset | None) -> Position | None:
    """None for behind the last change."""
    if stream_from.startswith("SAVED") and saved is not None:
        return partitions.position(saved)
    return None if stream_from.endswith("NOW") else Position()
