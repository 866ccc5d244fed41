"""A worker's answer during a rebalance is retried; any other error of a worker is reported."""

import pytest

from keelman.model.errors import Internal, Unavailable
from keelman.state.definitions.applying import calling

IN_A_REBALANCE = ("Request timed out", "Request cannot be completed because a rebalance is expected")


@pytest.mark.parametrize("text", IN_A_REBALANCE)
async def test_what_passes_is_unavailable(text: str) -> None:
    with pytest.raises(Unavailable, match=text):
        async with calling():
            raise Internal(text)


async def test_what_does_not_pass_is_told() -> None:
    with pytest.raises(Internal, match="a fault"):
        async with calling():
            raise Internal("a fault")
