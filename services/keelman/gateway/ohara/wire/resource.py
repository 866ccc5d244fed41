"""The interface of a kind of object that is asked over HTTP. A kind overrides what it supports; the rest is 404."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keelman.gateway.ohara.wire.call import Call
from keelman.gateway.ohara.wire.errors import unsupported
from keelman.gateway.ohara.wire.keys import ObjectKey, checked_key
from keelman.gateway.ohara.wire.values import Settings

Json = dict[str, Any]


class Resource:
    """One kind of object, e.g. workers. All methods raise OharaError, or our own errors, which become Ohara's."""

    def key(self, group: str, name: str) -> ObjectKey:
        """The key of a single-object call; checked."""
        return checked_key(group, name)

    async def list(self) -> Sequence[Json]:
        """All objects, with their live state; the query's filters come after."""
        raise NotImplementedError

    async def get(self, key: ObjectKey) -> Json:
        """One object. Raises no_such."""
        raise NotImplementedError

    async def create(self, settings: Settings) -> Json:
        """A new object of a POST."""
        raise NotImplementedError

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """The object of a PUT, changed or new; the key is that of the URL."""
        raise NotImplementedError

    async def delete(self, key: ObjectKey) -> None:
        """Deletes an object; does nothing for one that there is not."""
        raise NotImplementedError

    async def act(self, key: ObjectKey, verb: str, call: Call) -> None:
        """PUT /{name}/{verb}: start, stop, pause, resume, or a node's name to add it. 202 follows."""
        raise unsupported(call.target)

    async def remove(self, key: ObjectKey, part: str, call: Call) -> None:
        """DELETE /{name}/{part}: takes a node away. 204 follows."""
        raise unsupported(call.target)
