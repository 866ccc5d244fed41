"""Serves custom plugins: files in buckets, imported when the plugin is created. The workers' built-in connectors are
one more plugin, which always exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from keelman.api.connect.v1 import plugin_import_service_pb2 as pb
from keelman.api.connect.v1.plugin_import_pb2 import PluginContent, PluginImport, PluginImportState, PluginSource
from keelman.api.connect.v1.plugin_pb2 import PluginRef
from keelman.gateway.access.accounts import Account
from keelman.gateway.access.signatures import SignedCaller
from keelman.gateway.calls import Calls
from keelman.gateway.managed_connect import arns
from keelman.gateway.managed_connect.arns import Arn
from keelman.gateway.managed_connect.bounds import check_bucket
from keelman.gateway.managed_connect.call import ManagedCall
from keelman.gateway.managed_connect.control import document_of, extra_of, is_taken, iso, origin_of, present
from keelman.gateway.managed_connect.errors import bad_member, not_found, taken
from keelman.gateway.managed_connect.managed_resources import ManagedResources, Retag
from keelman.gateway.managed_connect.members import CREATE_CUSTOM_PLUGIN
from keelman.gateway.managed_connect.pages import page as cut
from keelman.model.errors import KeelmanError

BUILT_IN = "built-in"
BUILT_IN_UUID, BUILT_IN_NUMBER = "00000000-0000-0000-0000-000000000000", 1
BUILT_IN_TIME = "2021-09-14T00:00:00.000Z"
BUILT_IN_DESCRIPTION = "The connectors that every worker has."
MEMBER = "plugins[0].customPlugin"
STATES = {
    PluginImportState.PLUGIN_IMPORT_STATE_CREATING: "CREATING",
    PluginImportState.PLUGIN_IMPORT_STATE_ACTIVE: "ACTIVE",
    PluginImportState.PLUGIN_IMPORT_STATE_FAILED: "CREATE_FAILED",
}
CONTENTS = {"JAR": PluginContent.PLUGIN_CONTENT_JAR, "ZIP": PluginContent.PLUGIN_CONTENT_ZIP}
_BUCKET = re.compile(r"arn:(?:aws|aws-cn|aws-us-gov):s3:::([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])")


class CustomPlugins:
    """Calls on custom plugins. `account` returns what an account may name of the installation; `most` is the limit of
    plugins in an account, 0 for none."""

    def __init__(self, control: Calls, account: Callable[[str], Account], *, most: int) -> None:
        self._control, self._account, self._most = control, account, most
        self._kept: ManagedResources[PluginImport] = ManagedResources(
            control, arns.PLUGIN, pb, noun="PluginImport", field="plugin_import"
        )

    async def create(self, call: ManagedCall) -> dict[str, Any]:
        """Begins the import of a plugin: its state then shows whether the object exists and is good."""
        body = call.body(CREATE_CUSTOM_PLUGIN)
        name, location = body["name"], body["location"]["s3Location"]
        bucket = _BUCKET.fullmatch(location["bucketArn"])
        if bucket is None:
            raise bad_member("location.s3Location.bucketArn", "The ARN of a bucket is expected: arn:aws:s3:::<bucket>.")
        check_bucket("location.s3Location.bucketArn", bucket[1], self._account(call.caller.account), call.caller)
        if name == BUILT_IN:
            raise taken("name")
        arn = arns.new_arn(arns.PLUGIN, call.caller, name)
        document = {"region": arn.region, "contentType": body["contentType"], "s3Location": location}
        source = PluginSource(
            bucket=bucket[1], key=location["fileKey"], version=location.get("objectVersion", ""),
            content=CONTENTS[body["contentType"]],
        )  # fmt: skip
        request = pb.CreatePluginImportRequest(
            name=arn.resource, source=source, description=body.get("description", ""), request_id=call.request_id,
            origin=origin_of(call.caller, name), extra=extra_of(document, body.get("tags", {})),
            max_of_scope=self._most,
        )  # fmt: skip
        try:
            answer = await self._control.ask(request)
        except KeelmanError as error:
            raise taken("name") if is_taken(error) else error from None
        state = STATES[answer.plugin_import.state]
        own_arn = self._kept.arn_of(answer.plugin_import)  # for a repeated request the ARN of the first
        return {"customPluginArn": str(own_arn), "customPluginState": state, "name": name, "revision": 1}

    async def describe(self, call: ManagedCall) -> dict[str, Any]:
        """Returns one plugin, with its error if it has one."""
        arn = self._arn(call)
        if is_built_in(arn):
            return _built_in(call.caller)
        plugin_import = await self._kept.found(call.caller, arn)
        failed = {"code": plugin_import.code, "message": plugin_import.message} if plugin_import.code else None
        return self._summary(plugin_import) | present(stateDescription=failed)

    async def page(self, call: ManagedCall) -> dict[str, Any]:
        """Returns a page of plugins."""
        prefix = call.parameter("namePrefix")
        shown = [self._summary(plugin_import) for plugin_import in await self._kept.all(call.caller)]
        summaries = [summary for summary in (_built_in(call.caller), *shown) if summary["name"].startswith(prefix)]
        part, token = cut(call, prefix, summaries, lambda summary: str(summary["customPluginArn"]))
        return {"customPlugins": part} | present(nextToken=token)

    async def delete(self, call: ManagedCall) -> dict[str, Any]:
        """Deletes an unused plugin with its imported file; the object in the bucket stays."""
        arn = self._arn(call)
        if is_built_in(arn):
            raise bad_member("customPluginArn", "A built-in plugin cannot be deleted.")
        await self._kept.found(call.caller, arn)
        request = pb.DeletePluginImportRequest(name=arn.resource, request_id=call.request_id)
        await self._control.ask(request)
        return {"customPluginArn": str(arn), "customPluginState": "DELETING"}

    async def reference(self, caller: SignedCaller, plugins: list[dict[str, Any]]) -> list[PluginRef]:
        """Returns the plugins that a connector's `plugins` name. Raises WireError: 404 for an unknown plugin, 400 for
        a plugin that is not ACTIVE."""
        plugin = plugins[0]["customPlugin"]
        arn = arns.parsed(f"{MEMBER}.customPluginArn", plugin["customPluginArn"], arns.PLUGIN, caller=caller)
        plugin_import = None if is_built_in(arn) else await self._kept.found(caller, arn)
        if plugin["revision"] != 1:
            raise not_found(f"The specified resource does not exist: revision {plugin['revision']} of {arn}.")
        if plugin_import is None:
            return []
        if plugin_import.state != PluginImportState.PLUGIN_IMPORT_STATE_ACTIVE:
            detail = f": {plugin_import.message}" if plugin_import.message else ""
            reason = f"The plugin is {STATES[plugin_import.state]}, not ACTIVE{detail}."
            raise bad_member(f"{MEMBER}.customPluginArn", reason)
        return [plugin_import.plugin]

    async def tags(self, caller: SignedCaller, arn: Arn) -> dict[str, str]:
        """Returns the tags of a plugin."""
        return {} if is_built_in(arn) else await self._kept.tags(caller, arn)

    async def retag(self, caller: SignedCaller, arn: Arn, changed: Retag) -> None:
        """Replaces a plugin's tags by the result of `changed` on its present tags."""
        if is_built_in(arn):
            raise bad_member("resourceArn", "A built-in plugin has no tags.")
        await self._kept.retag(caller, arn, changed)

    def _arn(self, call: ManagedCall) -> Arn:
        return arns.parsed("customPluginArn", call.arn, arns.PLUGIN, caller=call.caller)

    def _summary(self, plugin_import: PluginImport) -> dict[str, Any]:
        stored, created = document_of(plugin_import.extra), iso(plugin_import.create_time)
        revision = None
        if plugin_import.state == PluginImportState.PLUGIN_IMPORT_STATE_ACTIVE:
            revision = present(
                contentType=stored["contentType"],
                creationTime=created,
                description=plugin_import.description,
                fileDescription={"fileMd5": plugin_import.md5, "fileSize": plugin_import.size_bytes},
                location={"s3Location": stored["s3Location"]},
                revision=1,
            )
        return present(
            customPluginArn=str(self._kept.arn_of(plugin_import)),
            customPluginState=STATES[plugin_import.state],
            name=plugin_import.origin.key,
            description=plugin_import.description,
            creationTime=created,
            latestRevision=revision,
        )


def is_built_in(arn: Arn) -> bool:
    """Tells whether this is the plugin of the built-in connectors."""
    return (arn.name, arn.uuid, arn.number) == (BUILT_IN, BUILT_IN_UUID, BUILT_IN_NUMBER)


def _built_in(caller: SignedCaller) -> dict[str, Any]:
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
