"""Sets up structlog for a process: snake_case events, fields bound once, one line a record on stderr."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, cast

# structlog imports rich, for tracebacks in a form that we do not use; that takes a tenth of a second of every start.
if _alone := "rich" not in sys.modules:
    sys.modules["rich"] = cast(Any, None)
import structlog

if _alone:
    del sys.modules["rich"]

from keelman.runtime.logs.levels import LOG_LEVELS, ROOT
from keelman.runtime.logs.own_lines import OWN
from keelman.runtime.logs.recent_lines import RECENT
from keelman.runtime.logs.redaction import hide_in_log

Logger = structlog.stdlib.BoundLogger
_configured: dict[str, Any] = {}
_SEVERITIES = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "warn": logging.WARNING}


def configure(service: str, *, json: bool = False, level: str = "info", **fields: Any) -> None:
    """Sets up logging for this process; called first in a service's main."""
    LOG_LEVELS.begin(level)
    _configured.update(json=json, level=level)
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        hide_in_log,
        RECENT.note,
    ]
    renderer: Any = OWN.noting(
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=False, pad_event_to=24, sort_keys=False)
    )
    structlog.configure(
        processors=[_drop_what_is_not_wanted, *shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),  # levels change while the process runs
        logger_factory=lambda *names: _Named(names[0] if names else ROOT),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service, **fields)
    foreign = logging.StreamHandler(sys.stderr)  # libraries' log lines, in the same form
    foreign.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[foreign], level=logging.WARNING)


def log_form() -> dict[str, Any]:
    """Returns this process's log settings, for `configure` in a process whose lines go to the same log."""
    return {"json": False, "level": "info"} | _configured


def bind(**fields: Any) -> None:
    """Binds fields to all lines that this task or thread, and those that it begins, log from now on."""
    structlog.contextvars.bind_contextvars(**fields)


def about(fields: Mapping[str, str]) -> AbstractContextManager[None]:
    """Binds fields to the lines that are logged within."""
    return structlog.contextvars.bound_contextvars(**fields)


def get_logger(**fields: Any) -> Logger:
    """Returns a logger with fields bound, named after the calling module; safe to call at import time."""
    return cast(Logger, structlog.get_logger(sys._getframe(1).f_globals.get("__name__", ROOT), **fields))


def logger_named(name: str) -> Logger:
    """Returns a logger of this name, by which its level is set."""
    return cast(Logger, structlog.get_logger(name))


class _Named(structlog.PrintLogger):
    """Prints on stderr, and knows its name."""

    def __init__(self, name: str) -> None:
        super().__init__(sys.stderr)
        self.name = name


def _drop_what_is_not_wanted(logger: _Named, method: str, event: Any) -> Any:
    """A structlog processor. Raises DropEvent for events below the logger's level."""
    if _SEVERITIES.get(method, logging.ERROR) < LOG_LEVELS.level_of(logger.name):
        raise structlog.DropEvent
    return event
