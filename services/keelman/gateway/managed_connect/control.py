"""The services of the state service, as this API calls them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC
from typing import Any, TypeVar

import orjson
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1.dedicated_connector_service_pb2_grpc import DedicatedConnectorServiceStub
from keelman.api.connect.v1.operation_service_pb2_grpc import OperationServiceStub
from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.api.connect.v1.plugin_import_service_pb2_grpc import PluginImportServiceStub
from keelman.api.connect.v1.worker_configuration_service_pb2_grpc import WorkerConfigurationServiceStub
from keelman.gateway.access import Caller
from keelman.gateway.all_pages import SECONDS, all_pages
from keelman.model.errors import Conflict, KeelmanError
from keelman.rpc.channels import Channel

T = TypeVar("T")
API = "managed-connect"
"""In the origins of what this API makes."""
TRIES = 10
DOCUMENT, TAGS = "document", "tags"
"""In the extra of a resource: what was sent and is answered, as JSON; and its tags."""


class Control:
    """Stubs on the gateway's channel to the state service. Calls raise the errors of keelman.model.errors."""

    def __init__(self, channel: Channel) -> None:
        self.connectors: Any = DedicatedConnectorServiceStub(channel)
        self.configurations: Any = WorkerConfigurationServiceStub(channel)
        self.operations: Any = OperationServiceStub(channel)
        self.plugins: Any = PluginImportServiceStub(channel)

    async def ask(self, method: Any, request: Any) -> Any:
        """The answer of a unary call, with a deadline."""
        return await method(request, timeout=SECONDS)

    async def all(self, method: Any, request_type: Any, field: str, **given: Any) -> list[Any]:
        """All items of a list: its pages one after another. `field` is that of the answer which has them."""
        return [item async for item in all_pages(method, request_type, field, **given)]


async def again(work: Callable[[], Awaitable[T]]) -> T:
    """Does what reads and then writes, again where others wrote in between. Raises Conflict when they always do."""
    for _ in range(TRIES - 1):
        try:
            return await work()
        except Conflict:
            continue
    return await work()


def origin_of(caller: Caller, name: str) -> Origin:
    """Whose a resource is: names are unique in an account."""
    return Origin(api=API, scope=caller.account, key=name)


def is_taken(error: KeelmanError) -> bool:
    """Whether another resource has the name."""
    return error.reason == "ORIGIN_IN_USE"


def extra_of(document: dict[str, Any], tags: dict[str, str]) -> Struct:
    """What is kept beside a resource. The document is one text: numbers stay whole numbers."""
    made = Struct()
    made.update({DOCUMENT: orjson.dumps(document).decode(), TAGS: tags})
    return made


def document_of(extra: Any) -> dict[str, Any]:
    """What was sent."""
    found: dict[str, Any] = orjson.loads(extra[DOCUMENT])
    return found


def tags_of(extra: Any) -> dict[str, str]:
    """The tags."""
    found: dict[str, str] = MessageToDict(extra).get(TAGS, {})
    return found


def iso(stamp: Timestamp) -> str:
    """A time as the clients read it."""
    time = stamp.ToDatetime(tzinfo=UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


def present(**members: Any) -> dict[str, Any]:
    """The members that there are: none that is null, and no empty text, list or block."""
    return {name: value for name, value in members.items() if value not in (None, "", [], {})}
