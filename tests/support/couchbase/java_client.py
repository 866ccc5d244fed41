"""The official Java client with a program around it, compiled here."""

from __future__ import annotations

import subprocess
from pathlib import Path

from keelman.runtime.java.installation import find
from keelman.runtime.java.maven import Lock
from keelman.runtime.java.maven import jars as fetched

KIT = Path(__file__).parent


async def compiled(folder: Path, program: str) -> list[Path]:
    """The class path of a program of `java`, whose classes go to a folder."""
    jars = await fetched(Lock.read(KIT / "dcp_client.lock"))
    compiler, source = find().program.with_name("javac"), KIT / "java" / f"{program}.java"
    command = [str(compiler), "-nowarn", "-d", str(folder), "-cp", ":".join(map(str, jars)), str(source)]
    subprocess.run(command, check=True, timeout=240)
    return [folder, *jars]
