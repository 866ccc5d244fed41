"""The class of a connector: how its configuration names it, and which tasks it wants."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.plugin import Connector, load_connector
from keelman.worker.tasks.task_count import check_count
from keelman.worker.tasks.third_party import to_ask

Kind = tuple[str, str | None]  # connector.class, connector.plugin.version


def kind_of(config: Mapping[str, str]) -> Kind:
    """What a connector's configuration says of its class."""
    return config.get("connector.class", ""), config.get("connector.plugin.version")


def loaded(kind: Kind) -> type[Connector]:
    """The class, or what asks it elsewhere. Raises NotFound."""
    return to_ask(load_connector(*kind))


def tasks_of(kind: type[Connector], config: Mapping[str, str]) -> list[dict[str, str]]:
    """The task configurations a connector of this class wants, as they are stored. Raises what the class raises."""
    most = max(1, int(config.get("tasks.max", "1")))
    task_class = kind.names[0].removesuffix("Connector") + "Task"
    found = [{"task.class": task_class, **task} for task in kind.task_configs(config, most)]
    check_count(config, len(found), most)
    return found
