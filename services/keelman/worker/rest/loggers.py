"""Shows and sets levels of logging as Connect's REST API does, on this worker or on all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.runtime.logs.levels import LEVELS, LOG_LEVELS, LoggerLevel
from keelman.runtime.logs.logging import get_logger
from keelman.worker.errors import RestError, not_found

log = get_logger()


def listed() -> dict[str, Any]:
    """Returns every logger with a level of its own."""
    return {name: _body(level) for name, level in LOG_LEVELS.known.items()}


def level_of(name: str) -> dict[str, Any]:
    """Returns a logger's level. Raises 404 for a logger without a level of its own."""
    level = LOG_LEVELS.known.get(name)
    if level is None:
        raise not_found(f"Logger {name} not found.")
    return _body(level)


def level_in(body: Mapping[str, str | None]) -> str:
    """Returns the level that a request wants, in its spelling. Raises 400 for none, 404 for an unknown one, as Connect
    does."""
    level = body.get("level")
    if level is None:
        raise RestError(400, "Desired 'level' parameter was not specified in request.")
    if not level:
        raise RestError(500, "Illegal null or empty Level name.")
    if level.upper() not in LEVELS:
        raise not_found(f"invalid log level '{level}'.")
    return level


def put(name: str, level: str) -> list[str]:
    """Sets the level, in whatever case, on this worker; returns the loggers that it changed."""
    level = level.upper()
    changed = LOG_LEVELS.set(name, level)
    log.info("log_level_set", logger=name, level=level, changed=len(changed))
    return changed


def apply_level(name: str, level: str) -> None:
    """Applies an order of the config topic to all workers; an unknown level is passed over."""
    if level.upper() in LEVELS and name:
        put(name, level)


def _body(logger_level: LoggerLevel) -> dict[str, Any]:
    return {"level": logger_level.level, "last_modified": logger_level.modified_ms}
