"""The non-public classes of Kafka Connect's runtime that the bridge to Java uses, as `javap` shows them.

Run it by hand when the lock of the runtime's jars changes, and read the difference: `python -m
recorded.java.runtime_classes` writes runtime_classes.txt beside this file.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from keelman.connectors.java import jvm
from keelman.runtime.java.installation import find

RECORD = Path(__file__).with_name("runtime_classes.txt")
SECONDS = 60
CLASSES = tuple(
    f"org.apache.kafka.{name}"
    for name in (
        "clients.producer.internals.BuiltInPartitioner",
        "common.compress.Compression",
        "common.header.internals.RecordHeaders",
        "common.internals.Plugin",
        "common.metrics.Metrics",
        "common.metrics.internals.PluginMetricsImpl",
        "common.record.internal.CompressionType",
        "common.record.internal.MemoryRecordsBuilder",
        "common.utils.ByteBufferOutputStream",
        "connect.runtime.SessionKey",
        "connect.runtime.TargetState",
        "connect.runtime.TransformationStage",
        "connect.runtime.WorkerSinkTask",
        "connect.runtime.WorkerSinkTaskContext",
        "connect.runtime.WorkerTask",
        "connect.runtime.WorkerTransactionContext",
        "connect.runtime.isolation.LoaderSwap",
        "connect.runtime.isolation.PluginClassLoader",
        "connect.storage.ClusterConfigState",
        "connect.storage.OffsetBackingStore",
        "connect.storage.OffsetStorageReaderImpl",
        "connect.storage.OffsetStorageWriter",
        "connect.util.Callback",
        "connect.util.ConnectUtils",
        "connect.util.ConnectorTaskId",
    )
)


async def shown() -> str:
    """The output of javap for these classes of the locked jars."""
    jars = await jvm.fetch_runtime_jars()
    program = str(find().program.with_name("javap"))
    command = [program, "-package", "-cp", ":".join(map(str, jars)), *CLASSES]
    result = subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    return "".join(f"{line}\n" for line in result.stdout.splitlines() if not line.startswith("Compiled from"))


if __name__ == "__main__":
    RECORD.write_text(asyncio.run(shown()))
