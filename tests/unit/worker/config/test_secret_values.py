"""The values of references on a worker, and when a value counts as changed."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.connect.config.providers import ConfigProviderError
from keelman.model.errors import InvalidArgument
from keelman.runtime.logs import redaction
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.supervise import Siblings
from keelman.worker.asking.task_config_query import TaskConfigQuery
from keelman.worker.config import secrets as module
from keelman.worker.config.own_references import with_values
from keelman.worker.config.secrets import Secrets
from support.eventually import eventually

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = {"config.providers": "file", "config.providers.file.class": f"{PACKAGE}.FileConfigProvider"}


class Kit:
    """Secrets that are checked often, with a file, and the number of changes that they reported."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.told = 0
        self.secrets = Secrets(PROVIDERS, self._tell, look_seconds=0.01)

    def _tell(self) -> None:
        self.told += 1

    def config(self, key: str, **more: str) -> dict[str, str]:
        return {"password": f"${{file:{self.file}:{key}}}", **more}

    async def reads_again(self) -> None:
        """Returns once the written file has been read."""
        source = next(iter(self.secrets._sources.values()))
        before = source.read
        await eventually(lambda: source.read > before, what="the file is read again")


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    kit = Kit(tmp_path / "s.properties")
    kit.file.write_text("a=first-value\nb=other-value\n")
    async with Siblings() as siblings:
        siblings.start(kit.secrets.run(), name="secrets")
        yield kit


async def read(kit: Kit, config: dict[str, str]) -> tuple[int, ...]:
    await eventually(lambda: kit.secrets.versions(config) is not None, what="the value is read")
    versions = kit.secrets.versions(config)
    assert versions is not None
    return versions


async def test_a_value_is_read_once_it_is_asked_for_and_never_told(kit: Kit) -> None:
    config = kit.config("a", plain="x")
    assert kit.secrets.versions(config) is None
    assert kit.secrets.resolved(config) is None
    versions = await read(kit, config)
    assert kit.told == 1
    assert kit.secrets.resolved(config) == {"password": "first-value", "plain": "x"}
    assert "first" not in str(versions)
    assert REDACTOR.hide("x first-value y") == f"x ${{file:{kit.file}:a}} y"
    assert kit.secrets.hidden(config, {"ssl.key.password": "literal-of-one"}) == {
        "first-value": f"${{file:{kit.file}:a}}",
        "literal-of-one": "[hidden]",
    }
    assert kit.secrets.versions({"plain": "x", "of another": "${vault:a:b}"}) == ()
    assert await kit.secrets.resolve(kit.config("b")) == {"password": "other-value"}


async def test_only_another_value_is_a_change_and_only_for_those_who_use_it(kit: Kit) -> None:
    config, other, none = kit.config("a"), kit.config("b"), kit.config("a", **{"config.action.reload": "NONE"})
    before = [await read(kit, config) for config in (config, other, none)]
    notices = kit.told
    os.utime(kit.file, ns=(1, 1))
    kit.file.write_text("b=other-value\n# newer\na=first-value\n")
    await kit.reads_again()
    kit.file.write_text("")  # as in the middle of a write
    await kit.reads_again()
    assert [kit.secrets.versions(config) for config in (config, other, none)] == before
    assert kit.told == notices
    kit.file.write_text("a=second-value\nb=other-value\n")
    await eventually(lambda: kit.secrets.versions(config) != before[0], what="the change is seen")
    assert kit.secrets.resolved(config) == {"password": "second-value"}
    assert [kit.secrets.versions(config) for config in (other, none)] == before[1:]
    assert kit.told == notices + 1
    assert "first-value" not in REDACTOR.hide("late: first-value second-value")


async def test_a_file_that_comes_late_is_a_change(kit: Kit, tmp_path: Path) -> None:
    config = {"password": f"${{file:{tmp_path}/late:k}}"}
    before = await read(kit, config)
    with pytest.raises(ConfigProviderError, match=f"Could not read properties from file {tmp_path}/late"):
        kit.secrets.resolved(config)
    (tmp_path / "late").write_text("k=came-late\n")
    await eventually(lambda: kit.secrets.versions(config) != before, what="the file is seen")
    assert kit.secrets.resolved(config) == {"password": "came-late"}
    now = kit.secrets.versions(config)
    (tmp_path / "late").unlink()
    source = kit.secrets._sources["file", f"{tmp_path}/late"]
    await eventually(lambda: source.stamp == (None,), what="it is seen to be gone")
    assert kit.secrets.versions(config) == now


async def test_what_is_forgotten_comes_back_as_it_was(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await read(kit, kit.config("a"))
    monkeypatch.setattr(module, "UNUSED_SECONDS", -1.0)
    await eventually(lambda: not kit.secrets._sources, what="it is forgotten")
    monkeypatch.undo()
    assert await read(kit, kit.config("a")) == before


async def test_what_is_stored_of_tasks_has_references(kit: Kit) -> None:
    config = kit.config("a", topic="t")
    await read(kit, config)
    tasks = [{"password": "first-value", "topic": "t", "task.class": "T"}]
    assert kit.secrets.restored(tasks, config) == [{**config, "task.class": "T"}]
    assert kit.secrets.restored(tasks, {"topic": "t"}) is tasks


async def test_validations_push_no_secret_out(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await kit.secrets.resolve({"ssl.key.password": "password-in-use"})
    inquiry = TaskConfigQuery(lambda _: None)
    async with Siblings() as siblings:
        inquiry.begin(siblings)
        inquiry.about("c", {"connector.class": "FileStreamSource", "ssl.key.password": "password-asked-with"})
    monkeypatch.setattr(redaction, "MOST", len(REDACTOR._shown))
    monkeypatch.setattr(redaction, "MAX_PASSING", 2)
    for number in range(9):
        await kit.secrets.read({"ssl.key.password": f"password-tried-{number}"})
        assert "tried" not in REDACTOR.hide(f"password-tried-{number}")
    assert REDACTOR.hide("password-in-use password-asked-with") == "[hidden] [hidden]"
    assert len(REDACTOR._passing) <= 2


async def test_the_workers_own_references(tmp_path: Path) -> None:
    file = tmp_path / "w.properties"
    file.write_text("password=worker-password\nbrokers=somewhere:9092\n")
    jaas = 'x.PlainLoginModule required username="u" password="%s";'
    own = {
        **PROVIDERS,
        "bootstrap.servers": f"${{file:{file}:brokers}}",
        "sasl.jaas.config": jaas % f"${{file:{file}:password}}",
        "ssl.key.password": "literal-password",
    }
    actual_with_values = await asyncio.to_thread(with_values, own)
    assert actual_with_values["bootstrap.servers"] == "somewhere:9092"
    assert actual_with_values["sasl.jaas.config"] == jaas % "worker-password"
    text = REDACTOR.hide("worker-password literal-password somewhere:9092")
    assert text == f"${{file:{file}:password}} [hidden] somewhere:9092"
    file.unlink()
    with pytest.raises(InvalidArgument, match=r"Could not read properties from file .* bootstrap\.servers, sasl\.jaas"):
        with_values(own)
