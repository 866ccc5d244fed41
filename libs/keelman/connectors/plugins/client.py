"""A worker's side of a plugin host: calls a plugin's classes in their own process, which may hang or die."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.info import keys_from_json
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.plugin import Direction
from keelman.connectors.plugins.host import error_from_json
from keelman.connectors.plugins.plugin_path import InstalledPlugin
from keelman.connectors.plugins.process import PluginProcess, Unheard
from keelman.model.errors import DeadlineExceeded, KeelmanError, Unavailable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline

ANSWER_SECONDS = 30.0
START_SECONDS = 60.0
MEMORY_BYTES = 2 << 30
MAX_PROCESSES = 4
STOP_SECONDS = 5.0
IDLE_SECONDS = 60.0

_log = get_logger()


@dataclass(frozen=True, slots=True)
class Description:
    """A third-party class, as its plugin host describes it."""

    names: tuple[str, ...]
    version: str
    direction: Direction
    runs_on: Literal["node", "anywhere"]


class PluginHost:
    """One plugin's host processes, started for the first question and again after a process hung or died.

    A process answers one question at a time; while it does, or hangs, the next question goes to another process, up to
    a bound. Used in one event loop. Each question raises ConnectError (ConfigValueError,
    RetriableConnectError) with the class's error, DeadlineExceeded (PLUGIN_HUNG) or Unavailable (PLUGIN_DIED);
    but for Connect's own texts about a value, the message names plugin, class and method.
    """

    def __init__(
        self,
        plugin: InstalledPlugin,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
        processes: int = MAX_PROCESSES,
    ) -> None:
        """Starts no process yet. A question takes at most `answer_seconds`, plus the start of a process if there is
        none. `memory_bytes` limits the memory of each process; 0 is no limit. With `processes` of 1 a class keeps its
        state between questions."""
        self.plugin = plugin
        self._answer_seconds = answer_seconds
        self._memory_bytes = memory_bytes
        self._places = asyncio.Semaphore(processes)
        self._idle: list[PluginProcess] = []
        self._busy: set[PluginProcess] = set()
        self._asked = 0
        self._asked_at = time.monotonic()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The id of a process, that of the next question if it is known; None while no process runs."""
        return next((process.pid for process in (*self._idle[-1:], *self._busy) if process.pid is not None), None)

    async def describe(self, class_name: str) -> Description:
        """Returns the class's description."""
        answer = await self._ask("describe", class_name)
        return Description(**{**answer, "names": tuple(answer["names"]), "direction": Direction(answer["direction"])})

    async def java_answers(self) -> list[dict[str, str]]:
        """Returns each Java class's description of itself, or why the class cannot be loaded: see `java_folders`."""
        java_answers: list[dict[str, str]] = await self._ask("java_answers", "all classes")
        return java_answers

    async def step_keys(self, class_name: str, kind: str) -> ConfigDef:
        """Returns the keys of a Java plugin's converter, transform or predicate."""
        return keys_from_json(await self._ask("step_keys", class_name, kind=kind))

    async def supports_exactly_once(self, class_name: str, config: Mapping[str, str]) -> bool:
        """Returns whether the class can deliver exactly once with this configuration."""
        return bool(await self._ask("supports_exactly_once", class_name, config=dict(config)))

    async def config_def(self, class_name: str) -> ConfigDef:
        """Returns the class's own keys, without validators: `validate` checks values."""
        return keys_from_json(await self._ask("config_def", class_name))

    async def validate(
        self, class_name: str, config: Mapping[str, str | None], worker_config: Mapping[str, str]
    ) -> dict[str, Any]:
        """Returns the ConfigInfos of a whole connector configuration, as `validation.validate` makes them."""
        infos: dict[str, Any] = await self._ask(
            "validate", class_name, config=dict(config), worker_config=dict(worker_config)
        )
        return infos

    async def task_configs(
        self,
        class_name: str,
        config: Mapping[str, str],
        max_tasks: int,
        *,
        offsets: Sequence[tuple[bytes, bytes]] | None = None,
    ) -> list[dict[str, str]]:
        """Returns one configuration a task. `offsets` are rows of the offset topic, for a Java source."""
        more: dict[str, Any] = {}
        if offsets is not None:
            more["offsets"] = [[base64.b64encode(k).decode(), base64.b64encode(v).decode()] for k, v in offsets]
        task_configs: list[dict[str, str]] = await self._ask(
            "task_configs", class_name, config=dict(config), max_tasks=max_tasks, **more
        )
        return task_configs

    async def tend(self, class_name: str, config: Mapping[str, str]) -> None:
        """Calls `Connector.tend`, the work of the connector as a whole."""
        await self._ask("tend", class_name, config=dict(config))

    async def tend_again(self, class_name: str, config: Mapping[str, str], tasks: Sequence[Mapping[str, str]]) -> bool:
        """Calls `Connector.tend_again` and returns its answer."""
        return bool(
            await self._ask("tend_again", class_name, config=dict(config), tasks=[dict(task) for task in tasks])
        )

    async def refresh_seconds(self, class_name: str, config: Mapping[str, str]) -> float | None:
        """Returns the seconds between two calls of `tend_again` and `task_configs`; None for never."""
        refresh_seconds: float | None = await self._ask("refresh_seconds", class_name, config=dict(config))
        return refresh_seconds

    async def alter_offsets(self, class_name: str, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Calls `Connector.alter_offsets` for offsets that a user sets or deletes, and returns its answer."""
        return bool(await self._ask("alter_offsets", class_name, config=dict(config), offsets=list(offsets)))

    async def close(self) -> None:
        """Ends all processes; later questions raise Unavailable."""
        self._closed = True
        processes, self._idle = [*self._idle, *self._busy], []
        for process in processes:
            await process.close()

    async def stop_started(self, class_name: str) -> None:
        """Stops the connectors that were started for their task configurations. Waits at most `STOP_SECONDS` for each
        process."""
        for process in self._idle:
            request = {"id": 0, "method": "stop_started", "class": class_name}
            with contextlib.suppress(EOFError, OSError, ValueError, TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await process.ask(request)

    async def rest_when_idle(self) -> None:
        """Ends idle processes, as `rest` does, if there was no question for `IDLE_SECONDS`."""
        if time.monotonic() - self._asked_at >= IDLE_SECONDS:
            await self.rest()

    async def rest(self) -> None:
        """Ends the idle processes: the next question starts another one."""
        while self._idle:
            await self._end(self._idle.pop())

    async def __aenter__(self) -> PluginHost:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, method: str, class_name: str, **arguments: Any) -> Any:
        where = f"plugin {self.plugin}, {class_name}, {method}"
        self._asked += 1
        self._asked_at = time.monotonic()
        request = {"id": self._asked, "method": method, "class": class_name, **arguments}
        async with self._places:
            try:
                answer = await self._put(request, where)
            except BaseException as error:
                _log.warning("plugin_host_killed", plugin=str(self.plugin), asked=f"{class_name} {method}")
                lost = self._lost(where, error)
                if lost is None:
                    raise
                raise lost from error
        await self._keep_one()
        if "error" in answer:
            raise error_from_json(answer["error"], where)
        return answer["result"]

    async def _put(self, request: dict[str, Any], where: str) -> dict[str, Any]:
        """Sends a request to an idle process, or to a new one if none is idle or the idle one never received it."""
        left = self._answer_seconds
        if self._idle:
            begun = time.monotonic()
            try:
                return await self._put_to(self._idle.pop(), request, where, left)
            except Unheard:
                _log.warning("plugin_host_died_idle", plugin=str(self.plugin))
                left -= time.monotonic() - begun
        folder = self.plugin.folder if self.plugin.classes or self.plugin.java else None
        return await self._put_to(PluginProcess(folder, memory_bytes=self._memory_bytes), request, where, left)

    async def _put_to(
        self, process: PluginProcess, request: dict[str, Any], where: str, seconds: float
    ) -> dict[str, Any]:
        self._busy.add(process)
        try:
            await self._start(process, where)
            async with asyncio.timeout(seconds):
                answer = await process.ask(request)
            if self._closed:
                await process.close()
            else:
                self._idle.append(process)
        except EOFError as error:
            await process.close()
            raise error if isinstance(error, Unheard) else EOFError(process.death) from None
        except BaseException:
            # Also when the caller gave up: a late answer must not be taken for the next question's.
            await process.close()
            raise
        finally:
            self._busy.discard(process)
        return answer

    async def _start(self, process: PluginProcess, where: str) -> None:
        if self._closed:
            raise Unavailable(f"{where}: this worker sends no more queries")
        slow = Unavailable(f"{where}: its process did not start in {START_SECONDS:g} s and was killed")
        async with deadline(START_SECONDS, slow):  # none of the plugin's code has run yet
            await process.start()

    async def _keep_one(self) -> None:
        while len(self._idle) > 1:
            await self._end(self._idle.pop(0))

    async def _end(self, process: PluginProcess) -> None:
        """Ends an unused process. If the caller is cancelled meanwhile, `close` ends the process."""
        self._busy.add(process)
        await process.close()
        self._busy.discard(process)

    def _lost(self, where: str, error: BaseException) -> KeelmanError | None:
        if isinstance(error, TimeoutError):
            text = f"{where}: no answer in {self._answer_seconds:g} s; its process was killed"
            return DeadlineExceeded(text, reason="PLUGIN_HUNG")
        if isinstance(error, ValueError):
            return Unavailable(f"{where}: its answer cannot be read: {error}", reason="PLUGIN_DIED")
        if isinstance(error, EOFError | OSError):
            how = str(error) if isinstance(error, EOFError) else ""
            return Unavailable(f"{where}: its process died{how}", reason="PLUGIN_DIED")
        return None
