"""Java's converters, transforms and predicates in the chain of a connector that is not Java's.

This is slow: each record crosses to Java and back, field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

from keelman.connect.batch_splitting import records_of
from keelman.connect.columns import ColumnBatch
from keelman.connect.config import converter_keys
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connect.converters.converter import Converter
from keelman.connect.errors import ConnectError, DataError
from keelman.connect.record import Header, Record
from keelman.connect.records import Column
from keelman.connect.transforms.base import Predicate, Transform
from keelman.connectors.java.border.python_data import FromJava, ToJava
from keelman.connectors.java.configs import string_map
from keelman.connectors.java.errors import connect_error, translated
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.plugin_metrics import PluginMetrics
from keelman.connectors.java.steps.transforms import NOT_THEIRS
from keelman.runtime.logs.logging import get_logger

CONNECT = "org.apache.kafka.connect"
T = TypeVar("T")
_log = get_logger()


def made_step(loader: PluginLoader, class_name: str, kind: PluginType, config: Mapping[str, str]) -> Any:
    """Returns a Converter, Transform or Predicate around the configured class, and logs a warning. Raises
    ConnectError."""
    _log.warning("java_step_slow", class_name=class_name, why="each record crosses to Java and back, field by field")
    base = {
        PluginType.TRANSFORMATION: JavaTransform,
        PluginType.PREDICATE: JavaPredicate,
        PluginType.CONVERTER: JavaConverter,
    }[kind]
    simple = class_name if kind is PluginType.CONVERTER else class_name.rpartition(".")[2]
    return type(simple, (base,), {"name": simple})(loader, class_name, config)


class _OfRecords:
    """Base of a transform and a predicate around a Java class."""

    of_headers = of_header_values = True

    def __init__(self, loader: PluginLoader, class_name: str, config: Mapping[str, str]) -> None:
        """Raises ConnectError for what the class throws when it is made or configured."""
        super().__init__({})  # type: ignore[call-arg]
        self._step = _Step(loader, class_name, config)
        self._border = _Border()


class JavaTransform(_OfRecords, Transform):
    """Applies a Java Transformation."""

    @property
    def class_name(self) -> str:
        """The Java class's name."""
        return self._step.class_name

    def apply(self, record: Record) -> Record | None:
        """Returns the record that Java returns. Raises ConnectError."""
        return self._step.tried(lambda java: self._border.back(java.apply(self._border.over(record)), record))


class JavaPredicate(_OfRecords, Predicate):
    """Tests records with a Java Predicate."""

    def test(self, record: Record) -> bool:
        """Returns Java's result for a record. Raises ConnectError."""
        return self._step.tried(lambda java: bool(java.test(self._border.over(record))))

    def columnar(self, batch: ColumnBatch) -> bool | list[bool]:
        """Returns Java's result for each record."""
        return [self.test(record) for record in records_of(batch)]


class JavaConverter(Converter):
    """Converts keys or values with a Java Converter."""

    kinds = (PluginType.CONVERTER,)
    by_topic = True

    def __init__(self, loader: PluginLoader, class_name: str, config: Mapping[str, str]) -> None:
        """Raises ConnectError for what the class throws when it is made or configured."""
        role = config.get(converter_keys.ROLE, "value")
        super().__init__({converter_keys.ROLE: role})
        own = {key: value for key, value in config.items() if key != converter_keys.ROLE}
        self._step = _Step(loader, class_name, own, role == "key")
        self._from, self._to = FromJava(), ToJava()
        self._topics: dict[str, Self] = {}
        self._topic: Any = None

    def of_topic(self, topic: str) -> Self:
        """Returns the converter for a topic."""
        converter = self._topics.get(topic)
        if converter is None:
            converter = object.__new__(type(self))
            converter.__dict__.update(self.__dict__, _topic=java_class("java.lang.String")(topic))
            self._topics[topic] = converter
        return converter

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns Java's payload for each value. Raises ConnectError."""
        texts = column.texts()
        array: Any = jpype().JArray(jpype().JByte)

        def payload(java: Any, index: int, value: Any) -> bytes | None:
            schema, inner = self._to.given(texts.schema_of(index), value)
            payload = java.fromConnectData(self._topic, schema, inner)
            return None if payload is None else bytes(memoryview(array(payload)))

        return self._step.tried(lambda java: [payload(java, n, value) for n, value in enumerate(texts.values)])

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns Java's data for each payload. Raises ConnectError."""
        array: Any = jpype().JArray(jpype().JByte)

        def data(java: Any, payload: bytes | None) -> tuple[Any, Any]:
            both = java.toConnectData(self._topic, None if payload is None else array(payload))
            return self._from.taken(both.schema(), both.value())

        data_and_schemas = self._step.tried(lambda java: [data(java, payload) for payload in payloads])
        return Column.of_each([value for _, value in data_and_schemas], [schema for schema, _ in data_and_schemas])


class _Step:
    """A configured Java object, called with its plugin's class loader."""

    def __init__(self, loader: PluginLoader, class_name: str, config: Mapping[str, str], *more: bool) -> None:
        self.class_name = class_name
        self._loader = loader.of(class_name)
        options = string_map({key: value for key, value in config.items() if key not in NOT_THEIRS})
        with self._loader.entered(), translated(class_name):
            self._java = loader.load(class_name)()
            self._java.configure(options, *more)
            PluginMetrics({}).give(self._java)

    def tried(self, work: Callable[[Any], T]) -> T:
        """Returns the result of `work`. Raises ConnectError for Java's exceptions, and for data that cannot cross."""
        try:
            with self._loader.entered():
                return work(self._java)
        except jpype().JException as error:
            raise connect_error(error) from None
        except ConnectError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{self.class_name}: {error}") from error


class _Border:
    """Takes records to Java and back; used by the thread of the copy run."""

    def __init__(self) -> None:
        self._from, self._to = FromJava(), ToJava()
        self._source = java_class(f"{CONNECT}.source.SourceRecord")
        self._sink = java_class(f"{CONNECT}.sink.SinkRecord")
        self._headers = java_class(f"{CONNECT}.header.ConnectHeaders")
        self._both = java_class(f"{CONNECT}.data.SchemaAndValue")
        self._types = java_class("org.apache.kafka.common.record.TimestampType")
        self._nothing = java_class("java.util.Collections").emptyMap()
        self._identity = java_class("java.lang.System").identityHashCode
        self._given: list[tuple[Any, Header]] = []

    def over(self, record: Record) -> Any:
        """Converts a record to Java: to a SinkRecord if it has an offset, else to a SourceRecord."""
        headers = self._headers()
        for header in record.headers:
            headers.add(header.name, self._both(*self._to.given(header.schema, header.value)))
        self._given = list(zip(headers, record.headers, strict=True))
        library = jpype()
        keyed, valued = self._to.given(record.key_schema, record.key), self._to.given(record.value_schema, record.value)
        time = _boxed("Long", None if record.timestamp_ms is None else library.JLong(record.timestamp_ms))
        if record.offset is None:
            where = _boxed("Integer", None if record.partition is None else library.JInt(record.partition))
            return self._source(self._nothing, self._nothing, record.topic, where, *keyed, *valued, time, headers)
        kind = self._types.NO_TIMESTAMP_TYPE if time is None else self._types.CREATE_TIME
        where = library.JInt(record.partition or 0)
        offset = library.JLong(record.offset)
        return self._sink(record.topic, where, *keyed, *valued, offset, time, kind, headers)

    def back(self, java: Any, record: Record) -> Record | None:
        """Applies Java's changes to a record, and returns it; None if Java returned null."""
        if java is None:
            return None
        record.topic = str(java.topic())
        record.partition = None if java.kafkaPartition() is None else int(java.kafkaPartition())
        record.key_schema, record.key = self._from.taken(java.keySchema(), java.key())
        record.value_schema, record.value = self._from.taken(java.valueSchema(), java.value())
        record.timestamp_ms = None if java.timestamp() is None else int(java.timestamp())
        ours = {int(self._identity(java)): (java, ours) for java, ours in self._given}
        record.headers = [self._header(header, ours) for header in java.headers()]
        return record

    def _header(self, java_header: Any, ours: Mapping[int, tuple[Any, Header]]) -> Header:
        """Returns a header; ours, unchanged, if Java has not changed it."""
        same = ours.get(int(self._identity(java_header)))
        if same is not None and same[0].equals(java_header):
            return same[1]
        return Header(str(java_header.key()), *self._from.taken(java_header.schema(), java_header.value()))


def _boxed(box: str, value: Any) -> Any:
    return None if value is None else java_class(f"java.lang.{box}").valueOf(value)
