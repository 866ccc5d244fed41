"""The requests in a batch of writes: packing, unpacking, and the services that they belong to."""

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
        "broker_cluster", "worker_cluster", "spark_cluster", "worker_configuration", "plugin", "plugin_import",
        "secret", "document", "operation", "connector_definition", "dedicated_connector", "topic",
    ),
}  # fmt: skip
"""The nouns whose writes a batch may have, by area."""
READS = ("Get", "List")


class BatchWrite(NamedTuple):
    """One write of a batch: its RPC, by the full name of the service and the name of the method, and its request."""

    service: str
    method: str
    request: Message


def packed(request: Message) -> Packed:
    """Returns a request in the form that a batch has."""
    message = Packed()
    message.Pack(request)
    return message


def methods_in(request: WriteBatchRequest) -> list[BatchWrite]:
    """Returns the writes of a batch. Raises InvalidArgument naming the first that is not a write."""
    return [_unpacked(number, write) for number, write in enumerate(request.writes)]


def answer_in(answer: Packed) -> Message:
    """Returns the answer of one write. Raises InvalidArgument for a type that this version does not know."""
    name = answer.TypeName()
    method = _methods().get(name.removesuffix("Response") + "Request")
    if method is None or method.output_type.full_name != name:
        raise InvalidArgument.of("results.answer", answer.type_url, "the response of a write")
    message: Message = GetMessageClass(method.output_type).FromString(answer.value)
    return message


def _unpacked(number: int, packed_write: Packed) -> BatchWrite:
    field, method = f"writes[{number}]", _methods().get(packed_write.TypeName())
    if method is None:
        legal = "a request that writes, of the services of " + ", ".join(n for nouns in NOUNS.values() for n in nouns)
        raise InvalidArgument.of(field, packed_write.type_url, legal)
    try:
        request = GetMessageClass(method.input_type).FromString(packed_write.value)
    except DecodeError as error:
        raise InvalidArgument(f"{field}: not a {packed_write.TypeName()}: {error}", metadata={"field": field}) from None
    return BatchWrite(method.containing_service.full_name, method.name, request)


@cache
def _methods() -> dict[str, MethodDescriptor]:
    """Returns the RPCs that write in one transaction, by the type names of their requests."""
    return {method.input_type.full_name: method for method in _all_methods() if _writes(method)}


def _all_methods() -> Iterable[MethodDescriptor]:
    for area, nouns in NOUNS.items():
        for noun in nouns:
            yield from service_of(area, noun).methods


def _writes(method: MethodDescriptor) -> bool:
    streams = method.client_streaming or method.server_streaming
    return not streams and not method.name.startswith(READS) and "request_id" in method.input_type.fields_by_name
