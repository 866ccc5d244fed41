"""When a client's token is renewed, and how often a failing provider is called."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from keelman.kafka.bootstrap_errors import NoToken, TokenProvider, TokenRefused
from keelman.kafka.security.tokens import Token, Tokens
from keelman.model.errors import Unauthenticated, Unavailable
from support.eventually import eventually

REFUSED = Unauthenticated("url: it answered 401", reason="NO_TOKEN")
AWAY = Unavailable("url: it does not answer", reason="NO_TOKEN")


@dataclass
class Giver:
    """Gives tokens with a life in seconds, or fails."""

    life: float = 3600.0
    failure: Exception | None = None
    asked: int = 0
    now: float = 0.0
    """The clock's time."""
    made: list[Token] = field(default_factory=list)

    def tokens(self, factor: float = 0.8, retry: tuple[float, float] = (1.0, 10.0)) -> Tokens:
        return Tokens(self.give, factor, retry, lambda: self.now)

    def give(self) -> Token:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        now = time.time()
        self.made.append(Token(f"t{self.asked}", "me", now, now + self.life))
        return self.made[-1]


def test_a_token_is_renewed_before_its_end_and_kept_while_none_comes() -> None:
    giver = Giver()
    tokens = giver.tokens(factor=0.0)
    first, second = tokens.current(), tokens.current()
    assert (first.text, second.text) == ("t1", "t2")
    for giver.failure in (AWAY, REFUSED):
        giver.now += 100
        assert tokens.current() is second, "still good"
    giver.failure = None
    giver.now += 100
    assert tokens.current().text == "t5"


def test_credentials_that_were_good_once_are_not_given_up() -> None:
    giver = Giver(life=-1.0)
    tokens = giver.tokens()
    tokens.current()
    giver.failure = REFUSED
    with pytest.raises(Unavailable, match="it answered 401"):
        tokens.current()


@pytest.mark.parametrize("failure", [REFUSED, AWAY])
def test_who_gives_none_is_not_asked_at_once_again(failure: Unauthenticated | Unavailable) -> None:
    giver = Giver(failure=failure)
    tokens = giver.tokens(retry=(1.0, 4.0))
    asked_at = []
    for tenth in range(200):
        giver.now = tenth / 10
        before = giver.asked
        with pytest.raises(type(failure), match=failure.message) as caught:
            tokens.current()
        assert caught.value.reason == "NO_TOKEN"
        if giver.asked > before:
            asked_at.append(giver.now)
    assert asked_at == [0.0, 1.0, 3.0, 7.0, 11.0, 15.0, 19.0]
    giver.failure, giver.now = None, 23.0
    tokens.current()


def test_that_no_token_comes_is_told_once_and_so_is_that_one_comes_again() -> None:
    giver = Giver(failure=AWAY)
    tokens = giver.tokens()
    with capture_logs() as logs:
        for _ in range(20):
            giver.now += 1
            with pytest.raises(Unavailable):
                tokens.current()
        giver.failure = REFUSED
        giver.now += 100
        with pytest.raises(Unauthenticated):
            tokens.current()
        giver.failure = None
        giver.now += 100
        tokens.current()
    assert [(log["event"], log.get("error")) for log in logs] == [
        ("token_unavailable", AWAY.message),
        ("token_unavailable", REFUSED.message),
        ("token_available_again", None),
    ]


async def test_the_first_token_is_waited_for_a_while() -> None:
    giver = Giver(failure=AWAY)
    provider = TokenProvider(Tokens(giver.give, 0.8, (0.01, 60.0)))
    waiting = asyncio.create_task(provider.token())
    await eventually(lambda: giver.asked >= 3)
    assert not waiting.done()
    giver.failure = None
    async with asyncio.timeout(60):
        assert await waiting == giver.made[-1].text

    with pytest.raises(NoToken, match="does not answer"):
        await TokenProvider(Giver(failure=AWAY).tokens(retry=(0.01, 0.02))).token()
    with pytest.raises(TokenRefused, match="answered 401"):
        await TokenProvider(Giver(failure=REFUSED).tokens()).token()
