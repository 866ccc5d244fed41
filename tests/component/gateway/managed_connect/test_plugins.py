"""Custom plugins as the SDK sees them: from a bucket to a connector that runs one of their classes; and refusals."""

import hashlib
import zipfile
from pathlib import Path
from typing import Any

from support.connectors.numbers_wheel import CLASS, numbers_wheel
from support.eventually import eventually
from support.gateway.managed_connect.world import World, bad_request, connector, plugins, refusal, tried_twice

BUCKET = "connectors"


def bucket(world: World) -> Path:
    """The folder that represents the bucket here."""
    folder = world.keelman.home / "plugin-store" / BUCKET
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def plugin(name: str, key: str, **more: Any) -> dict[str, Any]:
    """The arguments of CreateCustomPlugin."""
    location = {"s3Location": {"bucketArn": f"arn:aws:s3:::{BUCKET}", "fileKey": key}}
    return {"name": name, "contentType": "ZIP", "location": location, **more}


async def described(world: World, arn: str, state: str) -> dict[str, Any]:
    """A plugin's description, once it is in a state."""

    def reached() -> dict[str, Any] | None:
        described: dict[str, Any] = world.sdk.describe_custom_plugin(customPluginArn=arn)
        return described if described["customPluginState"] == state else None

    answer: dict[str, Any] = await eventually(reached, what=f"{arn} is {state}")
    return answer


async def test_a_plugin_is_fetched_used_and_deleted(world: World, tmp_path: Path) -> None:
    (tmp_path / "count").write_text("10")
    sdk, wheel = world.sdk, numbers_wheel(bucket(world))
    with zipfile.ZipFile(bucket(world) / "numbers.zip", "w") as archive:
        archive.write(wheel, wheel.name)
    content = (bucket(world) / "numbers.zip").read_bytes()
    sent = plugin("numbers", "numbers.zip", description="counts", tags={"team": "blue"})
    fields, again = tried_twice(sdk.create_custom_plugin, **sent)
    arn = fields["customPluginArn"]
    assert again["customPluginArn"] == arn, "the resource of the first try"
    assert (fields["customPluginState"], fields["name"], fields["revision"]) == ("CREATING", "numbers", 1)
    assert refusal(sdk.create_custom_plugin, **sent)[0] == "ConflictException"
    told = await described(world, arn, "ACTIVE")
    assert told["latestRevision"]["fileDescription"] == {
        "fileMd5": hashlib.md5(content).hexdigest(), "fileSize": len(content),
    }  # fmt: skip
    assert told["latestRevision"]["location"] == sent["location"]
    assert sdk.list_tags_for_resource(resourceArn=arn)["tags"] == {"team": "blue"}
    listed = sdk.list_custom_plugins(namePrefix="numb")["customPlugins"]
    assert [entry["customPluginArn"] for entry in listed] == [arn]
    assert refusal(world.other.describe_custom_plugin, customPluginArn=arn)[0] == "NotFoundException"
    config = {"connector.class": CLASS, "topic": "managed-numbers", "tasks.max": "1", "folder": str(tmp_path)}
    used = sdk.create_connector(**connector("numbers", world.bootstrap, config, plugins=plugins(arn)))
    of = used["connectorArn"]
    await world.state(of, "RUNNING")
    assert bad_request(sdk.delete_custom_plugin, customPluginArn=arn).startswith("The resource is in use")
    sdk.delete_connector(connectorArn=of)
    await world.gone(of)
    assert sdk.delete_custom_plugin(customPluginArn=arn)["customPluginState"] == "DELETING"
    assert refusal(sdk.describe_custom_plugin, customPluginArn=arn)[0] == "NotFoundException"


async def test_a_plugin_that_cannot_be_says_why(world: World) -> None:
    sdk = world.sdk
    (bucket(world) / "broken.zip").write_bytes(b"PK no zip")
    for name, key, code in (
        ("missing", "nowhere.zip", "PluginError.ObjectNotFound"), ("broken", "broken.zip", "PluginError.NotZip"),
    ):  # fmt: skip
        arn = sdk.create_custom_plugin(**plugin(name, key))["customPluginArn"]
        message = await described(world, arn, "CREATE_FAILED")
        assert message["stateDescription"]["code"] == code
        assert key in message["stateDescription"]["message"]
        assert "latestRevision" not in message
        created_connector = connector(f"with-{name}", world.bootstrap, {"connector.class": "X"}, plugins=plugins(arn))
        assert "CREATE_FAILED, not ACTIVE" in bad_request(sdk.create_connector, **created_connector)
        sdk.delete_custom_plugin(customPluginArn=arn)
    wrong = plugin("wrong", "x.zip")
    wrong["location"]["s3Location"]["bucketArn"] = "arn:aws:iam:::x"
    message = bad_request(sdk.create_custom_plugin, **wrong)
    assert message.startswith("Invalid parameter location.s3Location.bucketArn: ")
    assert "contentType" in bad_request(sdk.create_custom_plugin, **plugin("wrong", "x.zip", contentType="TAR"))
    assert refusal(sdk.create_custom_plugin, **plugin("built-in", "x.zip"))[0] == "ConflictException"
