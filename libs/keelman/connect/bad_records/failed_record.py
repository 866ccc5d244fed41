"""A record for which a reader that makes payloads itself could make none."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.connect.bad_records.dead_letter import Format
from keelman.connect.bad_records.tolerance import Stage


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """At which stage it failed and why, and what its key and value are in the batch that it comes in."""

    stage: Stage
    error: Exception
    key_format: Format = "json"
    value_format: Format = "json"
