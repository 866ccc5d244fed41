"""Decides for `--wait` whether a verb has had its effect."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, CONNECTOR_STATE_RUNNING
from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.patience import AFTER_CHANGE_SECONDS, Patience
from keelman.cli.exits import NotReached
from keelman.cli.kinds import Kind
from keelman.cli.output.words import quantity
from keelman.cli.waiting import progress_line, until
from keelman.model.errors import DeadlineExceeded, NotFound, Unavailable
from keelman.model.traces import why_line
from keelman.rpc.enums import state_word
from keelman.runtime.supervise import deadline

SETTLE_SECONDS = 10.0
"""How long running tasks without progress are observed: their first record may still make them fail."""
NO_WORKER = ("NO_RUNNING_WORKER", "UNREACHABLE")
"""Reasons of an error about a connector none of whose workers answers; a worker may answer in a moment."""
STARTING = ("start", "resume", "restart", "configure")


@dataclass(frozen=True, slots=True)
class Before:
    """The state before the verb: a worker's process; a connector's copy runs, and the traces of its failures."""

    worker: Any = None
    runs: frozenset[str] = frozenset()
    traces: frozenset[str] = frozenset()


async def before(gateway: Gateway, verb: str, kind: Kind, name: str, *, tasks: Collection[int] | None = None) -> Before:
    """Returns the state before the verb, so that no earlier state is taken for its effect. `tasks` are the tasks of a
    connector that the verb restarts, None for all."""
    if verb == "restart" and kind is kinds.WORKERS:
        return Before(worker=await gateway.get(kind, name))
    if verb in STARTING and kind is kinds.CONNECTORS:
        runs = frozenset(run.uid for run in await _runs(gateway, name) if tasks is None or run.task in tasks)
        return Before(runs=runs, traces=frozenset(_traces(await gateway.get(kind, name))))
    return Before()


async def wait_for(
    gateway: Gateway, verb: str, kind: Kind, name: str, *, seconds: float, was: Before | None = None
) -> Any:
    """Waits until a verb has had its effect, and shows the state on stderr; returns the resource.

    A verb that runs a connector has had its effect once each task has copied a record or found nothing to copy, or
    has run for SETTLE_SECONDS. Raises NotReached as soon as the resource has failed or cannot come up, and
    DeadlineExceeded.
    """
    latest: Any = None
    former, began, running_since = (was or Before()), time.monotonic(), 0.0
    patience = Patience(AFTER_CHANGE_SECONDS if verb == "restart" else 0.0)

    with progress_line() as line:

        async def has_settled() -> bool:
            nonlocal running_since
            now = time.monotonic()
            running_since = running_since or now
            copied = copied_text(latest.tasks, await _runs(gateway, name), former.runs)
            if copied is None and now - running_since < SETTLE_SECONDS:
                line.show(f"connector/{name} RUNNING, no record copied yet")
                return False
            line.show(f"connector/{name} RUNNING, {copied or f'no record copied in {SETTLE_SECONDS:.0f} s'}")
            return True

        async def has_effect() -> bool:
            nonlocal latest, running_since
            try:
                latest = await gateway.get(kind, name)
            except NotFound:
                if verb == "delete":
                    return True
                raise
            except Unavailable as error:
                if kind is not kinds.CONNECTORS or error.reason not in NO_WORKER:
                    raise
                await _check_workers(gateway, name.partition("/")[0], error)
                line.show(f"{kind.singular}/{name}: {error.message}")
                return False
            state = _state(kind, latest)
            if kind is kinds.CONNECTORS and verb in STARTING:
                if _all_run(latest):
                    return await has_settled()
                running_since = 0.0
            line.show(f"{kind.singular}/{name} {state}{detail_of(kind, latest)}")
            done = False
            if verb in STARTING and kind is not kinds.CONNECTORS:
                done = state == "RUNNING" and not (former.worker and _same_process(former.worker, latest))
                if not done:
                    patience.check(kind, name, latest)
            elif verb in ("stop", "pause"):
                done = state == {"stop": "STOPPED", "pause": "PAUSED"}[verb]
            if kind is kinds.CONNECTORS and not done:
                # The verb is meant to repair an earlier failure, which disappears in a moment.
                traces = former.traces if time.monotonic() - began < SETTLE_SECONDS else ()
                _raise_failure(name, [trace for trace in _traces(latest) if trace not in traces])
            return done

        async with deadline(seconds, lambda: DeadlineExceeded(late_message(verb, kind, name, latest, seconds))):
            await until(has_effect)
    sys.stderr.flush()
    return latest


def late_message(verb: str, kind: Kind, name: str, latest: Any, seconds: float) -> str:
    """Returns the message for a verb without effect in time: the expected state, the present state, and the reason."""
    aimed_state = {"stop": "STOPPED", "pause": "PAUSED", "delete": "deleted"}.get(verb, "RUNNING")
    text = f"{kind.singular}/{name} is not {aimed_state} after {seconds:.0f} s"
    if latest is not None:
        failed = [task for task in (latest, *latest.tasks) if task.trace] if kind is kinds.CONNECTORS else []
        state = state_word(failed[0]) if failed else _state(kind, latest)
        detail = f": {why_line(failed[0].trace)}" if failed else detail_of(kind, latest)
        text += f", but {state}{detail}"
    return f"{text}; see `keelman describe {kind.singular} {name}`"


def copied_text(tasks: Sequence[Any], runs: Sequence[Any], former: Collection[str]) -> str | None:
    """Returns how many records a connector's tasks have copied, for people; None while a task has neither copied a
    record nor reported that there is nothing to copy. `runs` are the connector's copy runs, also ended ones, `former`
    the uids of its copy runs before the verb."""
    newest: dict[int, Any] = {}
    for run in sorted(runs, key=lambda r: (r.create_time.seconds, r.create_time.nanos)):
        if not run.part and run.uid not in former:
            newest[run.task] = run
    records = 0
    for task in tasks:
        run = newest.get(task.task)
        parked = run is not None and run.reason == "PARKED"
        if run is None or not (parked or run.state == COPY_RUN_STATE_RUNNING):
            return None
        at_rest = parked or (run.progress.HasField("lag") and run.progress.lag == 0)
        if not (run.progress.records or at_rest):
            return None
        records += run.progress.records
    return f"{quantity(records, 'record')} copied" if records else "nothing to copy so far"


async def _runs(gateway: Gateway, name: str) -> list[Any]:
    cluster, _, plain = name.partition("/")
    return [run for run in await gateway.list(kinds.COPY_RUNS, cluster=cluster, ended=True) if run.connector == plain]


def _all_run(connector: Any) -> bool:
    tasks = connector.tasks
    return bool(tasks) and all(task.state == CONNECTOR_STATE_RUNNING for task in (connector, *tasks))


def _state(kind: Kind, resource: Any) -> str:
    if kind is kinds.CONNECTORS:
        return state_word(resource)
    if kind is kinds.WORKERS:
        return state_word(resource.process)
    return state_word(resource.status)


def detail_of(kind: Kind, resource: Any) -> str:
    """Returns a cluster's number of workers and its message, to follow its state."""
    if kind is kinds.WORKER_CLUSTERS:
        text = f" {resource.status.ready_workers}/{resource.status.wanted_workers} workers"
        if resource.status.leaving_workers:
            text += f", {resource.status.leaving_workers} more ending"
        return text + (f": {resource.status.message}" if resource.status.message else "")
    if kind is kinds.BROKER_CLUSTERS and resource.status.message:
        return f": {resource.status.message}"
    return ""


def _same_process(before: Any, now: Any) -> bool:
    return bool(before.process.pid == now.process.pid and before.process.start_time == now.process.start_time)


def _traces(connector: Any) -> list[str]:
    return [task.trace for task in (connector, *connector.tasks) if task.state == CONNECTOR_STATE_FAILED]


def _raise_failure(name: str, traces: Sequence[str]) -> None:
    if traces:
        raise NotReached(f"connector {name} failed: {why_line(traces[0])}")


async def _check_workers(gateway: Gateway, cluster: str, error: Unavailable) -> None:
    """Raises NotReached if no worker of a connector's cluster will ever answer."""
    worker_cluster = await gateway.get(kinds.WORKER_CLUSTERS, cluster)
    Patience().check(kinds.WORKER_CLUSTERS, cluster, worker_cluster)
    if state_word(worker_cluster.status) in ("STOPPING", "STOPPED", "DELETING"):
        raise NotReached(error.message)
