"""The generated code of the wire contract's services, found by area and noun (connect, worker_cluster) or request."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from keelman.rpc.channels import Channel


def messages_of(area: str, noun: str) -> Any:
    """Returns the module with the requests and responses of a noun's service."""
    return import_module(f"keelman.api.{area}.v1.{noun}_service_pb2")


@cache
def service_of(area: str, noun: str) -> ServiceDescriptor:
    """Returns the descriptor of a noun's service."""
    service: ServiceDescriptor = messages_of(area, noun).DESCRIPTOR.services_by_name[_name(noun)]
    return service


def stub_of(link: Channel, area: str, noun: str) -> Any:
    """Returns the stub of a noun's service on a channel."""
    module = import_module(f"keelman.api.{area}.v1.{noun}_service_pb2_grpc")
    return getattr(module, f"{_name(noun)}Stub")(link)


def method_of(link: Channel, request: type[Message]) -> Any:
    """Returns the function that calls the unary method of a request type on a channel."""
    path, how = _call_of(request)
    return link.unary_unary(path, **how)


def stream_of(link: Channel, request: type[Message]) -> Any:
    """Returns the function that calls the method of a request type that answers with a stream."""
    path, how = _call_of(request)
    return link.unary_stream(path, **how)


def _call_of(request: type[Message]) -> tuple[str, dict[str, Any]]:
    """Returns the path of the method that takes a request, and the encoding of requests and answers."""
    services = request.DESCRIPTOR.file.services_by_name.values()
    methods = (method for service in services for method in service.methods)
    method = next(method for method in methods if method.input_type.full_name == request.DESCRIPTOR.full_name)
    answer: Any = method.output_type
    path = f"/{method.containing_service.full_name}/{method.name}"
    return path, {
        "request_serializer": request.SerializeToString,
        "response_deserializer": GetMessageClass(answer).FromString,
    }


def _name(noun: str) -> str:
    return "".join(word.capitalize() for word in noun.split("_")) + "Service"
