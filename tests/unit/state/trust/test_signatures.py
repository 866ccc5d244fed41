"""A signature is used once, except for retries within one second; expired signatures are forgotten."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlmodel import select

from keelman.model.errors import InvalidArgument, PermissionDenied
from keelman.state.trust.rows import SignatureRow
from keelman.state.trust.signatures import KEPT, UsedSignatures
from support.state.stores import open_store

ONE, TWO = "1" * 64, "2" * 64


@pytest.fixture
async def used(tmp_path: Path) -> AsyncIterator[UsedSignatures]:
    async with open_store(str(tmp_path / "state.db")) as store:
        now = store.database.clock()
        store.database.clock = lambda: now
        yield UsedSignatures(store.database)


def later(used: UsedSignatures, time: timedelta) -> None:
    """Sets the clock forward."""
    now = used.database.clock() + time
    used.database.clock = lambda: now


async def test_a_signature_is_used_once_but_for_tries_of_one_second(used: UsedSignatures) -> None:
    for attempt in ("one/attempt=1", "one/attempt=2", "two/attempt=1"):
        await used.use(ONE, attempt)
    with pytest.raises(PermissionDenied, match="already used") as caught:
        await used.use(ONE, "two/attempt=1")
    assert caught.value.reason == "SIGNATURE_USED"
    later(used, timedelta(seconds=3))
    with pytest.raises(PermissionDenied, match="already used"):
        await used.use(ONE, "three/attempt=1")
    await used.use(TWO, "one/attempt=1")


async def test_clocks_that_differ_do_not_widen_the_time_for_tries(used: UsedSignatures) -> None:
    await used.use(ONE, "one/attempt=1")
    later(used, timedelta(seconds=-1))
    await used.use(ONE, "one/attempt=2")
    later(used, timedelta(seconds=-3))  # the clock of another state service is behind
    with pytest.raises(PermissionDenied, match="already used"):
        await used.use(ONE, "one/attempt=3")


async def test_what_is_long_over_is_forgotten(used: UsedSignatures) -> None:
    await used.use(ONE, "")
    later(used, KEPT)
    await used.use(TWO, "")
    with pytest.raises(PermissionDenied):
        await used.use(ONE, "")
    later(used, timedelta(seconds=1))
    await used.use(ONE, "")
    async with used.database.read() as session:
        assert len((await session.exec(select(SignatureRow))).all()) == 2


@pytest.mark.parametrize(("signature", "attempt", "field"), [("f" * 63, "", "signature"), (ONE, "x" * 1025, "attempt")])
async def test_what_is_none_is_refused(used: UsedSignatures, signature: str, attempt: str, field: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{field}: "):
        await used.use(signature, attempt)
