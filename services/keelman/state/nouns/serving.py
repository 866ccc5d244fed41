"""How the nouns' services answer: a write is one transaction, a list is a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from google.protobuf.message import Message

from keelman.rpc.pages import key_of, page_limit, token_for
from keelman.state.failpoints import hit
from keelman.state.requests import once

if TYPE_CHECKING:
    from keelman.state.store import Store, Transaction

M = TypeVar("M", bound=Message)
T = TypeVar("T")


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


def _after(names: Sequence[str], after: str) -> Iterator[str]:
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if names[middle] <= after else (low, middle)
    return (names[i] for i in range(low, len(names)))


def has_labels(labels: Mapping[str, str], wanted: Iterable[tuple[str, str]]) -> bool:
    """True when all the wanted labels are there."""
    return all(labels.get(key) == value for key, value in wanted)
