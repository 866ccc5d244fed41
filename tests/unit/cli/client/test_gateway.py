"""What the command line's client of the gateway calls, and what it prints beside what it returns."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.connect.v1.connector_service_pb2 import CreateConnectorResponse
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.kinds import KINDS


class Link:
    """A channel that keeps the paths of its methods, and answers each call with one message."""

    def __init__(self, answer: Any = None) -> None:
        self.paths = set[str]()
        self._answer = answer

    def unary_unary(self, path: str, **_: Any) -> Any:
        self.paths.add(path.rpartition("/")[2])

        async def call(_request: Any, timeout: float) -> Any:
            return self._answer

        return call

    def unary_stream(self, path: str, **_: Any) -> Any:
        return None


async def test_notes_on_a_configuration_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    connector = Connector(name="c", notes=["fiel: unknown, did you mean file?", "x: unknown, nothing reads it"])
    gateway = Gateway(Link(CreateConnectorResponse(connector=connector)))
    assert await gateway.create_connector("demo", "c", {}) == connector
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "keelman: note: fiel: unknown, did you mean file?",
        "keelman: note: x: unknown, nothing reads it",
    ]


RPCS = {
    "get": "Get",
    "create": "Create",
    "delete": "Delete",
    "start": "Start",
    "stop": "Stop",
    "pause": "Pause",
    "resume": "Resume",
    "restart": "Restart",
    "configure": "Update",
}


@pytest.mark.parametrize("kind", KINDS[:7])
def test_each_verb_of_a_kind_is_a_method_of_the_gateway(kind: kinds.Kind) -> None:
    link = Link()
    Gateway(link)
    noun = "".join(word.capitalize() for word in kind.singular.split("-"))
    assert f"List{noun}s" in link.paths
    for verb in kind.verbs:
        elsewhere = {("get", "workload"), ("start", "connector"), ("restart", "worker-cluster")}
        if verb in RPCS and (verb, kind.singular) not in elsewhere:
            assert f"{RPCS[verb]}{noun}" in link.paths
