"""Packs and unpacks what this API keeps beside the resources of the state service, and words what it reads there."""

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
"""In the origins of what this API makes."""
DOCUMENT, TAGS = "document", "tags"
"""In the extra of a resource: what was sent and is answered, as JSON; and its tags."""


def origin_of(caller: SignedCaller, name: str) -> Origin:
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
