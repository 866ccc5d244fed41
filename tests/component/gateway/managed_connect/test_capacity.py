"""Capacity that scales by itself, as the SDK sees it."""

from pathlib import Path

from support.gateway.managed_connect.world import World, bad_request, connector, file_source, provisioned


async def test_an_autoscaled_connector_runs_with_tasks_for_its_workers(world: World, tmp_path: Path) -> None:
    sdk, source = world.sdk, tmp_path / "lines"
    source.write_text("one\n")
    scaled = {"minWorkerCount": 1, "maxWorkerCount": 2, "mcuCount": 1}
    sent = connector("scaled", world.bootstrap, file_source(source, "managed-scaled"), capacity={"autoScaling": scaled})
    arn = sdk.create_connector(**sent)["connectorArn"]
    described = await world.state(arn, "RUNNING")
    policies = {
        "scaleInPolicy": {"cpuUtilizationPercentage": 20}, "scaleOutPolicy": {"cpuUtilizationPercentage": 80},
    }  # fmt: skip
    assert described["capacity"] == {"autoScaling": scaled | policies}
    assert described["connectorConfiguration"] == sent["connectorConfiguration"]
    version = described["currentVersion"]
    same = {"autoScaling": scaled | policies}
    identical = bad_request(sdk.update_connector, connectorArn=arn, currentVersion=version, capacity=same)
    assert identical.startswith("Invalid parameter autoScaling: The specified parameter value is identical")
    begun = sdk.update_connector(connectorArn=arn, currentVersion=version, capacity=provisioned())
    await world.operation(begun["connectorOperationArn"], "UPDATE_COMPLETE")
    assert (await world.state(arn, "RUNNING"))["capacity"] == provisioned()
    sdk.delete_connector(connectorArn=arn)
    await world.gone(arn)


async def test_capacities_that_cannot_be(world: World, tmp_path: Path) -> None:
    config = file_source(tmp_path / "lines", "managed-none")
    for capacity, member in (
        ({}, "capacity"),
        ({"provisionedCapacity": {"workerCount": 1, "mcuCount": 3}}, "capacity.provisionedCapacity.mcuCount"),
        (
            {"autoScaling": {"minWorkerCount": 3, "maxWorkerCount": 2, "mcuCount": 1}},
            "capacity.autoScaling.minWorkerCount",
        ),
        (
            {"autoScaling": {"minWorkerCount": 1, "maxWorkerCount": 4, "mcuCount": 1, "maxAutoscalingTaskCount": 3}},
            "capacity.autoScaling.maxAutoscalingTaskCount",
        ),
    ):
        message = bad_request(
            world.sdk.create_connector, **connector("none", world.bootstrap, config, capacity=capacity)
        )
        assert message.startswith(f"Invalid parameter {member}: "), message
