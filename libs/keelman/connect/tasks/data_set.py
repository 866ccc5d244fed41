"""A data set that Spark reads for a source, and the keys by which the task's copy runs learn of Spark's splitting.

Spark splits a data set into numbered parts. The Spark service adds the numbers to a task's start ticket, as further
keys of its task configuration; the reader uses them together with the offset topic's record of parts already read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PARTS = "keelman.data.parts"
"""The number of parts."""
SPLIT = "keelman.data.split"
"""A digest of Spark's splitting: another digest means that the data set or its splitting has changed."""
PROBLEM = "keelman.data.problem"
"""Why Spark cannot read the data set: set in place of the two above."""
PASSING = "keelman.data.passing"
"""Set beside PROBLEM when it may be transient: a database or a Spark that is away."""
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
        """The data set's name: its path, else the table or query that is read."""
        return self.path or self.options.get("dbtable", "") or self.options.get("query", "")


@dataclass(frozen=True, slots=True)
class DataSink:
    """The arguments of `DataFrame.write`. `schema` is the DDL of JSON values; without it rows are Kafka's.

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
