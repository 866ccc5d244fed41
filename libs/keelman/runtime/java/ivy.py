"""Runs Ivy, the dependency fetcher among PySpark's jars, for `maven`."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.runtime.java import installation as java
from keelman.runtime.processes.die_with_parent import tethered

FETCH_SECONDS = 600.0
_NO_DESCRIPTORS = """<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, order=True)
class Artifact:
    """One pinned jar, or an archive that is published beside jars; size in bytes."""

    group: str
    artifact: str
    version: str
    size: int = 0
    sha256: str = ""
    classifier: str = ""
    extension: str = "jar"

    @classmethod
    def parse(cls, text: str) -> Artifact:
        """Parses `group:artifact:version`, `group:artifact:version:classifier@extension`. Raises InvalidArgument."""
        parts = text.split(":")
        classifier, _, extension = parts.pop().partition("@") if len(parts) == 4 and "@" in text else ("", "", "jar")
        if len(parts) != 3 or not all(parts) or not extension:
            raise InvalidArgument.of("coordinates", text, "group:artifact:version")
        return cls(parts[0], parts[1], parts[2], classifier=classifier, extension=extension)

    @property
    def file(self) -> str:
        """The artifact's file name."""
        more = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{more}.{self.extension}"

    def __str__(self) -> str:
        more = f":{self.classifier}@{self.extension}" if self.classifier else ""
        return f"{self.group}:{self.artifact}:{self.version}{more}"


async def ivy(
    artifacts: Sequence[Artifact], folder: Path, pattern: str, *, transitive: bool, progress: Progress
) -> None:
    """Runs Ivy once in a cache of its own, so that no older file of this machine is used instead."""
    program = java.find().program
    with tempfile.TemporaryDirectory(prefix="keelman-ivy-", ignore_cleanup_errors=True) as name:
        work = Path(name)
        (work / "ivy.xml").write_text(module_of(artifacts, transitive=transitive), encoding="utf-8")
        (work / "settings.xml").write_text(_NO_DESCRIPTORS, encoding="utf-8")
        own = os.environ.get("KEELMAN_IVY_SETTINGS")
        if own and not Path(own).is_file():
            raise InvalidArgument.of("KEELMAN_IVY_SETTINGS", own, "the path of an Ivy settings file")
        settings = own or (None if transitive else str(work / "settings.xml"))
        command = [str(program), "-XX:TieredStopAtLevel=1", "-jar", str(ivy_jar()), "-ivy", str(work / "ivy.xml")]
        command += ["-settings", settings] if settings else []
        types = sorted({"jar", "bundle", *(artifact.extension for artifact in artifacts)})
        command += ["-cache", str(work / "cache"), "-confs", "default", "-types", *types]
        command += ["-retrieve", f"{folder}/{pattern}"]
        await _run(command, progress)


async def _run(command: Sequence[str], progress: Progress) -> None:
    child = await asyncio.create_subprocess_exec(
        *tethered(command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    problems: list[str] = []
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            assert child.stdout is not None
            async for raw in child.stdout:
                line = raw.decode("utf-8", "replace").strip()
                if line.startswith("[SUCCESSFUL ]"):
                    progress(line.removeprefix("[SUCCESSFUL ]").partition("!")[0].strip())
                elif any(word in line for word in ("UNRESOLVED", "not found", "FAILED", "Exception", "ERROR")):
                    problems.append(line.strip(": \t"))
            code = await child.wait()
    except TimeoutError:
        raise Unavailable(f"Ivy gave no result within {FETCH_SECONDS:.0f} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if code != 0:
        raise Unavailable(
            f"Ivy ended with exit code {code}: {'; '.join(dict.fromkeys(problems[:4])) or 'no reason given'}."
        )


def module_of(artifacts: Sequence[Artifact], *, transitive: bool) -> str:
    """Returns the Ivy module file that requests these artifacts."""
    flag = "true" if transitive else "false"
    lines = [
        f"    <dependency org={quoteattr(a.group)} name={quoteattr(a.artifact)} rev={quoteattr(a.version)} "
        f'conf="default->default" transitive="{flag}"{_file_of(a)}'
        for a in artifacts
    ]
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '  <info organisation="keelman" module="jars" revision="1"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        "  <dependencies>\n" + "\n".join(lines) + "\n  </dependencies>\n</ivy-module>\n"
    )


def _file_of(artifact: Artifact) -> str:
    """Returns the end of a dependency: its file, if that is not its jar."""
    if not artifact.classifier:
        return "/>"
    kind = quoteattr(artifact.extension)
    name, classifier = quoteattr(artifact.artifact), quoteattr(artifact.classifier)
    file = f"<artifact name={name} type={kind} ext={kind} m:classifier={classifier}/>"
    return f">{file}</dependency>"


def ivy_jar() -> Path:
    """Returns the Ivy in PySpark's jars, found without importing PySpark. Raises FailedPrecondition."""
    spec = importlib.util.find_spec("pyspark")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    raise FailedPrecondition(
        "PySpark is not installed here, and its Ivy fetches the jars: pip install 'keelman[broker]'"
    )
