"""Checks the options of `keelman up`, and builds the plans of its services."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keelman.cli.client.target import home_of
from keelman.cli.machine.services import ServicePlan, make_plans
from keelman.model.errors import InvalidArgument
from keelman.runtime.home import Home, write_file

NO_PORTS: Mapping[str, Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of `keelman up`. `given` is service -> setting -> value."""

    home: Home
    given: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    free_ports: bool = False
    broker: bool = True

    @classmethod
    def of(
        cls,
        home: Path | None,
        settings: Sequence[str],
        *,
        port: int | None = None,
        http_port: int | None = None,
        free_ports: bool = False,
        broker: bool = True,
    ) -> UpOptions:
        """Returns the options, with all settings checked before any start. Raises InvalidArgument."""
        values: dict[str, dict[str, str]] = {}
        for text in settings:
            name, equals, value = text.partition("=")
            service, dot, key = name.partition(".")
            if not (equals and dot and service and key):
                raise InvalidArgument.of("--set", text, "service.key=value, e.g. state.port=7411")
            values.setdefault(service, {})[key.replace("-", "_")] = value
        for setting, number in (("port", port), ("http_port", http_port)):
            if number == 0:
                free_ports = True
            elif number is not None:
                values.setdefault("gateway", {})[setting] = str(number)
        options = cls(home_of(home), values, free_ports, broker)
        options.plans()
        return options

    def plans(self, ports: Mapping[str, Mapping[str, str]] = NO_PORTS) -> dict[str, ServicePlan]:
        """Returns the plans of all services, with `ports` for settings that are not given. Raises InvalidArgument."""
        merged = {s: {**ports.get(s, {}), **self.given.get(s, {})} for s in {*ports, *self.given}}
        agent = merged.get("agent", {})
        if "node" not in agent and "KEELMAN_AGENT_NODE" not in os.environ and (node := _known_node(self.home)):
            merged["agent"] = {**agent, "node": node}
        return make_plans(self.home, merged)


def keep_node(home: Home, name: str) -> None:
    """Stores the node's name, with which this home starts from now on."""
    if _known_node(home) != name:
        write_file(_node_file(home), f"{name}\n".encode())


def _node_file(home: Home) -> Path:
    return home.root / "node"


def _known_node(home: Home) -> str:
    """Returns the former name of this home's node: brokers are pinned to it, and a host's name can change."""
    try:
        return _node_file(home).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
