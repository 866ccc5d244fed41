"""A connector's life as the SDK sees it, on real workers."""

from base64 import b64encode
from pathlib import Path

from support.gateway.managed_connect.world import (
    PROPERTIES,
    World,
    bad_request,
    connector,
    file_source,
    plugins,
    provisioned,
    refusal,
    tried_twice,
)

IDENTICAL = "The specified parameter value is identical to the current value for the connector."
UPDATE_STEPS = ("INITIALIZE_UPDATE", "{}", "VALIDATE_UPDATE", "FINALIZE_UPDATE")


def steps(kind: str, state: str = "COMPLETED") -> list[dict[str, str]]:
    """The steps of an update, in their order."""
    return [{"stepType": step.format(kind), "stepState": state} for step in UPDATE_STEPS]


async def test_a_connector_is_made_changed_steered_and_deleted(world: World, tmp_path: Path) -> None:
    sdk, source = world.sdk, tmp_path / "lines"
    source.write_text("one\n")
    config = file_source(source, "managed-life")
    own = sdk.create_worker_configuration(name="life", propertiesFileContent=b64encode(PROPERTIES).decode())
    own_arn = own["workerConfigurationArn"]
    sent = connector(
        "life", world.bootstrap, config, connectorDescription="a life", tags={"team": "blue", "db.password": "x"},
        workerConfiguration={"workerConfigurationArn": own_arn, "revision": 1},
    )  # fmt: skip
    created_connector = sdk.create_connector(**sent)
    arn = created_connector["connectorArn"]
    assert (created_connector["connectorName"], created_connector["connectorState"]) == ("life", "CREATING")
    assert refusal(sdk.create_connector, **sent)[0] == "ConflictException"
    assert sdk.describe_connector(connectorArn=arn)["connectorName"] == "life"
    first = await world.state(arn, "RUNNING")
    assert {name: first[name] for name in sent if name != "tags"} == {k: v for k, v in sent.items() if k != "tags"}
    assert first["networkType"] == "IPV4"
    assert first["currentVersion"].startswith("K")
    assert "tags" not in first
    assert "stateDescription" not in first
    assert sdk.list_tags_for_resource(resourceArn=arn)["tags"] == sent["tags"]
    assert bad_request(sdk.delete_worker_configuration, workerConfigurationArn=own_arn)
    await the_workers_change(world, arn, own_arn)
    await the_configuration_changes(world, arn, tmp_path)
    await it_is_steered(world, arn)
    sdk.tag_resource(resourceArn=arn, tags={"team": "red", "more": ""})
    sdk.untag_resource(resourceArn=arn, tagKeys=["db.password", "never there"])
    assert sdk.list_tags_for_resource(resourceArn=arn)["tags"] == {"team": "red", "more": ""}
    assert sdk.delete_connector(connectorArn=arn)["connectorState"] == "DELETING"
    assert sdk.delete_connector(connectorArn=arn)["connectorState"] == "DELETING"
    await world.gone(arn)
    assert refusal(sdk.delete_connector, connectorArn=arn)[0] == "NotFoundException"
    assert sdk.delete_worker_configuration(workerConfigurationArn=own_arn)["workerConfigurationState"] == "DELETING"


async def the_workers_change(world: World, arn: str, own_arn: str) -> None:
    sdk = world.sdk
    version = sdk.describe_connector(connectorArn=arn)["currentVersion"]
    same = bad_request(sdk.update_connector, connectorArn=arn, currentVersion=version, capacity=provisioned())
    assert same.startswith(f"Invalid parameter provisionedCapacity: {IDENTICAL}")
    same = bad_request(sdk.update_connector, connectorArn=arn, currentVersion=version, plugins=plugins())
    assert same.startswith(f"Invalid parameter plugins: {IDENTICAL}")
    begun, again = tried_twice(
        sdk.update_connector,
        connectorArn=arn, currentVersion=version, capacity=provisioned(2, 1), useDefaultWorkerConfiguration=True,
    )  # fmt: skip
    assert begun["connectorState"] == "UPDATING"
    assert again["connectorOperationArn"] == begun["connectorOperationArn"], "the creation of the first try"
    busy = {"connectorArn": arn, "currentVersion": version, "capacity": provisioned(3, 1)}
    assert bad_request(sdk.update_connector, **busy)
    assert refusal(sdk.pause_connector, connectorArn=arn)[0] == "ConflictException"
    assert bad_request(sdk.restart_connector, connectorArn=arn)
    operation = await world.operation(begun["connectorOperationArn"], "UPDATE_COMPLETE")
    assert operation["connectorOperationType"] == "UPDATE_WORKER_SETTING"
    assert operation["operationSteps"] == steps("UPDATE_WORKER_SETTING")
    assert operation["originWorkerSetting"] == {
        "capacity": provisioned(), "plugins": plugins(),
        "workerConfiguration": {"workerConfigurationArn": own_arn, "revision": 1},
    }  # fmt: skip
    assert operation["targetWorkerSetting"] == {
        "capacity": provisioned(2, 1), "plugins": plugins(), "useDefaultWorkerConfiguration": True,
    }  # fmt: skip
    assert "errorInfo" not in operation
    assert operation["endTime"] >= operation["creationTime"]
    after = await world.state(arn, "RUNNING")
    assert after["capacity"] == provisioned(2, 1)
    assert "workerConfiguration" not in after
    assert after["currentVersion"] != version
    assert "currentVersion" in bad_request(
        sdk.update_connector, connectorArn=arn, currentVersion=version, capacity=provisioned()
    )


async def the_configuration_changes(world: World, arn: str, tmp_path: Path) -> None:
    sdk = world.sdk
    before = sdk.describe_connector(connectorArn=arn)
    former, version = before["connectorConfiguration"], before["currentVersion"]
    other = {**former, "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector"}
    message = bad_request(sdk.update_connector, connectorArn=arn, currentVersion=version, connectorConfiguration=other)
    assert message.startswith("Invalid parameter connectorConfiguration: connector.class cannot be changed")
    same = bad_request(sdk.update_connector, connectorArn=arn, currentVersion=version, connectorConfiguration=former)
    assert IDENTICAL in same
    expected = {**former, "file": str(tmp_path / "others"), "db.password": "s3cret"}
    (tmp_path / "others").write_text("two\n")
    begun = sdk.update_connector(connectorArn=arn, currentVersion=version, connectorConfiguration=expected)
    done = await world.operation(begun["connectorOperationArn"], "UPDATE_COMPLETE")
    assert done["operationSteps"] == steps("UPDATE_CONNECTOR_CONFIGURATION")
    assert done["originConnectorConfiguration"] == former
    assert done["targetConnectorConfiguration"].keys() == expected.keys()
    after = await world.state(arn, "RUNNING")
    assert after["connectorConfiguration"] == expected
    assert after["capacity"] == provisioned(2, 1)


async def it_is_steered(world: World, arn: str) -> None:
    sdk = world.sdk
    assert refusal(sdk.resume_connector, connectorArn=arn)[:2] == ("ConflictException", 409)
    paused = sdk.pause_connector(connectorArn=arn)
    await world.operation(paused["connectorOperationArn"], "PAUSE_COMPLETE")
    assert sdk.describe_connector(connectorArn=arn)["connectorState"] == "PAUSED"
    assert refusal(sdk.pause_connector, connectorArn=arn)[:2] == ("ConflictException", 409)
    assert bad_request(sdk.restart_connector, connectorArn=arn)
    version = sdk.describe_connector(connectorArn=arn)["currentVersion"]
    unhealthy = bad_request(sdk.update_connector, connectorArn=arn, currentVersion=version, capacity=provisioned())
    assert unhealthy.startswith("Invalid parameter skipHealthValidation: ")
    resumed = sdk.resume_connector(connectorArn=arn)
    await world.operation(resumed["connectorOperationArn"], "RESUME_COMPLETE")
    await world.state(arn, "RUNNING")
    restarted = sdk.restart_connector(connectorArn=arn, onlyFailedTasks=True)
    await world.operation(restarted["connectorOperationArn"], "RESTART_COMPLETE")
    await world.state(arn, "RUNNING")
    pages = sdk.get_paginator("list_connector_operations").paginate(connectorArn=arn, PaginationConfig={"PageSize": 2})
    listed = [operation for page in pages for operation in page["connectorOperations"]]
    assert [entry["connectorOperationType"] for entry in listed] == [
        "RESTART_CONNECTOR", "RESUME_CONNECTOR", "PAUSE_CONNECTOR", "UPDATE_CONNECTOR_CONFIGURATION",
        "UPDATE_WORKER_SETTING",
    ]  # fmt: skip
