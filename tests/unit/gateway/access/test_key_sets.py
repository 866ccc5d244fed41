"""Keys of issuers from URLs: when they are read, how long they count, and from where."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from keelman.gateway.access import key_sets
from keelman.gateway.access.issuers import KeySource
from keelman.gateway.access.key_sets import MISS_SECONDS, OLD_SECONDS, RETRY_SECONDS, KeySets, fetch_keys
from keelman.model.errors import Unavailable
from support.gateway.issuer import Issuer

CLIENT: Any = httpx.AsyncClient
SOURCE = KeySource("https://login.example", url="https://login.example/keys", refresh_seconds=300)


class World:
    """Key sets with a clock and an issuer that may be away."""

    def __init__(self) -> None:
        self.now, self.reads, self.is_away = 1000.0, 0, False
        self.issuer = Issuer()
        self.issuer.add_key("1")
        self.key_sets = KeySets(self.fetch, lambda: self.now)

    async def fetch(self, source: KeySource) -> bytes:
        self.reads += 1
        if self.is_away:
            raise Unavailable("no answer")
        return json.dumps(self.issuer.jwks()).encode()

    async def pass_time(self, seconds: float) -> list[str]:
        """Lets a time pass, in which keys are read as they are due; returns the ids of the present keys."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 1)
            await self.key_sets.refresh([SOURCE])
        return [key.id for key in self.key_sets.of(SOURCE)]


@pytest.fixture
def world() -> World:
    return World()


async def test_keys_are_read_again_after_their_time(world: World) -> None:
    assert await world.pass_time(299) == ["1"]
    assert world.reads == 1
    world.issuer.add_key("2")
    del world.issuer.keys["1"]
    assert await world.pass_time(5) == ["2"]
    assert world.reads == 2


async def test_an_unknown_key_has_them_read_once_in_an_interval(world: World) -> None:
    await world.pass_time(1)
    for _ in range(100):
        world.key_sets.missed(SOURCE)
    await world.pass_time(MISS_SECONDS - 1)
    assert world.reads == 1
    await world.pass_time(1)
    world.issuer.add_key("2")
    for _ in range(100):
        world.key_sets.missed(SOURCE)
    assert await world.pass_time(1) == ["1", "2"]
    for _ in range(100):
        world.key_sets.missed(SOURCE)
        await world.pass_time(0.1)
    assert world.reads == 2


async def test_an_issuer_that_is_away_is_a_problem_and_its_keys_end(world: World) -> None:
    await world.pass_time(1)
    world.is_away = True
    assert await world.pass_time(OLD_SECONDS - 10) == ["1"]
    assert "cannot be read: no answer" in world.key_sets.problem([SOURCE])
    assert world.reads > 300 / RETRY_SECONDS
    assert await world.pass_time(20) == []
    world.is_away = False
    assert await world.pass_time(RETRY_SECONDS + 1) == ["1"]
    assert world.key_sets.problem([SOURCE]) == ""


async def test_sources_that_are_gone_are_forgotten(world: World) -> None:
    await world.pass_time(1)
    world.is_away = True
    await world.pass_time(301)
    await world.key_sets.refresh([])
    assert world.key_sets.problem([SOURCE]) == ""
    assert world.key_sets.of(SOURCE) == ()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"issuer": "https://other.example", "jwks_uri": "https://login.example/keys"}, "is not of issuer"),
        ({"issuer": "https://login.example", "jwks_uri": "http://login.example/keys"}, "begins with https://"),
        ({"issuer": "https://login.example", "jwks_uri": "file:///etc/passwd"}, "begins with https://"),
        ({"issuer": "https://login.example"}, "jwks_uri"),
        ([], "is not of issuer"),
    ],
)
async def test_a_discovery_document_is_judged(monkeypatch: pytest.MonkeyPatch, document: Any, message: str) -> None:
    answered_by(monkeypatch, lambda request: httpx.Response(200, json=document))
    with pytest.raises(Exception, match=message):
        await fetch_keys(KeySource("https://login.example"))


async def test_answers_are_bounded_and_redirects_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    answered_by(monkeypatch, lambda request: httpx.Response(200, content=bytes(2 << 20)))
    with pytest.raises(Unavailable, match="more than"):
        await fetch_keys(SOURCE)
    answered_by(monkeypatch, lambda request: httpx.Response(302, headers={"Location": "https://evil.example"}))
    with pytest.raises(Unavailable, match="answers 302"):
        await fetch_keys(SOURCE)


def answered_by(monkeypatch: pytest.MonkeyPatch, answer: Callable[[httpx.Request], httpx.Response]) -> None:
    """Has requests answered without a network."""

    class Client(CLIENT):
        def __init__(self, **options: Any) -> None:
            super().__init__(transport=httpx.MockTransport(answer), follow_redirects=options["follow_redirects"])

    monkeypatch.setattr(key_sets.httpx, "AsyncClient", Client)
