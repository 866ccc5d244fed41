"""Classes of published plugins in a worker: listed with versions, described, and their configurations validated."""

from collections.abc import AsyncIterator

import pytest

from support.eventually import eventually
from support.java.kit import needs_java
from support.java.published import (
    DEBEZIUM_JDBC,
    DEBEZIUM_MARIADB,
    DEBEZIUM_POSTGRES,
    FILES,
    JDBC,
    MARIADB,
    MIRROR,
    MONGO,
    MONGO_SINK,
    MONGO_SOURCE,
    POSTGRES,
    plugin_path,
)
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]


@pytest.fixture(scope="module")
async def worker(
    bootstrap: str, spark: SparkService, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WorkerProcess]:
    """A worker that has all plugins."""
    path = {"plugin.path": await plugin_path(POSTGRES, MARIADB, JDBC, MONGO, FILES, MIRROR)}
    worker_process = WorkerProcess(tmp_path_factory.mktemp("published"), bootstrap, "published", spark.address, path)
    async with workers(worker_process):
        yield worker_process


@pytest.mark.parametrize(
    ("name", "kind", "version", "key", "bad", "error"),
    [
        (DEBEZIUM_POSTGRES, "source", POSTGRES.version, "database.port", "many", "An integer is expected"),
        (DEBEZIUM_MARIADB, "source", MARIADB.version, "database.port", "many", "An integer is expected"),
        (DEBEZIUM_JDBC, "sink", JDBC.version, "batch.size", "many", "Not a number of type INT"),
        (MONGO_SOURCE, "source", MONGO.version, "poll.max.batch.size", "many", "Not a number of type INT"),
        (MONGO_SINK, "sink", MONGO.version, "max.batch.size", "-1", "Value must be at least 0"),
    ],
)
async def test_a_class_is_listed_described_and_judges_its_configuration(
    worker: WorkerProcess, *, name: str, kind: str, version: str, key: str, bad: str, error: str
) -> None:
    async def listed() -> list[dict[str, str]]:
        return [entry for entry in (await worker.ask("GET", "/connector-plugins")).json() if entry["class"] == name]

    assert await eventually(listed, what=f"{name} is listed") == [{"class": name, "type": kind, "version": version}]
    described = await worker.ask("GET", f"/connector-plugins/{name}/config")
    assert described.status_code == 200, described.text
    assert key in [entry["name"] for entry in described.json()]
    config = {"connector.class": name, "name": "x", "topics": "t", key: bad}
    judged = (await worker.ask("PUT", f"/connector-plugins/{name}/config/validate", config)).json()
    errors = {config["value"]["name"]: config["value"]["errors"] for config in judged["configs"]}
    assert error in " ".join(errors[key]), errors[key]
    refused = await worker.ask("POST", "/connectors", {"name": "x", "config": config})
    assert (refused.status_code, error in refused.json()["message"]) == (400, True), refused.text
