"""The data sets that Spark reads for sources: how it splits them, and the rows of one part for one slot."""

from __future__ import annotations

import hashlib
import importlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector
from keelman.connect.tasks.data_set import PART, SPLIT, DataSet, DataSink
from keelman.connectors.registry import find_connector
from keelman.model.errors import FailedPrecondition, InvalidArgument, KeelmanError, NotFound

SCHEMA = "id long"
Work: TypeAlias = Callable[[Iterable[Any]], Iterator[Any]]
KEPT = 64
# For the session that reads data. Spark's own default makes a part for each core, and slots are not cores here.
SETTINGS = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
}
COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
FILES = "FilePartition"
LASTING = ("AnalysisException", "ParseException", "IllegalArgumentException")
LASTING_TEXTS = ("MALFORMED_RECORD", "DATA_SOURCE_NOT_FOUND")
# Such keys may not enter an offset topic, even as a digest, nor does a new password change which rows are read.
SECRET = re.compile("secret|password|token|credential|key|user|url", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PartRequest:
    """The part of a data set for one slot. `task` is worker cluster, connector and number."""

    task: tuple[str, str, int]
    data: DataSet
    part: int
    split: str


@dataclass(frozen=True, slots=True)
class Split:
    """Spark's split of a data set; the digest is the same as long as every part has the same rows, as far as Spark
    knows: for files their ranges, lengths and times, for a table only the conditions of its queries."""

    parts: int
    digest: str


@dataclass(frozen=True, slots=True)
class Unread:
    """Why Spark cannot read a data set, in one line; `lasting` when it would fail again."""

    why: str
    lasting: bool


LookAt: TypeAlias = Callable[[tuple[str, str, int], DataSet, Callable[[Split | Unread], None]], None]
"""Has Spark look at a task's data set, and calls back with its split or the reason why it cannot be read."""


def wanted(ticket: StartTicket) -> DataSet | PartRequest | None:
    """Returns the data that Spark has to read for a copy run: a data set to be split, a part of one, or nothing.

    Raises ConnectError for a configuration that is not legal.
    """
    config = {**ticket.connector_config, **ticket.task_config}
    name = config.get("connector.class", "")
    if ticket.plugin.folder or not name:
        return None  # a search for a third-party class loads all of them: not while leases wait to be renewed
    try:
        connector: type[Connector] = find_connector(name)
    except NotFound:
        return None  # the copy run reports it
    data = connector.data_set(config)
    if data is None or not ticket.bulk.part:
        return data
    task = ticket.worker_cluster, ticket.connector, ticket.task
    return PartRequest(task, data, int(config[PART]), config[SPLIT])


class SparkSessions:
    """Sessions for data sets, all on the Spark of the slots: their settings differ from those that slots need."""

    def __init__(self, session: Any) -> None:
        self.context = session.sparkContext
        self._session = session
        self._added: set[Path] = set()

    def new(self, data: DataSet | DataSink, jars: Sequence[Path]) -> Any:
        """Returns a session with the data set's settings, jars and Python source. Raises InvalidArgument and Spark's
        errors."""
        session = self._session.newSession()
        for key, value in {**SETTINGS, **data.settings}.items():
            session.conf.set(key, value)
        for jar in jars:
            if jar not in self._added:
                session.sql(f"ADD JAR '{jar}'").collect()
                self._added.add(jar)
        self.enter()
        if data.python:
            session.dataSource.register(python_source(data.python))
        return session

    def enter(self) -> None:
        """Sets this thread's class loader, in which drivers and formats look for their classes, so that it finds the
        jars too."""
        if self._added:
            loader = self._session._jsparkSession.sharedState().jarClassLoader()
            self.context._jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)


class DataSets:
    """The data sets that one Spark reads. All methods block: call them in threads, several at a time."""

    def __init__(self, sessions: SparkSessions) -> None:
        self._sessions = sessions
        self._frames: OrderedDict[tuple[str, str, int], tuple[Split, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def split(self, task: tuple[str, str, int], data: DataSet, jars: Sequence[Path]) -> Split:
        """Looks at the data set again; `jars` are those of its packages. Raises Spark's errors."""
        frame = self._frame(data, jars)
        split = described(frame, shape(data))
        with self._lock:
            self._frames[task] = split, frame
            self._frames.move_to_end(task)
            while len(self._frames) > KEPT:
                self._frames.popitem(last=False)
        return split

    def read(self, job: str, part_request: PartRequest, work: Work) -> None:
        """Runs a job over one part, in the job group of its name. Raises KeelmanError when the part has changed, and
        Spark's errors."""
        with self._lock:
            entry = self._frames.get(part_request.task)
            if entry is not None:
                self._frames.move_to_end(part_request.task)
        if entry is None or entry[0].digest != part_request.split:
            raise NotFound(
                "this Spark has not read the data set's plan, or it has changed since", reason="DATA_CHANGED"
            )
        frame = entry[1]
        self._sessions.enter()
        context = self._sessions.context
        context.setJobGroup(job, job, interruptOnCancel=True)
        gateway = context._gateway
        parts = gateway.new_array(gateway.jvm.int, 1)
        parts[0] = part_request.part
        rdd = frame.mapInArrow(work, SCHEMA)._jdf.queryExecution().toRdd()
        rdd.toJavaRDD().collectPartitions(parts)

    def _frame(self, data: DataSet, jars: Sequence[Path]) -> Any:
        from pyspark.sql import functions as sql  # noqa: PLC0415  (a second, and the driver has it loaded by now)

        session = self._sessions.new(data, jars)
        reader = session.read.format(data.format).options(**data.options)
        if data.schema:
            reader = reader.schema(data.schema)
        frame = reader.load(data.path) if data.path else reader.load()
        if "value" in frame.columns:
            return frame.select(*(sql.col(n).cast(kind).alias(n) for n, kind in COLUMNS.items() if n in frame.columns))
        columns = [sql.to_json(sql.struct("*")).cast("binary").alias("value")]
        if data.key:
            columns.insert(0, sql.col(data.key).cast("string").cast("binary").alias("key"))
        return frame.select(*columns)


def python_source(name: str) -> Any:
    """Returns the class of a Python data source by module:Class. Raises InvalidArgument."""
    module, _, kind = name.partition(":")
    try:
        return getattr(importlib.import_module(module), kind)
    except (Exception, SystemExit) as error:  # any error of the module's import
        raise InvalidArgument.of("spark.python.source", name, f"module:Class that can be imported ({error})") from None


def shape(data: DataSet) -> str:
    """Returns the part of a data set's description that decides which rows come in which order, without possible
    secrets."""
    settings = {**data.options, **data.settings}
    open_ones = sorted((key, value) for key, value in settings.items() if not SECRET.search(key))
    return repr((data.format, data.schema, data.python, open_ones))


def described(frame: Any, shape: str) -> Split:
    """Returns the parts of a frame, without reading any; `shape` is the rest that decides which rows they have."""
    digest = hashlib.sha256(shape.encode())
    parts = frame._jdf.queryExecution().toRdd().partitions()
    for part in parts:
        kind = part.getClass().getSimpleName()
        if kind == FILES:
            for file in part.files():
                digest.update(f"{file.toString()} {file.fileSize()} {file.modificationTime()}\n".encode())
        else:
            digest.update(f"{kind}\n".encode() if "@" in (text := part.toString()) else f"{text}\n".encode())
        digest.update(b"--\n")
    return Split(len(parts), digest.hexdigest()[:24])


def lasting(error: BaseException) -> bool:
    """Returns whether the request would fail again: a configuration or a record that does not fit."""
    if isinstance(error, (InvalidArgument, FailedPrecondition, ConnectError)):
        return True
    return type(error).__name__ in LASTING or any(text in str(error) for text in LASTING_TEXTS)


def problem(error: BaseException) -> str:
    """Returns why Spark cannot read a data set, in one line."""
    if isinstance(error, KeelmanError):
        return error.message
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("An error occurred")), type(error).__name__)[:500]
