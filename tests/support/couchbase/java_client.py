"""The official Java client with a program around it, compiled here."""

from __future__ import annotations

from pathlib import Path

from keelman.runtime.java.maven import Lock
from keelman.runtime.java.maven import jars as fetched
from support.java.compiler import classes_of

KIT = Path(__file__).parent


async def compiled(program: str) -> list[Path]:
    """The class path of a program of `java`."""
    jars = await fetched(Lock.read(KIT / "dcp_client.lock"))
    return [classes_of([KIT / "java" / f"{program}.java"], jars), *jars]
