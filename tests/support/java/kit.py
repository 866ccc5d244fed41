"""Java connectors for tests, compiled here, and the code that opens their tasks in the process that copies for them."""

from __future__ import annotations

import asyncio
import functools
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.connect.plugin import Connector, Direction, Reader, SinkTask, Writer
from keelman.connect.previews.record_trace import PreviewSteps
from keelman.connect.records import Offset, Partition
from keelman.connect.registry.interface import OpenRegistry
from keelman.connect.tasks.source_task import SourceTask
from keelman.connectors.java import jvm
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.sink.writer import open_writer
from keelman.connectors.java.source.reader import open_reader
from keelman.connectors.java.steps.record_views import JavaSteps
from keelman.model.errors import FailedPrecondition
from keelman.runtime.java.installation import find
from support.copying.harness import OneTask
from support.java.compiler import classes_of

SOURCES = Path(__file__).parent / "sources"


def missing() -> str:
    """The reason why Java's connectors cannot be run or compiled here; empty when they can."""
    try:
        jvm.jpype()
        compiler = find().program.with_name("javac")
    except FailedPrecondition as error:
        return error.message
    return "" if compiler.exists() else "there is no javac beside Java"


async def compiled(folder: Path) -> Path:
    """The classes of the connectors of this kit, in this folder."""
    new_classes_of = await asyncio.to_thread(
        classes_of, sorted(SOURCES.rglob("*.java")), await jvm.fetch_runtime_jars()
    )
    shutil.copytree(new_classes_of, folder, dirs_exist_ok=True)
    return folder


async def packed(folder: Path, *, manifest: str = "") -> Path:
    """A plugin path with all of them in one jar, which has these lines in its manifest."""
    classes = await compiled(folder / "classes")
    jar = folder / "plugins" / "acme" / "acme.jar"
    jar.parent.mkdir(parents=True)
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\n{manifest}\n")
        for file in sorted(classes.rglob("*.class")):
            archive.write(file, str(file.relative_to(classes)))
    return jar.parent.parent


def _loader(config: Mapping[str, str]) -> PluginLoader:
    """The loader of the folder of classes or jars that the configuration names; starts the machine."""
    jvm.start(jvm.JvmOptions(heap_bytes=128 << 20, quick=True))
    return _loader_of(Path(config["classes"]))


@functools.cache
def _loader_of(folder: Path) -> PluginLoader:
    return PluginLoader(folder, [folder, *sorted(folder.glob("*.jar"))])


class JavaTask(OneTask):
    """A source whose task is the Java class that its configuration names, of the classes in a folder."""

    names = ("java",)
    direction = Direction.SOURCE
    converts = True

    @classmethod
    def open_task_reader(
        cls, config: Mapping[str, str], task: SourceTask, offset: Callable[[Partition], Offset | None]
    ) -> Reader:
        return open_reader(_loader(config), config["task.class"], config, task)

    @classmethod
    def open_steps(
        cls, config: Mapping[str, str], worker: Mapping[str, str], open_registry: OpenRegistry
    ) -> PreviewSteps:
        return JavaSteps(_loader(config), config, worker, open_registry)


class JavaSinkTask(OneTask):
    """The same for a sink."""

    names = ("java",)
    direction = Direction.SINK
    converts = True

    @classmethod
    def open_task_writer(cls, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool) -> Writer:
        return open_writer(_loader(config), config["task.class"], config, task)

    @classmethod
    def open_steps(
        cls, config: Mapping[str, str], worker: Mapping[str, str], open_registry: OpenRegistry
    ) -> PreviewSteps:
        return JavaSteps(_loader(config), config, worker, open_registry)


def found(class_name: str) -> type[Connector]:
    """The class for any name."""
    return JavaSinkTask if "Sink" in class_name else JavaTask


def needs_java() -> Any:
    """Marks tests that are skipped without Java."""
    return pytest.mark.skipif(bool(missing()), reason=missing() or "Java is here")
