"""A data set that Spark reads for a source: what it is, and how what Spark says of it travels to the task's copy runs.

Spark splits a data set into numbered parts. The Spark service adds the numbers to a task's start ticket, as further
keys of its task configuration; the reader goes by them and by what the offset topic says is read already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PARTS = "keelman.data.parts"
"""How many parts there are."""
SPLIT = "keelman.data.split"
"""A digest of how Spark splits the data set: another one means that the data set or its splitting has changed."""
PROBLEM = "keelman.data.problem"
"""Why Spark cannot read the data set: set in place of the two above."""
PASSING = "keelman.data.passing"
"""Set beside that when it may pass: a database or a Spark that is away."""
PART = "keelman.data.part"
"""The part that a copy run reads: in the configurations of parts only."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """The arguments of `spark.read`. `schema` is DDL, empty for the format's own; `key` is the column that gives keys.

    `settings` are of Spark's session for this data set alone; `packages` are jars in Maven's coordinates; `python` is
    the module:Class of a Python data source.
    """

    format: str
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""
    key: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    python: str = ""

    @property
    def name(self) -> str:
        """What it is called: its path, else the table or query that is read."""
        return self.path or self.options.get("dbtable", "") or self.options.get("query", "")


@dataclass(frozen=True, slots=True)
class DataSink:
    """The arguments of `DataFrame.write`. `schema` is the DDL of values that are JSON; without one rows are Kafka's.

    With `strict` a value that does not fit the schema fails the write. `readers` read Kafka at the same time.
    """

    format: str
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""
    strict: bool = True
    readers: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    python: str = ""
