"""Java libraries that a user names by Maven's coordinates: resolved once, pinned, and kept in the cache folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from keelman.runtime.home import cache_folder
from keelman.runtime.java.maven import Lock, jars, relock


async def packages(coordinates: Sequence[str], *, cache: Path | None = None) -> tuple[Path, ...]:
    """The jars of `group:artifact:version`s with all that they need.

    What the first resolution found is pinned beside the jars, so that it stays what it was. Raises InvalidArgument for
    what is no coordinates, Unavailable when they cannot be had, JavaMissing and FailedPrecondition as `maven.jars`.
    """
    if not coordinates:
        return ()
    cache = cache or cache_folder()
    name = hashlib.sha256("\n".join(sorted(coordinates)).encode()).hexdigest()[:16]
    file = cache / "jars" / f"packages-{name}.lock"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".fresh")
        await relock(fresh, sorted(coordinates))
        fresh.rename(file)
    return await jars(Lock.read(file), cache=cache)
