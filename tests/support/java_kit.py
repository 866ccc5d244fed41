"""Java connectors for tests, compiled here, and a process that copies for one of their tasks.

As a program (`python -m support.java_kit <spec.json>`) it is `support.copy_harness` with these connectors; with
`preview` in its specification it prints that preview.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.connect.plugin import Connector, Direction, Reader, SinkTask, Writer
from keelman.connect.records import Offset, Partition
from keelman.connect.source_task import SourceTask
from keelman.connectors.java import jvm, poll_thread
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.sink import open_writer
from keelman.connectors.java.source import open_reader
from keelman.connectors.plugins.previews import preview
from keelman.model.errors import FailedPrecondition
from keelman.runtime.java.installation import find
from support.copy_harness import OneTask, host

SOURCES = Path(__file__).parent / "java"
COMPILE_SECONDS = 120


def missing() -> str:
    """Why Java's connectors cannot be run or compiled here; empty when they can."""
    try:
        jvm.jpype()
        compiler = find().program.with_name("javac")
    except FailedPrecondition as error:
        return error.message
    return "" if compiler.exists() else "there is no javac beside Java"


async def compiled(folder: Path) -> Path:
    """The classes of the connectors of this kit, in this folder; compiled once a process."""
    shutil.copytree(_compiled(await jvm.fetch_runtime_jars()), folder, dirs_exist_ok=True)
    return folder


@functools.cache
def _compiled(jars: tuple[Path, ...]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="java-kit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sources = [str(one) for one in sorted(SOURCES.rglob("*.java"))]
    command = [str(find().program.with_name("javac")), "-nowarn", "-d", str(folder), "-cp", ":".join(map(str, jars))]
    subprocess.run([*command, *sources], check=True, timeout=COMPILE_SECONDS)
    return folder


class JavaTask(OneTask):
    """A source whose task is the Java class that its configuration names, of the classes in a folder."""

    names = ("java",)
    direction = Direction.SOURCE
    converts = True

    @classmethod
    def open_task_reader(
        cls, config: Mapping[str, str], task: SourceTask, offset: Callable[[Partition], Offset | None]
    ) -> Reader:
        folder = Path(config["classes"])
        jvm.start(jvm.JvmOptions(heap_bytes=128 << 20))
        return open_reader(PluginLoader(folder, [folder]), config["task.class"], config, task)


class JavaSinkTask(OneTask):
    """The same for a sink."""

    names = ("java",)
    direction = Direction.SINK
    converts = True

    @classmethod
    def open_task_writer(cls, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool) -> Writer:
        folder = Path(config["classes"])
        jvm.start(jvm.JvmOptions(heap_bytes=128 << 20))
        made = PluginLoader(folder, [folder])
        return open_writer(made, config["task.class"], config, task, exactly_once=exactly_once)


def found(class_name: str) -> type[Connector]:
    """Whatever is asked for."""
    return JavaSinkTask if "Sink" in class_name else JavaTask


def needs_java() -> Any:
    """Marks tests that are skipped where there is no Java."""
    return pytest.mark.skipif(bool(missing()), reason=missing() or "Java is here")


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    if "preview" in given:
        print(json.dumps(preview(JavaTask, given["preview"])))
        code = 0
    else:
        poll_thread.LONG_SECONDS = given.get("long_seconds", poll_thread.LONG_SECONDS)
        code = host(given, found)
    sys.stdout.flush()
    os._exit(code)  # the machine would be waited for
