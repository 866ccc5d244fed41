"""Selects the part of a task's configuration whose change restarts its copy run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keelman.connect.config.copying_keys import LABELS
from keelman.connect.config.life_keys import life_keys
from keelman.connect.errors import ConnectError
from keelman.connectors.registry import find_connector
from keelman.model.errors import KeelmanError
from keelman.worker.storage.config_state import InForce
from keelman.worker.tasks.limits import LIMITS

WITHOUT_EFFECT = frozenset(key.name for key in (*LIMITS, LABELS, *life_keys().keys.values()))
PLANNING = frozenset({"tasks.max", "tasks.max.enforce", "config.action.reload"})


def without_limits(config: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the configuration without keys that have no effect on tasks: the rest decides whether tasks are
    configured again."""
    if not WITHOUT_EFFECT.isdisjoint(config):
        return {k: v for k, v in config.items() if k not in WITHOUT_EFFECT}
    return config


def effective_config(connector: Mapping[str, str], task: Mapping[str, str]) -> dict[str, str]:
    """Returns everything that a slot gets for the task and may act on."""
    merged = {**connector, **task}
    idle = WITHOUT_EFFECT | PLANNING | _planning_keys(merged.get("connector.class", ""))
    return {key: value for key, value in merged.items() if key not in idle}


def changed_tasks(former: Sequence[InForce | None], now: InForce, count: int) -> list[int]:
    """Returns numbers, below `count`, of tasks of former sets that are removed or are another task now: another task
    may copy the same data. All, when a former set is not known."""
    if None in former:
        return list(range(count))
    tasks, numbers = [effective_config(now[0], task) for task in now[1]], set()
    for config, before in filter(None, former):
        numbers |= {n for n, task in enumerate(before) if n >= len(tasks) or effective_config(config, task) != tasks[n]}
    return sorted(n for n in numbers if n < count)


def _planning_keys(class_name: str) -> frozenset[str]:
    try:
        return find_connector(class_name).planning_keys
    except (KeelmanError, ConnectError):
        return frozenset()
