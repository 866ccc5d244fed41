"""Reads the properties that name folders with plugins and with their libraries."""

from __future__ import annotations

from collections.abc import Mapping

PLUGIN_PATH = "plugin.path"
LIBRARIES = "keelman.plugin.libraries"
"""Folders whose jars all Java plugins of the worker find after their own; an agent sets it."""


def folders_of(text: str) -> list[str]:
    """Returns comma-separated folders, each once, in their order."""
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def libraries_of(properties: Mapping[str, str]) -> list[str]:
    """Returns the folders with the libraries that all Java plugins share."""
    return folders_of(properties.get(LIBRARIES, ""))


def with_folders(properties: Mapping[str, str], plugins: list[str], libraries: list[str]) -> dict[str, str]:
    """Returns worker properties that name these folders too, after those that they name already."""
    changed = dict(properties)
    for key, folders in ((PLUGIN_PATH, plugins), (LIBRARIES, libraries)):
        if folders:
            changed[key] = ",".join(dict.fromkeys([*folders_of(changed.get(key, "")), *folders]))
    return changed
