"""`keelman doctor` and servers of an earlier version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from keelman.cli.commands.hosts.doctor import _reported
from keelman.model.errors import Internal, KeelmanError, Unavailable
from keelman.rpc.errors import NOT_SERVED

if TYPE_CHECKING:
    from keelman.cli.client.gateway import Gateway


class Refusing:
    """A gateway that refuses `storage_topics`."""

    def __init__(self, error: KeelmanError) -> None:
        self.error = error

    async def storage_topics(self, worker_cluster: str) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "problems"),
    [
        (Internal("Method not found!", reason=NOT_SERVED), []),
        (Unavailable("no broker answers"), ["not checked: no broker answers"]),
    ],
)
async def test_what_an_older_server_cannot_be_asked_is_passed_over(error: KeelmanError, problems: list[str]) -> None:
    findings = await _reported(cast("Gateway", Refusing(error)), "w")
    assert [finding.problem for finding in findings] == problems
