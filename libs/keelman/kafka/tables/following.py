"""Follows the topics of several tables together: one request at each broker waits for new records of all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial

from keelman.kafka.fetching.fetcher import BatchFetcher
from keelman.kafka.fetching.position_checks import FetchFailure
from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.leaders.client import LeaderClient, open_client
from keelman.kafka.tables.table import QUIET_SECONDS, TopicTable
from keelman.model.errors import KeelmanError
from keelman.runtime.backoff import Backoff
from keelman.runtime.supervise import supervise

REQUEST_MS = 10_000


class TopicTables:
    """Tables of one Kafka cluster that are read in one isolation level. A worker with nothing to copy spends most of
    its time on its topics, so they share the requests that wait for new records."""

    def __init__(
        self,
        tables: Sequence[TopicTable],
        properties: Mapping[str, str],
        *,
        client_id: str,
        read_committed: bool,
        calm: Collection[str] = (),
    ) -> None:
        """`properties` are those of Java's clients. For the `calm` topics no request waits for new records, except in
        `read_to`: they are polled a few times a second, however often they are written. Connects nothing yet."""
        self._tables = tables
        self._properties = properties
        self._client_id = client_id
        self._read_committed = read_committed
        self._calm = frozenset(calm)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[TopicTables]:
        """Opens the clients that request end offsets, one for each topic; `follow()` must run inside the block.

        Raises Unavailable, Unauthenticated, InvalidArgument.
        """
        async with contextlib.AsyncExitStack() as stack:
            for table in self._tables:
                client = await open_client(self._properties, client_id=self._client_id, timeout_ms=REQUEST_MS)
                stack.push_async_callback(client.close)
                table.opened(client)
                stack.callback(table.closed)
            yield self

    async def follow(self) -> None:
        """Reads until cancelled, as a task of its own; waits for brokers that are away or refuse.

        Once the brokers refuse one of the topics, each topic is read separately: the others continue.
        """
        if len(self._tables) > 1:
            with contextlib.suppress(FetchFailure, KeelmanError):
                await self._read(self._tables, Backoff(first=0.1, most=2.0))
        await supervise(*(partial(self._follow_one, table) for table in self._tables))

    async def _follow_one(self, table: TopicTable) -> None:
        backoff = Backoff(first=0.1, most=2.0)
        while True:
            try:
                await self._read([table], backoff)
            except (FetchFailure, KeelmanError) as error:
                table.see(str(error))
            await asyncio.sleep(backoff.next())

    async def _read(self, tables: Sequence[TopicTable], backoff: Backoff) -> None:
        """Reads until a topic may not be read, or cannot be decoded: then raises FetchFailure or KeelmanError."""
        by_topic = {table.topic: table for table in tables}
        fetcher = self._fetcher(tables)
        for table in tables:
            table.read_by(fetcher)
        try:
            while True:
                batches = await fetcher.next(QUIET_SECONDS)
                for fetched in batches:
                    by_topic[fetched.topic].take_in(fetched)
                    backoff.reset()
                    await asyncio.sleep(0)  # megabytes must not block other tasks
                problem = fetcher.problem
                named = [table for table in tables if f"topic {table.topic}" in problem]
                for table in tables:
                    table.grow(fetcher.partitions_of(table.topic))
                    table.see(problem if table in named or not named else "", passes=bool(batches))
        finally:
            for table in tables:
                table.read_by(None)
            await fetcher.close()

    def _fetcher(self, tables: Sequence[TopicTable]) -> BatchFetcher:
        positions = {(table.topic, number): at for table in tables for number, at in table.positions.items()}
        client = LeaderClient(self._properties, client_id=self._client_id, request_timeout_ms=REQUEST_MS)
        settings = FetchSettings(check_crcs=False, calm=self._calm)  # decoding the batches checks their checksums
        return BatchFetcher(client, positions, read_committed=self._read_committed, reset="earliest", settings=settings)
