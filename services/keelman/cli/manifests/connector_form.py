"""Applies manifests of connectors, which only the workers of a running cluster have: no batch makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorState
from keelman.cli.client.gateway import Gateway
from keelman.cli.configuration import class_of
from keelman.cli.manifests.forms import PAUSED, RUNNING, STOPPED, Form
from keelman.connect.config.secret_keys import kept_values, shown
from keelman.model.errors import NotFound, Unavailable
from keelman.rpc.enums import word

VERBS = {RUNNING: "Resume", PAUSED: "Pause", STOPPED: "Stop"}


@dataclass(frozen=True, slots=True)
class ConnectorForm(Form):
    """The form of connectors, each named CLUSTER/NAME."""

    async def found(self, gateway: Gateway, names: Sequence[str]) -> Sequence[Any]:
        """Those that there are, with what they say."""
        present = []
        for name in names:
            try:
                present.append(await gateway.get(self.kind, name))
            except (NotFound, Unavailable):
                continue  # its worker cluster need not run yet: that is found out before it is made
        return present

    def create(self, name: str, filled: Any) -> list[Message]:
        """The requests that make one. Raises InvalidArgument."""
        class_of(filled.config)
        return []

    def update(self, present: Any, filled: Any) -> list[Message]:
        """The requests that change one. Raises InvalidArgument."""
        return self.create(present.name, filled)

    def made(self, name: str, filled: Any, present: Any) -> Any:
        """What one will be."""
        stored = {} if present is None else _config(present)
        cluster, _, plain = name.partition("/")
        config = kept_values("spec.config", dict(filled.config), stored)
        return Connector(worker_cluster=cluster, name=plain, config=config)

    def differs(self, present: Any, after: Any) -> bool:
        """Whether its configuration changes."""
        return present is None or _config(present) != _config(after)

    def goal_of(self, present: Any) -> str:
        """What one was asked to be."""
        state = word(ConnectorState, present.state)
        return state if state in (PAUSED, STOPPED) else RUNNING

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """The requests that bring one to its goal."""
        if goal in ("", RUNNING if present is None else self.goal_of(present)):
            return []
        cluster, _, plain = name.partition("/")
        return [self.request(VERBS[goal], worker_cluster=cluster, name=plain)]

    def labels_of(self, resource: Any) -> dict[str, str]:
        """Its labels."""
        return {}

    def shown(self, resource: Any) -> dict[str, Any]:
        """What its manifest says."""
        return {"config": dict(sorted(shown(_config(resource)).items()))}


def _config(connector: Any) -> dict[str, str]:
    return {key: value for key, value in connector.config.items() if key != "name"}
