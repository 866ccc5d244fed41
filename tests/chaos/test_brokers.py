"""What befalls a cluster of three brokers, one of each kind; `make faults` runs all on all paths."""

from __future__ import annotations

import chaos_brokers
import pytest
from chaos_accidents import ACCIDENTS, Accident, in_turn
from chaos_system import System
from test_accidents import check

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

MOVED = ("leaders moved", "partitions reassigned", "in-sync replica frozen")
LOST = ("transactions' leader killed", "unclean election")
ONE_ROLLED = Accident("one broker rolled", chaos_brokers.rolled(1), brokers=3)


async def test_nothing_is_lost_or_doubled_on_three_brokers(on_three: System) -> None:
    """All beside one another: what befalls the brokers on the way of the mirror befalls the sinks as well."""
    strikes = {
        in_turn(*(ACCIDENTS[name] for name in MOVED), ONE_ROLLED, *(ACCIDENTS[name] for name in LOST)): ("mirror",),
        ACCIDENTS["source topic made anew"]: ("file sink",),
        ACCIDENTS["stopped past offsets' retention"]: ("Kafka sink",),
    }
    await check(on_three, strikes)
