"""The leader's work: shares connectors and tasks out, keeps task configurations up to date, clears old statuses."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from keelman.connect.errors import ConnectError
from keelman.connect.topic_creation import creates_topics
from keelman.kafka.groups.connect_protocol import CONFIG_MISMATCH, Metadata
from keelman.kafka.writer import Record
from keelman.model.errors import Exhausted, KeelmanError
from keelman.model.work import Assignment, Work
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.supervise import Siblings
from keelman.worker.asking.task_config_query import Answer, TaskConfigQuery, trace_of
from keelman.worker.group.assignor import NO_LABELS, MemberView, Memory, assign, views_of
from keelman.worker.group.fencing import Fencing, new_tasks
from keelman.worker.group.placement import Labels, wants_of, why_none_fit, why_unplaced
from keelman.worker.group.session_key import keep_session_key
from keelman.worker.restart_policy import RestartPolicy, policy_of
from keelman.worker.storage import config_records as records
from keelman.worker.storage.change_set import ChangeSet
from keelman.worker.storage.config_records import STARTED, RestartRequest
from keelman.worker.storage.restored import restored
from keelman.worker.storage.status_state import FAILED, PAUSED, RESTARTING, RUNNING, UNASSIGNED, Status
from keelman.worker.storage.store import Store
from keelman.worker.tasks.effective_config import without_limits

log = get_logger()
WRITTEN_AT_ONCE = 1000  # records
MAX_LOGGED = 20


class Leader:
    """The leader's mind; every worker has one, and starts with an empty memory each time it becomes leader."""

    def __init__(self, store: Store, *, url: str, delay_ms: int, wake: Callable[[], None]) -> None:
        """`wake` is called when there is something to do."""
        self._store = store
        self._status_writer = store.status_topic.writer
        self._url = url
        self._delay_ms = delay_ms
        self._memory = Memory()
        self._wake = wake
        self._query = TaskConfigQuery(self._answered, creates_topics=creates_topics(store.properties.raw))
        self._fencing = Fencing(store, lambda name: self._answered((name,)))
        self._used: dict[str, Answer] = {}
        self._changes = ChangeSet(lambda: {*store.config.connectors, *self._query.names})
        self._old = ChangeSet(lambda: store.statuses.by_connector)  # whose statuses may be of what is no more
        store.change_sets += [self._changes, self._old]
        store.status_change_sets.append(self._old)
        self._unplaced: dict[Work, str] = {}
        self._lost: dict[Work, str] = {}
        self._unknown: set[str] = set()  # connectors whose tasks in force a member may know nothing of
        self._members: frozenset[str] = frozenset()
        self.member_urls: tuple[str, ...] = ()

    def begin(self, siblings: Siblings) -> None:
        """Where connectors are asked and former tasks fenced."""
        self._query.begin(siblings)
        self._fencing.begin(siblings)

    def resign(self) -> None:
        """Another worker leads now."""
        self._memory, self.member_urls, self._unplaced, self._lost = Memory(), (), {}, {}
        self.start_anew()

    def start_anew(self) -> None:
        """Leads since now: another worker may have led meanwhile."""
        self._query.forget()
        self._fencing.forget()
        self._used.clear()
        for changes in (self._changes, self._old):  # whoever does not lead takes nothing of them
            changes.begin_anew()

    def owner(self, work: Work) -> str | None:
        """URL of the worker that has this work by the last round."""
        return self._memory.owners.get(work)

    async def share(self, leader: str, members: Mapping[str, Metadata]) -> Mapping[str, Assignment]:
        """One round of the group: member id to metadata in, member id to assignment out."""
        newest = max(m.config_offset for m in members.values())
        config = self._store.config
        if config.offset < newest:
            try:
                await self._store.config_topic.read(seconds=self._store.properties.sync_ms / 1000)
            except KeelmanError as error:
                log.warning("leader_behind", error=error.message)
        if config.offset < newest:
            return dict.fromkeys(members, Assignment(leader, self._url, newest, error=CONFIG_MISMATCH))
        views = views_of(members)
        now, wants = int(time.monotonic() * 1000), wants_of(config.placements)
        outcome = assign(views, config.work(), self._memory, now_ms=now, max_delay_ms=self._delay_ms, wants=wants)
        moved = outcome.memory.owners.items() ^ self._memory.owners.items()
        self._changes.add(work.connector for work, _ in moved)
        self._memory = outcome.memory
        self._unplaced = self._explained(outcome.unplaced, views.values(), wants)
        if not members.keys() <= self._members:
            self._unknown |= config.lapsing
            self._changes.add(config.lapsing)
        self._members = frozenset(members)
        self.member_urls = tuple(sorted(m.url for m in members.values()))
        owners = outcome.memory.owners
        self._lost = {work: url for work, url in owners.items() if url not in self.member_urls}
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

    def _explained(
        self, unplaced: Iterable[Work], views: Iterable[MemberView], wants: Mapping[str, Labels]
    ) -> dict[Work, str]:
        """Why no member may have this work: none has the labels that it asks for, or those that have take no tasks."""
        takers = [view for view in views if not view.leaving]
        reasons: dict[str, str] = {}
        for connector in {work.connector for work in unplaced}:
            asked = wants.get(connector, NO_LABELS).items()
            if unfit := {urlsplit(one.url).netloc: one.unfit for one in takers if asked <= one.labels.items()}:
                reasons[connector] = why_none_fit(unfit)
            elif connector in wants:
                labels = [one.labels for one in takers]
                reasons[connector] = why_unplaced(self._store.config.placements[connector], labels)
        return {work: reasons[work.connector] for work in unplaced if work.connector in reasons}

    async def reconfigure(self) -> None:
        """Writes task configurations where they differ from what their connector wants. Raises what writing raises.

        Waits neither for connectors nor for fences: what they say is used in the turn after. A connector whose former
        tasks are still to be fenced, perhaps by a leader that ended meanwhile, gets no tickets until it is written that
        they are.
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
        """Takes out of the topic what deleted connectors have left, and puts back what somebody has overwritten."""
        config = self._store.config
        for word, written in (("leftovers_deleted", config.leftovers()), ("records_restored", restored(config))):
            if written:
                log.info(word, keys=[key.decode() for key, _ in written[:MAX_LOGGED]], records=len(written))
                await self._store.config_topic.write(written)

    async def _look_at(self, names: set[str]) -> None:
        """Has the tasks of these connectors as they should be."""
        config = self._store.config
        for name in names:  # a difference of sets would look at all connectors
            if name not in config.connectors:
                self.forget(name)
        self._unknown &= config.lapsing
        used: dict[str, Answer] = {}
        written: dict[str, list[Record]] = {}
        wanted = names & config.connectors.keys()
        for name in wanted:
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
        for name in wanted & config.unfenced.keys():  # those of sinks, and without exactly-once, stay there
            if (since := config.unfenced.get(name)) is not None:
                await self._fencing.shut_out_former_tasks(name, since)

    def _asked(self, name: str) -> Answer | None:
        """What the connector says; as Connect, asks those that run."""
        config = self._store.config
        if name not in config.connectors or config.target(name) != STARTED:
            self.forget(name)
            return None
        return self._answer(name, without_limits(config.connectors[name]))

    def _tasks_to_write(self, name: str, answer: Answer | None) -> list[dict[str, str]] | None:
        """Task configurations that are to be written now; None when those in force stay."""
        config = self._store.config
        now, lapsing = list(config.tasks.get(name, ())), name in config.lapsing
        if answer is not None and answer.tasks is not None:
            fresh = self._used.get(name) is not answer
            changed = answer.tasks != now and (fresh or not now)  # none: it was stopped, or was about to be
            wanted = name not in config.applied or lapsing or changed or name in config.inconsistent
            return answer.tasks if wanted else None
        # Nobody says which they shall be. Who has just joined may know nothing of them.
        return now if lapsing and (config.target(name) != STARTED or name in self._unknown) else None

    async def _write(self, tasks: Mapping[str, Sequence[Record]]) -> None:
        """Those of many connectors at once: thousands of writes in turn would hold up all else for minutes.

        One that has a task too large for the topic fails by itself.
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

    def _answer(self, name: str, properties: Mapping[str, str]) -> Answer | None:
        """What the connector says; None while it, or a value of its configuration, is still to come."""
        secrets = self._store.secrets
        try:
            resolved = secrets.resolved(properties)
        except ConnectError as error:
            self._query.hold(name)
            return Answer(None, trace_of(error))
        if resolved is None:
            self._query.hold(name)
            return None
        policy: RestartPolicy | None = None
        with contextlib.suppress(KeelmanError):  # stored by somebody who did not check it
            policy = policy_of(self._store.config.connectors[name], self._store.properties.raw)
        answer = self._query.about(name, resolved, policy, attempts=self._store.statuses.attempts(Work(name)))
        if answer is None or answer.tasks is None or resolved == properties:
            return answer
        return Answer(secrets.restored(answer.tasks, properties), answer.trace)

    @property
    def busy(self) -> bool:
        """Whether it has not yet looked at all that something has changed about."""
        return self._changes.more or self._old.more

    def new_tasks_soon(self) -> bool:
        """Whether new connectors are about to say which tasks they want: one round of the group is enough for both."""
        return self._changes.more or self._query.first_answers_soon()

    def again_seconds(self) -> float:
        """Seconds until there is something to do though nothing has changed."""
        return self._query.due_seconds()

    def ask_again(self, requests: Iterable[RestartRequest]) -> None:
        """These connectors are restarted: what was wrong with them may be over."""
        for request in requests:
            self._query.again(request.connector)

    def _answered(self, names: Collection[str]) -> None:
        self._changes.add(names)
        self._wake()

    def forget(self, name: str) -> None:
        """This connector is gone, or is to be asked again once it runs again."""
        self._query.forget(name)
        self._used.pop(name, None)

    def _write_problem(self, name: str, answer: Answer) -> None:
        """Brings the connector's status in line with what it said, whoever has it. Its tasks go on as they are."""
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
        """Says of work that no member may have why that is so."""
        shown = {why: REDACTOR.hide(why) for why in set(self._unplaced.values())}
        for work, why in self._unplaced.items():
            now, trace = self._store.statuses.statuses.get(work), shown[why]
            if now is None or (now.state, now.trace) != (UNASSIGNED, trace):
                self._status_writer.put(work, Status(UNASSIGNED, urlsplit(self._url).netloc, generation, trace))

    def clear_statuses(self) -> None:
        """Tombstones for the statuses of what is configured no more; what a dead worker had runs nowhere."""
        configured = self._store.config.work()
        for name in self._old.take():
            for work in self._store.statuses.without(configured, name):
                self._status_writer.put(work, None)
        mine = urlsplit(self._url).netloc  # who was lost may be back, at the same address: its own word is the later
        for work, url in self._lost.items():
            now = self._store.statuses.statuses.get(work)
            if now is not None and now.state in (RUNNING, RESTARTING) and now.worker_id == urlsplit(url).netloc:
                why = f"{ConnectError.java_name}: its worker is gone; another is given it soon\n"
                self._status_writer.put(work, replace(now, state=UNASSIGNED, worker_id=mine, trace=why))
