"""Fetches the files of a workload's plan, beside its steps: its former process runs on meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from keelman.agent.plugins import NodePlugins, files_of
from keelman.agent.workloads.local import Local
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of

log = get_logger()


class Fetcher:
    """Fetches for one workload. Calls `changed` when its status or its next step may have changed."""

    def __init__(self, local: Local, plugins: NodePlugins, changed: Callable[[], None]) -> None:
        self._local = local
        self._plugins = plugins
        self._changed = changed
        self._asked = asyncio.Event()

    def begin(self) -> None:
        """Begins with the files of the workload's present plan; drops the fetch of an earlier one."""
        self._local.fetching = self._local.plan
        self._local.note_fetching("")
        self._asked.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            await first_of(self._fetch(), self._asked.wait())

    async def _fetch(self) -> None:
        local, plan = self._local, self._local.plan
        try:
            await self._plugins.ensure(files_of(local.workload), self._on_message)
        except KeelmanError as error:
            log.warning("plugins_missing", workload=local.name, reason=error.reason, error=error.message)
            local.could_not_fetch(error.reason, error.message, time.monotonic())
        else:
            local.note_fetched(plan)
        self._changed()

    def _on_message(self, message: str) -> None:
        if self._local.note_fetching(message):
            self._changed()
