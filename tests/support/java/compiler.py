"""Compiles Java sources of tests, once for the checkout: the classes are stored under the digest of their inputs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from keelman.runtime.java.installation import find
from support.places import ROOT

KEPT = ROOT / "build" / "java"
SECONDS = 300
QUICK = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none", "-nowarn")


def classes_of(sources: Sequence[Path], jars: Sequence[Path]) -> Path:
    """The folder of the sources' classes, to be read only. Several processes may call this at once.

    Raises CalledProcessError for sources that do not compile.
    """
    java = find()
    digest = hashlib.sha256(f"{java.home} {java.program.stat().st_mtime_ns}".encode())
    for source in (*sources, *jars):
        digest.update(f"\0{source.name}\0".encode() + (source.read_bytes() if source.suffix == ".java" else b""))
    classes = KEPT / digest.hexdigest()[:16]
    if not classes.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        fresh = tempfile.mkdtemp(prefix=f"{classes.name}-", dir=KEPT)
        command = [str(java.program.with_name("javac")), *QUICK, "-d", fresh, "-cp", ":".join(map(str, jars))]
        try:
            subprocess.run([*command, *map(str, sources)], check=True, timeout=SECONDS)
            os.rename(fresh, classes)
        except OSError:  # another process was first
            if not classes.exists():
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return classes
