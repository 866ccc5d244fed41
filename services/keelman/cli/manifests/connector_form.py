"""Applies manifests of connectors, which only the workers of a running cluster store: no batch can create them."""

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
        """Returns the existing connectors with these names, with their configurations."""
        present = []
        for name in names:
            try:
                present.append(await gateway.get(self.kind, name))
            except (NotFound, Unavailable):
                continue  # its worker cluster need not run yet: that is checked before it is created
        return present

    def create(self, name: str, filled: Any) -> list[Message]:
        """Returns no requests: no batch creates a connector. Raises InvalidArgument for an illegal class."""
        class_of(filled.config)
        return []

    def update(self, present: Any, filled: Any) -> list[Message]:
        """Returns no requests: no batch changes a connector. Raises InvalidArgument for an illegal class."""
        return self.create(present.name, filled)

    def made(self, name: str, filled: Any, present: Any) -> Any:
        """Returns the future connector, with hidden values replaced by its present ones."""
        stored = {} if present is None else _config(present)
        cluster, _, plain = name.partition("/")
        config = kept_values("spec.config", dict(filled.config), stored)
        return Connector(worker_cluster=cluster, name=plain, config=config)

    def differs(self, present: Any, after: Any) -> bool:
        """Tells whether the configuration changes."""
        return present is None or _config(present) != _config(after)

    def goal_of(self, present: Any) -> str:
        """Returns PAUSED or STOPPED if that is the connector's state, else RUNNING."""
        state = word(ConnectorState, present.state)
        return state if state in (PAUSED, STOPPED) else RUNNING

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """Returns the requests that bring a connector to its goal."""
        if goal in ("", RUNNING if present is None else self.goal_of(present)):
            return []
        cluster, _, plain = name.partition("/")
        return [self.request(VERBS[goal], worker_cluster=cluster, name=plain)]

    def labels_of(self, resource: Any) -> dict[str, str]:
        """Returns no labels: connectors have none."""
        return {}

    def shown(self, resource: Any) -> dict[str, Any]:
        """Returns a connector as the spec of its manifest."""
        return {"config": dict(sorted(shown(_config(resource)).items()))}


def _config(connector: Any) -> dict[str, str]:
    return {key: value for key, value in connector.config.items() if key != "name"}
