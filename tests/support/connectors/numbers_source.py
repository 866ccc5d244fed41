"""A Python data source for Spark, found by its name on the slots' path."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition


class Numbers(DataSource):
    """A Python data source of two parts."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "key string, value string, topic string"

    def reader(self, schema: Any) -> DataSourceReader:
        return NumbersReader(self.options["topic"])


class NumbersReader(DataSourceReader):
    """Three rows a part, two of which name a topic."""

    def __init__(self, topic: str) -> None:
        self.topic = topic

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0), InputPartition(10)]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, str | None, str | None]]:
        for n in range(3):
            yield str(partition.value + n), None if n == 2 else f"value {n}", self.topic if n else None
