"""What REST asks for: reads from the tables, writes through the herder. Bodies as Connect's, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connectors.registry import find_connector
from keelman.kafka.clients import Admin
from keelman.kafka.layout import Work
from keelman.model.errors import DeadlineExceeded, NotFound
from keelman.runtime.supervise import deadline
from keelman.worker import config_state as records
from keelman.worker.config_state import PAUSED, STARTED, STOPPED, RestartRequest
from keelman.worker.herder import Herder
from keelman.worker.inquiry import in_thread
from keelman.worker.offset_state import parsed_rows
from keelman.worker.rest_errors import Elsewhere, RestError, invalid_config, not_found
from keelman.worker.source_offsets import merged_offsets, own_offsets
from keelman.worker.status_state import FAILED, RESTARTING, Status
from keelman.worker.third_party import problems_of
from keelman.worker.tickets import is_exactly_once_source, is_source

SECONDS = 90.0
INITIAL_STATES = {"RUNNING": STARTED, "PAUSED": PAUSED, "STOPPED": STOPPED}


class Operations:
    """Everything that the REST API can do."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder
        self._store = herder.store

    @property
    def worker_config(self) -> Mapping[str, str]:
        """The worker's own properties."""
        return self._store.properties.raw

    @property
    def session_key(self) -> str:
        """What the workers of the group sign with, base64; empty while there is none."""
        return self._store.config.session_key

    def names(self) -> list[str]:
        """All connectors."""
        return sorted(self._store.config.connectors)

    def config(self, name: str) -> dict[str, str]:
        """The connector's configuration as it was given. Raises 404."""
        config = self._store.config.connectors.get(name)
        if config is None:
            raise not_found(f"Connector {name} not found")
        return config

    def info(self, name: str) -> dict[str, Any]:
        """ConnectorInfo. Raises 404."""
        config = self.config(name)
        tasks = range(len(self._store.config.tasks.get(name, ())))
        return {
            "name": name,
            "config": config,
            "tasks": [{"connector": name, "task": n} for n in tasks],
            "type": connector_type(config),
        }

    def status(self, name: str) -> dict[str, Any]:
        """ConnectorStateInfo. Raises 404."""
        connector, tasks = self._store.statuses.of(name)
        config = self._store.config.connectors.get(name)
        if connector is None or config is None:
            raise not_found(f"No status found for connector {name}")
        return {
            "name": name,
            "connector": _state(connector),
            "tasks": [{"id": n, **_state(status)} for n, status in tasks],
            "type": connector_type(config),
        }

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        """One task's state. Raises 404."""
        status = self._store.statuses.statuses.get(Work(name, task))
        if status is None:
            raise not_found(f"No status found for task {name}-{task}")
        return {"id": task, **_state(status)}

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """Task ids and configurations. Raises 404."""
        self.config(name)
        configs = self._store.config.tasks.get(name, ())
        return [{"id": {"connector": name, "task": n}, "config": config} for n, config in enumerate(configs)]

    def topics(self, name: str) -> dict[str, Any]:
        """Topics that the connector used."""
        found = set(self._store.statuses.topics.get(name, ()))
        for work, task in self._herder.owned.tasks.items():
            if work.connector == name:
                found |= task.topics
        return {name: {"topics": sorted(found)}}

    async def offsets(self, name: str, admin: Admin) -> dict[str, Any]:
        """Committed offsets of a source or a sink. Raises 404."""
        config = self.config(name)
        if is_source(config):
            await self._store.read_offsets()
            own = await own_offsets(self._store.properties, name, config)
            rows = parsed_rows(merged_offsets(name, self._store.offsets.of(name), own))
            return {"offsets": [{"partition": part, "offset": offset} for part, offset in rows]}
        committed = await admin.list_consumer_group_offsets(f"connect-{name}")
        found = sorted((tp.topic, tp.partition, meta.offset) for tp, meta in committed.items() if meta.offset >= 0)
        return {
            "offsets": [
                {"partition": {"kafka_topic": topic, "kafka_partition": part}, "offset": {"kafka_offset": offset}}
                for topic, part, offset in found
            ]
        }

    async def put_config(
        self, name: str, config: dict[str, str], *, create: bool, initial_state: str | None = None
    ) -> tuple[bool, dict[str, Any]]:
        """Creates or, unless `create`, changes a connector: (created, ConnectorInfo). The leader's."""
        target = None
        if initial_state is not None:
            target = INITIAL_STATES.get(initial_state.upper())
            if target is None:
                legal = ", ".join(INITIAL_STATES)
                raise RestError(400, f"initial_state: {initial_state!r} is not legal: one of {legal}")
        await self.check(config)  # before all else, as Connect does, and beside what the herder does: it may take long

        async def do() -> tuple[bool, dict[str, Any]]:
            self._herder.require_leader()
            await self._store.read_config()
            exists = name in self._store.config.connectors
            if create and exists:
                raise RestError(409, f"Connector {name} already exists")
            await self._write(name, config, target)
            return not exists, self.info(name)

        return await self._herder.call(do, seconds=SECONDS)

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> dict[str, Any]:
        """Merges keys into a configuration; None removes one: ConnectorInfo. The leader's."""

        async def read() -> dict[str, str]:
            self._herder.require_leader()
            await self._store.read_config()
            return self.config(name)

        while True:
            before = await self._herder.call(read, seconds=SECONDS)
            merged = {k: v for k, v in {**before, **patch}.items() if v is not None}
            await self.check(merged)

            async def write(before: dict[str, str] = before, merged: dict[str, str] = merged) -> dict[str, Any] | None:
                if await read() != before:
                    return None
                await self._write(name, merged)
                return self.info(name)

            info = await self._herder.call(write, seconds=SECONDS)
            if info is not None:
                return info

    async def delete(self, name: str) -> None:
        """Deletes a connector; its offsets and its group stay. The leader's."""

        async def do() -> None:
            self._herder.require_leader()
            await self._store.read_config()
            self.config(name)
            tasks = len(self._store.config.tasks.get(name, ()))
            await self._store.write_config(records.deletion_records(name, tasks))

        await self._herder.call(do, seconds=SECONDS)

    async def set_target(self, name: str, target: str) -> None:
        """Pauses or resumes. Any worker's."""

        async def do() -> None:
            await self._store.read_config()
            self._known(name)
            await self._store.write_target(name, target)

        await self._herder.call(do, seconds=SECONDS)

    async def stop(self, name: str) -> None:
        """Stops: no tasks, then STOPPED. The leader's."""

        async def do() -> None:
            self._herder.require_leader()
            await self._store.read_config()
            self._known(name)
            await self._store.write_config([records.commit_record(name, 0)])
            await self._store.write_config([records.target_record(name, STOPPED)])

        await self._herder.call(do, seconds=SECONDS)

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> dict[str, Any]:
        """Restarts a connector and, if asked, its tasks: the state with RESTARTING where it applies. The leader's."""

        async def do() -> dict[str, Any]:
            self._herder.require_leader()
            await self._store.read_config()
            if name not in self._store.config.connectors:
                raise not_found(f"Unknown connector: {name}")
            before = self.status(name)
            request = RestartRequest(name, include_tasks, only_failed)
            await self._store.write_config([records.restart_record(request)])
            for one in (before["connector"], *(before["tasks"] if include_tasks else ())):
                if not only_failed or one["state"] == FAILED:
                    one["state"] = RESTARTING
                    one.pop("trace", None)
            return before

        return await self._herder.call(do, seconds=SECONDS)

    async def restart_task(self, name: str, task: int) -> None:
        """Restarts a task of this worker. Raises Elsewhere, 404."""
        work = Work(name, task)

        async def do() -> None:
            if self._store.config.task(work) is None:
                raise not_found(f"Unknown task: {name}-{task}")
            if self._herder.owned.restart_task(work):
                return
            self._herder.require_leader()
            owner = self._herder.leader.owner(work)
            if owner is None or owner == self._herder.url:
                raise RestError(409, f"Task {name}-{task} has no worker at this moment")
            raise Elsewhere(owner)

        await self._herder.call(do, seconds=SECONDS)

    async def fence(self, name: str) -> None:
        """Returns when the producers of the connector's former tasks are fenced. Raises 404, 409. The leader's."""
        config = self._store.config

        async def wanted() -> int | None:
            self._herder.require_leader()
            await self._store.read_config()
            exactly = is_exactly_once_source(self._store.properties, self.config(name))
            return config.unfenced.get(name) if exactly else None

        since = await self._herder.call(wanted, seconds=SECONDS)
        async with deadline(SECONDS, DeadlineExceeded("Request timed out")):
            while since is not None and config.unfenced.get(name) == since:
                await self._store.config_changes()  # the leader is at it: it fences whatever is not fenced
        if since is not None and name in config.unfenced:
            raise RestError(409, f"Tasks of connector {name} were configured anew while their producers were fenced")

    async def check(self, config: Mapping[str, str]) -> None:
        """Raises 400 with Connect's text for a configuration that is not legal, and as a plugin does."""
        class_name = config.get("connector.class")
        if class_name is None:
            shown = ", ".join(f"{k}={v}" for k, v in config.items())
            raise RestError(400, f"Connector config {{{shown}}} contains no connector type")
        try:
            find_connector(class_name)
        except NotFound as error:
            raise RestError(400, error.message) from None
        _, found = in_thread(lambda: problems_of(config, self._store.properties.raw))
        async with deadline(SECONDS, DeadlineExceeded("Request timed out")):
            problems = await found
        if problems:
            raise invalid_config([problem.message for problem in problems])

    async def _write(self, name: str, config: dict[str, str], target: str | None = None) -> None:
        written = [records.target_record(name, target)] if target is not None else []
        await self._store.write_config([*written, records.connector_record(name, config)])

    def _known(self, name: str) -> None:
        if name not in self._store.config.connectors:
            raise not_found(f"Unknown connector {name}")


def connector_type(config: Mapping[str, str]) -> str:
    """source, sink or unknown."""
    try:
        return "source" if is_source(config) else "sink"
    except (NotFound, ConnectError):
        return "unknown"


def _state(status: Status) -> dict[str, Any]:
    shown: dict[str, Any] = {"state": status.state, "worker_id": status.worker_id}
    if status.trace:
        shown["trace"] = status.trace
    if status.version:
        shown["version"] = status.version
    return shown
