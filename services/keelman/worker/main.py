"""`keelman worker`: from a worker's properties file, alone as connect-standalone, or by the short flags of Connect's
first agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keelman.model.errors import InvalidArgument
from keelman.runtime import grpc_forks
from keelman.runtime.main import CONFIG, Command, service_main


def main(words: Sequence[str]) -> int:
    """Runs the command in the words after `keelman worker`; returns the exit code."""
    grpc_forks.keep_out()
    if words and words[0].startswith("-") and words[0] not in ("-h", "--help"):
        from keelman.worker.short_flags import main as with_short_flags  # noqa: PLC0415

        return with_short_flags(words)
    return service_main("worker", words, (RUN, STANDALONE, CONFIG))


def _one_file(words: Sequence[str]) -> Mapping[str, Any]:
    if len(words) > 1:
        raise InvalidArgument(
            f"one file of worker properties is expected, not {len(words)}: {' '.join(words)}. Files of connectors are "
            "for `keelman worker standalone`; a worker of a group gets its connectors with POST /connectors"
        )
    return {"properties_file": words[0]} if words else {}


def _files(words: Sequence[str]) -> Mapping[str, Any]:
    return {"standalone": True, **_one_file(words[:1]), **({"connector_files": list(words[1:])} if words[1:] else {})}


RUN = Command("run", "run a worker of a group, as connect-distributed does", "worker.properties", _one_file)
STANDALONE = Command(
    "standalone",
    "run a worker alone, as connect-standalone does: worker.properties, then files of connectors",
    "file",
    _files,
)
