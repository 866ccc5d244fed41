"""Creates plugin imports: an object of a bucket becomes a plugin."""

from __future__ import annotations

from keelman.api.connect.v1.plugin_import_pb2 import PluginContent, PluginSource
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.imports import fetch
from keelman.cli.client.target import GatewayTarget
from keelman.cli.output.printing import print_one
from keelman.cli.specs.fields import said
from keelman.cli.specs.options import Given
from keelman.model.errors import InvalidArgument


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
    target: GatewayTarget, name: str, source: PluginSource, options: Given, *, form: str, wait: float | None
) -> int:
    """Begins to fetch a plugin's file, and waits for its end if requested. Raises FailedPrecondition where there will
    be no plugin."""

    async def body(client: Gateway) -> None:
        plugin_import = await client.create(kinds.PLUGIN_IMPORTS, name, source=source, **said(options))
        if wait is not None:
            plugin_import = await fetch(client, name, wait)
        print_one(kinds.PLUGIN_IMPORTS, plugin_import, form)

    return target.run(body)
