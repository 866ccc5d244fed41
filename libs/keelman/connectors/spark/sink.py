"""SparkSink: appends topics to a data set in any format that Spark writes, one bounded job after another."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, at_least, non_empty
from keelman.connect.plugin import Direction
from keelman.connect.tasks.data_set import DataSink
from keelman.connectors.spark.source import OPTION, SETTING, SparkConnector, coordinates, python_class, slots
from keelman.engine.sink.data_sink import EVERY_KEY, EVERY_MS, MAX_KEY, MAX_RECORDS
from keelman.model.keys import under

ONCE_FILES = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
"""Formats of files whose writes are numbered, so that each is there once."""
ONCE_TABLES = frozenset({"jdbc"})
"""The same for formats of tables."""


class SparkSink(SparkConnector):
    """One task, which has Spark write: exactly once to files and to tables by JDBC, at least once to others, whose
    writers know no offsets."""

    names = ("keelman.connectors.SparkSinkConnector", "SparkSinkConnector", "SparkSink")
    direction = Direction.SINK

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`spark.*`, `value.schema`."""
        high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, Type.STRING
        schema = "Columns and types of values that are JSON, as DDL; without it rows have Kafka's own columns."
        return ConfigDef(
            ConfigKey("spark.format", text, REQUIRED, high, "The argument of DataFrame.write.format.", non_empty),
            ConfigKey("spark.path", text, "", high, "The argument of save; empty where options name the data set."),
            ConfigKey("value.schema", text, "", high, schema),
            ConfigKey(EVERY_KEY, Type.LONG, EVERY_MS, medium, "Time between two writes.", at_least(100)),
            ConfigKey(MAX_KEY, Type.LONG, MAX_RECORDS, medium, "Most offsets of one write.", at_least(1)),
            ConfigKey("spark.slots", Type.INT, 4, medium, "Readers of Kafka at the same time.", slots),
            ConfigKey("spark.python.source", text, "", low, "module:Class of a Python data source.", python_class),
            ConfigKey("spark.packages", Type.LIST, [], low, "Jars it needs: group:artifact:version.", coordinates),
        )

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """For files with a path, and tables by JDBC."""
        name = config.get("spark.format", "").strip().lower()
        return bool(name in ONCE_TABLES or (name in ONCE_FILES and config.get("spark.path", "").strip()))

    @classmethod
    def data_sink(cls, config: Mapping[str, str]) -> DataSink | None:
        """As configured. Raises ConfigValueError."""
        parsed = cls.config_def().parse(config)
        return DataSink(
            parsed["spark.format"],
            parsed["spark.path"],
            under(OPTION, config),
            parsed["value.schema"],
            config.get("errors.tolerance", "none").strip() != "all",
            parsed["spark.slots"],
            under(SETTING, config),
            tuple(parsed["spark.packages"]),
            parsed["spark.python.source"],
        )
