"""Decides which slots are alike: those of one plugin whose virtual machines, if any, have the same settings."""

from __future__ import annotations

from keelman.api.copy.v1.ticket_pb2 import Plugin


def kind_of(plugin: Plugin) -> str:
    """Returns the kind of slot that a copy run needs; empty for the shared slots of our own connectors."""
    return f"{plugin.folder}\n{plugin.machine}" if plugin.machine else plugin.folder


def folder_of(kind: str) -> str:
    """Returns the plugin's folder."""
    return kind.partition("\n")[0]
