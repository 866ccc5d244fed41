"""Defines the keys of every connector that Connect does not have: how fast, how often and where it copies."""

from __future__ import annotations

import math
import re
from typing import Any

from keelman.connect.config.connector_keys import numbered
from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type, Width, at_least, between
from keelman.connect.config.rules import Validator, refuse
from keelman.connect.errors import ConfigValueError
from keelman.model.errors import InvalidArgument
from keelman.model.rules.labels import LEGAL, labels_of

MAX_COMMIT_MS = 600_000
MAX_SLOTS = 64


def _limit(name: str, value: float | None) -> None:
    if value is not None and not math.isfinite(value):
        raise refuse(name, value, "Value must be a finite number, at least 0")
    if value is not None:
        at_least(0)(name, value)


def _commit_interval(name: str, value: int | None) -> None:
    if value is not None and not 1 <= value <= MAX_COMMIT_MS:
        raise refuse(name, value, f"Value must be a number of milliseconds between 1 and {MAX_COMMIT_MS}")


def _labels(name: str, value: str | None) -> None:
    try:
        labels_of(value or "", key=name)
    except InvalidArgument:
        raise refuse(name, value, f"Value must be {LEGAL}") from None


def _slots(name: str, value: int | None) -> None:
    if value is not None and not 1 <= value <= MAX_SLOTS:
        raise refuse(name, value, f"Value must be a whole number, at least 1 and at most {MAX_SLOTS}")


def _key(name: str, kind: Type, default: Any, doc: str, validator: Validator) -> ConfigKey:
    return ConfigKey(name, kind, default, Importance.LOW, doc, validator, group="Copying", width=Width.SHORT)


RECORDS_LIMIT = _key("keelman.limit.records.per.second", Type.DOUBLE, 0, "Most records a second; 0 for all.", _limit)
BYTES_LIMIT = _key("keelman.limit.bytes.per.second", Type.DOUBLE, 0, "Most bytes a second; 0 for all.", _limit)


def _jvm_options(name: str, value: Any) -> None:
    for word in str(value or "").split():
        if not word.startswith("-") or word in ("-jar", "-cp", "-classpath"):
            raise ConfigValueError(name, word, "Must be options of the Java virtual machine, e.g. -Duser.timezone=UTC")


COMMIT_INTERVAL = _key(
    "keelman.commit.interval.ms", Type.LONG, 500, "Longest time between two commits.", _commit_interval
)
PARK_AFTER = _key(
    "keelman.park.after.ms", Type.LONG, 10_000, "Idle time until a task is parked; -1: never.", at_least(-1)
)
"""The worker's properties of these two names apply to connectors that do not set them."""
LABELS = _key("keelman.placement.labels", Type.STRING, None, "Labels of the workers that may have it.", _labels)
WORKER_LABELS = "keelman.labels"
"""A property of the worker: its labels."""
SLOT_MEMORY = ConfigKey(
    "keelman.plugin.slot.memory.bytes",
    Type.LONG,
    4 << 30,
    Importance.LOW,
    "Most memory of the slot of a third-party connector's task; 0: no bound.",
    at_least(0),
)
"""A property of the worker; its slots read it."""
JVM_HEAP = ConfigKey(
    "keelman.plugin.jvm.heap.bytes",
    Type.LONG,
    256 << 20,
    Importance.LOW,
    "Most memory for Java objects in the slot of a Java connector's task.",
    at_least(16 << 20),
)
JVM_OPTIONS = ConfigKey(
    "keelman.plugin.jvm.options",
    Type.STRING,
    "",
    Importance.LOW,
    "Further options of the Java virtual machine in such a slot, separated by blanks.",
    _jvm_options,
)
PLUGIN_RUNS = ConfigKey(
    "keelman.plugin.tasks.per.slot",
    Type.INT,
    1,
    Importance.LOW,
    "Most tasks of one Java plugin that share a slot and its virtual machine.",
    between(1, 1000),
)
"""Properties of the worker, as above."""
_CONNECTORS_OWN = re.compile(
    r"-D(?!com\.sun\.|sun\.|java\.|jdk\.|log4j)[A-Za-z][\w.-]*(=\S*)?|-Xss\d+[kKmM]?|-XX:[+-]Use\w+GC"
    r"|-XX:(Max\w+Size|MaxGCPauseMillis|ReservedCodeCacheSize|TieredStopAtLevel)=\d+[kKmMgG]?"
)
"""Options that start no program, load no code and open no port."""


def _connector_heap(name: str, value: int | None) -> None:
    if value is not None:
        at_least(16 << 20)(name, value)


def _connector_options(name: str, value: str | None) -> None:
    for word in (value or "").split():
        if not _CONNECTORS_OWN.fullmatch(word):
            raise refuse(
                name,
                word,
                "Value must be -Dname=value of no name of Java's own, -Xss, -XX:+Use...GC, -XX:Max...Size, "
                "-XX:MaxGCPauseMillis, -XX:ReservedCodeCacheSize or -XX:TieredStopAtLevel; others are the worker's, "
                f"and the heap is {JVM_HEAP.name}",
            )


CONNECTOR_HEAP = _key(JVM_HEAP.name, Type.LONG, None, "Most memory for Java objects of a task.", _connector_heap)
CONNECTOR_OPTIONS = _key(
    JVM_OPTIONS.name, Type.STRING, None, "Further options of a task's virtual machine.", _connector_options
)
"""Keys of a Java connector: the worker's apply to connectors that do not set them; options follow the worker's."""
BULK_SLOTS = _key("keelman.bulk.slots", Type.INT, 1, "Most slots that a task's backlog is split over; 1: none.", _slots)
BULK_LEAST = _key("keelman.bulk.min.records", Type.LONG, 1_000_000, "Least records worth splitting.", at_least(1))


def copying_keys() -> ConfigDef:
    """Returns our keys of every connector."""
    return ConfigDef(*numbered(1, (RECORDS_LIMIT, BYTES_LIMIT, COMMIT_INTERVAL, PARK_AFTER, LABELS)))


def machine_keys() -> ConfigDef:
    """Returns our keys of every Java connector."""
    return ConfigDef(*numbered(7, (CONNECTOR_HEAP, CONNECTOR_OPTIONS)))


def splitting_keys() -> ConfigDef:
    """Returns our keys of every source."""
    return ConfigDef(*numbered(5, (BULK_SLOTS, BULK_LEAST)))
