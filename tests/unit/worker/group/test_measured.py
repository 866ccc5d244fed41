"""The load of tasks, sent to the group as weights that do not change all the time."""

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.model.work import Work
from keelman.worker.tasks.measured import KNOWN_SECONDS, SAMPLE_SECONDS, SHARE_SECONDS, Measured, weight_of

BUSY, IDLE, NEW = Work("c", 0), Work("c", 1), Work("d", 0)
RUNNING, ENDED = copy.COPY_RUN_STATE_RUNNING, copy.COPY_RUN_STATE_ENDED


def update(uid: str, records: int, state: int = RUNNING) -> orders.RunUpdate:
    return orders.RunUpdate(run_uid=uid, state=state, progress=copy.CopyProgress(records=records))


class World:
    """A worker with a busy and an idle task, over time."""

    def __init__(self, *, cpu: bool = True) -> None:
        self.now = 0.0
        self.cpu = 0.0
        self._counts = cpu
        self.measured = Measured(lambda: self.cpu)
        self.records = 0

    def passes(self, seconds: float, *, rate: int, cores: float = 0.0, works: tuple[Work, ...] = (BUSY, IDLE)) -> None:
        for _ in range(int(seconds / SAMPLE_SECONDS)):
            self.now += SAMPLE_SECONDS
            self.records += int(rate * SAMPLE_SECONDS)
            self.cpu += cores * SAMPLE_SECONDS if self._counts else 0.0
            self.measured.note(BUSY, update("busy", self.records))
            self.measured.note(IDLE, update("idle", 0))
            self.measured.sample(self.now, works)

    def told(self, *works: Work) -> dict[Work, int]:
        return self.measured.weights(self.now, works or (Work("c"), BUSY, IDLE))


def test_processors_are_shared_by_what_was_copied() -> None:
    world = World()
    assert world.told() == {BUSY: 0, IDLE: 0}, "nothing is known yet"
    world.passes(120, rate=10, cores=1.2)
    assert world.told() == {BUSY: 32}


def test_without_known_processors_what_is_copied_counts() -> None:
    world = World(cpu=False)
    world.passes(120, rate=150_000)
    assert world.told() == {BUSY: 8}
    world.passes(200, rate=0)
    assert world.told() == {}


def test_a_new_task_is_not_judged() -> None:
    world = World()
    world.passes(60, rate=10, cores=1.2)
    world.passes(SAMPLE_SECONDS, rate=10, cores=1.2, works=(BUSY, IDLE, NEW))
    assert world.told(BUSY, NEW) == {BUSY: 32, NEW: 0}
    world.passes(KNOWN_SECONDS, rate=10, cores=1.2, works=(BUSY, IDLE, NEW))
    assert world.told(BUSY, NEW) == {BUSY: 32}


def test_what_has_ended_weighs_nothing_and_what_is_gone_is_forgotten() -> None:
    world = World()
    world.passes(60, rate=10, cores=1.2)
    world.measured.note(BUSY, update("busy", world.records, ENDED))
    for _ in range(40):
        world.now += SAMPLE_SECONDS
        world.measured.sample(world.now, (BUSY,))
    assert world.told(BUSY) == {}
    world.passes(SAMPLE_SECONDS, rate=0, works=())
    assert world.told(BUSY) == {BUSY: 0}


def test_a_copy_run_that_was_lost_without_a_word_is_forgotten() -> None:
    world = World()
    world.passes(60, rate=10, cores=1.2)
    world.measured.ended("busy")
    world.measured.note(BUSY, update("next", 0))
    assert [run.work for run in world.measured._runs.values()] == [IDLE, BUSY]


def test_a_weight_stays_while_the_use_is_near_it() -> None:
    assert [weight_of(use) for use in (0, 49, 66, 99, 101, 201, 800, 3200)] == [1, 1, 2, 2, 4, 8, 32, 128]
    assert weight_of(110, 2) == 2
    assert weight_of(90, 4) == 4
    assert (weight_of(140, 2), weight_of(70, 4)) == (4, 2)


def test_news_is_told_only_when_it_is_much_and_not_often() -> None:
    world = World()
    world.passes(60, rate=1)
    world.told()
    world.passes(SHARE_SECONDS / 2, rate=10, cores=1.2)
    assert not world.measured.has_news(world.now), "not so soon"
    world.passes(SHARE_SECONDS / 2, rate=10, cores=1.2)
    assert world.measured.has_news(world.now)
    world.told()
    world.passes(SHARE_SECONDS * 2, rate=10, cores=1.3)
    assert not world.measured.has_news(world.now), "nothing new"
