"""The recorded requests: every endpoint, with correct, wrong and hostile requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recorded.rest.rest_step import GROUP
from recorded.rest.rest_steps_asked import bad_creates, paths, unknown
from recorded.rest.rest_steps_inside import inside, loggers, without_reset
from recorded.rest.rest_steps_lived import ends, lives
from recorded.rest.rest_steps_offsets import sink_offsets, source_offsets, without_topics
from support.worker.rest import Step

__all__ = ["GROUP", "SECTIONS"]

MAIN = (
    *paths(),
    *unknown(),
    *bad_creates(),
    *lives(),
    *source_offsets(),
    *sink_offsets(),
    *inside(),
    *loggers(),
    *ends(),
)
SECTIONS: Mapping[str, tuple[Mapping[str, str], Sequence[Step]]] = {
    "main": ({"exactly.once.source.support": "enabled"}, MAIN),
    "tracking off": ({"topic.tracking.enable": "false"}, tuple(without_topics())),
    "reset off": (
        {"topic.tracking.allow.reset": "false", "exactly.once.source.support": "disabled"},
        tuple(without_reset()),
    ),
}
