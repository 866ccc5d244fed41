"""Makes the class data archive that shortens the start of Java in slots: `python -m keelman.connectors.java.archive`.

Java maps the archive instead of reading and checking Connect's classes at each start. A process of its own runs what
every Java task runs first, and leaves at its end the classes that it loaded; so no task waits for that. The file
appears complete or not at all.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from keelman.connectors.java import jvm, logs
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.java import installation
from keelman.runtime.java.class_archive import archive_file
from keelman.runtime.java.ivy import Progress

USED = (
    "org.apache.kafka.clients.consumer.KafkaConsumer",
    "org.apache.kafka.common.header.internals.RecordHeaders",
    "org.apache.kafka.common.metrics.Metrics",
    "org.apache.kafka.connect.runtime.WorkerSinkTaskContext",
    "org.apache.kafka.connect.sink.SinkRecord",
    "org.apache.kafka.connect.source.SourceRecord",
    "org.apache.kafka.connect.storage.OffsetStorageReaderImpl",
    "org.apache.kafka.connect.storage.OffsetStorageWriter",
    "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "org.apache.kafka.connect.util.ConnectorTaskId",
)
"""Classes of the runtime that tasks need, with all that their initializers load."""
JSON = "org.apache.kafka.connect.json.JsonConverter"


async def make_archive(progress: Progress) -> Path:
    """Starts a machine, does what tasks do first, and ends it, where the archive is not there. Returns the file.

    Raises as `fetch_runtime_jars` and `jvm.start`, and Unavailable where Java wrote none.
    """
    java = installation.find()
    target = archive_file(await jvm.fetch_runtime_jars(progress), java)
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="making-") as name:
        path = Path(name) / "classes.jsa"
        jvm.start(jvm.JvmOptions(more=[f"-XX:ArchiveClassesAtExit={path}", "-Xlog:disable"]))
        _exercise()
        jvm.jpype().shutdownJVM()
        if not path.is_file():
            raise Unavailable(f"Java {java.version} wrote no class data archive", reason="ARCHIVE_FAILED")
        os.replace(path, target)
    return target


def _exercise() -> None:
    for name in USED:
        jvm.java_class(name)
    loader = PluginLoader(Path(), [])
    with loader.entered():
        converter = jvm.java_class(JSON)()
        converter.configure(jvm.java_class("java.util.HashMap")(), False)
        converter.toConnectData("any", converter.fromConnectData("any", None, jvm.java_class("java.lang.Long")(1)))
    logs.take_over()  # at the end: the converter's log lines are not needed


def main() -> int:
    """Makes the archive if it is not there; prints its path."""
    try:
        print(asyncio.run(make_archive(lambda line: print(line, file=sys.stderr))))
    except KeelmanError as error:
        print(f"keelman.connectors.java.archive: {error.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # Python's own end would wait for Java's threads
