"""What is too heavy or too foreign for the worker itself: a question to a process that ends with its answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from keelman.connectors.plugin_host import error_from_json
from keelman.connectors.plugin_process import PluginProcess
from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.runtime.redaction import REDACTOR
from keelman.worker.rest import deadlines

AT_A_TIME = 2
START_SECONDS = 30.0
SPARE_SECONDS = 10.0
"""What starting and answering take beside the reading itself."""


class Apart:
    """One a worker. `memory_bytes` is what a process may have; 0 for no bound."""

    def __init__(self, *, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._places = asyncio.Semaphore(AT_A_TIME)

    async def ask(self, folder: Path | None, method: str, class_name: str, *, seconds: float, **arguments: Any) -> Any:
        """The answer, without secrets. `folder` is the plugin's; without one the class is one that we ship.

        What is asked should take `seconds` at most. Raises ConnectError with what went wrong there, DeadlineExceeded,
        Unavailable.
        """
        what = f"{method} of {arguments.get('name', class_name)}"
        late = DeadlineExceeded(f"{what}: no answer in {seconds + SPARE_SECONDS:g} s; its process was ended")
        request = {"id": 0, "method": method, "class": class_name, "seconds": seconds, **arguments}
        process = PluginProcess(folder, memory_bytes=self._memory_bytes)
        async with self._place(what):
            try:
                async with asyncio.timeout(START_SECONDS):
                    await process.start()
                async with asyncio.timeout(seconds + SPARE_SECONDS):
                    answer = await process.ask(request)
            except TimeoutError:
                raise late from None
            except (EOFError, OSError, ValueError):
                raise Unavailable(f"{what}: its process died, perhaps for want of memory") from None
            finally:
                await process.close()
        answer = REDACTOR.hidden(answer)
        if "error" in answer:
            raise error_from_json(answer["error"], what)
        return answer["result"]

    def _place(self, what: str) -> _Place:
        return _Place(self._places, what)


class _Place:
    """One of the places; waited for as long as the request has time."""

    def __init__(self, places: asyncio.Semaphore, what: str) -> None:
        self._places = places
        self._what = what

    async def __aenter__(self) -> None:
        try:
            async with asyncio.timeout(max(0.0, deadlines.remaining() - START_SECONDS)):
                await self._places.acquire()
        except TimeoutError:
            text = f"{self._what}: {AT_A_TIME} such questions are being answered already"
            raise DeadlineExceeded(text) from None

    async def __aexit__(self, *_: object) -> None:
        self._places.release()
