"""The workers' side of the service: one link a worker, over which its lease is renewed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.api.copy.v1.worker_link_service_pb2 import (
    LeaseRenewed,
    LinkWelcome,
    OpenLinkRequest,
    OpenLinkResponse,
    SparkCores,
)
from keelman.api.copy.v1.worker_link_service_pb2_grpc import WorkerLinkServiceServicer
from keelman.engine.slot.updates import UpdateQueue
from keelman.model.errors import Conflict, InvalidArgument
from keelman.rpc.server import Context
from keelman.rpc.times import to_duration
from keelman.runtime.supervise import first_of
from keelman.spark.copy_runs.runs import Owner
from keelman.spark.dispatch import Dispatcher
from keelman.spark.waits import settled

GONE_SECONDS = 5.0
# Represents the answer to a renewal among the updates: so the link has one writer and one bounded queue. It goes first:
# behind the updates of hundreds of copy runs that begin together it came so late that the worker gave the link up.
RENEWED = RunUpdate()


class LinkApi(WorkerLinkServiceServicer):
    """Serves WorkerLinkService."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        lease_seconds: float,
        problem: Callable[[], str] = str,
        cores: Callable[[], tuple[int, int] | None] = lambda: None,
        admit: Callable[[Context, str], None] = lambda context, worker_cluster: None,
    ) -> None:
        """`problem` returns why there is no Spark, empty while there is; `cores` those that a cluster's executors have
        and those that slots need, None where that is not known. `admit` raises for a link that may not be of the worker
        cluster in its greeting."""
        self._dispatcher, self._lease_seconds, self._problem, self._cores = dispatcher, lease_seconds, problem, cores
        self._admit = admit

    async def OpenLink(  # type: ignore[override]  # writes through the context: reader and writer side by side
        self, requests: AsyncIterator[OpenLinkRequest], context: Context
    ) -> None:
        """Holds one worker's link until it closes; the lease continues without it until it lapses."""
        first = await anext(aiter(requests), OpenLinkRequest())
        greeting = first.greeting
        if first.WhichOneof("message") != "greeting" or not greeting.worker_id or not greeting.incarnation:
            raise InvalidArgument("the first message of a worker is its greeting, with worker_id and incarnation")
        self._admit(context, greeting.worker_cluster)
        owner = Owner(greeting.worker_cluster, greeting.worker_id, greeting.incarnation)
        updates = UpdateQueue()
        old = self._dispatcher.greet(owner, updates, greeting.bounds, greeting.routes)
        try:
            # The new incarnation may begin only when nothing of the old one can write any more.
            slots = self._dispatcher.pool.slots
            await settled(lambda: all(s.owner not in old for s in slots.values()), GONE_SECONDS)
            if not self._dispatcher.leases.renew(owner):
                raise superseded(owner)
            welcome = LinkWelcome(lease_time=to_duration(self._lease_seconds), runs=self._dispatcher.present(owner))
            await context.write(OpenLinkResponse(welcome=welcome))
            await first_of(self._hear(owner, requests, updates), self._speak(owner, updates, context))
        finally:
            self._dispatcher.leases.unlink(owner, updates)

    async def _hear(self, owner: Owner, requests: AsyncIterator[OpenLinkRequest], updates: UpdateQueue) -> None:
        async for message in requests:
            if not self._dispatcher.leases.holds(owner, updates):
                raise superseded(owner)
            match message.WhichOneof("message"):
                case "renewal":
                    self._dispatcher.leases.renew(owner)
                    self._dispatcher.pool.log_levels(owner, dict(message.renewal.log_levels))
                    updates.put(RENEWED, first=True)
                case "order":
                    self._dispatcher.order(owner, message.order)
                case _:
                    raise InvalidArgument("a worker greets once, then renews and orders")

    async def _speak(self, owner: Owner, updates: UpdateQueue, context: Context) -> None:
        while True:
            update = await updates.get()
            if update is RENEWED:
                renewed = LeaseRenewed(usage=self._dispatcher.usage(owner), problem=self._problem())
                if (cores := self._cores()) is not None:
                    renewed.cores.CopyFrom(SparkCores(have=cores[0], wanted=cores[1]))
                await context.write(OpenLinkResponse(renewed=renewed))
            else:
                await context.write(OpenLinkResponse(update=update))


def superseded(owner: Owner) -> Conflict:
    """Returns the error for a link whose place another one has taken."""
    return Conflict(f"another link of worker {owner.worker} has taken over", reason="SUPERSEDED")
