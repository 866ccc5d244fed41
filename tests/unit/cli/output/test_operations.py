"""Operations, definitions and partitions in words."""

from keelman.api.connect.v1 import connector_definition_pb2 as df
from keelman.api.connect.v1 import operation_pb2 as op
from keelman.api.connect.v1 import topic_pb2
from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_FAILED,
    CONNECTOR_STATE_PAUSED,
    CONNECTOR_STATE_RESTARTING,
    CONNECTOR_STATE_RUNNING,
    Connector,
    ConnectorTask,
)
from keelman.cli.client.operations import progress_text
from keelman.cli.output.lines import topic_line
from keelman.cli.output.operations import (
    definition_state,
    partition_lines,
    step_lines,
    step_name,
    steps_done,
    target_noun,
    task_note,
    tasks_text,
)


def operation() -> op.Operation:
    running_operation = op.Operation(name="op-1", state=op.OPERATION_STATE_RUNNING)
    running_operation.target.noun, running_operation.target.name = "connector_definition", "lines"
    first = running_operation.steps.add(
        name="ask", state=op.OPERATION_STEP_STATE_DONE, attempts=3, message="two\nlines"
    )
    first.start_time.FromSeconds(0)
    first.end_time.FromMilliseconds(1500)
    running_operation.steps.add(name="write", state=op.OPERATION_STEP_STATE_RUNNING, message="waits")
    running_operation.steps.add(name="last", state=op.OPERATION_STEP_STATE_PENDING)
    return running_operation


def test_an_operations_steps_in_words() -> None:
    assert step_lines(operation()) == [
        "ask DONE at 1970-01-01 00:00:00Z in 1.5 s after 3 tries: two lines",
        "write RUNNING: waits",
        "last PENDING",
    ]
    assert (steps_done(operation()), step_name(operation()), target_noun(operation())) == ("1/3", "write", "definition")
    assert progress_text(operation()) == "operation/op-1 RUNNING: write: waits"
    ended = operation()
    ended.state = op.OPERATION_STATE_SUCCEEDED
    assert progress_text(ended) == "operation/op-1 SUCCEEDED"


def test_a_definition_is_as_its_connector_is() -> None:
    status = df.ConnectorDefinitionStatus
    assert definition_state(df.ConnectorDefinition()) == "ABSENT"
    assert definition_state(df.ConnectorDefinition(status=status(message="no"))) == "FAILED"
    applied = status(applied_goal=df.DEFINITION_GOAL_RUNNING)
    assert definition_state(df.ConnectorDefinition(status=applied)) == "UNKNOWN", "its worker cluster may be down"
    applied.drifted = True
    assert definition_state(df.ConnectorDefinition(status=applied)) == "ABSENT", "its workers report that it is gone"
    connector = Connector(state=CONNECTOR_STATE_PAUSED)
    assert definition_state(df.ConnectorDefinition(status=status(connector=connector))) == "PAUSED"
    assert definition_state(df.ConnectorDefinition(status=status(connector=connector, applying=True))) == "APPLYING"


def test_a_task_whose_attempts_fail_is_not_counted_as_running_between_two_of_them() -> None:
    running = ConnectorTask(state=CONNECTOR_STATE_RUNNING)
    trying = ConnectorTask(state=CONNECTOR_STATE_RUNNING, failed_attempts=3, last_failure="No space left on device")
    waiting = ConnectorTask(state=CONNECTOR_STATE_RESTARTING, failed_attempts=2)
    assert tasks_text(Connector(tasks=[running])) == "1/1"
    assert tasks_text(Connector(tasks=[running, trying, waiting])) == "1/3 (2 failing)"
    failed = ConnectorTask(state=CONNECTOR_STATE_FAILED, failed_attempts=2)
    assert tasks_text(Connector(tasks=[trying, failed])) == "0/2 (1 failed, 1 failing)"
    assert task_note(trying) == "failed 3 times in a row: No space left on device"
    assert task_note(ConnectorTask(waits_for="waits for the topic t")) == "waits for the topic t"


def test_partitions_and_topics_in_lines() -> None:
    topic_broker = topic_pb2.TopicBroker(node_id=1, host="b", port=9092)
    two = topic_pb2.TopicBroker(node_id=2)
    parts = [
        topic_pb2.TopicPartition(
            leader=topic_broker,
            replicas=[topic_broker, two],
            in_sync_replicas=[topic_broker],
            begin_offset=0,
            end_offset=7,
        ),
        topic_pb2.TopicPartition(partition=1, replicas=[two], in_sync_replicas=[two]),
    ]
    assert partition_lines(parts) == [
        "0: leader 1 (b:9092), replicas 1 2, in sync 1, offsets 0 to 7",
        "1: no leader, replicas 2",
    ]
    topic = topic_pb2.Topic(name="t", spec=topic_pb2.TopicSpec(partitions=5, topic="T"))
    assert (topic_line(topic).partitions, topic_line(topic).offsets) == (5, 0), "as wanted while no worker has it"
    topic.status.brokers.partitions.extend(parts)
    assert (topic_line(topic).partitions, topic_line(topic).replication, topic_line(topic).offsets) == (2, 2, 7)
