"""Decides, per connector class and in batches, whether stored task configurations are still valid, and when to check
again."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Configured, Connector
from keelman.model.errors import DeadlineExceeded, KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.own_thread import in_thread
from keelman.runtime.supervise import deadline
from keelman.worker.asking.connector_class import Kind, loaded

log = get_logger()
ROUNDS = 60  # in the time between two checks of a connector: connectors due in one round are checked together


class Freshness:
    """The leader's. Nothing here blocks or raises."""

    def __init__(self, seconds: float, worker: Mapping[str, str]) -> None:
        """`seconds`: the time that a class has to answer; `worker`: the worker's properties."""
        self._seconds = seconds
        self._worker = worker
        self._late: dict[Kind, threading.Thread] = {}

    async def of(self, kind: Kind, configureds: Sequence[Configured]) -> Sequence[bool]:
        """Returns for each of these connectors of a class whether its answer is still valid.

        False for all where the class fails, or hangs; a class that hung is not called again before it has come back.
        Called for one class once at a time.
        """
        nobodys = [False] * len(configureds)
        if kind in self._late and self._late[kind].is_alive():
            return nobodys
        thread, said = in_thread(lambda: self._settled(loaded(kind), configureds))
        late = DeadlineExceeded(f"{kind[0]}, settled: no answer in {self._seconds:g} s", reason="PLUGIN_HUNG")
        try:
            async with deadline(self._seconds, late):
                fresh = await said
            if len(fresh) != len(configureds):
                raise ValueError(f"settled: {len(fresh)} answers for {len(configureds)} connectors")
        except (KeelmanError, ConnectError, TimeoutError) as error:
            if error is late:
                self._late[kind] = thread
            log.warning("connectors_not_looked_at", kind=kind[0], connectors=len(configureds), error=str(error))
            return nobodys
        except Exception:  # a fault of one class must not end the worker
            log.exception("connector_crashed", kind=kind[0], connectors=len(configureds))
            return nobodys
        return fresh

    def _settled(self, kind: type[Connector], configureds: Sequence[Configured]) -> Sequence[bool]:
        return kind.settled([(kind.completed(config, self._worker), tasks) for config, tasks in configureds])


def due_at(now: float, refresh: float) -> float:
    """Returns the next check of a connector that wants one every `refresh` seconds: with others, at most a sixtieth
    later.

    Connectors that are checked at the same time share their requests to clusters, and the worker's turn for the
    answers.
    """
    if not 0 < refresh < math.inf:
        return now + refresh
    step = refresh / ROUNDS
    return math.ceil((now + refresh) / step) * step
