"""Prints the reference part of docs/sdk.md: a line of mkdocstrings for each module that connectors may import.

`make docs` puts it into the site; mkdocstrings reads the modules' docstrings and does not import them.
"""

from __future__ import annotations

from collections.abc import Iterator

MODULES = {
    "Connectors": ("plugin", "topic_plan", "watches"),
    "Records": ("records", "schema", "times"),
    "Configuration": ("config.definition", "config.types", "config.rules"),
    "Tasks": (
        "tasks.source_task",
        "tasks.sink_task",
        "tasks.sink_source",
        "tasks.kept_offsets",
        "tasks.data_set",
        "tasks.own_metric",
    ),
    "Errors": ("errors",),
}


def tables() -> str:
    """Returns the part of the page that mkdocstrings fills in."""
    return "".join(_sections())


def _sections() -> Iterator[str]:
    for title, modules in MODULES.items():
        yield f"\n## {title}\n"
        for module in modules:
            yield f"\n### `keelman.connect.{module}`\n\n::: keelman.connect.{module}\n"


if __name__ == "__main__":
    print(tables(), end="")
