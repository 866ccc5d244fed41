"""A worker's side of a plugin host: asks a plugin's classes in their own process, which may hang or die."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keelman.connect.config_def import ConfigDef
from keelman.connect.config_info import keys_from_json
from keelman.connect.plugin import Direction
from keelman.connectors.plugin_host import error_from_json
from keelman.connectors.plugins import Plugin
from keelman.model.errors import DeadlineExceeded, KeelmanError, Unavailable
from keelman.runtime.children import own_environment
from keelman.runtime.logging import get_logger
from keelman.runtime.tether import tethered

ANSWER_SECONDS = 30.0
LONGEST_ANSWER_BYTES = 64 << 20
SERVICES = ("worker", "agent", "state", "gateway", "spark", "broker")

_log = get_logger()


@dataclass(frozen=True, slots=True)
class Description:
    """What a third-party class is."""

    names: tuple[str, ...]
    version: str
    direction: Direction
    runs_on: Literal["node", "anywhere"]


class PluginHost:
    """One plugin's host process, started at the first question and again after it hung or died.

    Questions are asked one at a time, from one event loop. Each raises ConnectError (ConfigValueError,
    RetriableConnectError) with what the class raised, DeadlineExceeded (PLUGIN_HUNG) or Unavailable (PLUGIN_DIED);
    but for Connect's own texts about a value, the message names plugin, class and method.
    """

    def __init__(self, plugin: Plugin, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Starts nothing yet. A question, with the start of the process if there is none, takes at most
        `answer_seconds`."""
        self.plugin = plugin
        self._answer_seconds = answer_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._one_at_a_time = asyncio.Lock()
        self._asked = 0

    @property
    def pid(self) -> int | None:
        """The process, None while there is none."""
        return None if self._process is None else self._process.pid

    async def describe(self, class_name: str) -> Description:
        """What the class is."""
        found = await self._ask("describe", class_name)
        return Description(**{**found, "names": tuple(found["names"]), "direction": Direction(found["direction"])})

    async def supports_exactly_once(self, class_name: str, config: Mapping[str, str]) -> bool:
        """Whether it can deliver exactly once with this configuration."""
        return bool(await self._ask("supports_exactly_once", class_name, config=dict(config)))

    async def config_def(self, class_name: str) -> ConfigDef:
        """The class's own keys, without validators: `validate` checks values."""
        return keys_from_json(await self._ask("config_def", class_name))

    async def validate(
        self, class_name: str, config: Mapping[str, str | None], worker_config: Mapping[str, str]
    ) -> dict[str, Any]:
        """ConfigInfos of a whole connector configuration, as `validation.validate` makes them."""
        found: dict[str, Any] = await self._ask(
            "validate", class_name, config=dict(config), worker_config=dict(worker_config)
        )
        return found

    async def task_configs(self, class_name: str, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """One configuration a task."""
        found: list[dict[str, str]] = await self._ask(
            "task_configs", class_name, config=dict(config), max_tasks=max_tasks
        )
        return found

    async def tend(self, class_name: str, config: Mapping[str, str]) -> None:
        """Has the class do what is the whole connector's."""
        await self._ask("tend", class_name, config=dict(config))

    async def refresh_seconds(self, class_name: str, config: Mapping[str, str]) -> float | None:
        """How often to tend and to ask for tasks anew."""
        found: float | None = await self._ask("refresh_seconds", class_name, config=dict(config))
        return found

    async def close(self) -> None:
        """Ends the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def rest(self) -> None:
        """Ends the process when what was asked is answered: the next question starts another."""
        async with self._one_at_a_time:
            await self.close()

    async def __aenter__(self) -> PluginHost:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, method: str, class_name: str, **arguments: Any) -> Any:
        where = f"plugin {self.plugin}, {class_name}, {method}"
        async with self._one_at_a_time:
            self._asked += 1
            request = {"id": self._asked, "method": method, "class": class_name, **arguments}
            try:
                async with asyncio.timeout(self._answer_seconds):
                    answer = await self._answer(json.dumps(request).encode() + b"\n")
            except BaseException as error:
                # Also when the caller gave up: the answer that is still to come must not be the next question's.
                _log.warning("plugin_host_killed", plugin=str(self.plugin), asked=f"{class_name} {method}")
                await self.close()
                lost = self._lost(where, error)
                if lost is None:
                    raise
                raise lost from error
        if "error" in answer:
            raise error_from_json(answer["error"], where)
        return answer["result"]

    async def _answer(self, request: bytes) -> dict[str, Any]:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await self._start()
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a plugin host is always started with pipes")
        process.stdin.write(request)
        await process.stdin.drain()
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def _start(self) -> asyncio.subprocess.Process:
        command = [sys.executable, "-P", "-m", "keelman.connectors.plugin_host", str(self.plugin.folder)]
        return await asyncio.create_subprocess_exec(
            *tethered(command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=own_environment(SERVICES),
            limit=LONGEST_ANSWER_BYTES,
            process_group=0,
        )

    def _lost(self, where: str, error: BaseException) -> KeelmanError | None:
        if isinstance(error, TimeoutError):
            text = f"{where}: no answer in {self._answer_seconds:g} s; its process was killed"
            return DeadlineExceeded(text, reason="PLUGIN_HUNG")
        if isinstance(error, ValueError):
            return Unavailable(f"{where}: its answer cannot be read: {error}", reason="PLUGIN_DIED")
        if isinstance(error, EOFError | OSError):
            return Unavailable(f"{where}: its process died", reason="PLUGIN_DIED")
        return None
