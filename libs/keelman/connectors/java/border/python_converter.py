"""Converters that are ours alone, as Java objects: those with a schema registry, for Java connectors whose plugin does
not bring Confluent's own.

The slow way: each record crosses the border field by field, where Java's own converters take none across.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from keelman.connect.converters.configured import converter_for
from keelman.connect.converters.converter import Converter, Role
from keelman.connect.errors import ConnectError, DataError
from keelman.connect.records import Column
from keelman.connect.registry.interface import OpenRegistry
from keelman.connectors.java.border.python_data import CONNECT, FromJava, ToJava
from keelman.connectors.java.errors import connect_error
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.shipped import CONVERTER_VERSION
from keelman.engine.control import CutShort, GaveUp
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger

CONVERTER = "org.apache.kafka.connect.storage.Converter"
OURS_ALONE = frozenset(
    f"io.confluent.connect.{name}"
    for name in ("avro.AvroConverter", "json.JsonSchemaConverter", "protobuf.ProtobufConverter")
)
"""Classes that are in no jar of Connect's."""
NO_FAULTS = (ConnectError, CutShort, GaveUp, KeelmanError, MemoryError, OSError)
T = TypeVar("T")
_log = get_logger()


def python_converter(
    role: Role, config: Mapping[str, str], worker: Mapping[str, str], open_registry: OpenRegistry
) -> Any:
    """Returns the configured converter of a role as a Java Converter, and logs that once. Raises ConfigValueError."""
    converter = converter_for(role, config, worker, open_registry)
    _log.warning("java_converter_slow", role=role, class_name=converter.name, why="it runs in Python, field by field")
    library = jpype()
    return library.JObject(library.JProxy(CONVERTER, inst=_AsJava(converter)), java_class(CONVERTER))


class _AsJava:
    """The Java Converter's methods, by these names; Java calls them. Their errors pass through Java unchanged."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter
        self._from, self._to = FromJava(), ToJava()
        self._bytes: Any = jpype().JArray(jpype().JByte)
        self._both = java_class(f"{CONNECT}.SchemaAndValue")

    def configure(self, _options: Any, _is_key: Any) -> None:
        """It is configured already."""

    def fromConnectData(self, topic: Any, *arguments: Any) -> Any:
        """Returns the payload of a schema and a value, which are the last arguments: headers may precede them."""
        schema, value = arguments[-2:]

        def payload() -> bytes | None:
            ours, inner = self._from.taken(schema, value)
            return self._of(topic).from_connect(Column([inner], ours))[0]

        data = _tried(payload)
        return None if data is None else self._bytes(data)

    def toConnectData(self, topic: Any, *arguments: Any) -> Any:
        """The schema and the value of a payload, which comes last."""
        payload = arguments[-1]

        def data() -> tuple[Any, Any]:
            column = self._of(topic).to_connect([None if payload is None else bytes(memoryview(payload))]).texts()
            return self._to.given(column.schema_of(0), column.values[0])

        return self._both(*_tried(data))

    def config(self) -> Any:
        """None of Java's keys."""
        return java_class("org.apache.kafka.common.config.ConfigDef")()

    def version(self) -> str:
        """As it is listed."""
        return CONVERTER_VERSION

    def close(self) -> None:
        """Nothing to give back."""

    def _of(self, topic: Any) -> Converter:
        return self._converter.of_topic(str(topic))


def _tried(work: Callable[[], T]) -> T:
    """Raises ConnectError for all that is the data's fault."""
    try:
        return work()
    except NO_FAULTS:
        raise
    except jpype().JException as error:
        raise connect_error(error) from None
    except Exception as error:
        raise DataError(f"{type(error).__name__}: {error}") from error
