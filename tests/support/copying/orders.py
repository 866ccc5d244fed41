"""Orders to copy runs, as a slot gets them."""

from __future__ import annotations

from keelman.api.copy.v1.run_order_pb2 import Drain, RunOrder
from keelman.api.copy.v1.ticket_pb2 import Confirmation, Limits

DRAIN = RunOrder(drain=Drain())
CONFIRM = RunOrder(confirm=Confirmation())


def limit_to(*, records: float = 0, size: float = 0) -> RunOrder:
    """Limits a run to so many records and bytes per second; 0 is no limit."""
    return RunOrder(limits=Limits(records_per_second=records, bytes_per_second=size))
