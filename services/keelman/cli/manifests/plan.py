"""Plans how resources change to match their manifests, and has the plan judged before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from google.protobuf.message import Message

from keelman.cli.client.gateway import Gateway
from keelman.cli.kinds import Kind
from keelman.cli.manifests.differences import FieldDifference, differences
from keelman.cli.manifests.forms import Form
from keelman.cli.manifests.manifest import Manifest, Wrong, where
from keelman.cli.manifests.table import FORMS, form_of
from keelman.model.errors import AlreadyExists, Conflict, InvalidArgument, KeelmanError, NotFound
from keelman.rpc.batches import answer_in
from keelman.rpc.errors import class_of_code

CREATED, CHANGED, REMOVED, SAME = "create", "change", "remove", "none"
HIDDEN_VALUE = "a hidden value"
Labelled = Callable[[Mapping[str, str]], bool]


@dataclass(slots=True)
class Item:
    """The planned change of one resource. `present` is None for a new resource, `manifest` for a resource to remove,
    which no file contains any more."""

    form: Form
    name: str
    manifest: Manifest | None = None
    present: Any = None
    after: Any = None
    """The resource once it has its spec."""
    writes: list[Message] = field(default_factory=list)
    """Requests that write its spec; none for a kind that cannot be in a batch."""
    steps: list[Message] = field(default_factory=list)
    """Requests that then bring it to its goal."""
    changes: list[FieldDifference] = field(default_factory=list)
    answers: list[Message] = field(default_factory=list)
    """The answers to the requests, once they are done."""

    @property
    def title(self) -> str:
        """Its kind and name, for people."""
        return f"{self.form.kind.singular}/{self.name}"

    @property
    def action(self) -> str:
        """The action of the plan: CREATED, CHANGED, REMOVED or SAME."""
        if self.manifest is None:
            return REMOVED
        return CREATED if self.present is None else CHANGED if self.changes else SAME

    @property
    def goal(self) -> str:
        """The goal that it gets; empty if neither the manifest nor the form of a new resource names a goal."""
        assert self.manifest is not None
        return self.manifest.goal or (self.form.new_goal if self.present is None else "")


@dataclass(slots=True)
class ApplyPlan:
    """All resources of some manifests, in the order of their creation; then the resources to remove, in their order."""

    items: list[Item]
    prune: Labelled | None = None
    """Decides by its labels whether a resource without a manifest is removed; None: no resource is."""

    def removes(self, form: Form, resource: Any) -> bool:
        """Tells whether a resource without a manifest is removed."""
        return self.prune is not None and not form.owned(resource) and self.prune(form.labels_of(resource))

    @property
    def changes(self) -> list[Item]:
        """The items that are created, changed or removed."""
        return [item for item in self.items if item.action != SAME]

    @property
    def kept(self) -> list[Item]:
        """The items with a manifest."""
        return [item for item in self.items if item.manifest is not None]

    @property
    def removed(self) -> list[Item]:
        """The items without a manifest, which are removed."""
        return [item for item in self.items if item.manifest is None]


async def make_plan(gateway: Gateway, manifests: Sequence[Manifest], prune: Labelled | None = None) -> ApplyPlan:
    """Returns the plan; `prune` decides by its labels whether a resource without a manifest is removed.

    The gateway judges every request as it would when it carries it out; nothing is written. Raises Refused with every
    error.
    """
    wrong = Wrong()
    present = await _present(gateway, manifests, everything=prune is not None)
    items = [
        Item(form, manifest.name, manifest, present[form.kind].get(manifest.name))
        for form in FORMS
        for manifest in manifests
        if manifest.kind is form.kind
    ]
    for item in items:
        _judged(item, wrong, partial(_write, item))
    wrong.check()
    await _look_ahead(gateway, items, wrong)
    wrong.check()
    plan = ApplyPlan(items, prune)
    plan.items += _leftovers(present, {m.key for m in manifests}, plan)
    if any(item.steps for item in items):
        await judge_together(gateway, plan, wrong)
        wrong.check()
    return plan


async def _present(gateway: Gateway, manifests: Sequence[Manifest], *, everything: bool) -> dict[Kind, dict[str, Any]]:
    """Returns the present resources by name, of each kind that has a manifest or that may be removed."""
    present: dict[Kind, dict[str, Any]] = {}
    for form in FORMS:
        names = [manifest.name for manifest in manifests if manifest.kind is form.kind]
        if names or (everything and form.pruned):
            present[form.kind] = {form.key(resource): resource for resource in await form.found(gateway, names)}
    return present


def _judged(item: Item, wrong: Wrong, work: Callable[[], None]) -> None:
    assert item.manifest is not None
    try:
        work()
    except KeelmanError as error:
        wrong.add(where(item.manifest), error)


def _write(item: Item) -> None:
    assert item.manifest is not None
    filled = item.form.filled(item.manifest)
    if item.present is None:
        item.writes = item.form.create(item.name, filled)
    else:
        item.writes = item.form.update(item.present, filled)
    item.after = item.form.made(item.name, filled, item.present)


async def _look_ahead(gateway: Gateway, items: Sequence[Item], wrong: Wrong) -> None:
    """Has the gateway judge the specs; notes each future resource, its differences, and the steps to its goal."""
    writes = [(item, write) for item in items if item.form.batched for write in item.writes]
    results = await batch(gateway, writes, wrong, validate_only=True) if writes else []
    changed: dict[int, bool] = {}
    for (item, _), result in zip(writes, results, strict=True):
        if result.HasField("answer"):
            item.after = getattr(answer_in(result.answer), item.form.kind.field, item.after)
            changed[id(item)] = changed.get(id(item), False) or result.changed
    for item in items:
        if item.after is not None or item.present is not None:
            is_other = (
                changed.get(id(item), False) if item.form.batched else item.form.differs(item.present, item.after)
            )
            _judged(item, wrong, partial(_compare, item, changed=is_other))


def _compare(item: Item, *, changed: bool) -> None:
    form, after = item.form, item.after if item.after is not None else item.present
    goal = item.goal
    item.steps = form.steer(item.name, goal, item.present, after)
    before = {} if item.present is None else _whole(form, item.present)
    item.changes = differences(before, _whole(form, after))
    if item.present is None:
        return
    if changed and not item.changes:
        item.changes = [FieldDifference("spec", "[hidden]", HIDDEN_VALUE)]
    if not changed:
        item.changes = []  # only written differently, with the same meaning
    if item.steps:
        present_goal = form.goal_of(item.present)
        drifts = form.drifts(item.present)
        if goal and goal != present_goal:
            item.changes.append(FieldDifference("goal", present_goal, goal))
        elif drifts and not changed:
            item.changes += [FieldDifference("status", drift, "as in its spec") for drift in drifts]
        elif not changed:
            item.changes.append(FieldDifference("status", "not applied yet", goal or present_goal))


def _whole(form: Form, resource: Any) -> dict[str, Any]:
    labels = form.labels_of(resource)
    return ({"labels": labels} if labels else {}) | form.shown(resource)


def _leftovers(present: Mapping[Kind, Mapping[str, Any]], named: set[tuple[str, str]], plan: ApplyPlan) -> list[Item]:
    """Returns the resources to remove; a resource comes before those that it names."""
    return [
        Item(form, name, None, resource)
        for form in reversed(FORMS)
        if form.pruned
        for name, resource in present.get(form.kind, {}).items()
        if (form.kind.plural, name) not in named and plan.removes(form, resource)
    ]


async def judge_together(gateway: Gateway, plan: ApplyPlan, wrong: Wrong) -> None:
    """Has the gateway judge all requests that fit in one transaction."""
    if writes := in_order(plan):
        await batch(gateway, writes, wrong, validate_only=True)


async def write_together(gateway: Gateway, plan: ApplyPlan) -> None:
    """Sends all requests that fit in one transaction.

    Raises Conflict where a resource was changed, created or deleted since it was read: the caller makes another plan.
    Raises Refused where a request has become illegal. Nothing is written in either case.
    """
    writes, wrong = in_order(plan), Wrong()
    if not writes:
        return
    for item, request in _firsts(writes):
        if item.present is not None:
            request.etag = item.present.etag
    results = await batch(gateway, writes, wrong, validate_only=False)
    wrong.check()
    for (item, _), result in zip(writes, results, strict=True):
        item.answers.append(answer_in(result.answer))


def _firsts(items: Sequence[tuple[Item, Message]]) -> Iterator[tuple[Item, Any]]:
    """Yields the first request of each item: later requests see its write."""
    seen = set[int]()
    for item, request in items:
        if id(item) not in seen:
            seen.add(id(item))
            yield item, request


def in_order(plan: ApplyPlan) -> list[tuple[Item, Message]]:
    """Returns the requests of a batch: first all specs, then the steps that bring resources to their goals."""
    changed = [item for item in plan.kept if item.form.batched and item.action != SAME]
    specs = [(item, write) for item in changed for write in item.writes]
    return specs + [(item, step) for item in changed for step in item.steps]


async def batch(
    gateway: Gateway, items: Sequence[tuple[Item, Message]], wrong: Wrong, *, validate_only: bool
) -> Sequence[Any]:
    """Returns the results of requests in one transaction; adds refused requests to `wrong`. Raises Conflict where
    they were refused because others have changed their resources."""
    try:
        answer = await gateway.write_batch([write for _, write in items], validate_only=validate_only)
    except InvalidArgument as error:
        if not error.violations or not all(v.field.startswith("writes[") for v in error.violations):
            raise
        for violation in error.violations:
            number, _, text = violation.description.removeprefix("writes[").partition("].")
            _note(items[int(number)][0], InvalidArgument(text), wrong)
        wrong.check()
        raise
    refused = [
        (item, _error_of(result.error))
        for (item, _), result in zip(items, answer.results, strict=True)
        if result.HasField("error")
    ]
    if others := [item.title for item, reason in refused if await _is_others(gateway, item, reason)]:
        raise Conflict(f"{', '.join(dict.fromkeys(others))}: changed by others since they were read: apply again")
    for item, reason in refused:
        _note(item, reason, wrong)
    results: Sequence[Any] = answer.results
    return results


async def _is_others(gateway: Gateway, item: Item, error: KeelmanError) -> bool:
    """Tells whether a request is refused because others changed, created or deleted its resource since it was read."""
    if isinstance(error, Conflict):
        return True
    if not isinstance(error, AlreadyExists | NotFound):
        return False
    is_there = any(item.form.key(resource) == item.name for resource in await item.form.found(gateway, [item.name]))
    return is_there != (item.present is not None)


def _error_of(answer: Any) -> KeelmanError:
    return class_of_code(answer.code)(answer.message, reason=answer.reason, metadata=dict(answer.metadata))


def _note(item: Item, error: KeelmanError, wrong: Wrong) -> None:
    wrong.add(where(item.manifest) if item.manifest is not None else item.title, error)


__all__ = ["Item", "ApplyPlan", "form_of", "make_plan"]
