"""Faults of a cluster of three brokers, one of each kind; `make faults` runs all on all paths."""

from __future__ import annotations

import pytest

from chaos import chaos_brokers
from chaos.chaos_faults import FAULTS, Fault, in_turn
from chaos.chaos_system import System
from chaos.test_faults import check

pytestmark = pytest.mark.e2e

MOVED = ("leaders moved", "partitions reassigned", "in-sync replica frozen")
LOST = ("transactions' leader killed", "unclean election")
ONE_ROLLED = Fault("one broker rolled", chaos_brokers.rolled(1), brokers=3)


async def test_nothing_is_lost_or_doubled_on_three_brokers(on_three: System) -> None:
    """All faults side by side: faults of the brokers under the mirror reach the sinks as well."""
    strikes = {
        in_turn(*(FAULTS[name] for name in MOVED), ONE_ROLLED, *(FAULTS[name] for name in LOST)): ("mirror",),
        FAULTS["source topic made again"]: ("file sink",),
        FAULTS["stopped past offsets' retention"]: ("Kafka sink",),
    }
    await check(on_three, strikes)
