"""A record for which a reader that makes payloads itself could not make one."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.connect.bad_records.dead_letter import Format
from keelman.connect.bad_records.tolerance import Stage


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """The stage and cause of its failure, and the formats of its key and value in its batch."""

    stage: Stage
    error: Exception
    key_format: Format = "json"
    value_format: Format = "json"
