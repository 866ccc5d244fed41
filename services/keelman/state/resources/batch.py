"""Batches: several writes in one transaction, or none of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from keelman.api.connect.v1 import batch_service_pb2 as pb
from keelman.api.connect.v1.batch_service_pb2_grpc import BatchServiceServicer
from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.rpc.batches import methods_in, packed
from keelman.rpc.errors import code_name
from keelman.rpc.server import Context, RpcService
from keelman.runtime.logs.redaction import REDACTOR
from keelman.state.database.failpoints import hit
from keelman.state.resources.once import once
from keelman.state.resources.serving import NounApi, Steps, answer_to, steps_of
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction

MAX_WRITES = 1000


class _NotStored(Exception):
    """Ends a transaction that shall store nothing."""


@dataclass(slots=True)
class _Work:
    """One write: its API, its request, and its results so far."""

    api: NounApi[Any]
    steps: Steps
    request: Any
    ready: tuple[Any, ...] = ()
    made: list[Any] = field(default_factory=list)
    refused: KeelmanError | None = None

    async def get_ready(self) -> None:
        """Does the work that precedes the transaction."""
        try:
            self.ready = await self.steps.ready(self.api, self.request)
        except KeelmanError as error:
            self.refused = error

    def result(self, tx: Transaction) -> pb.WriteResult:
        """Writes, and returns the result."""
        if self.refused is not None:
            return pb.WriteResult(error=_write_error(self.refused))
        events = len(tx.events)
        try:
            work = self.steps.work(self.api, tx, self.request, *self.ready)
            answer: Message = answer_to(self.request, **self.api.fields_of(work, tx))
        except KeelmanError as error:
            return pb.WriteResult(error=_write_error(error))
        self.made.append(work)
        return pb.WriteResult(answer=packed(answer), changed=len(tx.events) > events)

    def done(self) -> None:
        """Does the work that follows once all is stored."""
        for result in self.made:
            self.steps.done(self.api, result)


class BatchApi(BatchServiceServicer):
    """Several writes of the nouns of these services together."""

    def __init__(self, store: ResourceStore, apis: Sequence[NounApi[Any]]) -> None:
        self._store = store
        self._writers = dict(_writers(apis))

    async def WriteBatch(self, request: pb.WriteBatchRequest, context: Context) -> pb.WriteBatchResponse:
        """Does the writes in their order; stores nothing if one is refused, or if all are only validated."""
        works = self._works(request)
        for work in works:
            await work.get_ready()
        answer = pb.WriteBatchResponse()

        async def make() -> pb.WriteBatchResponse:
            answer.results.extend([work.result(tx) for work in works])
            if request.validate_only or any(result.HasField("error") for result in answer.results):
                raise _NotStored
            answer.stored = True
            return answer

        try:
            async with self._store.write() as tx:
                answer = await once(tx, request.request_id, "WriteBatch", pb.WriteBatchResponse(), make)
        except _NotStored:
            return answer
        hit("answer-due")
        for work in works:
            work.done()
        return answer

    def _works(self, request: pb.WriteBatchRequest) -> list[_Work]:
        if not 1 <= len(request.writes) <= MAX_WRITES:
            raise InvalidArgument.of("writes", f"{len(request.writes)} requests", f"1 to {MAX_WRITES}")
        works = []
        for number, method in enumerate(methods_in(request)):
            writer = self._writers.get((method.service, method.method))
            if writer is None:
                raise InvalidArgument.of(f"writes[{number}]", method.method, "an RPC that writes in one transaction")
            works.append(_Work(*writer, method.request))
        return works


def _writers(apis: Sequence[NounApi[Any]]) -> Iterator[tuple[tuple[str, str], tuple[NounApi[Any], Steps]]]:
    """Yields the RPCs that write, by the full names of their services and their own."""
    for api in apis:
        for name in dir(type(api)):
            if (steps := steps_of(getattr(type(api), name))) is not None:
                yield (RpcService.of(api).name, name), (api, steps)


def _write_error(error: KeelmanError) -> pb.WriteError:
    return pb.WriteError(
        code=code_name(error), reason=error.reason, message=REDACTOR.hide(error.message), metadata=error.metadata
    )
