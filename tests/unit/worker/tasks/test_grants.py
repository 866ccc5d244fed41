"""Whether a task may copy: it must be this worker's, with its present configuration, and its predecessors fenced."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from keelman.connect.policy.judging import PolicyJudge, PolicyRefused
from keelman.connectors.registry import full_name
from keelman.model.work import Work
from keelman.worker.config.typed import checked
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_state import ConfigState
from keelman.worker.tasks.grants import Grants
from support.worker_properties import OF_A_GROUP

SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
SINK = {"connector.class": "FileStreamSink", "file": "/nowhere/out", "topics": "lines"}
TASK = Work("c", 0)


@dataclass
class Member:
    """A member of the group, with its place."""

    healthy: bool = True
    generation: int = 3
    leads: bool = False

    async def proven(self) -> bool:
        return self.healthy


class World:
    """A worker whose connector has one task in place of two former ones."""

    def __init__(self, connector: dict[str, str], support: str = "enabled", **policy: str) -> None:
        self.config, self.member, self.works = ConfigState(), Member(), {TASK}
        self._offset = 0
        for tasks in ([{}, {}], [{}]):
            self.write(records.connector_record("c", connector))
            for record in records.task_records("c", tasks):
                self.write(record)
            self.write(records.commit_record("c", len(tasks)))
        rules = {f"keelman.policy.{rule.replace('_', '.')}": text for rule, text in policy.items()}
        properties = checked({**OF_A_GROUP, "exactly.once.source.support": support, **rules})
        store: Any = SimpleNamespace(
            config=self.config,
            properties=properties,
            judge=PolicyJudge(properties.raw, full_name),
            secrets=SimpleNamespace(versions=lambda *configs: (), resolved=lambda config: config, hidden=lambda *_: {}),
            config_topic=SimpleNamespace(read=None),
            offset_topic=SimpleNamespace(read=None),
        )
        self.grants = Grants(store, self.member, self.works.__contains__, worker_cluster="w", worker="w:1")

    def write(self, record: tuple[bytes, bytes | None]) -> None:
        self.config.apply(record[0].decode(), record[1], self._offset)
        self._offset += 1

    @property
    def may_copy(self) -> bool:
        expected = self.grants.configured(TASK)
        assert expected is not None
        return self.grants.holds(TASK, expected)


def test_a_task_of_an_exactly_once_source_waits_until_the_tasks_before_it_are_fenced() -> None:
    world = World(SOURCE)
    assert not world.may_copy
    world.write(records.fencing_record("c", 1))
    assert world.may_copy


@pytest.mark.parametrize(("connector", "support"), [(SINK, "enabled"), (SOURCE, "preparing")])
def test_others_have_no_producers_to_be_fenced(connector: dict[str, str], support: str) -> None:
    assert World(connector, support).may_copy


def test_a_task_ends_with_its_place_its_work_and_its_configuration() -> None:
    world = World(SINK)
    before = world.grants.configured(TASK)
    assert before is not None
    world.member.healthy = False
    assert not world.may_copy
    world.member.healthy = True
    world.works.clear()
    assert not world.may_copy
    world.works.add(TASK)
    world.write(records.task_records("c", [{"more": "x"}])[0])
    world.write(records.commit_record("c", 1))
    assert world.may_copy
    assert not world.grants.holds(TASK, before)


def test_a_task_that_a_policy_refuses_gets_no_ticket() -> None:
    """Its configuration was stored before the policy, or written by another worker; or the task has other keys."""
    world = World(SINK, paths_allowed="/nowhere")
    stored = world.grants.configured(TASK)
    assert stored is not None
    assert world.grants.ticket(TASK, stored, "a") is not None
    world.write(records.task_records("c", [{"file": "/elsewhere/out"}])[0])
    world.write(records.commit_record("c", 1))
    stored = world.grants.configured(TASK)
    assert stored is not None
    with pytest.raises(PolicyRefused, match=r"legal are files below /nowhere .*keelman\.policy\.paths\.allowed"):
        world.grants.ticket(TASK, stored, "b")
    world = World({**SINK, "topics": "other.connect-configs"})
    stored = world.grants.configured(TASK)
    assert stored is not None
    with pytest.raises(PolicyRefused, match=r"topic other\.connect-configs is internal"):
        world.grants.ticket(TASK, stored, "c")
