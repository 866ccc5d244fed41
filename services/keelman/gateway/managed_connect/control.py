"""Packs and unpacks this API's data in the `extra` of the state service's resources, and formats values for answers."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.gateway.access.signatures import SignedCaller
from keelman.model.errors import KeelmanError

API = "managed-connect"
"""The API in the origins of resources that this API creates."""
DOCUMENT, TAGS = "document", "tags"
"""The fields in the `extra` of a resource: the document as it was sent, as JSON; and its tags."""


def origin_of(caller: SignedCaller, name: str) -> Origin:
    """Returns the origin of a resource: names are unique in an account."""
    return Origin(api=API, scope=caller.account, key=name)


def is_taken(error: KeelmanError) -> bool:
    """Tells whether an error means that another resource has the name."""
    return error.reason == "ORIGIN_IN_USE"


def extra_of(document: dict[str, Any], tags: dict[str, str]) -> Struct:
    """Packs the `extra` of a resource. The document is one text, so that numbers stay whole numbers."""
    struct = Struct()
    struct.update({DOCUMENT: orjson.dumps(document).decode(), TAGS: tags})
    return struct


def document_of(extra: Any) -> dict[str, Any]:
    """Returns the document in an `extra`, as it was sent."""
    document: dict[str, Any] = orjson.loads(extra[DOCUMENT])
    return document


def tags_of(extra: Any) -> dict[str, str]:
    """Returns the tags in an `extra`."""
    tags: dict[str, str] = MessageToDict(extra).get(TAGS, {})
    return tags


def iso(stamp: Timestamp) -> str:
    """Returns a time in the clients' form."""
    time = stamp.ToDatetime(tzinfo=UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


def present(**members: Any) -> dict[str, Any]:
    """Returns the members without nulls and without empty texts, lists and blocks."""
    return {name: value for name, value in members.items() if value not in (None, "", [], {})}
