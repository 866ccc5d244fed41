"""What `create` does with plugin imports: an object of a bucket becomes a plugin."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from keelman.api.connect.v1.plugin_import_pb2 import PluginContent, PluginImport, PluginImportState, PluginSource
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import Target
from keelman.cli.fields import Given, apply
from keelman.cli.output.printing import print_one
from keelman.model.errors import DeadlineExceeded, FailedPrecondition, InvalidArgument

LOOK_SECONDS = 0.2


def import_source(text: str, version: str, content: str) -> PluginSource:
    """What --from, --object-version and --content say. Raises InvalidArgument."""
    bucket, slash, key = text.removeprefix("s3://").partition("/")
    if not (bucket and slash and key):
        raise InvalidArgument.of("--from", text, "BUCKET/KEY, the object that is the plugin's file")
    if content.lower() not in ("", "jar", "zip"):
        raise InvalidArgument.of("--content", content, "jar or zip")
    said = PluginContent.Value(f"PLUGIN_CONTENT_{content.upper() or 'UNSPECIFIED'}")
    return PluginSource(bucket=bucket, key=key, version=version, content=said)


def create_import(
    target: Target, name: str, source: PluginSource, given: Given, *, form: str, wait: float | None
) -> int:
    """Begins to fetch a plugin's file, and waits for it where that is asked for. Raises FailedPrecondition where there
    will be no plugin."""
    said = PluginImport()
    apply(given, said)

    async def body(client: Gateway) -> None:
        answer = await client.call(
            "Create",
            kinds.PLUGIN_IMPORTS,
            name=name,
            source=source,
            description=said.description,
            labels=dict(said.labels),
        )
        made = answer.plugin_import
        if wait is not None:
            made = await _fetched(client, name, wait)
        print_one(kinds.PLUGIN_IMPORTS, made, form)

    return target.run(body)


async def _fetched(client: Gateway, name: str, seconds: float) -> Any:
    end = time.monotonic() + seconds
    while True:
        found = await client.get(kinds.PLUGIN_IMPORTS, name)
        if found.state == PluginImportState.PLUGIN_IMPORT_STATE_FAILED:
            raise FailedPrecondition(f"plugin import {name}: {found.code}: {found.message}", reason="IMPORT_FAILED")
        if found.state == PluginImportState.PLUGIN_IMPORT_STATE_ACTIVE:
            return found
        if time.monotonic() > end:
            raise DeadlineExceeded(f"plugin import {name} is still being fetched after {seconds:g} s: {found.message}")
        await asyncio.sleep(LOOK_SECONDS)
