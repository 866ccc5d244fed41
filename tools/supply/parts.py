"""The parts of a release: the Python packages of the lock files, and the jars of Spark, Kafka and the JMX exporter.

A jar of another project may contain whole libraries of others (shaded); those are parts too, with the jar's name.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from keelman.connectors.java.jvm import CONNECT_RUNTIME
from keelman.runtime.java.maven import JMX_EXPORTER, KAFKA_BROKER, KAFKA_CONNECT, Lock, cached

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements"
WHEEL = REQUIREMENTS / "wheel.txt"
"""What the wheel with all its extras installs."""
JAR_LOCKS = (KAFKA_BROKER, KAFKA_CONNECT, CONNECT_RUNTIME, JMX_EXPORTER)
PYPI, MAVEN = "PyPI", "Maven"
GROUPS = {
    "ch.epfl.scala": "bsp4j",
    "com.fasterxml.jackson.module": "jackson-module-scala",
    "com.github.luben": "zstd-jni",
    "com.google.code.findbugs": "jsr305",
    "com.google.crypto.tink": "tink",
    "com.lihaoyi": "ammonite ammonite-* fansi fastparse geny mainargs os-lib os-zip pprint requests scalaparse "
    "sourcecode ujson upack upickle upickle-*",
    "com.thesamet.scalapb": "lenses scalapb-runtime",
    "com.twitter": "chill chill-java",
    "io.get-coursier": "class-path-util dependency dependency-interface interface",
    "javax.jdo": "jdo-api",
    "javax.transaction": "jta transaction-api",
    "net.sourceforge.f2j": "arpack_combined_all",
    "org.apache.derby": "derby derbyshared derbytools",
    "org.apache.hadoop": "hadoop-client-runtime",
    "org.apache.ivy": "ivy",
    "org.apache.thrift": "libfb303 libthrift",
    "org.eclipse.lsp4j": "org.eclipse.lsp4j.*",
    "org.eclipse.xtend": "org.eclipse.xtend.*",
    "org.eclipse.xtext": "org.eclipse.xtext.*",
    "org.jline": "jline",
    "org.json4s": "json4s-*",
    "org.objenesis": "objenesis",
    "org.roaringbitmap": "RoaringBitmap",
    "org.rocksdb": "rocksdbjni",
    "org.scala-lang": "scala-compiler scala-library scala-reflect",
    "org.scala-lang.modules": "scala-parallel-collections scala-parser-combinators scala-xml",
    "org.scalameta": "common io parsers scalameta semanticdb-shared trees",
    "org.scalanlp": "breeze breeze-macros",
    "org.tpolecat": "typename",
    "org.tukaani": "xz",
    "org.typelevel": "algebra cats-kernel spire spire-*",
    "org.xerial.snappy": "snappy-java",
    "oro": "oro",
    "stax": "stax-api",
}
"""The groups of Spark's jars that do not tell their coordinates: patterns of artifacts without Scala's version."""
_PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)")
_SUM = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_FILE = re.compile(r"(.+?)-(\d.*)")
_SCALA = re.compile(r"_2\.1\d(\.\d+)?$")


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A package or a jar; `name` is group:artifact for Maven. `origin` is its lock file or set of jars, `inside` the
    jar of another part that contains it. `sums` are SHA-256, one of each file that may be installed."""

    ecosystem: str
    name: str
    version: str
    origin: str
    inside: str = ""
    sums: tuple[str, ...] = ()

    @property
    def purl(self) -> str:
        """Its package URL."""
        kind = self.ecosystem.lower()
        return f"pkg:{kind}/{self.name.replace(':', '/')}@{self.version.replace('+', '%2B')}"


def locked_packages(file: Path) -> Iterator[Part]:
    """Yields the packages of a lock file of pip."""
    name, version, sums = "", "", list[str]()
    for line in [*file.read_text(encoding="utf-8").splitlines(), "end==0"]:
        if found := _PINNED.match(line):
            if name:
                yield Part(PYPI, name, version, file.name, sums=tuple(sums))
            name, version, sums = normal_name(found[1]), found[2], []
        sums += _SUM.findall(line)


def normal_name(name: str) -> str:
    """Returns a package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked_jars(file: Path) -> Iterator[Part]:
    """Yields the jars of a lock, and what those contain that were fetched."""
    lock = Lock.read(file)
    jars = cached(lock)
    for index, artifact in enumerate(lock.artifacts):
        own = (f"{artifact.group}:{artifact.artifact}", artifact.version)
        yield Part(MAVEN, *own, lock.name, sums=(artifact.sha256,))
        if jars:
            yield from contained(jars[index], lock.name, own)


def spark_jars(folder: Path | None = None) -> Iterator[Part]:
    """Yields the jars of the installed PySpark, and what they contain."""
    if folder is None:
        spec = importlib.util.find_spec("pyspark")
        if spec is None or spec.origin is None:
            sys.exit("supply: PySpark is not installed; run make install")
        folder = Path(spec.origin).parent / "jars"
    for jar in sorted(folder.rglob("*.jar")):
        name, version = jar_coordinates(jar)
        with jar.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        yield Part(MAVEN, name, version, "Spark", sums=(digest,))
        yield from contained(jar, "Spark", (name, version))


def jar_coordinates(jar: Path) -> tuple[str, str]:
    """Returns group:artifact and version of a jar: by the Maven properties that it contains, else by its name. Ends
    the program for a name without a group in GROUPS."""
    fits = [
        (name, version)
        for name, version in _properties(jar)
        if jar.stem == f"{name.partition(':')[2]}-{version}"
        or jar.stem.startswith(f"{name.partition(':')[2]}-{version}-")
    ]
    if fits:
        return fits[0]
    found = _FILE.fullmatch(jar.stem)
    artifact, version = (found[1], found[2]) if found else (jar.stem, "")
    plain = _SCALA.sub("", artifact)
    group = next((g for g, names in GROUPS.items() if any(fnmatchcase(plain, name) for name in names.split())), "")
    if not group or not version:
        sys.exit(f"supply: {jar.name} does not tell its coordinates; add the group of {plain} to GROUPS in {__file__}")
    return f"{group}:{artifact}", version.removesuffix("-jdk8")


def contained(jar: Path, origin: str, own: tuple[str, str]) -> Iterator[Part]:
    """Yields the libraries that a jar contains beside its own."""
    for name, version in sorted(set(_properties(jar)) - {own}):
        if name != own[0] and not name.startswith("org.spark-project.spark:unused"):
            yield Part(MAVEN, name, version, origin, inside=jar.name)


def _properties(jar: Path) -> list[tuple[str, str]]:
    with zipfile.ZipFile(jar) as archive:
        files = [name for name in archive.namelist() if name.endswith("/pom.properties")]
        texts = [archive.read(name).decode("utf-8", "replace") for name in files]
    found = [dict(re.findall(r"^(\w+)\s*=\s*(\S+)\s*$", text, re.MULTILINE)) for text in texts]
    keys = ("groupId", "artifactId", "version")
    return [(f"{p['groupId']}:{p['artifactId']}", p["version"]) for p in found if all(key in p for key in keys)]


def unlooked_sets() -> list[str]:
    """Returns the sets of jars that were not fetched, so that what their jars contain is unknown."""
    locks = map(Lock.read, JAR_LOCKS)
    return [lock.name for lock in locks if cached(lock) is None]


def shipped() -> list[Part]:
    """Returns what an installation with all extras installs or fetches."""
    return merged([*locked_packages(WHEEL), *_jars()])


def audited() -> list[Part]:
    """Returns what is shipped, and the packages that build, check and document it."""
    known: dict[tuple[str, str], Part] = {}
    for file in sorted(REQUIREMENTS.glob("*.txt"), key=lambda file: file != WHEEL):  # what is shipped is named first
        for part in locked_packages(file):
            known.setdefault((part.name, part.version), part)
    return merged([*known.values(), *_jars()])


def _jars() -> Iterator[Part]:
    for file in JAR_LOCKS:
        yield from locked_jars(file)
    yield from spark_jars()


def merged(parts: Iterable[Part]) -> list[Part]:
    """Returns each part of an origin once, with the sums of all its files, such as those of several platforms."""
    sums: dict[Part, set[str]] = {}
    for part in parts:
        sums.setdefault(replace(part, sums=()), set()).update(part.sums)
    return sorted(replace(part, sums=tuple(sorted(found))) for part, found in sums.items())
