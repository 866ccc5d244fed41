"""Plugins as a user has them: a wheel is uploaded, workers get it, its connector runs, and another version rolls."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.cli.exits import FAILED
from support.cli.system import LOOK_SECONDS, Keelman
from support.connectors.numbers_wheel import CLASS, numbers_wheel
from support.eventually import eventually

pytestmark = pytest.mark.e2e


async def rollout(keelman: Keelman) -> dict[str, str]:
    status = (await keelman.item("wc", "sums"))["status"]
    return {key: str(value) for key, value in status.get("rollout", {}).items()}


async def classes(keelman: Keelman) -> dict[str, tuple[str, str, str]]:
    """Version, place and problem of each class of a third party."""
    actual_keelman = await keelman.items("plugins", "--cluster", "sums")
    return {
        entry["name"]: (entry["version"], entry["where"], entry["problem"])
        for entry in actual_keelman
        if entry["where"]
    }


async def test_a_wheel_is_uploaded_loaded_and_rolled_and_a_broken_one_goes_back(own: Keelman, tmp_path: Path) -> None:
    await own.ok("up", "--detach", "--free-ports")
    (tmp_path / "count").write_text("500")
    await own.ok("create", "plugin", str(numbers_wheel(tmp_path / "1", version="1.0")), "--name", "numbers")
    await own.ok("create", "wc", "sums", "--plugin", "numbers", "--count", "1", "--start", "--wait")
    spec = (await own.item("wc", "sums"))["spec"]
    assert [(plugin["name"], plugin["version"]) for plugin in spec["plugins"]] == [("numbers", "1.0")]
    words = [f"connector.class={CLASS}", f"folder={tmp_path}", "topic=sums", "tasks.max=1"]
    settings = [w for word in words for w in ("--set", word)]
    await own.ok("create", "connector", "sums/numbers", *settings, "--wait")

    async def copied() -> int:
        rows = await own.ok("get", "cn", "sums/numbers", "-o", "json")
        return rows.count("CONNECTOR_STATE_RUNNING")

    await eventually(copied, every=LOOK_SECONDS, what="its connector runs")

    async def told(version: str) -> bool:
        result = (await classes(own)).get(CLASS)
        return result == (version, f"sums/0: numbers {version} numbers", "")

    await eventually(lambda: told("1.0"), every=LOOK_SECONDS, what="the worker names the place of the class")
    refused = await own.run("delete", "plugin", "numbers:1.0")
    assert (refused.code != 0, "sums" in refused.err) == (True, True), refused

    await own.ok("create", "plugin", str(numbers_wheel(tmp_path / "2", version="2.0")), "--name", "numbers")
    await own.ok("update", "wc", "sums", "--plugin", "numbers:2.0", "--wait")
    await eventually(lambda: told("2.0"), every=LOOK_SECONDS, what="the worker has the new version")
    await eventually(copied, every=LOOK_SECONDS, what="its connector runs with the new version")

    file = numbers_wheel(tmp_path / "3", version="3.0", head="import no_such_module\n")
    await own.ok("create", "plugin", str(file), "--name", "numbers")
    updated = await own.run("update", "wc", "sums", "--plugin", "numbers:3.0", "--wait")
    assert (updated.code, "plugin numbers 3.0 cannot be loaded: " in updated.err) == (FAILED, True), updated

    async def back() -> bool:
        actual_rollout = await rollout(own)
        return (
            actual_rollout.get("state") == "ROLLOUT_STATE_HALTED" and "back at numbers 2.0" in actual_rollout["message"]
        )

    await eventually(back, every=LOOK_SECONDS, what="the cluster goes back by itself")
    actual_rollout = await rollout(own)
    assert actual_rollout["worker"] == "sums/0"
    assert "plugin numbers 3.0 cannot be loaded: " in actual_rollout["message"]
    assert "No module named 'no_such_module'" in actual_rollout["message"]
    spec = (await own.item("wc", "sums"))["spec"]
    assert [plugin["version"] for plugin in spec["plugins"]] == ["3.0"], "the spec is the user's"
    await eventually(lambda: told("2.0"), every=LOOK_SECONDS, what="the worker has the former version")
    await eventually(copied, every=LOOK_SECONDS, what="its connector runs with the former version")
    refused = await own.run("delete", "plugin", "numbers:2.0")
    assert refused.code != 0, "workers have it"
    await own.ok("delete", "plugin", "numbers:1.0")

    await own.ok("update", "wc", "sums", "--plugin", "numbers:2.0", "--wait")
    assert await rollout(own) == {}
