"""Java connectors that were started for their task configurations, kept while the group's leader uses them.

A connector may watch its system in a separate thread and request new tasks, or fail; so it stays started in its
plugin host while the leader calls every few seconds, and is stopped when no call has come for a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.offsets import CommittedOffsets
from keelman.connectors.java.configs import string_map
from keelman.connectors.java.errors import connect_error, translated
from keelman.connectors.java.jvm import jpype
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.plugin_metrics import PluginMetrics
from keelman.connectors.java.source.offsets import TaskOffsets

FORGOTTEN_SECONDS = 30.0
LOOK_SECONDS = 5.0
TASK_CLASS = "task.class"
"""The key of a task's configuration that names its class, as in Connect's config topic."""


class LatestOffsets(CommittedOffsets):
    """The committed offsets as of the last request for the connector's tasks."""

    def take(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Replaces the offsets by these keys and values of the offset topic, oldest first."""
        CommittedOffsets.__init__(self, self.connector, rows)


@dataclass(slots=True)
class ConnectorContext:
    """A connector's interface to its worker; Java calls it, by these names and from any thread."""

    committed: LatestOffsets
    offsets: TaskOffsets
    metrics: PluginMetrics
    asked_again: bool = False
    failure: ConnectError | None = None

    def requestTaskReconfiguration(self) -> None:
        """Notes that the connector wants new tasks."""
        self.asked_again = True

    def raiseError(self, error: Any) -> None:
        """Notes that the connector has failed."""
        self.failure = connect_error(error)

    def pluginMetrics(self) -> Any:
        """Returns the connector's plugin metrics."""
        return self.metrics.java

    def offsetStorageReader(self) -> Any:
        """Returns a reader of the committed offsets, for a source."""
        return self.offsets.reader


@dataclass(slots=True)
class Started:
    """One running connector."""

    connector: Any
    loader: PluginLoader
    config: dict[str, str]
    context: ConnectorContext
    asked_at: float = field(default_factory=time.monotonic)

    def tasks(self, most: int) -> list[dict[str, str]]:
        """Returns the configurations of its tasks. Raises ConnectError."""
        name = str(self.connector.getClass().getName())
        self.context.asked_again = False
        with self.loader.entered(), translated(f"{name}.taskConfigs"):
            configs = self.connector.taskConfigs(most)
            if configs is None:
                raise ConnectError(f"{name}.taskConfigs returned null; expected a list with a map for each task")
            task_class = self.connector.taskClass()
            if task_class is None:
                raise ConnectError(f"{name}.taskClass returned null; expected the class of its tasks")
            task_configs = [
                {str(e.getKey()): str(e.getValue()) for e in config.entrySet() if e.getValue() is not None}
                for config in configs
            ]
        return [{**config, TASK_CLASS: str(task_class.getName())} for config in task_configs]

    def stop(self) -> None:
        """Stops the connector. Raises ConnectError."""
        with self.loader.entered(), translated(f"{self.connector.getClass().getName()}.stop"):
            self.connector.stop()
        self.context.offsets.close()
        self.context.metrics.close()


class StartedConnectors:
    """The started connectors of one plugin host, by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._found: dict[str, Started] = {}
        self._rows: dict[str, Sequence[tuple[bytes, bytes | None]]] = {}
        self._sweeper: threading.Thread | None = None

    def take_offsets(self, name: str, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Sets the rows of the offset topic that the connector of this name reads from now on."""
        with self._lock:
            self._rows[name] = rows
            if (started := self._found.get(name)) is not None:
                started.context.committed.take(rows)

    def started(self, loader: PluginLoader, make: Callable[[], Any], config: Mapping[str, str], kind: str) -> Started:
        """Returns the connector with this configuration, and starts it if it is not running. Raises ConnectError."""
        name = config.get("name", "")
        with self._lock:
            started = self._found.get(name)
            if started is not None and started.config == dict(config) and started.context.failure is None:
                started.asked_at = time.monotonic()
                return started
            self._forget(name)
            connector = make()
            class_name = str(connector.getClass().getName())
            context = _context(name, self._rows.get(name, ()))
            interface = f"org.apache.kafka.connect.{kind}.{kind.capitalize()}ConnectorContext"
            with loader.entered(), translated(f"{class_name}.start"):
                connector.initialize(jpype().JProxy(interface, inst=context))
                connector.start(string_map(config))
            started = self._found[name] = Started(connector, loader, dict(config), context, time.monotonic())
            self._watch()
            return started

    def settled(self, config: Mapping[str, str]) -> bool:
        """Returns whether it runs with this configuration and has not requested new tasks. Raises the connector's own
        failure, once: then it is stopped, and the next request for its tasks starts it again."""
        name = config.get("name", "")
        with self._lock:
            started = self._found.get(name)
            if started is None or started.config != dict(config):
                return False
            started.asked_at = time.monotonic()
            if (failure := started.context.failure) is not None:
                self._forget(name)
                raise failure
            return not started.context.asked_again

    def stop_all(self) -> None:
        """Stops all running connectors."""
        with self._lock:
            for name in tuple(self._found):
                self._forget(name)

    def sweep(self) -> None:
        """Stops connectors without a call for `FORGOTTEN_SECONDS`."""
        with self._lock:
            now = time.monotonic()
            for name in [n for n, started in self._found.items() if now - started.asked_at > FORGOTTEN_SECONDS]:
                self._forget(name)

    def _forget(self, name: str) -> None:
        started = self._found.pop(name, None)
        if started is not None:
            try:
                started.stop()
            except ConnectError:
                return  # it is gone all the same

    def _watch(self) -> None:
        if self._sweeper is None:
            self._sweeper = threading.Thread(target=self._sweep_on, name="stops connectors", daemon=True)
            self._sweeper.start()

    def _sweep_on(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            self.sweep()


def _context(connector: str, rows: Sequence[tuple[bytes, bytes | None]]) -> ConnectorContext:
    committed = LatestOffsets(connector, rows)
    return ConnectorContext(committed, TaskOffsets(committed), PluginMetrics({"connector": connector}))
