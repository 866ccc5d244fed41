"""Logs of a connector that cannot be delivered: it runs, and its description reports that until they can."""

import shutil
from pathlib import Path
from typing import Any

from support.eventually import eventually
from support.gateway.managed_connect.world import World, connector, file_source


async def test_logs_that_are_not_delivered_are_told_of(world: World, tmp_path: Path) -> None:
    sdk, source = world.sdk, tmp_path / "lines"
    source.write_text("one\n")
    in_the_way = world.keelman.home / "log-delivery" / "blocked"
    in_the_way.parent.mkdir(parents=True, exist_ok=True)
    in_the_way.write_text("a file where a folder is to be")
    logs = {"workerLogDelivery": {"cloudWatchLogs": {"enabled": True, "logGroup": "blocked"}}}
    sent = connector("blocked", world.bootstrap, file_source(source, "managed-blocked"), logDelivery=logs)
    arn = sdk.create_connector(**sent)["connectorArn"]

    def told(is_expected: bool) -> dict[str, Any] | None:
        answer: dict[str, Any] = sdk.describe_connector(connectorArn=arn)
        return answer if ("stateDescription" in answer) is is_expected else None

    await world.state(arn, "RUNNING", seconds=300)
    answer = await eventually(lambda: told(True), what="it is reported")
    assert answer["connectorState"] == "RUNNING"
    description = answer["stateDescription"]
    assert description["code"] == "LogDeliveryError.NotDelivered"
    assert description["message"].startswith("Logs are not delivered: cloudWatchLogs: "), description
    assert "since 20" in description["message"]
    in_the_way.unlink()
    await eventually(lambda: told(False), what="they are delivered")
    sdk.delete_connector(connectorArn=arn)
    await world.gone(arn)
    shutil.rmtree(in_the_way, ignore_errors=True)
