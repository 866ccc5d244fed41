"""Makes REST's changes of connectors through the herder, at the leader where necessary."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from keelman.connect.java.text import hash_order, java_text
from keelman.connectors.registry import find_connector
from keelman.kafka.writer import Record
from keelman.model.errors import DeadlineExceeded, NotFound
from keelman.model.work import Work
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline
from keelman.worker.asking.java_plugins import NOT_READY
from keelman.worker.config.secrets import Secrets
from keelman.worker.connector_facts import is_exactly_once_source
from keelman.worker.deadlines import TIMED_OUT, remaining
from keelman.worker.errors import Elsewhere, RestError, invalid_config, not_found
from keelman.worker.group.fencing import new_tasks
from keelman.worker.group.herder import Herder
from keelman.worker.group.requests import DecidedChange
from keelman.worker.rest import key_notes
from keelman.worker.rest.forwarding import repeats
from keelman.worker.rest.key_notes import KeyNotes
from keelman.worker.rest.validated_secrets import problems_with
from keelman.worker.rest.views import Views, etag_of
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_records import PAUSED, STARTED, STOPPED, ConnectorIdentity, RestartRequest
from keelman.worker.storage.config_state import CONFIG, DELETE, RESTART
from keelman.worker.storage.recent import Recent
from keelman.worker.storage.status_state import FAILED, RESTARTING
from keelman.worker.storage.topic_tracking import TopicTracking
from keelman.workers.status_notes import STATUS_FIELD

log = get_logger()
T = TypeVar("T")
FIRST_TASKS_SECONDS = 3.0
INITIAL_STATES = {"RUNNING": STARTED, "PAUSED": PAUSED, "STOPPED": STOPPED}
Config = Mapping[str, str | None]


class Operations:
    """Changes of one connector's configuration, target state or tasks.

    None begins after its time. Changes marked as the leader's raise Elsewhere on any other worker. A change whose first
    answer was lost is repeated and gets the first answer again: it is not refused because of its own effect.
    """

    def __init__(self, herder: Herder, views: Views | None = None, tracking: TopicTracking | None = None) -> None:
        self._herder = herder
        self._store = herder.store
        self._views = views or Views(herder.store)
        self._tracking = tracking or TopicTracking(herder.store)
        self.key_notes = KeyNotes(self.worker_config)
        self._restarted: Recent[tuple[Work, str]] = Recent()  # tasks, by requests whose answer may be lost

    @property
    def secrets(self) -> Secrets:
        """Resolves references in configurations."""
        return self._store.secrets

    @property
    def worker_config(self) -> Mapping[str, str]:
        """The worker's own properties."""
        return self._store.properties.raw

    async def put_config(
        self,
        name: str,
        config: Config,
        *,
        create: bool,
        initial_state: str | None = None,
        etag: str = "",
        request_id: str = "",
    ) -> tuple[bool, dict[str, Any]]:
        """Creates or, unless `create`, changes a connector: (created, ConnectorInfo). The leader's.

        With an `etag` only when the configuration has it. With a `request_id` that has created or changed the connector
        before, changes nothing and returns its present state. Raises 400, 409, 412.
        """
        target = None if initial_state is None else INITIAL_STATES.get(initial_state.upper())
        if initial_state is not None and target is None:
            raise RestError(400, f"initial_state: {initial_state!r} is not legal: one of {', '.join(INITIAL_STATES)}")
        # By the leader alone, where Connect validates twice; and beside the herder's work, for it may take long.
        if not self._herder.leads():
            await self._herder.call(self._leads, seconds=remaining())

        def answered() -> tuple[bool, dict[str, Any]] | None:
            """Returns the result of an earlier request of this id, if any."""
            state = self._store.config
            if not request_id or name not in state.connectors:
                return None
            created = state.identities.get(name, records.NOT_KNOWN).request_id == request_id
            done = created if create else state.is_answered(CONFIG, name, request_id)
            return (created, self._views.info(name)) if done else None

        # Before validation: a configuration that was legal then need not be so now.
        if request_id and (before := await self._lead(name, lambda: DecidedChange((), answered))) is not None:
            return before
        with self._herder.requests.coming():
            checked = await self.check(config)
        if self._store.config.may_have_lingering_target(name):
            await self._store.config_topic.read(seconds=remaining())
        since = repeats.since()

        def decide() -> DecidedChange[tuple[bool, dict[str, Any]]]:
            if self._store.config.has_since(name, checked, since):
                return DecidedChange((), lambda: (create, self._views.info(name)))
            if (before := answered()) is not None:
                return DecidedChange((), lambda: before)
            exists = name in self._store.config.connectors
            if create and exists:
                raise RestError(409, f"Connector {name} already exists")
            self._require(name, etag)
            first = target or (STARTED if not exists and name in self._store.config.targets else None)
            written: list[Record] = [records.target_record(name, first)] if first is not None else []
            written.append(self._connector_record(name, checked, request_id, create=create))
            return DecidedChange(written, lambda: (not exists, self._views.info(name)))

        created, info = await self._lead(name, decide)
        await self.key_notes.log(name, checked)
        return created, await self._with_first_tasks(name, info)

    async def _with_first_tasks(self, name: str, info: dict[str, Any]) -> dict[str, Any]:
        """Returns ConnectorInfo with its first tasks: a standalone worker waits for them a moment, as Connect's
        does."""
        state = self._store.config
        if not self._store.properties.standalone or state.target(name) == STOPPED:
            return info
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_TASKS_SECONDS):
                while state.applied.get(name) != state.connectors.get(name):
                    await self._store.config_topic.next_record()
        return self._views.info(name) if name in state.connectors else info

    async def patch_config(self, name: str, patch: Config, *, etag: str = "", request_id: str = "") -> dict[str, Any]:
        """Merges keys into a configuration; None removes one: ConnectorInfo. `etag` and `request_id` as in
        `put_config`. The leader's. Raises 404, 400, 412."""
        since = repeats.since()

        def is_done(config: Config) -> bool:
            state = self._store.config
            return state.has_since(name, patched(config), since) or state.is_answered(CONFIG, name, request_id)

        def patched(config: Config) -> dict[str, str]:
            whole = {**config, **patch}
            return {key: value for key in hash_order(whole) if (value := whole[key]) is not None}

        def read() -> dict[str, str]:
            config = self._views.config(name)
            if not is_done(config):
                self._require(name, etag)
            return config

        while True:
            before = await self._lead(name, lambda: DecidedChange((), read))
            if is_done(before):
                return self._views.info(name)
            merged = await self.check(patched(before))
            if merged.get("name", name) != name:
                raise other_name(merged["name"], name)

            def decide(
                before: Config = before, merged: dict[str, str] = merged
            ) -> DecidedChange[dict[str, Any] | None]:
                if read() != before:
                    return DecidedChange((), lambda: None)
                return DecidedChange([self._connector_record(name, merged, request_id)], lambda: self._views.info(name))

            info = await self._lead(name, decide)
            if info is not None:
                await self.key_notes.log(name, merged)
                return info

    async def delete(self, name: str, *, etag: str = "", request_id: str = "") -> None:
        """Deletes a connector; its offsets and its group stay. With an `etag` only when the configuration has it; with
        a `request_id` that has deleted it before, changes nothing. The leader's. Raises 404, 412."""
        state, since = self._store.config, repeats.since()

        def decide() -> DecidedChange[bool]:
            """Returns whether no connector has that name now: another may have been made since the delete."""
            if state.deleted.since(name, since) or state.is_answered(DELETE, name, request_id):
                return DecidedChange((), lambda: name not in state.connectors)
            config = self._views.config(name)
            self._require(name, etag)
            written: list[Record] = []
            if request_id:
                identity = state.identities.get(name, records.NOT_KNOWN)
                written.append(records.connector_record(name, config, identity, deleted_by=request_id))
            written += records.deletion_records(name, len(state.tasks.get(name, ())))
            return DecidedChange(written, lambda: True)

        if await self._lead(name, decide):
            await self._tracking.clear([name])

    async def set_target(self, name: str, target: str, *, etag: str = "", request_id: str = "") -> None:
        """Pauses or resumes. Any worker's; the leader's with an `etag` or `request_id`."""
        if etag or request_id:
            await self._lead(name, lambda: self._target_change(name, target, etag, request_id))
            return

        async def do() -> None:
            await self._store.config_topic.read()
            self._require_known(name)
            self._herder.requests.require_time()
            await self._store.config_topic.write_target(name, target)

        await self._herder.call(do, seconds=remaining())

    async def stop(self, name: str, *, etag: str = "", request_id: str = "") -> None:
        """Stops: no tasks, then STOPPED. The leader's."""
        await self._lead(name, lambda: self._target_change(name, STOPPED, etag, request_id))

    def _target_change(self, name: str, target: str, etag: str, request_id: str) -> DecidedChange[None]:
        self._require_known(name)
        if self._store.config.is_answered(target, name, request_id):
            return DecidedChange((), lambda: None)
        self._require(name, etag)
        written = [records.target_record(name, target, written_by=request_id)]
        if target != STOPPED:
            return DecidedChange(written, lambda: None)
        # In one write: half of it would be a connector that runs and has no tasks. It may be resumed before the
        # leader's next look.
        return DecidedChange([records.commit_record(name, 0), *written], lambda: self._herder.leader.forget(name))

    async def restart(
        self, name: str, *, include_tasks: bool, only_failed: bool, etag: str = "", request_id: str = ""
    ) -> dict[str, Any]:
        """Restarts a connector and, if requested, its tasks: the state with RESTARTING where it applies. The
        leader's."""
        request, since = RestartRequest(name, include_tasks, only_failed), repeats.since()

        def known() -> None:
            if name not in self._store.config.connectors:
                raise not_found(f"Unknown connector: {name}")

        def decide() -> DecidedChange[dict[str, Any]]:
            known()
            before = self._views.status(name)
            for status in (before["connector"], *(before["tasks"] if include_tasks else ())):
                if not only_failed or status["state"] == FAILED:
                    status["state"] = RESTARTING
                    status.pop("trace", None)
                    status.pop(STATUS_FIELD, None)  # of the failure, which is forgotten
            state = self._store.config
            done = state.restarted.since(request, since) or state.is_answered(RESTART, name, request_id)
            if not done:
                self._require(name, etag)
            return DecidedChange(
                [] if done else [records.restart_record(request, written_by=request_id)], lambda: before
            )

        await self._lead(name, lambda: DecidedChange((), known))
        await self._views.awaited_status(name)  # may have been created a moment ago
        return await self._lead(name, decide)

    async def restart_task(self, name: str, task: int) -> None:
        """Restarts a task of this worker. Raises Elsewhere, 404."""
        work = Work(name, task)
        request = work, repeats.name()

        async def do() -> None:
            await self._store.config_topic.read()
            if name not in self._store.config.connectors:
                raise not_found(f"Unknown connector: {name}")
            if self._store.config.task(work) is None:
                alone = self._store.properties.standalone
                raise not_found(f"Task {name}-{task} not found" if alone else f"Unknown task: {name}-{task}")
            if self._restarted.since(request, 0):
                return
            if self._herder.owned.restart_task(work):
                self._restarted.note(request, 0)
                return
            self._herder.require_leader()
            # Where no worker has it yet, or this one is about to begin, the owner is known in a moment.
            raise Elsewhere(self._herder.leader.owner(work) or "")

        await self._herder.call(do, seconds=remaining())

    async def put_tasks(self, name: str, tasks: list[dict[str, str]]) -> None:
        """Stores task configurations that another worker's connector wants. The leader's."""

        def decide() -> DecidedChange[None]:
            self._views.config(name)
            return DecidedChange(new_tasks(self._store, name, tasks), lambda: None)

        await self._lead(name, decide)

    async def fence(self, name: str) -> None:
        """Returns when the producers of the connector's former tasks are fenced. Raises 404, 409. The leader's."""
        config = self._store.config

        def wanted() -> int | None:
            exactly = is_exactly_once_source(self._store.properties, self._views.config(name))
            return config.unfenced.get(name) if exactly else None

        since = await self._lead(name, lambda: DecidedChange((), wanted))
        async with deadline(remaining(), DeadlineExceeded(TIMED_OUT)):
            while since is not None and config.unfenced.get(name) == since:
                await self._store.config_topic.next_record()  # the leader fences whatever is not fenced
        if since is not None and name in config.unfenced:
            raise RestError(409, f"Tasks of connector {name} were configured again while their producers were fenced")

    async def check(self, config: Config) -> dict[str, str]:
        """Returns the configuration, when it is legal. Raises 400 with Connect's text, and the plugin's own errors."""
        class_name = config.get("connector.class")
        if class_name is None:
            shown = ", ".join(f"{key}={java_text(config[key])}" for key in hash_order(config, copied=True))
            raise RestError(400, f"Connector config {{{shown}}} contains no connector type")
        try:
            find_connector(class_name)
        except NotFound as error:
            if error.reason != NOT_READY:  # else the validation, in its thread, waits for it
                raise RestError(400, error.message) from None
        values = {key: value for key, value in config.items() if value is not None}
        async with deadline(remaining(), DeadlineExceeded(TIMED_OUT)):
            problems = await problems_with(self._store.secrets, config, self._store.properties.raw)
        if problems:
            texts = map(key_notes.text_of, problems)
            log.info("connector_refused", connector=config.get("name"), errors="; ".join(texts))
            raise invalid_config([problem.message for problem in problems], key_notes.problem_header(problems))
        return values

    async def _lead(self, name: str, decide: Callable[[], DecidedChange[T]]) -> T:
        """Has it decided and written in the herder's thread of control. The leader's."""
        return await self._herder.change(name, decide, seconds=remaining())

    async def _leads(self) -> None:
        self._herder.require_leader()

    def _require(self, name: str, etag: str) -> None:
        if not etag:
            return
        config = self._store.config.connectors.get(name)
        if config is None or etag not in ("*", etag_of(config)):
            raise RestError(412, f"The configuration of connector {name} is not the one that If-Match names")

    def _connector_record(
        self, name: str, config: Mapping[str, str], request_id: str = "", *, create: bool = False
    ) -> Record:
        """Returns the record of an existing connector's configuration, or of a new one's. `create`: the request only
        creates; its id belongs to no other change."""
        identity = self._store.config.identities.get(name)
        if identity is None:
            identity = ConnectorIdentity(str(uuid.uuid4()), request_id)
            return records.connector_record(name, config, identity, written_by="" if create else request_id)
        if not identity.uid:
            identity = dataclasses.replace(identity, uid=str(uuid.uuid4()))
        return records.connector_record(name, config, identity, written_by=request_id)

    def _require_known(self, name: str) -> None:
        if name not in self._store.config.connectors:
            raise not_found(f"Unknown connector {name}")


def other_name(name_in_config: str, name: str) -> RestError:
    """Returns 400 for a configuration with a name that is not the connector's."""
    return RestError(
        400, f"Connector name configuration ({name_in_config}) doesn't match connector name in the URL ({name})"
    )
