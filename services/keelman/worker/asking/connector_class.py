"""Finds the class of a connector by its configuration, and the tasks that it wants."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.definition import Type, parse_type
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector
from keelman.connectors.registry import find_connector
from keelman.runtime.logs.logging import get_logger
from keelman.worker.asking.third_party import to_ask

ENFORCE = "tasks.max.enforce"
log = get_logger()
NO_PROPERTIES: Mapping[str, str] = {}
Kind = tuple[str, str | None]  # connector.class, connector.plugin.version


class TooManyTasksError(ConnectError):
    """More tasks than the connector's configuration allows."""

    java_name = "org.apache.kafka.connect.runtime.TooManyTasksException"


def check_count(config: Mapping[str, str], count: int, most: int) -> None:
    """Raises TooManyTasksError with Connect's text, or only logs it where the number is not enforced."""
    if count <= most:
        return
    name = config.get("name", "")
    text = (
        f"The connector {name} has generated {count} tasks, which is greater than {most}, the maximum number of tasks "
        "it is configured to create."
    )
    if not parse_type(ENFORCE, config.get(ENFORCE, "true"), Type.BOOLEAN):
        log.warning("too_many_tasks", connector=name, error=text)
        return
    raise TooManyTasksError(
        f"{text} This behaviour should be considered a bug and is disallowed. If necessary, it can be permitted by "
        f"reconfiguring the connector with '{ENFORCE}' set to false; however, this option will be removed in a future "
        "release of Kafka Connect."
    )


def _submitted(task: dict[str, str], config: Mapping[str, str], completed: Mapping[str, str]) -> dict[str, str]:
    """Returns a task's configuration without the additions of `Connector.completed`; its own values stay."""
    new = {key for key, value in completed.items() if config.get(key) != value and task.get(key) == value}
    return {key: config[key] if key in new else value for key, value in task.items() if key not in new or key in config}


def kind_of(config: Mapping[str, str]) -> Kind:
    """Returns the class and version in a connector's configuration."""
    return config.get("connector.class", ""), config.get("connector.plugin.version")


def loaded(kind: Kind) -> type[Connector]:
    """Returns the class, or its stand-in. Raises NotFound."""
    return to_ask(find_connector(*kind))


def tasks_of(
    kind: type[Connector], config: Mapping[str, str], worker: Mapping[str, str] = NO_PROPERTIES
) -> list[dict[str, str]]:
    """Returns the task configurations that a connector of this class wants on a worker of these properties, as they are
    stored. Raises the class's errors."""
    most = max(1, int(config.get("tasks.max", "1")))
    task_class = kind.names[0].removesuffix("Connector") + "Task"
    completed = kind.completed(config, worker)
    tasks = [
        {"task.class": task_class, **_submitted(task, config, completed)} for task in kind.task_configs(completed, most)
    ]
    check_count(config, len(tasks), most)
    return tasks
