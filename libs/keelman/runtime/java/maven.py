"""Fetches Java libraries that a lock file pins into the cache folder, by the Ivy that PySpark ships.

A lock is JSON: a name, its root coordinates, and every artifact with size and sha256. A fetch requests exactly those
artifacts, without their descriptors, so it resolves nothing and takes no other version. A fetched folder is complete or
absent: it is filled beside its place and renamed. Ivy uses its own default repository; KEELMAN_IVY_SETTINGS names an
Ivy settings file for hosts behind a mirror.
`python -m keelman.runtime.java.maven LOCK` fetches; `--relock LOCK [group:artifact:version ...]` writes a new lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.runtime.home import cache_folder
from keelman.runtime.java.ivy import Artifact, Progress, ivy

KAFKA_BROKER = Path(__file__).parents[1] / "kafka_broker.lock"
KAFKA_CONNECT = Path(__file__).parents[1] / "kafka_connect.lock"
JMX_EXPORTER = Path(__file__).parents[1] / "jmx_exporter.lock"
MARKER = ".complete"

Fetcher = Callable[["Lock", Path, Progress], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Lock:
    """A pinned set of jars."""

    name: str
    roots: tuple[str, ...]
    artifacts: tuple[Artifact, ...]

    @classmethod
    def read(cls, file: Path) -> Lock:
        """Reads a lock. Raises FailedPrecondition if the file is not a lock."""
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            artifacts = tuple(Artifact(**a) for a in document["artifacts"])
            return cls(document["name"], tuple(document["roots"]), artifacts)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FailedPrecondition(f"lock file {file} cannot be read: {error}") from None

    def write(self, file: Path) -> None:
        """Writes the lock as JSON, one artifact a line."""
        lines = ",\n".join("    " + json.dumps(_as_json(a)) for a in self.artifacts)
        head = f'{{\n  "name": {json.dumps(self.name)},\n  "roots": {json.dumps(list(self.roots))},\n'
        file.write_text(f'{head}  "artifacts": [\n{lines}\n  ]\n}}\n', encoding="utf-8")

    @property
    def digest(self) -> str:
        """A digest that changes when any artifact does."""
        text = "\n".join(f"{a} {a.sha256}" for a in self.artifacts)
        return hashlib.sha256(text.encode()).hexdigest()

    def folder(self, cache: Path) -> Path:
        """Returns the folder of the jars; one for each content, so that two installations do not disturb each other."""
        return cache / "jars" / f"{self.name}-{self.digest[:8]}"


def _as_json(artifact: Artifact) -> dict[str, str | int]:
    """Returns an artifact's entry in a lock; a jar's has the same fields as in earlier versions."""
    fields = asdict(artifact)
    return fields if artifact.classifier else {k: v for k, v in fields.items() if k not in ("classifier", "extension")}


def cached(lock: Lock, cache: Path | None = None) -> tuple[Path, ...] | None:
    """Returns the jars if they are all there, else None. Quick: compares names and sizes; sums were checked on
    arrival."""
    folder = lock.folder(cache or cache_folder())
    try:
        if (folder / MARKER).read_text(encoding="utf-8") != lock.digest:
            return None
        if any((folder / a.file).stat().st_size != a.size for a in lock.artifacts):
            return None
    except OSError:
        return None
    return tuple(folder / a.file for a in lock.artifacts)


async def jars(
    lock: Lock, *, cache: Path | None = None, progress: Progress = lambda line: None, fetch: Fetcher | None = None
) -> tuple[Path, ...]:
    """Returns the jars, fetched if they are missing. Cancelling ends the fetch and leaves nothing half done.

    Only one process fetches at a time; the others wait and use the result. An artifact that is missing or has a wrong
    sum is fetched once more. Raises Unavailable if that fails too, JavaMissing without Java, FailedPrecondition without
    PySpark.
    """
    cache = cache or cache_folder()
    paths = cached(lock, cache)
    if paths is not None:
        return paths
    async with _alone(lock.folder(cache), progress):
        paths = cached(lock, cache)
        if paths is None:
            await _fill(lock, lock.folder(cache), progress, fetch or fetch_with_ivy)
            paths = cached(lock, cache)
    if paths is None:
        raise Unavailable(f"{lock.folder(cache)} changed while it was being filled: try again")
    return paths


async def _fill(lock: Lock, folder: Path, progress: Progress, fetch: Fetcher) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent, ignore_cleanup_errors=True) as name:
        fresh = Path(name) / "jars"
        fresh.mkdir()
        problem = ""
        for attempt in (1, 2):
            bad = await asyncio.to_thread(wrong, lock, fresh)
            if not bad:
                break
            if attempt == 2:
                progress(f"fetching again: {', '.join(map(str, bad))}")
            for artifact in bad:
                (fresh / artifact.file).unlink(missing_ok=True)
            try:
                await fetch(Lock(lock.name, lock.roots, tuple(bad)), fresh, progress)
                problem = ""
            except Unavailable as error:
                problem = error.message
        bad = await asyncio.to_thread(wrong, lock, fresh)
        if bad:
            what = [f"{a} (wanted sha256 {a.sha256}, got {sum_of(fresh / a.file) or 'nothing'})" for a in bad[:3]]
            more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
            raise Unavailable(
                f"could not fetch {'; '.join(what)}{more}. "
                f"{problem or 'The source serves other files than were pinned.'} "
                "Check the network, or name a mirror in an Ivy settings file with KEELMAN_IVY_SETTINGS",
                reason="JARS_UNAVAILABLE",
                metadata={"artifacts": ",".join(map(str, bad))},
            )
        for extra in set(fresh.iterdir()) - {fresh / a.file for a in lock.artifacts}:
            extra.unlink()
        (fresh / MARKER).write_text(lock.digest, encoding="utf-8")
        if folder.exists():
            folder.rename(Path(name) / "damaged")
        fresh.rename(folder)


def wrong(lock: Lock, folder: Path) -> list[Artifact]:
    """Returns the artifacts that are not in the folder or differ from the lock."""
    return [a for a in lock.artifacts if sum_of(folder / a.file) != a.sha256]


def sum_of(file: Path) -> str:
    """Returns the sha256 of a file in hex; empty without a file."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


@contextlib.asynccontextmanager
async def _alone(folder: Path, progress: Progress) -> AsyncIterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as stream:
        logged = False
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not logged:
                    progress("another process is fetching the same jars: waiting for it")
                    logged = True
                await asyncio.sleep(0.1)
        yield


async def fetch_with_ivy(lock: Lock, folder: Path, progress: Progress) -> None:
    """Fetches exactly the lock's artifacts into the folder. Raises Unavailable with Ivy's own message."""
    progress(f"fetching {len(lock.artifacts)} jars of {lock.name}")
    pattern = "[artifact]-[revision](-[classifier]).[ext]"
    await ivy(lock.artifacts, folder, pattern, transitive=False, progress=progress)


async def relock(file: Path, roots: Sequence[str], *, progress: Progress = lambda line: None) -> Lock:
    """Resolves the roots with all their dependencies and writes the lock: run by a developer who needs other versions.

    Without roots, those of the present lock are resolved again. Archives have no dependencies: only the roots are
    locked.
    """
    if not roots:
        roots = Lock.read(file).roots
    artifacts = [Artifact.parse(r) for r in roots]
    with tempfile.TemporaryDirectory(prefix="keelman-relock-", ignore_cleanup_errors=True) as name:
        folder, archives = Path(name), [artifact for artifact in artifacts if artifact.classifier]
        pattern = "[organisation]/[artifact]/[revision].[ext]"
        await ivy(artifacts, folder, pattern, transitive=not archives, progress=progress)
        summed = [
            Artifact(jar.parent.parent.name, jar.parent.name, jar.stem, jar.stat().st_size, sum_of(jar))
            for jar in folder.glob("*/*/*.jar")
        ]
        for archive_artifact in archives:
            archive = (
                folder
                / archive_artifact.group
                / archive_artifact.artifact
                / f"{archive_artifact.version}.{archive_artifact.extension}"
            )
            summed.append(replace(archive_artifact, size=archive.stat().st_size, sha256=sum_of(archive)))
    lock = Lock(
        f"{artifacts[0].artifact.partition('_')[0]}-{artifacts[0].version}", tuple(roots), tuple(sorted(summed))
    )
    lock.write(file)
    return lock


async def packages(coordinates: Sequence[str]) -> tuple[Path, ...]:
    """Returns the jars of `group:artifact:version`s with all their dependencies.

    The result of the first resolution is pinned beside the jars, so that it stays the same. Raises InvalidArgument for
    illegal coordinates, Unavailable if they cannot be fetched, JavaMissing and FailedPrecondition as `maven.jars`.
    """
    if not coordinates:
        return ()
    cache = cache_folder()
    name = hashlib.sha256("\n".join(sorted(coordinates)).encode()).hexdigest()[:16]
    file = cache / "jars" / f"packages-{name}.lock"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".fresh")
        await relock(fresh, sorted(coordinates))
        fresh.rename(file)
    return await jars(Lock.read(file), cache=cache)


def main(arguments: Sequence[str]) -> int:
    """Fetches a lock's jars, or writes a new lock; see the module's docstring."""
    words = list(arguments)
    again = bool(words) and words[0] == "--relock"
    words = words[1:] if again else words
    file = Path(words[0]) if words else KAFKA_BROKER

    def progress(line: str) -> None:
        print(line, file=sys.stderr)

    try:
        if again:
            lock = asyncio.run(relock(file, words[1:], progress=progress))
            print(f"{file}: {len(lock.artifacts)} artifacts")
        else:
            print(asyncio.run(jars(Lock.read(file), progress=progress))[0].parent)
    except (FailedPrecondition, InvalidArgument, Unavailable) as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
