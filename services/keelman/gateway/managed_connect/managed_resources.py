"""Finds connectors, custom plugins and worker configurations by ARN, only in the caller's account, and retags them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from keelman.gateway.access.signatures import SignedCaller
from keelman.gateway.calls import Calls
from keelman.gateway.managed_connect import arns
from keelman.gateway.managed_connect.arns import Arn
from keelman.gateway.managed_connect.control import API, document_of, extra_of, tags_of
from keelman.model.errors import NotFound
from keelman.runtime.conflicts import again

T = TypeVar("T")
TRIES = 10
Retag = Callable[[dict[str, str]], dict[str, str]]


def kept_arn(kind: str, said: Any, name: str) -> Arn:
    """Returns the ARN of a resource with this name. `said` has its origin and extra."""
    return arns.arn_of(kind, document_of(said.extra)["region"], said.origin.scope, said.origin.key, name)


class ManagedResources(Generic[T]):
    """Resources of one kind. `requests` is the module of its requests; `noun` and `field` are its names there; `part`
    is the field with origin and extra, if the resource itself does not have them; `how` are fields of each get request.
    """

    def __init__(
        self, control: Calls, kind: str, requests: Any, *, noun: str, field: str, part: str = "", **how: Any
    ) -> None:
        self._control, self._kind, self._requests = control, kind, requests
        self._noun, self._field, self._part, self._how = noun, field, part, how

    async def found(self, caller: SignedCaller, arn: Arn) -> T:
        """Returns the resource of an ARN. Raises WireError."""
        request = getattr(self._requests, f"Get{self._noun}Request")(name=arn.resource, **self._how)
        try:
            answer = await self._control.ask(request)
        except NotFound:
            raise arns.unknown(arn) from None
        resource: T = getattr(answer, self._field)
        origin = self._said(resource).origin
        if origin.api != API or origin.scope != caller.account or self.arn_of(resource) != arn:
            raise arns.unknown(arn)
        return resource

    async def all(self, caller: SignedCaller) -> list[T]:
        """Returns all resources of the caller's account."""
        request_type = getattr(self._requests, f"List{self._noun}sRequest")
        return await self._control.all(request_type, origin_api=API, origin_scope=caller.account)

    def arn_of(self, resource: T) -> Arn:
        """Returns the ARN of a resource."""
        return kept_arn(self._kind, self._said(resource), resource.name)  # type: ignore[attr-defined]

    async def tags(self, caller: SignedCaller, arn: Arn) -> dict[str, str]:
        """Returns the tags of a resource. Raises WireError."""
        return tags_of(self._said(await self.found(caller, arn)).extra)

    async def retag(self, caller: SignedCaller, arn: Arn, changed: Retag) -> None:
        """Replaces a resource's tags by the result of `changed` on its present tags. Raises WireError."""

        async def work() -> None:
            resource: Any = await self.found(caller, arn)
            said = self._said(resource)
            extra = extra_of(document_of(said.extra), changed(tags_of(said.extra)))
            part = {self._part or self._field: type(said)(extra=extra)}
            request = getattr(self._requests, f"Update{self._noun}Request")(
                name=resource.name, etag=resource.etag, **part
            )
            request.update_mask.paths.append("extra")
            await self._control.ask(request)

        await again(work, tries=TRIES)

    def _said(self, resource: Any) -> Any:
        return getattr(resource, self._part) if self._part else resource
