"""The interface of a kind of object on HTTP. A kind overrides the calls that it supports; other calls are 404."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keelman.gateway.ohara.wire.call import OharaCall
from keelman.gateway.ohara.wire.errors import unsupported
from keelman.gateway.ohara.wire.keys import ObjectKey, checked_key
from keelman.gateway.ohara.wire.values import Settings

Json = dict[str, Any]


class OharaResource:
    """One kind of object, e.g. workers. All methods raise OharaError, or our own errors, which become Ohara's."""

    def key(self, group: str, name: str) -> ObjectKey:
        """Returns the checked key of a call on a single object."""
        return checked_key(group, name)

    async def list(self) -> Sequence[Json]:
        """Returns all objects, with their live state; the caller applies the query's filters."""
        raise NotImplementedError

    async def get(self, key: ObjectKey) -> Json:
        """Returns one object. Raises no_such."""
        raise NotImplementedError

    async def create(self, settings: Settings) -> Json:
        """Creates an object, for a POST."""
        raise NotImplementedError

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """Changes or creates an object, for a PUT; the key comes from the URL."""
        raise NotImplementedError

    async def delete(self, key: ObjectKey) -> None:
        """Deletes an object, if it exists."""
        raise NotImplementedError

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        """PUT /{name}/{verb}: start, stop, pause, resume, or a node's name to add it. 202 follows."""
        raise unsupported(call.target)

    async def remove(self, key: ObjectKey, part: str, call: OharaCall) -> None:
        """DELETE /{name}/{part}: removes a node. 204 follows."""
        raise unsupported(call.target)
