"""Makes the records that put new tasks into force, and fences their former ones' producers beside the leader's other
work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from keelman.connect.errors import ConnectError
from keelman.engine.source.split import part_ids, plans
from keelman.kafka.fencing import fence_all
from keelman.kafka.writer import Record
from keelman.model.errors import KeelmanError
from keelman.model.work import Work
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings
from keelman.worker import connector_facts
from keelman.worker.config.client_properties import fencing_client
from keelman.worker.offsets.source_offsets import merged_offsets, own_offsets
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_state import ConfigState
from keelman.worker.storage.store import WorkerStore
from keelman.worker.tasks.effective_config import changed_tasks

log = get_logger()
FENCE_SECONDS = 30.0
AGAIN_SECONDS = 5.0


def fences(store: WorkerStore, name: str) -> bool:
    """Returns whether the connector is a source whose tasks write in transactions."""
    config = store.config.connectors.get(name)
    return config is not None and connector_facts.is_exactly_once_source(store.properties, config)


def new_tasks(store: WorkerStore, name: str, configs: Sequence[Mapping[str, str]]) -> list[Record]:
    """Returns the records that store task configurations and put them into force, once all are in the topic. The
    leader's."""
    config = store.config
    written = [*records.task_records(name, configs), records.commit_record(name, len(configs))]
    before = config.fencing.get(name, 0)
    alone = before == len(configs) == 1  # which fences its predecessor by itself
    nobody = before == 0 or (name not in config.unfenced and (alone or _copy_on(config, name, configs)))
    if nobody and fences(store, name):
        written.append(records.fencing_record(name, len(configs)))
    return written


def _copy_on(config: ConfigState, name: str, configs: Sequence[Mapping[str, str]]) -> bool:
    """Returns whether the tasks in force all keep running unchanged: there may be more of them now, but no other
    ones."""
    before, now, tasks = config.applied.get(name), config.connectors.get(name), config.tasks.get(name)
    if before is None or now is None or tasks is None:
        return False
    return not changed_tasks([(before, tasks)], (now, tuple(configs)), len(tasks))


class Fencing:
    """The leader's. Calls `fenced` with the name of a connector when its set of former tasks is fenced; errors are
    tried again until that is done."""

    def __init__(self, store: WorkerStore, fenced: Callable[[str], None]) -> None:
        self._store = store
        self._fenced = fenced
        self._wanted: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._siblings: Siblings | None = None

    def begin(self, siblings: Siblings) -> None:
        """Sets the scope in which the fencing runs."""
        self._siblings = siblings

    def forget(self) -> None:
        """Forgets all fences: another worker leads, or may have led, so they prove nothing any more."""
        self._wanted.clear()
        self._done.clear()

    async def shut_out_former_tasks(self, name: str, since: int) -> None:
        """Shuts out all producers of former tasks, but for those that are the same task still; then writes that record.

        A single task's successor fences it by itself.
        """
        if not fences(self._store, name):
            return
        config = self._store.config
        former, count = config.fencing.get(name, 0), len(config.tasks.get(name, ()))
        now = config.applied.get(name, {}), config.tasks.get(name, ())
        changed = changed_tasks(config.former.get(name, [None]), now, former) if (former, count) != (1, 1) else []
        if changed and not self.done(name, since, config.connectors[name], changed):
            return
        await self._store.config_topic.write([records.fencing_record(name, count)])

    def done(self, name: str, since: int, config: Mapping[str, str], former: Sequence[int]) -> bool:
        """Returns whether the producers of these former tasks are fenced since the connector's tasks changed at this
        offset of the config topic; begins to fence them at the first call."""
        if self._done.get(name) == since:
            return True
        if self._wanted.get(name) != since:
            assert self._siblings is not None
            self._wanted[name] = since
            self._siblings.start(self._fence(name, since, config, former), name=f"fences {name}")
        return False

    async def _fence(self, name: str, since: int, config: Mapping[str, str], former: Sequence[int]) -> None:
        properties = self._store.properties
        ids = [connector_facts.transactional_id(properties.group_id, Work(name, task)) for task in former]
        backoff = Backoff(first=0.1, most=AGAIN_SECONDS)
        while self._wanted.get(name) == since:
            try:
                resolved = await self._store.secrets.resolve(config)  # a secret may have changed since the last try
                client = fencing_client(properties.raw, resolved)
                await fence_all(client, ids, client_id=f"fence-{name}", seconds=FENCE_SECONDS)
                # From here on no task can be split any more.
                if parts := await self._parts(name, resolved):
                    await fence_all(client, parts, client_id=f"fence-{name}", seconds=FENCE_SECONDS)
            except (KeelmanError, ConnectError) as error:
                log.warning("former_tasks_unfenced", connector=name, tasks=former, error=str(error))
                await asyncio.sleep(backoff.next())
                continue
            if self._wanted.get(name) == since:
                log.info("former_tasks_fenced", connector=name, tasks=former)
                self._done[name] = since
                self._fenced(name)
            return

    async def _parts(self, name: str, config: Mapping[str, str]) -> list[str]:
        """Returns the producers in the plans of split tasks."""
        await self._store.offset_topic.read()
        properties = self._store.properties
        rows = merged_offsets(name, self._store.offsets.of(name), await own_offsets(properties, name, config))
        return [
            identifier
            for task, count in plans(name, rows).items()
            for identifier in part_ids(connector_facts.transactional_id(properties.group_id, Work(name, task)), count)
        ]
