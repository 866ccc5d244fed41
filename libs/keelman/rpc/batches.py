"""The requests in a batch of writes: packed, unpacked, and whose they are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from keelman.api.connect.v1.batch_service_pb2 import WriteBatchRequest
from keelman.model.errors import InvalidArgument
from keelman.rpc.generated import service_of

NOUNS = {
    "node": ("node",),
    "connect": (
        "broker_cluster", "worker_cluster", "worker_configuration", "plugin", "plugin_import", "secret", "document",
        "operation", "connector_definition", "dedicated_connector", "topic",
    ),
}  # fmt: skip
"""Whose writes a batch may have, by area."""
READS = ("Get", "List")


class Write(NamedTuple):
    """One write of a batch: the RPC that it is, by its service's full name and its own, and its request."""

    service: str
    method: str
    request: Message


def packed(request: Message) -> Packed:
    """A request as a batch has it."""
    made = Packed()
    made.Pack(request)
    return made


def methods_in(request: WriteBatchRequest) -> list[Write]:
    """The writes of a batch. Raises InvalidArgument that names the first that is none."""
    return [_unpacked(number, one) for number, one in enumerate(request.writes)]


def answer_in(answer: Packed) -> Message:
    """The answer of one write. Raises InvalidArgument for one of a type that this version does not know."""
    name = answer.TypeName()
    method = _methods().get(name.removesuffix("Response") + "Request")
    if method is None or method.output_type.full_name != name:
        raise InvalidArgument.of("results.answer", answer.type_url, "the response of a write")
    made: Message = GetMessageClass(method.output_type).FromString(answer.value)
    return made


def _unpacked(number: int, one: Packed) -> Write:
    field, method = f"writes[{number}]", _methods().get(one.TypeName())
    if method is None:
        legal = "a request that writes, of the services of " + ", ".join(n for nouns in NOUNS.values() for n in nouns)
        raise InvalidArgument.of(field, one.type_url, legal)
    try:
        request = GetMessageClass(method.input_type).FromString(one.value)
    except DecodeError as error:
        raise InvalidArgument(f"{field}: not a {one.TypeName()}: {error}", metadata={"field": field}) from None
    return Write(method.containing_service.full_name, method.name, request)


@cache
def _methods() -> dict[str, MethodDescriptor]:
    """The RPCs that write in one transaction, by the names of their requests' types."""
    return {method.input_type.full_name: method for method in _all_methods() if _writes(method)}


def _all_methods() -> Iterable[MethodDescriptor]:
    for area, nouns in NOUNS.items():
        for noun in nouns:
            yield from service_of(area, noun).methods


def _writes(method: MethodDescriptor) -> bool:
    streams = method.client_streaming or method.server_streaming
    return not streams and not method.name.startswith(READS) and "request_id" in method.input_type.fields_by_name
