"""Ranges of Kafka's records that Spark appends to a data set, for a sink."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.connect.tasks.data_set import DataSink
from keelman.connectors.registry import find_connector
from keelman.connectors.spark.sink import ONCE_FILES
from keelman.engine.sink.ranges import SCHEMA, Range, range_work
from keelman.model.errors import InvalidArgument
from keelman.spark.data_sets.reads import SparkSessions
from keelman.spark.data_sets.targets.files import write_files
from keelman.spark.data_sets.targets.tables import write_table


def sink_of(job: WriteJob) -> DataSink:
    """Returns the data set that the job's connector has Spark write. Raises InvalidArgument for other connectors."""
    config = dict(job.config)
    sink = find_connector(config.get("connector.class", "")).data_sink(config)
    if sink is None:
        raise InvalidArgument.of("connector.class", config.get("connector.class", ""), "a sink that Spark writes for")
    return sink


def write(sessions: SparkSessions, name: str, job: WriteJob, sink: DataSink, jars: Sequence[Path]) -> None:
    """Blocks until all is written: once, where the job has a number. Raises Spark's errors, and those of the data set's
    kind (keelman.spark.data_sets.targets)."""
    sessions.context.setJobGroup(name, name, interruptOnCancel=True)
    session = sessions.new(sink, jars)
    frame = records(session, sink, job)
    if not job.writer:
        append(frame, sink, sink.path)
    elif sink.format.lower() in ONCE_FILES:
        write_files(session, sink.path, job, partial(append, frame, sink))
    else:
        write_table(session, sink.options, job, frame)


def append(frame: Any, sink: DataSink, path: str) -> None:
    """Has Spark append a frame to the data set at a path; an empty one where options name it."""
    writer = frame.write.format(sink.format).options(**sink.options).mode("append")
    if path:
        writer.save(path)
    else:
        writer.save()


def records(session: Any, sink: DataSink, job: WriteJob) -> Any:
    """Returns the records as a frame, as many parts as there are readers."""
    from pyspark.sql import functions as sql  # noqa: PLC0415  (a second, and the driver has it loaded by now)

    ranges = [Range(stretch.topic, stretch.partition, stretch.begin, stretch.end) for stretch in job.ranges]
    count = max(1, min(sink.readers, len(ranges)))
    work = range_work(ranges, count, dict(job.client_properties))
    frame = session.range(0, count, 1, count).mapInArrow(work, SCHEMA)
    if not sink.schema:
        return frame
    mode = {"mode": "FAILFAST" if sink.strict else "PERMISSIVE"}
    return frame.select(sql.from_json(sql.col("value").cast("string"), sink.schema, mode).alias("row")).select("row.*")
