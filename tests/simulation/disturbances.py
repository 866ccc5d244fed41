"""Disturbances of a simulated plane, by its seed: kills, lost hosts, frozen processes, network cuts, wrong clocks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from simulation.agents import Host
from simulation.database import SERVER
from simulation.plane import StateService, World

KILLED_SECONDS, FROZEN_SECONDS, CUT_SECONDS, LOST_SECONDS = 8.0, 25.0, 25.0, 40.0


@dataclass(slots=True)
class Disturbances:
    """Starts disturbances one after the other, several at a time, and repairs each."""

    world: World
    chance: random.Random
    states: Sequence[StateService]
    hosts: Sequence[Host]
    at_once: int = 2

    async def run(self, seconds: float) -> None:
        """Disturbs the plane for so long; all disturbances have ended when it returns."""
        end = self.world.loop.time() + seconds
        async with asyncio.TaskGroup() as group:
            for _ in range(self.at_once):
                group.create_task(self._one_after_the_other(end))

    async def _one_after_the_other(self, end: float) -> None:
        kinds: list[tuple[int, Callable[[], Coroutine[Any, Any, None]]]] = [
            (4, self._kill_agent), (4, self._end_processes), (3, self._cut_agent), (3, self._break_streams),
            (2, self._kill_state), (2, self._freeze_agent), (1, self._lose_host), (1, self._stop_state),
            (1, self._set_clock), (1, self._slow_network), (1, self._database_away),
        ]  # fmt: skip
        if not self.world.is_sole:
            kinds += [(2, self._freeze_state), (2, self._cut_database)]
        weights = [weight for weight, _ in kinds]
        while (now := self.world.loop.time()) < end:
            await asyncio.sleep(min(self.chance.random() * 4.0, end - now))
            ((_, disturb),) = self.chance.choices(kinds, weights)
            await disturb()

    def _seconds(self, most: float) -> float:
        return self.chance.random() ** 2 * most

    def _host(self) -> Host:
        return self.chance.choice(self.hosts)

    def _note(self, what: str) -> None:
        self.world.rules.note("disturbed", what)

    async def _kill_agent(self) -> None:
        host = self._host()
        self._note(f"agent of {host.name} killed")
        host.kill_agent()
        await asyncio.sleep(self._seconds(KILLED_SECONDS * 2))
        host.start_agent()

    async def _end_processes(self) -> None:
        host = self._host()
        for child in list(host.children.values()):
            if self.chance.random() < 0.5:
                host.end(child, -9)

    async def _lose_host(self) -> None:
        host = self._host()
        if host.is_lost:
            return
        self._note(f"{host.name} lost")
        host.lose()
        await asyncio.sleep(self._seconds(LOST_SECONDS))
        self._note(f"{host.name} back")
        host.power_on()

    async def _freeze_agent(self) -> None:
        agent = self._host().agent
        if agent is not None and not agent.is_frozen:
            self._note(f"agent of {agent.name} frozen")
            agent.freeze()
            await asyncio.sleep(self._seconds(FROZEN_SECONDS))
            agent.thaw()

    async def _kill_state(self) -> None:
        state = self.chance.choice(self.states)
        if state.process is None:
            return
        self._note(f"{state.name} killed")
        state.kill()
        self.world.rules.died(state.name)
        await asyncio.sleep(self._seconds(KILLED_SECONDS))
        if state.process is None:
            state.start()

    async def _stop_state(self) -> None:
        state = self.chance.choice(self.states)
        if state.process is None or state.process.is_frozen:
            return
        self._note(f"{state.name} stopped")
        await state.stop()
        self.world.rules.died(state.name)
        await asyncio.sleep(self._seconds(KILLED_SECONDS))
        if state.process is None:
            state.start()

    async def _freeze_state(self) -> None:
        state = self.chance.choice(self.states)
        process = state.process
        if process is None or process.is_frozen:
            return
        self._note(f"{state.name} frozen")
        process.freeze()
        self._blind(state, FROZEN_SECONDS)
        await asyncio.sleep(self._seconds(FROZEN_SECONDS))
        self._note(f"{state.name} goes on")
        self._blind(state, FROZEN_SECONDS)
        process.thaw()

    async def _cut_agent(self) -> None:
        host, state = self._host(), self.chance.choice(self.states)
        ways = self.chance.choice(((host.name, state.name), (state.name, host.name), None))
        cut = [ways] if ways else [(host.name, state.name), (state.name, host.name)]
        await self._cut(cut, self._seconds(CUT_SECONDS))

    async def _cut_database(self) -> None:
        state = self.chance.choice(self.states)
        ways = self.chance.choice(((SERVER, state.name), (state.name, SERVER), None))
        cut = [ways] if ways else [(SERVER, state.name), (state.name, SERVER)]
        seconds = self._seconds(CUT_SECONDS)
        self._blind(state, seconds + 10.0)
        await self._cut(cut, seconds)
        if seconds > 5.0:
            self.world.server.hang_up(lambda value: value.process is state.process)
        self._blind(state, 10.0)

    async def _cut(self, ways: Sequence[tuple[str, str]], seconds: float) -> None:
        self._note(f"cut for {seconds:.1f} s: {', '.join(f'{a} to {b}' for a, b in ways)}")
        for way in ways:
            self.world.network.cut(*way)
        await asyncio.sleep(seconds)
        for way in ways:
            self.world.network.heal(*way)

    async def _break_streams(self) -> None:
        for stream in list(self.world.network.streams):
            if self.chance.random() < 0.3:
                client = self.chance.random() < 0.7
                stream.break_off(client=client, server=not client or self.chance.random() < 0.5)

    async def _database_away(self) -> None:
        if self.world.server.is_away:
            return
        self._note("database away")
        for state in self.states:
            self._blind(state, CUT_SECONDS + 10.0)
        self.world.server.go_away()
        await asyncio.sleep(self._seconds(CUT_SECONDS))
        self.world.server.come_back()
        self._note("database back")

    async def _set_clock(self) -> None:
        state = self.chance.choice(self.states)
        state.clock_error = timedelta(seconds=self.chance.choice((-1, 1)) * self._seconds(7200.0))
        self._note(f"clock of {state.name} set by {state.clock_error}")

    async def _slow_network(self) -> None:
        self.world.network.slow = 1.5
        await asyncio.sleep(self._seconds(CUT_SECONDS))
        self.world.network.slow = 0.02

    def _blind(self, state: StateService, seconds: float) -> None:
        blind = self.world.rules.blind
        blind[state.name] = max(blind.get(state.name, 0.0), self.world.loop.time() + seconds)
