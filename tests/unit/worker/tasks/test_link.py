"""The messages of a worker to its Spark service, and their order."""

from __future__ import annotations

import asyncio

from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import worker_link_service_pb2 as wire
from keelman.worker.spark_drivers import Drivers
from keelman.worker.tasks.link import SparkLink, _Outbox


def order(uid: str) -> wire.OpenLinkRequest:
    return wire.OpenLinkRequest(order=orders.RunOrder(run_uid=uid))


async def test_a_renewal_goes_before_the_orders_that_wait() -> None:
    box, renewal = _Outbox(), wire.OpenLinkRequest(renewal=wire.LeaseRenewal())
    sent = box.requests()
    first = asyncio.ensure_future(anext(sent))
    await asyncio.sleep(0)
    box.put(order("1"))
    assert await first == order("1")
    box.put(order("2"))
    box.put(order("3"))
    box.put(renewal, ahead=True)
    assert [await anext(sent) for _ in range(3)] == [renewal, order("2"), order("3")]


async def test_who_waits_for_more_to_send_is_let_go_at_the_end() -> None:
    box = _Outbox()
    sent = box.requests()
    waits = asyncio.ensure_future(anext(sent, None))
    await asyncio.sleep(0)
    box.end()
    async with asyncio.timeout(10):
        assert await waits is None


async def test_a_service_that_never_answered_is_told_from_one_that_does_no_more() -> None:
    link = SparkLink(Drivers("127.0.0.1:1"), wire.WorkerGreeting(worker_id="w"), may_renew=lambda: True)
    assert link.closed == "no Spark service answers this worker yet"


async def test_who_has_no_spark_service_says_why_it_takes_no_tasks() -> None:
    link = SparkLink(
        Drivers("127.0.0.1:1"), wire.WorkerGreeting(worker_id="w"), may_renew=lambda: True, absence=lambda: "no Java"
    )
    assert link.unfit == link.away == "no Spark service answers this worker yet: no Java"
