"""Keeps the connector instances that this worker has: only their status, since the leader queries them for tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from keelman.connect.errors import ConnectError
from keelman.connectors.registry import find_connector
from keelman.connectors.validation.unknown_keys import ignored_client_keys
from keelman.model.errors import KeelmanError
from keelman.model.work import Work
from keelman.runtime.logs.logging import get_logger
from keelman.worker.asking.task_config_query import trace_of
from keelman.worker.storage import config_records
from keelman.worker.storage import status_state as states
from keelman.worker.storage.config_state import ConfigState
from keelman.worker.tasks.effective_config import without_limits

log = get_logger()
LOGGED = 20
TARGET_STATES = {
    config_records.STARTED: states.RUNNING,
    config_records.PAUSED: states.PAUSED,
    config_records.STOPPED: states.STOPPED,
}


class OwnedConnectors:
    """`report` has a status written soon: work, state, trace."""

    def __init__(self, report: Callable[[Work, str, str | None], None]) -> None:
        self._report = report
        self._known: dict[Work, tuple[Mapping[str, str], str]] = {}
        self._said: list[tuple[str, str]] = []  # names and states that are not in the log yet
        self._ignored: dict[str, list[str]] = {}

    def follow(self, work: Work, config: ConfigState, *, failed: bool = False) -> None:
        """Reports the connector's status where it differs from the last report.

        A connector that has `failed`, perhaps found by the leader, is paused and resumed as such; only a stop ends
        that.
        """
        properties = without_limits(config.connectors[work.connector])
        target = TARGET_STATES[config.target(work.connector)]
        entry = self._known.get(work)
        if entry is not None and entry[0] == properties:
            if entry[1] == target:
                return
            if (failed or entry[1] == states.FAILED) and states.STOPPED not in (target, entry[1]):
                self._known[work] = (properties, target if failed else entry[1])
                return
        trace = problem_of(properties) if target != states.STOPPED else None
        state = states.FAILED if trace else target
        self._known[work] = (properties, state)
        self._said.append((work.connector, state))
        if ignored := ignored_client_keys(properties):
            self._ignored[work.connector] = ignored
        self._report(work, state, trace)

    def log(self) -> None:
        """Logs the reports of `follow` since the last call; only counts for very many, since each line delays the
        loop."""
        said, self._said = self._said, []
        ignored, self._ignored = self._ignored, {}
        for name, notes in list(ignored.items())[:LOGGED]:
            log.warning("client_properties_ignored", connector=name, keys="; ".join(notes))
        if len(said) <= LOGGED:
            for name, state in said:
                log.info("connector", connector=name, state=state)
        else:
            log.info("connectors", **Counter(state.lower() for _, state in said))

    def forget(self, work: Work) -> None:
        """Forgets a connector that is no longer this worker's, or begins again."""
        self._known.pop(work, None)

    def clear(self) -> None:
        """Forgets all: none is this worker's any more."""
        self._known.clear()


def problem_of(config: Mapping[str, str]) -> str | None:
    """Returns why this worker cannot have this connector, as a trace; None when it can. The leader finds the rest."""
    try:
        find_connector(config.get("connector.class", ""), config.get("connector.plugin.version"))
    except (KeelmanError, ConnectError) as error:
        return trace_of(error)
    return None
