"""Iceberg's sink as a plugin with a catalog of files, and the rows of its tables.

As a program (`python -m support.java.iceberg <table's folder>`) it prints them, one a line, read by Iceberg itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyspark

from keelman.connectors.java import jvm
from keelman.runtime.java.installation import find
from support.java.published import ICEBERG
from support.places import with_tests

ICEBERG_SINK = "org.apache.iceberg.connect.IcebergSinkConnector"
READ_SECONDS = 180
HADOOP = ("hadoop-client-api", "hadoop-client-runtime")
"""The libraries of its catalog of files, which its plugin does not bring; PySpark does."""


async def plugin_path(folder: Path) -> str:
    """A worker's `plugin.path` with the sink and Hadoop's client."""
    (plugin,) = (await ICEBERG.path()).iterdir()
    target = folder / "plugins" / plugin.name
    target.mkdir(parents=True)
    for jar in (*plugin.iterdir(), *_hadoop()):
        (target / jar.name).symlink_to(jar)
    return str(target.parent)


def _hadoop() -> list[Path]:
    jars = Path(str(pyspark.__file__)).parent / "jars"
    return [path for path in jars.iterdir() if path.name.startswith(HADOOP)]


def sink_config(bootstrap: str, topic: str, warehouse: Path, **more: str) -> dict[str, str]:
    """Writes a topic of JSON objects into the table `db.<topic>`; keys of `more` have `_` for `.`."""
    return {
        "connector.class": ICEBERG_SINK,
        "topics": topic,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "iceberg.tables": f"db.{topic}",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": warehouse.as_uri(),
        "iceberg.control.topic": f"{topic}-control",
        "iceberg.control.commit.interval-ms": "1000",
        "iceberg.kafka.bootstrap.servers": bootstrap,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


async def rows(table: Path) -> list[dict[str, Any]]:
    """All present rows of a table; empty if it does not exist yet."""
    if not (table / "metadata" / "version-hint.text").exists():
        return []
    command = [sys.executable, "-m", "support.java.iceberg", str(table)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False, timeout=READ_SECONDS, env=with_tests()
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def _read(table: str, jars: Iterable[Path]) -> None:
    library = jvm.jpype()
    machine = str(find().home / "lib" / "server" / "libjvm.so")
    library.startJVM(machine, "-Xmx128m", classpath=[str(jar) for jar in jars], convertStrings=False)
    conf = library.JClass("org.apache.hadoop.conf.Configuration")()
    result = library.JClass("org.apache.iceberg.hadoop.HadoopTables")(conf).load(table)
    names = [str(column.name()) for column in result.schema().columns()]
    for row in library.JClass("org.apache.iceberg.data.IcebergGenerics").read(result).build():
        values = [row.getField(name) for name in names]
        print(json.dumps({n: None if v is None else str(v.toString()) for n, v in zip(names, values, strict=True)}))
    sys.stdout.flush()


if __name__ == "__main__":
    (home,) = asyncio.run(ICEBERG.path()).iterdir()
    _read(sys.argv[1], [*home.iterdir(), *_hadoop()])
    os._exit(0)  # otherwise it would wait for the machine
