"""What the group's leader does: shares work out, keeps task configurations up to date, clears old statuses."""

from __future__ import annotations

import time
from collections.abc import Mapping

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector, load_connector
from keelman.kafka.layout import CONFIG_MISMATCH, Assignment, Metadata, Work
from keelman.kafka.writer import fence
from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.logging import get_logger
from keelman.worker import config_state as records
from keelman.worker import tickets
from keelman.worker.assignor import MemberView, Memory, assign
from keelman.worker.config_state import STOPPED
from keelman.worker.store import Store

log = get_logger()


class Leader:
    """The leader's mind; every worker has one, and starts with an empty memory each time it becomes leader."""

    def __init__(self, store: Store, *, url: str, delay_ms: int) -> None:
        self._store = store
        self._url = url
        self._delay_ms = delay_ms
        self._memory = Memory()
        self._computed: dict[str, Mapping[str, str]] = {}
        self.member_urls: tuple[str, ...] = ()

    def resign(self) -> None:
        """Another worker leads now."""
        self._memory, self._computed, self.member_urls = Memory(), {}, ()

    def owner(self, work: Work) -> str | None:
        """URL of the worker that has this work by the last round."""
        return self._memory.owners.get(work)

    async def share(self, leader: str, members: Mapping[str, Metadata]) -> Mapping[str, Assignment]:
        """One round of the group: member id to metadata in, member id to assignment out."""
        newest = max(m.config_offset for m in members.values())
        config = self._store.config
        if config.offset < newest:
            try:
                await self._store.read_config(seconds=self._store.properties.sync_ms / 1000)
            except KeelmanError as error:
                log.warning("leader_behind", error=error.message)
        if config.offset < newest:
            answer = Assignment(leader, self._url, newest, error=CONFIG_MISMATCH)
            return dict.fromkeys(members, answer)
        views = {
            name: MemberView(
                m.url,
                frozenset(m.allocation.assigned) if m.allocation else frozenset(),
                m.own is not None and m.own.leaving,
            )
            for name, m in members.items()
        }
        now = int(time.monotonic() * 1000)
        outcome = assign(views, config.work(), self._memory, now_ms=now, max_delay_ms=self._delay_ms)
        self._memory = outcome.memory
        self.member_urls = tuple(sorted(m.url for m in members.values()))
        log.info("work_shared", members=len(members), work=len(config.work()), delay_ms=outcome.delay_ms)
        return {
            name: Assignment(
                leader,
                self._url,
                config.offset,
                tuple(sorted(outcome.assigned[name])),
                tuple(sorted(outcome.revoked[name])),
                outcome.delay_ms,
            )
            for name in members
        }

    async def reconfigure(self) -> None:
        """Writes task configurations where they differ from what their connector wants now. Raises what writing raises.

        A connector that cannot be asked (unknown class, illegal configuration) is left as it is: its owner says why.
        Fences former tasks where that is still to be done, also for a leader that ended between the two: until then
        no worker grants a ticket.
        """
        config = self._store.config
        for gone in set(self._computed) - set(config.connectors):
            del self._computed[gone]
        for name, properties in list(config.connectors.items()):
            if config.target(name) == STOPPED:
                self._computed.pop(name, None)
                continue
            if self._computed.get(name) != properties or name in config.inconsistent:
                wanted = wanted_tasks(properties)
                if wanted is not None and wanted != list(config.tasks.get(name, ())):
                    await self.write_tasks(name, wanted)
                self._computed[name] = properties
            if name in config.unfenced and tickets.is_exactly_once_source(self._store.properties, properties):
                try:
                    await self._fence_former_tasks(name)
                except Unavailable as error:  # the next turn tries again; other connectors need not wait for it
                    log.warning("former_tasks_unfenced", connector=name, error=error.message)

    async def write_tasks(self, name: str, wanted: list[dict[str, str]]) -> None:
        """Stores task configurations and puts them into force."""
        if wanted:
            await self._store.write_config(records.task_records(name, wanted))
        await self._store.write_config([records.commit_record(name, len(wanted))])

    async def _fence_former_tasks(self, name: str) -> None:
        """No producer of an earlier set of tasks can commit any more. A single task's successor fences it by itself."""
        former = self._store.config.fencing.get(name, 0)
        count = len(self._store.config.tasks.get(name, ()))
        if former > 1 or (former == 1 and count != 1):
            properties = self._store.properties
            for task in range(former):
                await fence(properties.raw, tickets.transactional_id(properties.group_id, Work(name, task)))
            log.info("former_tasks_fenced", connector=name, tasks=former)
        await self._store.write_config([records.fencing_record(name, count)])

    def clear_statuses(self) -> None:
        """Tombstones for the statuses of what is configured no more."""
        for work in self._store.statuses.without(self._store.config.work()):
            self._store.tell(work, None)


def wanted_tasks(properties: Mapping[str, str]) -> list[dict[str, str]] | None:
    """The task configurations a connector wants; None when it cannot be asked."""
    try:
        kind = load_connector(properties.get("connector.class", ""))
        return tasks_of(kind, properties)
    except (KeelmanError, ConnectError, ValueError) as error:
        log.debug("connector_not_asked", connector=properties.get("name"), error=str(error))
        return None


def tasks_of(kind: type[Connector], properties: Mapping[str, str]) -> list[dict[str, str]]:
    """The task configurations a connector of this class wants, as they are stored. Raises what the class raises."""
    most = max(1, int(properties.get("tasks.max", "1")))
    task_class = kind.names[0].removesuffix("Connector") + "Task"
    return [{"task.class": task_class, **config} for config in kind.task_configs(properties, most)]
