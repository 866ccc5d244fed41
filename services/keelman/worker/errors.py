"""The errors that any package of the worker raises to answer a request, in Connect's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class RestError(Exception):
    """An answer other than success; `headers` are sent beside Connect's own."""

    def __init__(self, status: int, message: str | None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


class Elsewhere(Exception):
    """Only another worker, the leader or the owner of a task, can do this.

    `url` is that worker's address, empty while unknown.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


def not_found(message: str) -> RestError:
    """Returns 404 with this message."""
    return RestError(404, message)


def invalid_config(problems: Sequence[str], headers: Mapping[str, str] | None = None) -> RestError:
    """Returns 400 with Connect's block for an invalid configuration."""
    lines = "\n".join(problems)
    return RestError(
        400,
        f"Connector configuration is invalid and contains the following {len(problems)} error(s):\n{lines}\n"
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`",
        headers,
    )
