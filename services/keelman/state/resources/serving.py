"""Serves the nouns' RPCs: a write is one transaction, a list is a page."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from google.protobuf.message import Message

from keelman.rpc.pages import key_of, page_limit, token_for
from keelman.rpc.server import Context
from keelman.state.database.failpoints import hit
from keelman.state.resources.once import is_answered, once, store_answer
from keelman.state.resources.snapshot import Snapshot
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction

M = TypeVar("M", bound=Message)
T = TypeVar("T")
MAX_REMEMBERED = 10_000
"""The number of messages remembered per noun."""


class WithStore(Protocol):
    """The parts that every noun's service needs."""

    @property
    def store(self) -> ResourceStore:
        """The store."""


P = TypeVar("P", bound=WithStore)


class Write(Protocol):
    """A request that changes something."""

    @property
    def request_id(self) -> str:
        """The caller's id of the request; empty for none."""


class Page(Protocol):
    """A request for a page of a list."""

    @property
    def page_size(self) -> int:
        """The largest number of resources on the page."""

    @property
    def page_token(self) -> str:
        """The token from the previous answer."""


async def write_once(
    store: ResourceStore, request: Write, work: Callable[[Transaction], dict[str, Any]], empty: M
) -> M:
    """Does one writing transaction and returns its answer, with the fields that `work` gives; or returns the answer of
    an earlier request with the same id, read into `empty`."""

    async def make() -> M:
        return type(empty)(**work(tx))

    async with store.write() as tx:
        method = type(empty).__name__.removesuffix("Response")
        answered = await once(tx, request.request_id, method, empty, make)
    hit("answer-due")
    return answered


def answer_to(request: Message, **fields: Any) -> Any:
    """Returns the response of a request's RPC, with these fields: of GetNodeRequest a GetNodeResponse."""
    kind = type(request)
    return getattr(sys.modules[kind.__module__], kind.__name__.removesuffix("Request") + "Response")(**fields)


@dataclass(frozen=True, slots=True)
class NounApi(Generic[P]):
    """The service of a noun, whose RPCs are `get`, `list_page` and those of `writing`."""

    noun: ClassVar[str]
    parts: P

    @property
    def _snapshot(self) -> Snapshot:
        return self.parts.store.snapshot

    def _shown(self, resource: Any, request: Any) -> Message:
        """Returns a resource as an answer to a request for its name."""
        raise NotImplementedError

    def _in_list(self, resource: Any, request: Any) -> Message:
        """Returns a resource as lists have it."""
        return self._shown(resource, request)

    def _fields(self, result: Any, tx: Transaction) -> dict[str, Any]:
        """Returns the fields of an answer for a resource that was written."""
        raise NotImplementedError

    def fields_of(self, result: Any, tx: Transaction) -> dict[str, Any]:
        """Does as `_fields`, for a batch."""
        return self._fields(result, tx)

    def _page(self, request: Any) -> tuple[list[Any], str]:
        """Returns the resources on a page, and the token of the next."""
        return labelled_page(self._snapshot, self.noun, request)


async def get(self: Any, request: Any, context: Context) -> Any:
    """An RPC: returns the resource of a name; with `whole_extra` its `extra` is complete, without hidden values."""
    resource = self._snapshot.named(self.noun, request.name)
    shown = self._shown(resource, request)
    if getattr(request, "whole_extra", False) and (extra := resource.spec.annotations.extra):
        shown.spec.extra.Clear()
        shown.spec.extra.update(extra)
    return answer_to(request, **{self.noun: shown})


async def list_page(self: Any, request: Any, context: Context) -> Any:
    """An RPC: returns a page of resources."""
    part, token = self._page(request)
    shown = [self._in_list(resource, request) for resource in part]
    return answer_to(request, **{f"{self.noun}s": shown, "next_page_token": token})


class Remembered(Generic[T, M]):
    """The messages of resources, each made once as long as the resource does not change: lists are frequent."""

    def __init__(self, make: Callable[[T], M]) -> None:
        self._make = make
        self._made: dict[str, tuple[T, M]] = {}

    def copy(self, name: str, resource: T) -> M:
        """Returns a copy of the message for the caller to change."""
        entry = self._made.get(name)
        if entry is None or entry[0] is not resource:
            if len(self._made) >= MAX_REMEMBERED:
                self._made.clear()
            entry = self._made[name] = resource, self._make(resource)
        message = type(entry[1])()
        message.CopyFrom(entry[1])
        return message


@dataclass(frozen=True, slots=True)
class Steps:
    """The parts of an RPC that writes: `before` runs ahead of its transaction, `work` within it, with the result of
    `before` if there is one, and `after` follows with the result of `work`."""

    work: Callable[..., Any]
    before: Callable[[Any, Any], Awaitable[Any]] | None = None
    after: Callable[[Any, Any], None] | None = None

    async def ready(self, api: Any, request: Any) -> tuple[Any, ...]:
        """Returns the result of `before` as the last argument of `work`. Raises its errors."""
        return () if self.before is None else (await self.before(api, request),)

    def done(self, api: Any, result: Any) -> None:
        """Runs `after`; call it once the result is stored."""
        if self.after is not None:
            self.after(api, result)


def writing(
    *, before: Callable[[Any, Any], Awaitable[Any]] | None = None, after: Callable[[Any, Any], None] | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """Makes an RPC of a method of an API that gets a transaction and a request: it runs in one transaction, and the RPC
    answers with its result. `before` and `after` are as of `Steps`."""
    return lambda work: _rpc(Steps(work, before, after))


def _rpc(steps: Steps) -> Any:
    @wraps(steps.work)
    async def method(self: Any, request: Any, context: Context) -> Any:
        ready, answer, result = await steps.ready(self, request), answer_to(request), None
        async with self.parts.store.write() as tx:
            name = type(answer).__name__.removesuffix("Response")
            is_repeated = await is_answered(tx, request.request_id, name, answer)
            if not is_repeated:
                result = steps.work(self, tx, request, *ready)
                answer = answer_to(request, **self._fields(result, tx))
                await store_answer(tx, request.request_id, name, answer)
        hit("answer-due")
        if not is_repeated:
            steps.done(self, result)
        return answer

    method.steps = steps  # type: ignore[attr-defined]  # for whoever does several in one transaction
    return method


def steps_of(method: Any) -> Steps | None:
    """Returns the steps of an RPC that writes in one transaction; None for any other."""
    steps: Steps | None = getattr(method, "steps", None)
    return steps


def labelled_page(
    snapshot: Snapshot, noun: str, request: Any, names: Sequence[str] | None = None
) -> tuple[list[Any], str]:
    """Returns one page of the resources of a noun, or of those with these names in order, that have the request's
    labels, and the token of the next."""
    labels, ordered = request.labels.items(), snapshot.names(noun) if names is None else names
    return page_of(ordered, snapshot.resources(noun), request, lambda resource: has_labels(labels_of(resource), labels))


def labels_of(resource: Any) -> Mapping[str, str]:
    """Returns the labels of a resource of any noun."""
    said = getattr(resource, "spec", resource)
    labels: Mapping[str, str] = getattr(said, "annotations", said).labels
    return labels


def page_of(
    names: Sequence[str],
    resources: Mapping[str, T],
    request: Page,
    is_shown: Callable[[T], bool] = lambda resource: True,
) -> tuple[list[T], str]:
    """Returns one page of the resources in the order of `names`, and the token of the next."""
    after = key_of(request.page_token)
    return _page(islice(names, bisect_right(names, after) if after else 0, None), resources, request, is_shown)


def newest_page(
    names: Sequence[str],
    resources: Mapping[str, T],
    request: Page,
    is_shown: Callable[[T], bool] = lambda resource: True,
) -> tuple[list[T], str]:
    """Returns one page of the resources against the order of `names`, and the token of the next."""
    before = key_of(request.page_token)
    return _page(
        islice(reversed(names), len(names) - bisect_left(names, before) if before else 0, None),
        resources,
        request,
        is_shown,
    )


def _page(
    names: Iterable[str], resources: Mapping[str, T], request: Page, is_shown: Callable[[T], bool]
) -> tuple[list[T], str]:
    limit, last, shown = page_limit(request.page_size), "", list[T]()
    for name in names:
        if not is_shown(resources[name]):
            continue
        if len(shown) == limit:
            return shown, token_for(last)
        shown.append(resources[name])
        last = name
    return shown, ""


def has_labels(labels: Mapping[str, str], expected: Iterable[tuple[str, str]]) -> bool:
    """Returns True when all the wanted labels are there."""
    return all(labels.get(key) == value for key, value in expected)
