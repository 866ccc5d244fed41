"""Serves tags: each resource stores its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from keelman.gateway.access.signatures import SignedCaller
from keelman.gateway.managed_connect import arns
from keelman.gateway.managed_connect.arns import Arn
from keelman.gateway.managed_connect.call import ManagedCall
from keelman.gateway.managed_connect.errors import bad_member
from keelman.gateway.managed_connect.members import TAG_RESOURCE, TAGS

ARN = "resourceArn"


class Tagged(Protocol):
    """A kind of resources that have tags."""

    async def tags(self, caller: SignedCaller, arn: Arn) -> dict[str, str]:
        """Returns the tags of a resource. Raises WireError."""

    async def retag(self, caller: SignedCaller, arn: Arn, changed: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Replaces a resource's tags by the result of `changed` on its present tags. Raises WireError."""


class Tags:
    """Calls on the tags of any resource, by the kind in its ARN."""

    def __init__(self, kinds: Mapping[str, Tagged]) -> None:
        self._kinds = kinds

    async def all(self, call: ManagedCall) -> dict[str, Any]:
        """Returns all tags of a resource."""
        arn = self._arn(call)
        return {"tags": await self._kinds[arn.kind].tags(call.caller, arn)}

    async def add(self, call: ManagedCall) -> dict[str, Any]:
        """Adds tags to a resource."""
        arn, more = self._arn(call), call.body(TAG_RESOURCE)["tags"]

        def changed(tags: dict[str, str]) -> dict[str, str]:
            merged = {**tags, **more}
            if len(merged) > TAGS.most:
                raise bad_member("tags", f"A resource has at most {TAGS.most} tags.")
            return merged

        await self._kinds[arn.kind].retag(call.caller, arn, changed)
        return {}

    async def remove(self, call: ManagedCall) -> dict[str, Any]:
        """Removes tags from a resource; ignores tags that it does not have."""
        arn, keys = self._arn(call), set(call.tag_keys)
        await self._kinds[arn.kind].retag(
            call.caller, arn, lambda tags: {key: value for key, value in tags.items() if key not in keys}
        )
        return {}

    def _arn(self, call: ManagedCall) -> Arn:
        return arns.parsed(ARN, call.arn, *self._kinds, caller=call.caller)
