"""A connector written in Java as a class of ours: its methods call the Java class.

The virtual machine starts with the first call. In a plugin host the class answers about configurations and tasks; in a
slot its tasks run. Source: `AbstractHerder`, `Worker` and `SourceConnector` of Kafka Connect 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from keelman.connect.config.definition import ConfigDef, ConfigValue
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.plugin import Connector, Direction, Reader, SinkTask, Writer
from keelman.connect.previews.record_trace import PreviewSteps
from keelman.connect.records import Offset, Partition
from keelman.connect.registry.interface import OpenRegistry
from keelman.connect.tasks.source_task import SourceTask
from keelman.connectors import registry
from keelman.connectors.java.configs import JavaConfigDef, config_keys, config_values, string_map
from keelman.connectors.java.errors import connect_error, translated
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.started import TASK_CLASS, StartedConnectors
from keelman.connectors.plugins.java_folders import UNDEFINED
from keelman.workers.plugins.inner_classes import SINK_CONTEXT

REFRESH_SECONDS = 5.0
SUPPORT = "exactly.once.support"
UNKNOWN_SUPPORT = (
    "The connector does not implement the API required for preflight validation of exactly-once source support. "
    "Please consult the documentation for the connector to determine whether it supports exactly-once semantics, and "
    'then consider reconfiguring the connector to use the value "requested" for this property (which will disable this '
    "preflight check and allow the connector to be created)."
)
UNSUPPORTED = "The connector does not support exactly-once semantics with the provided configuration."
_STARTED = StartedConnectors()


class JavaConnector(Connector):
    """Made by `java_connector`, one class for each Java class."""

    runs_on = "anywhere"
    converts = True
    java_name: ClassVar[str]
    loader: ClassVar[PluginLoader]
    inner: ClassVar[Collection[str]]
    """Connect's internal classes that it uses."""

    @classmethod
    def made(cls) -> Any:
        """Returns a new object of the Java class. Raises ConnectError."""
        with cls.loader.entered(), translated(cls.java_name):
            return cls.loader.load(cls.java_name)()

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns the class's keys; the class validates their values."""
        connector = cls.made()
        with cls.loader.entered(), translated(f"{cls.java_name}.config"):
            definition = connector.config()
            if definition is None:
                raise ConnectError(f"{cls.java_name}.config() must return a ConfigDef that is not null.")
            keys = config_keys(definition)

        def judge(config: Mapping[str, str | None]) -> dict[str, ConfigValue]:
            with cls.loader.entered(), translated(f"{cls.java_name}.validate"):
                result = connector.validate(string_map(config))
                if result is None:
                    raise ConnectError(f"{cls.java_name}.validate() must return a Config that is not null.")
                return config_values(result.configValues())

        return JavaConfigDef(*keys, judge=judge)

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValueError]:
        """Returns the errors of a required exactly-once guarantee, in Connect's words."""
        if cls.direction is not Direction.SOURCE or config.get(SUPPORT, "").strip().lower() != "required":
            return ()
        support = cls._asked("exactlyOnceSupport", config)
        if support == "SUPPORTED":
            return ()
        reason = UNKNOWN_SUPPORT if support is None else UNSUPPORTED
        return [ConfigValueError(SUPPORT, config[SUPPORT], whole=reason)]

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Returns the started connector's task configurations, each with its task class."""
        started = _STARTED.started(cls.loader, cls.made, config, cls.direction.value)
        return started.tasks(max_tasks)

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        """Returns a short interval: a check is one look at a flag."""
        return REFRESH_SECONDS

    @classmethod
    def tend_again(cls, config: Mapping[str, str], tasks: Sequence[Mapping[str, str]]) -> bool:
        """Returns whether its tasks stay: it has requested no new ones. Raises the connector's own failure."""
        return _STARTED.settled(config)

    @classmethod
    def take_offsets(cls, connector: str, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Sets the committed offsets that a source of this name finds at the next request for its tasks."""
        _STARTED.take_offsets(connector, rows)

    @classmethod
    def stop_started(cls) -> None:
        """Stops all connectors that were started in this process for their task configurations."""
        _STARTED.stop_all()

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Returns True for sources: records and offsets share a transaction, whatever the class promises, as in
        Connect."""
        return cls.direction is Direction.SOURCE

    @classmethod
    def transaction_boundary_connector(cls, config: Mapping[str, str]) -> bool:
        """Returns whether the class can define where transactions end."""
        return cls._asked("canDefineTransactionBoundaries", config) == "SUPPORTED"

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Calls the class's alterOffsets. Raises ConnectError where the class refuses, or does not support it."""
        connector = cls.made()
        changed = _partitions(offsets) if cls.direction is Direction.SINK else _source_offsets(offsets)
        unsupported = java_class("java.lang.UnsupportedOperationException")
        try:
            with cls.loader.entered():
                return bool(connector.alterOffsets(string_map(config), changed))
        except unsupported:
            name = config.get("name", "")
            raise ConnectError(
                f"Failed to modify offsets for connector {name} because it doesn't support external modification of "
                "offsets"
            ) from None
        except jpype().JException as error:
            raise connect_error(error, f"{cls.java_name}.alterOffsets") from None

    @classmethod
    def open_task_reader(
        cls, config: Mapping[str, str], task: SourceTask, offset: Callable[[Partition], Offset | None]
    ) -> Reader:
        """Starts a source task, and returns its reader. Raises ConnectError."""
        from keelman.connectors.java.source.reader import open_reader  # noqa: PLC0415  needed in slots only

        return open_reader(cls.loader, cls._task_class(config), config, task)

    @classmethod
    def open_task_writer(cls, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool) -> Writer:
        """Starts a sink task, and returns its writer. Raises ConnectError."""
        from keelman.connectors.java.sink.writer import open_writer  # noqa: PLC0415  as above

        looks_inside = SINK_CONTEXT.replace("/", ".") in cls.inner
        return open_writer(cls.loader, cls._task_class(config), config, task, looks_inside=looks_inside)

    @classmethod
    def open_steps(
        cls, config: Mapping[str, str], worker: Mapping[str, str], open_registry: OpenRegistry
    ) -> PreviewSteps:
        """Returns the connector's Java steps. Raises ConfigValueError, ConnectError."""
        from keelman.connectors.java.steps.record_views import JavaSteps  # noqa: PLC0415  as above

        return JavaSteps(cls.loader, config, worker, open_registry)

    @classmethod
    def _task_class(cls, config: Mapping[str, str]) -> str:
        named = config.get(TASK_CLASS)
        if named:
            return named
        with cls.loader.entered(), translated(f"{cls.java_name}.taskClass"):
            return str(cls.made().taskClass().getName())

    @classmethod
    def _asked(cls, method: str, config: Mapping[str, str]) -> str | None:
        """Calls a method of the connector. Returns the name of the constant that it returns; None for null."""
        connector = cls.made()
        with cls.loader.entered(), translated(f"{cls.java_name}.{method}"):
            answer = getattr(connector, method)(string_map(config))
        return None if answer is None else str(answer.name())


def java_connector(loader: PluginLoader, class_name: str, inner: Collection[str] = ()) -> type[JavaConnector]:
    """Returns the class of ours for a Java class that uses these internal classes of Connect. Raises ConnectError where
    the Java class cannot be instantiated, or is no connector."""
    with loader.entered(), translated(class_name):
        java = loader.load(class_name)
        instance = java()
        version = instance.version()
    direction = _direction(instance, class_name)
    simple = class_name.rpartition(".")[2].rpartition("$")[2]
    names: tuple[str, ...] = (registry.java_name(class_name),)
    if names == (class_name,):
        names = tuple(dict.fromkeys((class_name, simple, simple.removesuffix("Connector"))))
    attributes = {
        "names": names,
        "version": UNDEFINED if version is None else str(version),
        "direction": direction,
        "java_name": class_name,
        "loader": loader,
        "inner": frozenset(inner),
        "__module__": __name__,
    }
    return type(simple, (JavaConnector,), attributes)


def _direction(instance: Any, class_name: str) -> Direction:
    for direction in Direction:
        kind = java_class(f"org.apache.kafka.connect.{direction.value}.{direction.value.capitalize()}Connector")
        if isinstance(instance, kind):
            return direction
    raise ConnectError(f"{class_name} is neither a source nor a sink connector")


def _source_offsets(offsets: AlteredOffsets) -> Any:
    java_map = java_class("java.util.HashMap")()
    for partition, offset in offsets:
        java_map.put(_plain_map(partition), _plain_map(offset))
    return java_map


def _partitions(offsets: AlteredOffsets) -> Any:
    java_map = java_class("java.util.HashMap")()
    place = java_class("org.apache.kafka.common.TopicPartition")
    number = java_class("java.lang.Long")
    for partition, offset in offsets:
        assert partition is not None
        key = place(str(partition["kafka_topic"]), int(partition["kafka_partition"]))
        java_map.put(key, None if offset is None else number(int(offset["kafka_offset"])))
    return java_map


def _plain_map(tree: Mapping[str, Any] | None) -> Any:
    if tree is None:
        return None
    java_map = java_class("java.util.HashMap")()
    for key, value in tree.items():
        java_map.put(key, _boxed(value))
    return java_map


def _boxed(value: Any) -> Any:
    if isinstance(value, bool):
        return java_class("java.lang.Boolean")(value)
    if isinstance(value, int):
        return java_class("java.lang.Long")(value)
    if isinstance(value, float):
        return java_class("java.lang.Double")(value)
    return value
