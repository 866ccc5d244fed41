"""Published Java plugins in folders for a `plugin.path`: fetched by their locks and kept in the cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import support.plugins
from keelman.runtime.home import cache_folder
from keelman.runtime.java import maven
from support.places import RECORDED_FOLDER

LOCKS = Path(support.plugins.__file__).parent
FILE_SOURCE, FILE_SINK = (f"org.apache.kafka.connect.file.FileStream{kind}Connector" for kind in ("Source", "Sink"))
DEBEZIUM_POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
DEBEZIUM_MARIADB = "io.debezium.connector.mariadb.MariaDbConnector"
DEBEZIUM_JDBC = "io.debezium.connector.jdbc.JdbcSinkConnector"
MONGO_SOURCE, MONGO_SINK = (f"com.mongodb.kafka.connect.Mongo{kind}Connector" for kind in ("Source", "Sink"))


@dataclass(frozen=True, slots=True)
class Published:
    """One plugin: its lock, and the lock's jars that are the plugin's, unless all are."""

    name: str
    lock: Path
    artifacts: tuple[str, ...] = ()
    libraries: tuple[Path, ...] = ()
    """Locks of the additional libraries that it needs."""

    @property
    def version(self) -> str:
        """The version in its lock."""
        artifacts = [
            artifact for artifact in self._lock.artifacts if artifact.artifact in (self.artifacts or (self.root,))
        ]
        return artifacts[0].version

    @property
    def root(self) -> str:
        """The artifact that the lock was made from."""
        return self._lock.roots[0].split(":")[1]

    @property
    def _lock(self) -> maven.Lock:
        return maven.Lock.read(self.lock)

    async def path(self) -> Path:
        """A folder for `plugin.path` with this plugin alone. Raises as `maven.jars` does."""
        lock = self._lock
        jars = await maven.jars(lock)
        artifacts = [a.artifact for a in lock.artifacts]
        chosen = [jar for jar, name in zip(jars, artifacts, strict=True) if name in (self.artifacts or artifacts)]
        digest = lock.digest[:8]
        for more in map(maven.Lock.read, self.libraries):
            actual_zip = zip(await maven.jars(more), more.artifacts, strict=True)
            chosen += [jar for jar, item in actual_zip if not item.group.startswith("io.apicurio")]
            digest += f"-{more.digest[:8]}"
        place = cache_folder() / "java-plugins" / f"{self.name}-{digest}-of-{len(chosen)}"
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.with_suffix(".lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if not place.exists():
                with tempfile.TemporaryDirectory(dir=place.parent) as fresh:
                    _unpack(chosen, Path(fresh) / "plugins" / self.name)
                    (Path(fresh) / "plugins").rename(place)
        return place


def _unpack(files: list[Path], folder: Path) -> None:
    """Renames an archive's own folder to this one; links jars into it."""
    folder.mkdir(parents=True)
    for file in files:
        if not file.name.endswith(".tar.gz"):
            os.link(file, folder / file.name)
            continue
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data")
        (inner,) = folder.iterdir()
        for path in list(inner.iterdir()):
            shutil.move(path, folder / path.name)
        inner.rmdir()


POSTGRES = Published("debezium-postgres", LOCKS / "debezium_postgres.lock")
MARIADB = Published("debezium-mariadb", LOCKS / "debezium_mariadb.lock")
JDBC = Published("debezium-jdbc", LOCKS / "debezium_jdbc.lock")
FILES = Published("connect-file", maven.KAFKA_CONNECT, ("connect-file",))
MIRROR = Published("connect-mirror", maven.KAFKA_CONNECT, ("connect-mirror", "connect-mirror-client"))
ICEBERG = Published("iceberg", LOCKS / "iceberg_sink.lock")
MONGO = Published("mongo", LOCKS / "mongo_connect.lock", libraries=(RECORDED_FOLDER / "data" / "avro.lock",))


async def plugin_path(*published: Published) -> str:
    """A worker's `plugin.path` with these plugins."""
    return ",".join([str(await item.path()) for item in published])
