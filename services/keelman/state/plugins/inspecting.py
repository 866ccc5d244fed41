"""Inspects a received file in a process of its own: a harmful file harms only that."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import IO

from keelman.model.plugins.plugin import PluginClass, PluginKind
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.die_with_parent import tethered
from keelman.workers.plugins.archive import ArchiveRefused, refusal
from keelman.workers.plugins.inspection import Inspection
from keelman.workers.plugins.versions import of_file_name

log = get_logger()
SECONDS = 600.0


async def inspect(file: IO[bytes], file_name: str, scratch: Path, *, any_file: bool = False) -> Inspection:
    """Returns the content of a file; `scratch` is a folder for nameless files. Raises ArchiveRefused, also if it could
    not be inspected within the limits; with `any_file` that is a problem of a file of the kind OTHER."""
    try:
        return await _inspect(file, file_name, scratch)
    except ArchiveRefused as error:
        if not any_file:
            raise
        named = of_file_name(file_name)
        return Inspection(PluginKind.OTHER, (), (error.message,), named.name, named.version)


async def _inspect(file: IO[bytes], file_name: str, scratch: Path) -> Inspection:
    child = await asyncio.create_subprocess_exec(
        *tethered([sys.executable, "-m", "keelman.workers.plugins", file_name]),
        stdin=file,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, errors = await child.communicate()
    except TimeoutError:
        raise refusal("time", f"it could not be looked into within {SECONDS:.0f} s") from None
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    if child.returncode != 0:
        log.warning("plugin_inspection_failed", code=child.returncode, error=errors.decode(errors="replace")[-2000:])
        raise refusal("bounds", "it could not be looked into with the memory and time that there are for that")
    answer = json.loads(output)
    if "refused" in answer:
        raise ArchiveRefused(answer["refused"]["message"], metadata=answer["refused"]["metadata"])
    content = answer["found"]
    problems = (*content["problems"], *content["refused"].values())
    return Inspection(
        PluginKind(content["kind"]), tuple(PluginClass(**fields) for fields in content["classes"]), problems,
        content["name"], content["version"],
    )  # fmt: skip
