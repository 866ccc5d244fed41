"""Keys of ours, of every connector: how it is tried again after a failure, and when a task counts as stalled."""

from __future__ import annotations

from keelman.connect.config_def import ConfigDef, ConfigKey, Importance, Type, Width, at_least

GROUP = "Restarts"


def life_keys() -> ConfigDef:
    """The worker's properties of the same names hold for connectors that do not set them."""
    rows = (
        ("keelman.restart.max.attempts", Type.INT, -1, -1, "Times it is tried again; -1: no end, 0: as in Connect."),
        ("keelman.restart.backoff.ms", Type.LONG, 1_000, 1, "Pause before the first of these; each is twice as long."),
        ("keelman.restart.backoff.max.ms", Type.LONG, 300_000, 1, "Longest pause."),
        ("keelman.restart.reset.after.ms", Type.LONG, 600_000, 0, "Time without failure that makes it begin anew."),
        ("keelman.stall.after.ms", Type.LONG, 60_000, -1, "Time without progress until a task is stalled; -1: never."),
    )
    return ConfigDef(
        *(
            ConfigKey(
                name, kind, default, Importance.LOW, doc, at_least(least), group=GROUP, order=at, width=Width.SHORT
            )
            for at, (name, kind, default, least, doc) in enumerate(rows, start=1)
        )
    )
