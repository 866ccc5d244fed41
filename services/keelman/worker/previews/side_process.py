"""Answers a question that is too heavy or too risky for the worker in a process that ends with its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector
from keelman.connectors.plugins.host import error_from_json
from keelman.connectors.plugins.process import PluginProcess
from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.supervise import deadline
from keelman.worker import deadlines
from keelman.worker.asking.third_party import plugin_for
from keelman.worker.connector_facts import shared_worker_properties
from keelman.worker.errors import RestError
from keelman.workers.properties.plugin_bounds import plugin_bounds

AT_A_TIME = 2
START_SECONDS = 30.0
SPARE_SECONDS = 10.0
"""The time for starting and answering beside the reading itself."""
WORDS = {"preview": "the preview", "dead_letters": "the dead letters", "replay": "the replay"}
"""The users' names of the questions."""


@asynccontextmanager
async def asking() -> AsyncIterator[None]:
    """Runs a question and its preparation in the block, which ends with the time of the request. Turns errors of
    connectors, their configurations and secrets into RestError 400, and Unavailable into 503. Raises
    DeadlineExceeded."""
    try:
        async with deadline(deadlines.remaining(), DeadlineExceeded(deadlines.TIMED_OUT)):
            yield
    except ConnectError as error:
        raise RestError(400, str(error)) from None
    except Unavailable as error:
        raise RestError(503, error.message) from None


class SideProcess:
    """One per worker; each question gets a process of its own, with the bounds of plugin hosts."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """`properties` are the worker's. Raises InvalidArgument."""
        self._memory_bytes = plugin_bounds(properties).host_memory
        self._worker_config = shared_worker_properties(properties)
        self._places = asyncio.Semaphore(AT_A_TIME)

    async def ask(
        self, kind: type[Connector], method: str, name: str, config: Mapping[str, str], *, seconds: float, **more: Any
    ) -> dict[str, Any]:
        """Returns the answer, without secrets, about connector `name` of this class and (resolved) configuration.

        The question should take `seconds` at most. Raises ConnectError with the error there, DeadlineExceeded,
        Unavailable.
        """
        request = {"id": 0, "method": method, "class": kind.names[0], "name": name}
        request |= {"config": dict(config), "worker_config": self._worker_config, **more}
        plugin = plugin_for(kind, config)
        folder = None if plugin is None else Path(plugin.folder)
        return await self._ask(f"{WORDS[method]} of {name}", folder, request, seconds)

    async def ask_of_none(self, what: str, method: str, *, seconds: float, **more: Any) -> dict[str, Any]:
        """As `ask`, for a question about no connector; `what` is the users' name of the question."""
        return await self._ask(what, None, {"id": 0, "method": method, "class": "", **more}, seconds)

    async def _ask(self, what: str, folder: Path | None, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        seconds = min(seconds, deadlines.remaining())
        request["seconds"] = seconds
        late = DeadlineExceeded(f"{what}: no answer in {seconds + SPARE_SECONDS:g} s; its process was ended")
        slow = Unavailable(f"{what}: its process did not start in {START_SECONDS:g} s and was ended")
        process = PluginProcess(folder, memory_bytes=self._memory_bytes)
        async with self._place(what):
            try:
                async with deadline(START_SECONDS, slow):
                    await process.start()
                async with deadline(seconds + SPARE_SECONDS, late):
                    answer = await process.ask(request)
            except (EOFError, OSError, ValueError):
                raise Unavailable(f"{what}: its process died, perhaps for lack of memory") from None
            finally:
                await process.close()
        answer = REDACTOR.hidden(answer)
        if "error" in answer:
            raise error_from_json(answer["error"], what)
        result: dict[str, Any] = answer["result"]
        return result

    @asynccontextmanager
    async def _place(self, what: str) -> AsyncIterator[None]:
        """Takes a place; waits for it as long as the request has time."""
        try:
            async with asyncio.timeout(max(0.0, deadlines.remaining() - START_SECONDS)):
                await self._places.acquire()
        except TimeoutError:
            text = f"{what}: {AT_A_TIME} such questions are being answered already"
            raise DeadlineExceeded(text) from None
        try:
            yield
        finally:
            self._places.release()
