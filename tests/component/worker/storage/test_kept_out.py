"""A worker whose principal is denied a topic or an id by the brokers' access rules: it reports the resource at once."""

import re
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from support.brokers.secure_broker import SECRET, USER, SecureBroker
from support.eventually import eventually
from support.worker.processes import LinkSide, WorkerProcess, workers

pytestmark = pytest.mark.component
TOPIC, ID, CLUSTER = ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID, ResourceType.BROKER
SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{USER}" password="{SECRET}";',
}
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}


def keep_out(broker: SecureBroker, *rules: tuple[ResourceType, str, AclOperation]) -> None:
    """Denies USER each of these; all else stays permitted."""
    results = []
    for resource, name, operation in rules:
        for what, permission in ((operation, AclPermissionType.DENY), (AclOperation.ALL, AclPermissionType.ALLOW)):
            pattern = ResourcePatternType.LITERAL
            results.append(AclBinding(resource, name, pattern, f"User:{USER}", "*", what, permission))
    admin = AdminClient({"bootstrap.servers": broker.at("PLAINTEXT")})
    for answer in admin.create_acls(results).values():
        answer.result(300)


def make_topics(broker: SecureBroker, group: str) -> None:
    """Creates the three topics of a group, as its worker would."""
    admin = AdminClient({"bootstrap.servers": broker.at("PLAINTEXT")})
    counts = {"configs": 1, "offsets": 3, "status": 2}
    created_topics = [
        NewTopic(f"{group}-{kind}", n, 1, config={"cleanup.policy": "compact"}) for kind, n in counts.items()
    ]
    for answer in admin.create_topics(created_topics).values():
        answer.result(300)


def worker_of(broker: SecureBroker, group: str, folder: Path, link: str) -> WorkerProcess:
    return WorkerProcess(folder, broker.at("SASL"), group, link, SASL)


@pytest.mark.parametrize(
    "case",
    [
        (AclOperation.DESCRIBE, "offsets", "offset.storage.topic: the brokers' access rules keep this worker out of"),
        (AclOperation.CREATE, "status", "status.storage.topic: topic {topic} cannot be created with 2 partitions"),
        (AclOperation.READ, "configs", "the brokers' access rules keep this worker out of topic {topic} (READ)"),
    ],
)
async def test_a_topic_that_it_may_not_use_is_named_and_ends_it(
    broker: SecureBroker, link: tuple[LinkSide, str], tmp_path: Path, name: str, case: tuple[AclOperation, str, str]
) -> None:
    operation, kind, message = case
    worker, topic = worker_of(broker, name, tmp_path, link[1]), f"{name}-{kind}"
    if operation is AclOperation.CREATE:  # a principal that may create topics of the cluster may create this one
        keep_out(broker, (TOPIC, topic, operation), (CLUSTER, "kafka-cluster", operation))
    else:
        make_topics(broker, name)
        keep_out(broker, (TOPIC, topic, operation))
    await worker.spawn()
    try:
        assert worker.child is not None
        await eventually(lambda: "keelman worker: " in worker.output)
        assert await worker.child.wait() == 1
    finally:
        if worker.child is not None and worker.child.returncode is None:
            worker.child.kill()
    (line,) = [line for line in worker.output.splitlines() if line.startswith("keelman worker: ")]
    place = rf"{re.escape(str(tmp_path / 'worker.properties'))}, line \d+: "
    assert re.sub(place, "", line).startswith(f"keelman worker: {message.format(topic=topic)}")


async def test_what_it_can_do_without_is_told_and_it_goes_on(
    broker: SecureBroker, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    make_topics(broker, name)
    keep_out(
        broker,
        (TOPIC, f"{name}-configs", AclOperation.DESCRIBE_CONFIGS),
        (TOPIC, f"{name}-status", AclOperation.WRITE),
        (ID, f"connect-cluster-{name}", AclOperation.WRITE),
    )
    worker = worker_of(broker, name, tmp_path, link[1])
    async with workers(worker):
        assert f"cleanup_policy_unseen    topic={name}-configs" in worker.output
        answer = await worker.ask("PUT", "/connectors/x/config", SOURCE)
        assert answer.status_code == 500
        assert f"keep this worker out of transactional id 'connect-cluster-{name}' (WRITE)" in answer.text
        plain = {**SASL, "exactly.once.source.support": "disabled"}
        other = WorkerProcess(tmp_path / "other", worker.bootstrap, name, link[1], plain)
        assert await worker.end() == 0
        async with workers(other):
            assert (await other.ask("PUT", "/connectors/x/config", SOURCE)).status_code == 201
            await eventually(lambda: "statuses_unwritten" in other.output)
            assert f"{name}-status" in other.output.split("statuses_unwritten")[1].splitlines()[0]
