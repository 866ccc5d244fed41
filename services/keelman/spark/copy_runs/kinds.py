"""Decides which slots are alike: those of one plugin whose virtual machines, if any, have the same settings."""

from __future__ import annotations

from keelman.api.copy.v1.ticket_pb2 import Plugin


def kind_of(plugin: Plugin) -> str:
    """What a copy run's slot must be; empty for the shared slots of connectors that we ship."""
    return f"{plugin.folder}\n{plugin.machine}" if plugin.machine else plugin.folder


def folder_of(kind: str) -> str:
    """The plugin's folder."""
    return kind.partition("\n")[0]
