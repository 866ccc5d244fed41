"""Previews connectors: gathers the worker's part, and has a side process answer."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from keelman.connect.plugin import Connector, Direction
from keelman.connect.previews.begin import BEGINNING, COMMITTED, END
from keelman.connectors.registry import find_connector
from keelman.model.work import Work
from keelman.runtime.own_thread import in_thread
from keelman.worker.asking.connector_class import tasks_of
from keelman.worker.asking.third_party import to_ask
from keelman.worker.deadlines import remaining
from keelman.worker.errors import Elsewhere, RestError, not_found
from keelman.worker.group.herder import Herder
from keelman.worker.offsets.source_offsets import committed_rows
from keelman.worker.previews.side_process import SideProcess, asking

USUAL_RECORDS, MAX_RECORDS = 5, 100
READ_SECONDS = 20.0
Config = Mapping[str, str]
Check = Callable[[Mapping[str, str | None]], Awaitable[dict[str, str]]]


class Previews:
    """Previews connectors; one per worker. `check` returns a configuration when it is legal, and raises RestError when
    it is not."""

    def __init__(self, herder: Herder, check: Check, side_process: SideProcess) -> None:
        self._herder = herder
        self._store = herder.store
        self._check = check
        self._side_process = side_process

    async def preview(
        self, name: str, config: Mapping[str, str | None] | None, *, records: int, begin: str
    ) -> dict[str, Any]:
        """Returns the next records of a source, or some of a sink's, through each step; of another configuration than
        the connector's if one is given, which is checked first. Raises RestError, Elsewhere, KeelmanError."""
        stored = self._store.config.connectors.get(name)
        if config is not None:
            submitted: Config = await self._check(config)
        elif stored is not None:
            submitted = stored
        else:
            raise not_found(f"Connector {name} not found")
        kind = find_connector(submitted.get("connector.class", ""), submitted.get("connector.plugin.version"))
        source = kind.direction is Direction.SOURCE
        begin = _begin(begin, source=source)
        if source and stored is not None and kind.runs_on == "node":
            await self._where_its_files_are(name)
        async with asking():
            resolved = await self._store.secrets.read(submitted)
            self._store.judge.require(resolved)
            tasks = await self._tasks(name, kind, submitted, resolved) if source else []
            for task in tasks:
                self._store.judge.require({**resolved, **task})
            rows = await self._rows(name, resolved) if source and begin == COMMITTED else []
            more = {"tasks": tasks, "offsets": rows, "records": records, "from": begin}
            return await self._side_process.ask(kind, "preview", name, resolved, seconds=READ_SECONDS, **more)

    async def _tasks(self, name: str, kind: type[Connector], config: Config, resolved: Config) -> list[dict[str, str]]:
        """Returns the present task configurations or, for a configuration that is only tried, those that it would
        have."""
        state = self._store.config
        if config == state.connectors.get(name) and state.tasks.get(name):
            return [dict(await self._store.secrets.read(task)) for task in state.tasks[name]]
        _, tasks = in_thread(lambda: tasks_of(to_ask(kind), resolved, self._store.properties.raw))
        return await tasks

    async def _rows(self, name: str, resolved: Config) -> list[tuple[str, str]]:
        rows = await committed_rows(self._store, name, resolved)
        return [(base64.b64encode(key).decode(), base64.b64encode(value).decode()) for key, value in rows]

    async def _where_its_files_are(self, name: str) -> None:
        """Returns on the worker that has the connector's first task. Raises Elsewhere on others."""
        work = Work(name, 0)

        async def do() -> None:
            if work in self._herder.owned.works or self._store.config.task(work) is None:
                return
            self._herder.require_leader()
            owner = self._herder.leader.owner(work)
            if owner is not None and owner != self._herder.url:
                raise Elsewhere(owner)

        await self._herder.call(do, seconds=remaining())


def _begin(start: str, *, source: bool) -> str:
    legal = (COMMITTED, BEGINNING) if source else (END, BEGINNING)
    if start and start not in legal:
        raise RestError(
            400, f"from: {start!r} is not legal for a {'source' if source else 'sink'}: {' or '.join(legal)}"
        )
    return start or legal[0]
