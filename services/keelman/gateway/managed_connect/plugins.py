"""Custom plugins. What every worker has built in is a plugin that is always there."""

from __future__ import annotations

from typing import Any

from keelman.api.connect.v1.plugin_pb2 import PluginRef
from keelman.gateway.access import Caller
from keelman.gateway.managed_connect import arns
from keelman.gateway.managed_connect.arns import Arn
from keelman.gateway.managed_connect.call import Call
from keelman.gateway.managed_connect.control import Control, present
from keelman.gateway.managed_connect.errors import bad_member, not_found
from keelman.gateway.managed_connect.pages import page as cut

BUILT_IN = "built-in"
BUILT_IN_UUID, BUILT_IN_NUMBER = "00000000-0000-0000-0000-000000000000", 1
BUILT_IN_TIME = "2021-09-14T00:00:00.000Z"
BUILT_IN_DESCRIPTION = "The connectors that every worker has."
MEMBER = "plugins[0].customPlugin"


class CustomPlugins:
    """Calls on custom plugins."""

    def __init__(self, control: Control) -> None:
        self._control = control

    async def describe(self, call: Call) -> dict[str, Any]:
        """One."""
        arn = self._arn(call)
        if is_built_in(arn):
            return _built_in(call.caller)
        raise arns.unknown(arn)

    async def page(self, call: Call) -> dict[str, Any]:
        """A page of them."""
        prefix = call.parameter("namePrefix")
        found = [_built_in(call.caller)] if BUILT_IN.startswith(prefix) else []
        part, token = cut(call, prefix, found, lambda one: one["customPluginArn"])
        return {"customPlugins": part} | present(nextToken=token)

    async def delete(self, call: Call) -> dict[str, Any]:
        """Deletes one that nobody uses."""
        arn = self._arn(call)
        if is_built_in(arn):
            raise bad_member("customPluginArn", "What is built in cannot be deleted.")
        raise arns.unknown(arn)

    async def reference(self, caller: Caller, given: list[dict[str, Any]]) -> list[PluginRef]:
        """What a connector's `plugins` name. Raises WireError: 404 for one that there is not, 400 for one that is not
        ACTIVE."""
        plugin = given[0]["customPlugin"]
        arn = arns.parsed(f"{MEMBER}.customPluginArn", plugin["customPluginArn"], arns.PLUGIN, caller=caller)
        if plugin["revision"] != 1:
            raise not_found(f"The specified resource does not exist: revision {plugin['revision']} of {arn}.")
        if is_built_in(arn):
            return []
        raise arns.unknown(arn)

    def _arn(self, call: Call) -> Arn:
        return arns.parsed("customPluginArn", call.arn, arns.PLUGIN, caller=call.caller)


def is_built_in(arn: Arn) -> bool:
    """Whether this is the plugin of what every worker has."""
    return (arn.name, arn.uuid, arn.number) == (BUILT_IN, BUILT_IN_UUID, BUILT_IN_NUMBER)


def _built_in(caller: Caller) -> dict[str, Any]:
    arn = Arn(arns.PLUGIN, caller.region, caller.account, BUILT_IN, BUILT_IN_UUID, BUILT_IN_NUMBER)
    revision = {
        "contentType": "ZIP", "creationTime": BUILT_IN_TIME, "description": BUILT_IN_DESCRIPTION, "revision": 1,
    }  # fmt: skip
    return {
        "customPluginArn": str(arn),
        "customPluginState": "ACTIVE",
        "name": BUILT_IN,
        "description": BUILT_IN_DESCRIPTION,
        "creationTime": BUILT_IN_TIME,
        "latestRevision": revision,
    }
