"""Carries out a plan: all requests that fit in one transaction, then connectors, then removals."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from keelman.cli import kinds
from keelman.cli.client.changes import wait_for_update
from keelman.cli.client.effects import before, wait_for
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.imports import fetch
from keelman.cli.client.operations import delete_applied, follow
from keelman.cli.manifests.forms import RUNNING, STOPPED
from keelman.cli.manifests.manifest import Manifest, Wrong
from keelman.cli.manifests.plan import CREATED, ApplyPlan, Item, Labelled, make_plan, write_together
from keelman.cli.options import WAIT_SECONDS
from keelman.model.errors import DeadlineExceeded, FailedPrecondition, NotFound
from keelman.rpc.enums import state_word
from keelman.runtime.conflicts import again

CLUSTERS = (kinds.BROKER_CLUSTERS, kinds.WORKER_CLUSTERS)
TRIES = 5
"""Attempts at a write that conflicts. The state changes of a cluster that starts conflict with it too."""
Say = Callable[[str], None]


async def checked_plan(gateway: Gateway, manifests: Sequence[Manifest], prune: Labelled | None) -> ApplyPlan:
    """Returns the plan of `make_plan`. Raises Refused also for connectors that cannot be created."""
    plan = await make_plan(gateway, manifests, prune)
    wrong = Wrong()
    await _check_connectors(gateway, plan, wrong)
    wrong.check()
    return plan


async def plan_and_write(gateway: Gateway, manifests: Sequence[Manifest], prune: Labelled | None) -> ApplyPlan:
    """Plans, and sends all requests that fit in one transaction; returns the plan that was written.

    If others write in between, plans again from the new state. Raises Conflict if they do so each time, and Refused;
    nothing is changed then.
    """

    async def work() -> ApplyPlan:
        plan = await checked_plan(gateway, manifests, prune)
        await write_together(gateway, plan)
        return plan

    return await again(work, tries=TRIES)


async def carry_out(gateway: Gateway, plan: ApplyPlan, say: Say, *, seconds: float | None) -> None:
    """Carries out the rest of a plan once its transaction is written, and reports the outcome of each resource to
    `say`. With `seconds` waits for the effects, at most that long for all together.

    Always waits for removals, and for worker clusters that start with the plan and get connectors from it.
    """
    clock = _Clock(WAIT_SECONDS if seconds is None else seconds)
    changed = [item for item in plan.kept if item in plan.changes]
    for item in changed:
        if item.form.batched:
            say(_line_of(item))
    for item in changed:
        if not item.form.batched:
            await _connector(gateway, item, plan, clock, waits=seconds is not None)
            say(_line_of(item))
    for item in plan.removed:
        is_gone = await _remove(gateway, item, plan, clock)
        say(
            f"{item.title} removed"
            if is_gone
            else f"{item.title} left alone: another change took the labels of -l from it"
        )
    if seconds is not None:
        for item in changed:
            if item.form.batched:
                await _wait(gateway, item, clock)


class _Clock:
    """Counts down the allowed time."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._seconds = seconds

    @property
    def left(self) -> float:
        """The time that is left, in seconds. Raises DeadlineExceeded if none is left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(f"not all files are applied after {self._seconds:.0f} s: `--plan` shows the rest")
        return left


def _line_of(item: Item) -> str:
    if item.action == CREATED:
        return f"{item.title} created" + (f": being applied as {item.goal}" if item.goal else "")
    return f"{item.title} changed: " + ", ".join(dict.fromkeys(change.field for change in item.changes))


async def _wait(gateway: Gateway, item: Item, clock: _Clock) -> None:
    """Waits until a resource's operations and its cluster's start, stop or update have had their effect."""
    kind = item.form.kind
    for answer in item.answers:
        if "operation" in answer.DESCRIPTOR.fields_by_name and answer.HasField("operation"):
            await follow(gateway, answer.operation.name, seconds=clock.left)  # type: ignore[attr-defined]
    if kind in CLUSTERS:
        await _wait_for_cluster(gateway, item, clock)
    elif kind is kinds.PLUGIN_IMPORTS and item.action == CREATED:
        await fetch(gateway, item.name, clock.left)


async def _wait_for_cluster(gateway: Gateway, item: Item, clock: _Clock) -> None:
    kind, resource = item.form.kind, await gateway.get(item.form.kind, item.name)
    if item.form.goal_of(resource) == STOPPED:
        await wait_for(gateway, "stop", kind, item.name, seconds=clock.left)
    elif item.action == CREATED or item.form.goal_of(item.present) == STOPPED:
        await wait_for(gateway, "start", kind, item.name, seconds=clock.left)
    else:
        await wait_for_update(gateway, kind, item.name, generation=resource.generation, seconds=clock.left)


async def _connector(gateway: Gateway, item: Item, plan: ApplyPlan, clock: _Clock, *, waits: bool) -> None:
    """Creates or changes a connector; waits first for a worker cluster that the plan changes."""
    cluster, _, plain = item.name.partition("/")
    comes_up = any(change.form.kind is kinds.WORKER_CLUSTERS and change.name == cluster for change in plan.changes)
    if comes_up:
        await wait_for(gateway, "start", kinds.WORKER_CLUSTERS, cluster, seconds=clock.left)
    verb = "start" if item.action == CREATED else "configure"
    was = None if item.action == CREATED else await before(gateway, verb, item.form.kind, item.name)
    if item.action == CREATED:
        await gateway.create_connector(cluster, plain, dict(item.after.config))
    else:
        await again(lambda: _configure(gateway, item), tries=TRIES)
    for step in item.steps:
        await gateway.call(
            type(step).__name__.partition("Connector")[0], kinds.CONNECTORS, worker_cluster=cluster, name=plain
        )
    goal = item.goal or item.form.goal_of(item.present)
    if waits and goal == RUNNING:
        await wait_for(gateway, verb, item.form.kind, item.name, seconds=clock.left, was=was)


async def _configure(gateway: Gateway, item: Item) -> None:
    """Gives a connector its configuration, with hidden values replaced by its present values."""
    assert item.manifest is not None
    cluster, _, plain = item.name.partition("/")
    present = await gateway.get(item.form.kind, item.name)
    after = item.form.made(item.name, item.form.filled(item.manifest), present)
    if item.form.differs(present, after):
        await gateway.configure_connector(cluster, plain, dict(after.config), etag=present.etag)


async def _remove(gateway: Gateway, item: Item, plan: ApplyPlan, clock: _Clock) -> bool:
    """Removes a resource and waits until it is gone, since the resources that it names may be removed next. Returns
    False for a resource that others have changed so that the plan no longer removes it."""
    kind = item.form.kind
    try:
        if not await again(lambda: _delete(gateway, item, plan, clock), tries=TRIES):
            return False
        if kind in CLUSTERS:
            await wait_for(gateway, "delete", kind, item.name, seconds=clock.left)
    except NotFound:
        pass
    return True


async def _delete(gateway: Gateway, item: Item, plan: ApplyPlan, clock: _Clock) -> bool:
    """Deletes a resource that the plan still removes; else returns False. Raises NotFound if it is
    gone, and Conflict."""
    kind = item.form.kind
    present = await gateway.get(kind, item.name)
    if present.uid != item.present.uid or not plan.removes(item.form, present):
        return False
    if kind in kinds.APPLIED:
        await delete_applied(gateway, kind, item.name, keep=False, seconds=clock.left)
    elif kind is kinds.DEDICATED_CONNECTORS:
        answer = await gateway.call("Delete", kind, name=item.name, etag=present.etag)
        await follow(gateway, answer.operation.name, seconds=clock.left)
    else:
        await gateway.act("delete", kind, item.name, etag=present.etag)
    return True


async def _check_connectors(gateway: Gateway, plan: ApplyPlan, wrong: Wrong) -> None:
    """Adds to `wrong` the connectors that cannot be written because their worker cluster neither runs nor will."""
    coming = {item.name for item in plan.kept if item.form.kind is kinds.WORKER_CLUSTERS and _will_run(item)}
    for item in plan.kept:
        if item.form.batched or item not in plan.changes:
            continue
        cluster = item.name.partition("/")[0]
        if cluster in coming:
            continue
        try:
            resource = await gateway.get(kinds.WORKER_CLUSTERS, cluster)
        except NotFound as error:
            wrong.add(f"{item.manifest.place}: {item.title}" if item.manifest else item.title, error)
            continue
        if not resource.status.ready_workers:
            text = (
                f"worker cluster {cluster} is {state_word(resource.status)}: only a running one has connectors: "
                "start it, or write a definition, which is kept while it does not run"
            )
            wrong.add(f"{item.manifest.place}: {item.title}" if item.manifest else item.title, FailedPrecondition(text))


def _will_run(item: Item) -> bool:
    goal = item.goal or (item.form.goal_of(item.present) if item.present is not None else "")
    return goal == RUNNING
