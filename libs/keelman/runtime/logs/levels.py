"""Changes log levels while a process runs, by logger names as Connect's users know them.

Every logger of ours has the name of its module, libraries have their own; a module that replaces one of Connect's Java
packages answers to that package's name too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ROOT = "root"
LEVELS = {
    "OFF": logging.CRITICAL + 20,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}
# Ours first, then the Java packages whose levels apply to it.
_JAVA = (
    ("keelman.worker", "org.apache.kafka.connect.runtime"),
    ("keelman.connectors", "org.apache.kafka.connect"),
    ("keelman.connect", "org.apache.kafka.connect"),
    ("keelman.kafka", "org.apache.kafka.clients"),
    ("aiokafka", "org.apache.kafka.clients"),
)


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    """A logger's level by Java's name, and the time it was set in milliseconds; None if it is the configured one."""

    level: str
    modified_ms: int | None


class LogLevels:
    """The levels of one process. `level_of` is called for every event, so its results are cached."""

    def __init__(self) -> None:
        self._set: dict[str, LoggerLevel] = {ROOT: LoggerLevel("INFO", None)}
        self._found: dict[str, int] = {}
        self._listeners: list[Callable[[], None]] = []

    def listen(self, changed: Callable[[], None]) -> None:
        """Has `changed` called, in the thread that sets levels, whenever levels were set."""
        self._listeners.append(changed)

    def begin(self, level: str) -> None:
        """Sets the configured level of all loggers."""
        name = {"WARNING": "WARN", "CRITICAL": "FATAL"}.get(level.upper(), level.upper())
        self._set = {ROOT: LoggerLevel(name if name in LEVELS else "INFO", None)}
        self._found.clear()

    @property
    def known(self) -> dict[str, LoggerLevel]:
        """Every logger whose level was set, and the root, by name."""
        return dict(sorted(self._set.items()))

    def set(self, logger: str, level: str) -> list[str]:
        """Sets the level of a logger and of those below it. Returns the names whose level has changed by that.

        `level` is one of LEVELS.
        """
        now = LoggerLevel(level, int(time.time() * 1000))
        below = [name for name in self._set if logger == ROOT or name.startswith(f"{logger}.")]
        changed = [name for name in (*below, logger) if self._level(name) != level]
        for name in changed:
            self._set[name] = now
        self._found.clear()
        self._set_library(logger, level)
        self._notify()
        return sorted(set(changed))

    @property
    def changed(self) -> dict[str, str]:
        """The levels that were set since the process began, by logger."""
        return {name: value.level for name, value in self._set.items() if value.modified_ms is not None}

    def take(self, levels: Mapping[str, str]) -> None:
        """Sets the levels that were `changed` in another process; illegal levels are ignored."""
        now = int(time.time() * 1000)
        for name in sorted(levels, key=lambda name: (name != ROOT, name.count("."))):  # each after those above it
            if levels[name] in LEVELS:
                self._set[name] = LoggerLevel(levels[name], now)
                self._set_library(name, levels[name])
        self._found.clear()
        self._notify()

    def _notify(self) -> None:
        for changed in self._listeners:
            changed()

    def level_of(self, logger: str) -> int:
        """Returns the least severity, as in `logging`, that this logger logs."""
        level = self._found.get(logger)
        if level is None:
            level = self._found[logger] = LEVELS[self._level(logger)]
        return level

    def _level(self, logger: str) -> str:
        for name in _names(logger):
            if name in self._set:
                return self._set[name].level
        return self._set[ROOT].level

    def _set_library(self, logger: str, level: str) -> None:
        """Sets the level of libraries, which log by `logging`."""
        for ours, java in _JAVA:
            if not ours.startswith("keelman") and (java == logger or java.startswith(f"{logger}.")):
                logging.getLogger(ours).setLevel(LEVELS[level])
        if not logger.startswith(("keelman", "org.apache")):
            logging.getLogger(None if logger == ROOT else logger).setLevel(max(LEVELS[level], _least(logger)))


def _least(logger: str) -> int:
    """Returns the least severity for libraries' loggers: at the root only warnings, since libraries log far more than
    we do."""
    return logging.WARNING if logger == ROOT else 0


def _names(logger: str) -> list[str]:
    """Returns the logger, those above it, then the Java packages that it replaces."""
    above = _above(logger)
    for ours, java in _JAVA:
        if logger == ours or logger.startswith(f"{ours}."):
            above += _above(java)
            break
    return above


def _above(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]


LOG_LEVELS = LogLevels()
"""This process's."""
