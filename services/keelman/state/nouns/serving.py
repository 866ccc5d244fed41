"""How the nouns' services answer: a write is one transaction, a list is a page."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from google.protobuf.message import Message

from keelman.rpc.pages import key_of, page_limit, token_for
from keelman.rpc.server import Context
from keelman.state.failpoints import hit
from keelman.state.requests import once

if TYPE_CHECKING:
    from keelman.state.nouns.noun import Parts
    from keelman.state.snapshot import Snapshot
    from keelman.state.store import Store, Transaction

M = TypeVar("M", bound=Message)
M_co = TypeVar("M_co", bound=Message, covariant=True)
Q = TypeVar("Q", bound="Write")
Q_contra = TypeVar("Q_contra", bound="Write", contravariant=True)
R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)
T = TypeVar("T")
MOST_REMEMBERED = 10_000
"""Messages of one noun."""


class Write(Protocol):
    """A request that changes something."""

    @property
    def request_id(self) -> str:
        """Given by the caller; empty for none."""


class Page(Protocol):
    """A request for a page of a list."""

    @property
    def page_size(self) -> int:
        """Of at most so many."""

    @property
    def page_token(self) -> str:
        """From the answer before."""


class LabelledPage(Page, Protocol):
    """A request for a page of a list of what has some labels."""

    @property
    def labels(self) -> Mapping[str, str]:
        """All of these; empty for any."""


class Verbs(Protocol[R_contra]):
    """A service whose RPCs write resources of one kind."""

    @property
    def parts(self) -> Parts:
        """What it uses."""

    def fields(self, made: R_contra, /) -> dict[str, Any]:
        """What an answer has of a resource that was written."""


async def written(store: Store, request: Write, answer: type[M], work: Callable[[Transaction], dict[str, Any]]) -> M:
    """The answer of one writing transaction, of the fields that `work` gives; or that of the one that had the request's
    id before."""

    async def make() -> M:
        made: M = answer(**work(tx))
        return made

    async with store.write() as tx:
        method = answer.__name__.removesuffix("Response")
        answered = await once(tx, request.request_id, method, answer(), make)
    hit("answer-due")
    return answered


class Remembered(Generic[T, M]):
    """The messages of resources, each made once as long as the resource does not change: lists are asked for often."""

    def __init__(self, make: Callable[[T], M]) -> None:
        self._make = make
        self._made: dict[str, tuple[T, M]] = {}

    def copy(self, name: str, resource: T) -> M:
        """A message of the caller's own."""
        known = self._made.get(name)
        if known is None or known[0] is not resource:
            if len(self._made) >= MOST_REMEMBERED:
                self._made.clear()
            known = self._made[name] = resource, self._make(resource)
        message = type(known[1])()
        message.CopyFrom(known[1])
        return message


class Rpc(Protocol[Q_contra, M_co]):
    """A method of a service, as gRPC calls it."""

    def __call__(self, request: Q_contra, context: Context) -> Awaitable[M_co]:
        """Answers a request."""


def verb(request: type[Q], answer: type[M], work: Callable[[Transaction, Q], R]) -> Rpc[Q, M]:
    """An RPC that writes one resource: what `work` makes of its request, in one transaction, is in its answer."""

    async def method(self: Verbs[R], request: Q, context: Context) -> M:
        return await written(self.parts.store, request, answer, lambda tx: self.fields(work(tx, request)))

    return cast(Rpc[Q, M], method)


def labelled_page(
    snapshot: Snapshot, noun: str, request: LabelledPage, labels: Callable[[Any], Mapping[str, str]]
) -> tuple[list[Any], str]:
    """One page of the resources of a noun that have the request's labels, and the token of the next."""
    wanted = request.labels.items()
    return page_of(snapshot.names(noun), snapshot.resources(noun), request, lambda one: has_labels(labels(one), wanted))


def page_of(
    names: Sequence[str], known: Mapping[str, T], request: Page, wanted: Callable[[T], bool] = lambda one: True
) -> tuple[list[T], str]:
    """One page of the resources in the order of `names`, and the token of the next."""
    limit, after = page_limit(request.page_size), key_of(request.page_token)
    found: list[T] = []
    last = ""
    for name in _after(names, after):
        if not wanted(known[name]):
            continue
        if len(found) == limit:
            return found, token_for(last)
        found.append(known[name])
        last = name
    return found, ""


def newest_page(
    names: Sequence[str], known: Mapping[str, T], request: Page, wanted: Callable[[T], bool] = lambda one: True
) -> tuple[list[T], str]:
    """One page of the resources against the order of `names`, and the token of the next."""
    limit, before = page_limit(request.page_size), key_of(request.page_token)
    found: list[T] = []
    last = ""
    for name in islice(reversed(names), len(names) - bisect_left(names, before) if before else 0, None):
        if not wanted(known[name]):
            continue
        if len(found) == limit:
            return found, token_for(last)
        found.append(known[name])
        last = name
    return found, ""


def _after(names: Sequence[str], after: str) -> Iterator[str]:
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if names[middle] <= after else (low, middle)
    return (names[i] for i in range(low, len(names)))


def has_labels(labels: Mapping[str, str], wanted: Iterable[tuple[str, str]]) -> bool:
    """True when all the wanted labels are there."""
    return all(labels.get(key) == value for key, value in wanted)
