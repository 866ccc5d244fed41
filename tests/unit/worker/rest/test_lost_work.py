"""The statuses that a worker shows for its former work after it lost its place in the group."""

import json
from pathlib import Path

import pytest

from keelman.model.work import Work
from keelman.worker.config.typed import checked
from keelman.worker.rest.views import Views
from keelman.worker.standalone import StandaloneStore
from keelman.worker.storage.status_state import Status, key_of
from support.worker.store import store_callbacks

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
PLAIN = {"bootstrap.servers": "h:1", "key.converter": STRINGS, "value.converter": STRINGS}
ME, OTHER = "me:1", "other:1"
TASK, FAILED_TASK, OTHERS_TASK = (Work("c", number) for number in range(3))
WORKS = (Work("c"), TASK, FAILED_TASK, OTHERS_TASK)


class World(StandaloneStore):
    """A store with statuses that the test writes."""

    def __init__(self, folder: Path) -> None:
        properties = checked({**PLAIN, "offset.storage.file.filename": str(folder / "offsets")}, standalone=True)
        super().__init__(properties, worker_id=ME, callbacks=store_callbacks())
        self.views = Views(self)

    async def written(self, work: Work, status: Status | None) -> None:
        """Writes a record of the status topic."""
        value = None if status is None else status.value()
        await self.status_topic.write([(key_of(work), value)])

    @property
    def shown(self) -> list[str]:
        """The states of the connector and of its tasks, which are the same by either lookup."""
        connector, tasks = self.statuses.of("c")
        statuses = [connector, *(status for _, status in tasks)]
        assert statuses == [self.statuses.shown(work) for work in WORKS if work in self.statuses.statuses]
        return [status.state for status in statuses if status is not None]


@pytest.fixture
async def world(tmp_path: Path) -> World:
    """A connector with three tasks, one of which another worker has."""
    worker = World(tmp_path)
    await worker.config_topic.write([(b"connector-c", json.dumps({"properties": {"name": "c"}}).encode())])
    await worker.written(Work("c"), Status("RUNNING", ME, 3))
    await worker.written(TASK, Status("RUNNING", ME, 3, more={"stalled": {"left": 5}}))
    await worker.written(FAILED_TASK, Status("FAILED", ME, 3, "why it failed"))
    await worker.written(OTHERS_TASK, Status("RUNNING", OTHER, 3))
    return worker


async def test_what_is_lost_is_not_shown_at_work(world: World) -> None:
    before = dict(world.statuses.statuses)
    listed = b"".join(world.views.listed(["status"]))
    world.statuses.lose(WORKS, ME, "lost")
    assert world.shown == ["UNASSIGNED", "UNASSIGNED", "FAILED", "RUNNING"]
    assert world.statuses.shown(TASK) == Status("UNASSIGNED", ME, 3, "lost")
    assert world.statuses.statuses == before, "the topic's records are unchanged"
    assert b"".join(world.views.listed(["status"])) != listed


async def test_what_was_told_last_comes_first(world: World) -> None:
    world.statuses.lose(WORKS, ME, "lost")
    world.statuses.lose(WORKS, ME, "lost again")
    assert world.statuses.shown(TASK) == Status("UNASSIGNED", ME, 3, "lost"), "since when it is lost"
    await world.written(TASK, Status("RUNNING", ME, 3))
    assert world.shown[1] == "UNASSIGNED", "that was on its way when the place was lost"
    await world.written(TASK, Status("RUNNING", OTHER, 4))
    await world.written(FAILED_TASK, None)
    assert world.shown == ["UNASSIGNED", "RUNNING", "RUNNING"]
    world.status_topic.writer.put(Work("c"), Status("RUNNING", ME, 4))
    assert world.shown[0] == "UNASSIGNED", "only announced so far"
    await world.written(Work("c"), Status("RUNNING", ME, 4))
    assert world.shown == ["RUNNING"] * 3
    assert not world.statuses.lost
