"""The leader's work: shares connectors and tasks out, keeps task configurations up to date, clears old statuses."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from keelman.connect.errors import ConnectError
from keelman.kafka.groups.connect_protocol import CONFIG_MISMATCH, Metadata
from keelman.kafka.writer import Record
from keelman.model.errors import Exhausted, KeelmanError
from keelman.model.work import MemberAssignment, Work
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.supervise import Siblings
from keelman.worker.asking.task_config_query import ConnectorAnswer, TaskConfigQuery, trace_of
from keelman.worker.group.assignor import Memory
from keelman.worker.group.fencing import Fencing, new_tasks
from keelman.worker.group.session_key import keep_session_key
from keelman.worker.group.sharing import ConfiguredWork, shared_work
from keelman.worker.restart_policy import RestartPolicy, policy_of
from keelman.worker.storage import config_records as records
from keelman.worker.storage.change_set import ChangeSet
from keelman.worker.storage.config_records import STARTED, RestartRequest
from keelman.worker.storage.status_state import FAILED, PAUSED, RESTARTING, RUNNING, UNASSIGNED, Status
from keelman.worker.storage.store import WorkerStore
from keelman.worker.tasks.effective_config import without_limits

log = get_logger()
WRITTEN_AT_ONCE = 1000  # records
MAX_LOGGED = 20


class GroupLeader:
    """The leader's state and decisions; every worker has one, and starts with an empty memory each time it becomes
    leader."""

    def __init__(self, store: WorkerStore, *, url: str, delay_ms: int, wake: Callable[[], None]) -> None:
        """Calls `wake` when there is something to do."""
        self._store = store
        self._status_writer = store.status_topic.writer
        self._url = url
        self._delay_ms = delay_ms
        self._memory = Memory()
        self._wake = wake
        self._query = TaskConfigQuery(self._answered, store.properties.raw)
        self._fencing = Fencing(store, lambda name: self._answered((name,)))
        self._used: dict[str, ConnectorAnswer] = {}
        self._changes = ChangeSet(lambda: {*store.config.connectors, *self._query.names})
        self._old = ChangeSet(lambda: store.statuses.by_connector)  # connectors that may have statuses of removed work
        store.change_sets += [self._changes, self._old]
        store.status_change_sets.append(self._old)
        self._unplaced: Mapping[Work, str] = {}
        self._lost: Mapping[Work, str] = {}
        self._unknown: set[str] = set()  # connectors whose tasks in force may be unknown to a member
        self._members: frozenset[str] = frozenset()
        self.member_urls: tuple[str, ...] = ()

    def begin(self, siblings: Siblings) -> None:
        """Sets the scope in which connectors are queried and former tasks fenced."""
        self._query.begin(siblings)
        self._fencing.begin(siblings)

    def resign(self) -> None:
        """Drops the leader's memory: another worker leads now."""
        self._memory, self.member_urls, self._unplaced, self._lost = Memory(), (), {}, {}
        self.start_anew()

    def start_anew(self) -> None:
        """Drops the knowledge from before this leadership: another worker may have led meanwhile."""
        self._query.forget()
        self._fencing.forget()
        self._used.clear()
        for changes in (self._changes, self._old):  # a worker that does not lead takes nothing of them
            changes.begin_anew()

    def owner(self, work: Work) -> str | None:
        """Returns the URL of the worker that has this work by the last round."""
        return self._memory.owners.get(work)

    async def share(self, leader: str, members: Mapping[str, Metadata]) -> Mapping[str, MemberAssignment]:
        """Computes one round of the group: member id to metadata in, member id to assignment out.

        The event loop goes on meanwhile, so that heartbeats and copy runs do.
        """
        newest = max(m.config_offset for m in members.values())
        config = self._store.config
        if config.offset < newest:
            try:
                await self._store.config_topic.read(seconds=self._store.properties.sync_ms / 1000)
            except KeelmanError as error:
                log.warning("leader_behind", error=error.message)
        if config.offset < newest:
            return dict.fromkeys(members, MemberAssignment(leader, self._url, newest, error=CONFIG_MISMATCH))
        configured = ConfiguredWork(config.offset, config.work(), dict(config.placements))
        now_ms = int(time.monotonic() * 1000)
        shared = await asyncio.to_thread(
            shared_work,
            (leader, self._url),
            members,
            configured,
            self._memory,
            now_ms=now_ms,
            max_delay_ms=self._delay_ms,
        )
        self._memory, self._unplaced, self._lost = shared.memory, shared.unplaced, shared.lost
        self._changes.add(shared.moved)
        if not members.keys() <= self._members:
            self._unknown |= config.lapsing
            self._changes.add(config.lapsing)
        self._members = frozenset(members)
        self.member_urls = shared.urls
        log.info("work_shared", members=len(members), work=len(configured.works), delay_ms=shared.delay_ms)
        return shared.assignments

    async def reconfigure(self) -> None:
        """Writes task configurations where they differ from what their connector wants. Raises the errors of the write.

        Waits neither for connectors nor for fences: the next turn uses their results. A connector whose former tasks
        still have to be fenced, perhaps by a leader that ended meanwhile, gets no tickets until the topic records the
        fence.
        """
        await keep_session_key(self._store)
        await self._tidy()
        self._changes.add(self._query.due())
        names = self._changes.take()
        try:
            await self._look_at(names)
        except BaseException:
            self._changes.add(names)
            raise

    async def _tidy(self) -> None:
        """Deletes records of deleted connectors from the topic, and restores records that others have overwritten."""
        config = self._store.config
        for word, written in (("leftovers_deleted", config.leftovers()), ("records_restored", config.restored())):
            if written:
                log.info(word, keys=[key.decode() for key, _ in written[:MAX_LOGGED]], records=len(written))
                await self._store.config_topic.write(written)

    async def _look_at(self, names: set[str]) -> None:
        """Brings the stored tasks of these connectors up to date."""
        config = self._store.config
        for name in names:  # a difference of sets would look at all connectors
            if name not in config.connectors:
                self.forget(name)
        self._unknown &= config.lapsing
        used: dict[str, ConnectorAnswer] = {}
        written: dict[str, list[Record]] = {}
        present = names & config.connectors.keys()
        for name in present:
            if sum(map(len, written.values())) >= WRITTEN_AT_ONCE:
                await self._write(written)
                self._used |= used
                written, used = {}, {}
            answer = self._asked(name)
            if (tasks := self._tasks_to_write(name, answer)) is not None:
                written[name] = new_tasks(self._store, name, tasks)
            if answer is None:
                continue
            if self._used.get(name) is not answer:
                used[name] = answer
            if name not in written:  # else once that is written
                self._write_problem(name, answer)
        await self._write(written)
        self._used |= used
        for name in present & config.unfenced.keys():  # sinks, and connectors without exactly-once, stay there
            if (since := config.unfenced.get(name)) is not None:
                await self._fencing.shut_out_former_tasks(name, since)

    def _asked(self, name: str) -> ConnectorAnswer | None:
        """Returns the connector's answer; like Connect, queries only connectors that run."""
        config = self._store.config
        if name not in config.connectors or config.target(name) != STARTED:
            self.forget(name)
            return None
        return self._answer(name, without_limits(config.connectors[name]))

    def _tasks_to_write(self, name: str, answer: ConnectorAnswer | None) -> list[dict[str, str]] | None:
        """Returns task configurations that have to be written now; None when those in force stay."""
        config = self._store.config
        now, lapsing = list(config.tasks.get(name, ())), name in config.lapsing
        if answer is not None and answer.tasks is not None:
            fresh = self._used.get(name) is not answer
            changed = answer.tasks != now and (fresh or not now)  # none: it was stopped, or about to be
            writes = name not in config.applied or lapsing or changed or name in config.inconsistent
            return answer.tasks if writes else None
        # There is no answer about its tasks. A member that has just joined may know none of those in force.
        return now if lapsing and (config.target(name) != STARTED or name in self._unknown) else None

    async def _write(self, tasks: Mapping[str, Sequence[Record]]) -> None:
        """Writes the tasks of many connectors at once: thousands of writes in turn would delay everything else for
        minutes.

        A connector with a task too large for the topic fails alone.
        """
        try:
            if tasks:
                await self._store.config_topic.write([record for written in tasks.values() for record in written])
        except Exhausted as error:
            if len(tasks) > 1:
                for name, written in tasks.items():
                    await self._write({name: written})
                return
            for name in tasks:
                self._write_problem(name, self._query.refused(name, trace_of(error)))

    def _answer(self, name: str, properties: Mapping[str, str]) -> ConnectorAnswer | None:
        """Returns the connector's answer; None while it, or a value of its configuration, is pending."""
        secrets = self._store.secrets
        try:
            resolved = secrets.resolved(properties)
            if resolved is not None:
                self._store.judge.require(resolved)
        except ConnectError as error:
            self._query.hold(name)
            return ConnectorAnswer(None, trace_of(error))
        if resolved is None:
            self._query.hold(name)
            return None
        policy: RestartPolicy | None = None
        with contextlib.suppress(KeelmanError):  # stored without a check
            policy = policy_of(self._store.config.connectors[name], self._store.properties.raw)
        answer = self._query.about(name, resolved, policy, attempts=self._store.statuses.attempts(Work(name)))
        if answer is None or answer.tasks is None or resolved == properties:
            return answer
        return ConnectorAnswer(secrets.restored(answer.tasks, properties), answer.trace)

    @property
    def busy(self) -> bool:
        """Whether changed connectors are still waiting for their look."""
        return self._changes.more or self._old.more

    def new_tasks_soon(self) -> bool:
        """Returns whether new connectors are about to answer which tasks they want: one round of the group is enough
        for both."""
        return self._changes.more or self._query.first_answers_soon()

    def again_seconds(self) -> float:
        """Returns the seconds until there is something to do though nothing has changed."""
        return self._query.due_seconds()

    def ask_again(self, requests: Iterable[RestartRequest]) -> None:
        """Queries these restarted connectors again: their problem may be over."""
        for request in requests:
            self._query.again(request.connector)

    def _answered(self, names: Collection[str]) -> None:
        self._changes.add(names)
        self._wake()

    def forget(self, name: str) -> None:
        """Drops the answers about a connector that is gone, or that has to be queried again once it runs again."""
        self._query.forget(name)
        self._used.pop(name, None)

    def _write_problem(self, name: str, answer: ConnectorAnswer) -> None:
        """Brings the connector's status in line with its answer, on whatever worker it is. Its tasks are not
        changed."""
        work = Work(name)
        now, owner = self._store.statuses.statuses.get(work), self.owner(work)
        if now is None or owner is None:
            return
        trace = REDACTOR.hide(answer.trace)  # as the topic has it
        if trace and (now.state, now.trace) != (FAILED, trace):
            state = FAILED
        elif not trace and now.state == FAILED:
            state = PAUSED if self._store.config.target(name) == records.PAUSED else RUNNING
        else:
            return
        worker = urlsplit(owner).netloc
        status = Status(state, worker, now.generation, trace or None, now.version, answer.more)
        self._status_writer.put(work, status)

    def report_unplaced(self, generation: int) -> None:
        """Writes the status UNASSIGNED, with the reason, for work that no member may have."""
        shown = {reason: REDACTOR.hide(reason) for reason in set(self._unplaced.values())}
        for work, reason in self._unplaced.items():
            now, trace = self._store.statuses.statuses.get(work), shown[reason]
            if now is None or (now.state, now.trace) != (UNASSIGNED, trace):
                self._status_writer.put(work, Status(UNASSIGNED, urlsplit(self._url).netloc, generation, trace))

    def clear_statuses(self) -> None:
        """Writes tombstones for statuses of work that is no longer configured, and UNASSIGNED for work of a dead
        worker."""
        configured = self._store.config.work()
        for name in self._old.take():
            for work in self._store.statuses.without(configured, name):
                self._status_writer.put(work, None)
        mine = urlsplit(self._url).netloc  # a lost worker may be back at its address: its own status is the later one
        for work, url in self._lost.items():
            now = self._store.statuses.statuses.get(work)
            if now is not None and now.state in (RUNNING, RESTARTING) and now.worker_id == urlsplit(url).netloc:
                reason = f"{ConnectError.java_name}: its worker is gone; another is given it soon\n"
                self._status_writer.put(work, replace(now, state=UNASSIGNED, worker_id=mine, trace=reason))
