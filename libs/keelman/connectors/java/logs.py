"""Takes log lines of Java code into this process's own log: one line each, with its logger, its level and its
connector.

Plugins log by slf4j or log4j, whose implementation here is log4j 2 of Connect's runtime. Java itself drops lines
below a logger's level, so that an unwanted line costs no call.
"""

from __future__ import annotations

import functools
from typing import Any

from keelman.connectors.java.errors import stack_trace
from keelman.connectors.java.jvm import java_class, jpype
from keelman.runtime.logs.levels import LOG_LEVELS, ROOT
from keelman.runtime.logs.logging import Logger, logger_named

CONTEXT = "connector.context"
"""The name of Connect's context for log lines, which is e.g. `[lines|task-0] `."""
CORE = "org.apache.logging.log4j.core"
LONGEST_MESSAGE, LONGEST_TRACE = 10_000, 20_000
_SEVERITIES = {"FATAL": "error", "ERROR": "error", "WARN": "warning", "INFO": "info"}


@functools.lru_cache(maxsize=1000)
def _logger(name: str) -> Logger:
    return logger_named(name)


class _Appender:
    """log4j's Appender. Java calls it, by these names, for each line that is wanted."""

    def append(self, event: Any) -> None:
        """Writes one line."""
        name = str(event.getLoggerName())
        fields: dict[str, str] = {"logger": name, "message": _text(event.getMessage())}
        context = event.getContextData()
        place = None if context is None else context.getValue(CONTEXT)
        if place is not None:
            fields["context"] = str(place).strip()
        thrown = event.getThrown()
        if thrown is not None:
            fields["trace"] = stack_trace(thrown)[:LONGEST_TRACE].rstrip()
        getattr(_logger(name), _SEVERITIES.get(str(event.getLevel().name()), "debug"))("java", **fields)

    def getName(self) -> str:
        """Under which log4j has it."""
        return "keelman"

    def getLayout(self) -> Any:
        """None: it writes no bytes."""
        return None

    def ignoreExceptions(self) -> bool:
        """A line that cannot be written fails nothing."""
        return True

    def getHandler(self) -> Any:
        """Of errors; the default one."""
        return None

    def setHandler(self, _handler: Any) -> None:
        """Nothing to do."""

    def getState(self) -> Any:
        """Always at work."""
        life = java_class(f"{CORE}.LifeCycle$State")
        return life.STARTED

    def initialize(self) -> None:
        """Nothing to do."""

    def start(self) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Nothing to do."""

    def isStarted(self) -> bool:
        """Always."""
        return True

    def isStopped(self) -> bool:
        """Never."""
        return False

    def toString(self) -> str:
        """For log4j's own messages."""
        return "keelman"

    def equals(self, other: Any) -> bool:
        """One process has one."""
        return other is self

    def hashCode(self) -> int:
        """One process has one."""
        return 1


@functools.cache
def take_over() -> None:
    """Takes over the log of the running virtual machine from now on, at the levels of this process."""
    manager = java_class("org.apache.logging.log4j.LogManager")
    context = manager.getContext(False)
    configuration = context.getConfiguration()
    root = configuration.getRootLogger()
    for name in list(root.getAppenders().keySet()):
        root.removeAppender(name)
    appender = jpype().JProxy(f"{CORE}.Appender", inst=_Appender())
    root.addAppender(appender, java_class("org.apache.logging.log4j.Level").ALL, None)
    context.updateLoggers()
    _set_levels()
    LOG_LEVELS.listen(_set_levels)


def in_context(connector: str, task: int) -> None:
    """Has lines of the calling thread, and of those that it begins, say which task they are of."""
    threads = java_class("org.apache.logging.log4j.ThreadContext")
    threads.put(CONTEXT, f"[{connector}|task-{task}] ")


def _set_levels() -> None:
    configurator = java_class(f"{CORE}.config.Configurator")
    levels = java_class("org.apache.logging.log4j.Level")
    for name, entry in LOG_LEVELS.known.items():
        level = levels.toLevel(entry.level)
        if name == ROOT:
            configurator.setRootLevel(level)
        else:
            configurator.setLevel(name, level)


def _text(message: Any) -> str:
    return one_line(str(message.getFormattedMessage())[:LONGEST_MESSAGE])


def one_line(text: str) -> str:
    """A message of several lines, as Kafka's configurations are, in one: its lines separated by semicolons."""
    first, *more = [line for line in map(str.strip, text.splitlines()) if line] or [""]
    return f"{first} {'; '.join(more)}" if first.endswith(":") else "; ".join((first, *more))
