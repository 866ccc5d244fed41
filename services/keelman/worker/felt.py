"""What of its configuration a task feels: a change of anything else leaves its copy run alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import load_connector
from keelman.model.errors import KeelmanError
from keelman.worker.config_state import InForce
from keelman.worker.limits import UNFELT

PLANNING = frozenset({"tasks.max", "tasks.max.enforce", "config.action.reload"})


def felt(connector: Mapping[str, str], task: Mapping[str, str]) -> dict[str, str]:
    """All that a slot is told for the task and may act on."""
    merged = {**connector, **task}
    unfelt = UNFELT | PLANNING | _planning_keys(merged.get("connector.class", ""))
    return {key: value for key, value in merged.items() if key not in unfelt}


def changed_tasks(former: Sequence[InForce | None], now: InForce, count: int) -> list[int]:
    """Numbers, below `count`, of tasks of former sets that are no more or are another task now: what one of these
    copied, another may copy. All, when a former set is not known."""
    if None in former:
        return list(range(count))
    tasks, found = [felt(now[0], task) for task in now[1]], set()
    for config, before in filter(None, former):
        found |= {n for n, task in enumerate(before) if n >= len(tasks) or felt(config, task) != tasks[n]}
    return sorted(n for n in found if n < count)


def _planning_keys(class_name: str) -> frozenset[str]:
    try:
        return load_connector(class_name).planning_keys
    except (KeelmanError, ConnectError):
        return frozenset()
