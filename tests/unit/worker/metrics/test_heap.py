"""Long-lived objects are left out of full collections; those that become garbage are freed later."""

from __future__ import annotations

import gc
import weakref

from keelman.worker.tasks import heap
from keelman.worker.tasks.heap import Heap


class Cycle:
    def __init__(self) -> None:
        self.me = self


def test_what_has_outlived_a_full_collection_is_set_aside_until_many_tasks_have_ended() -> None:
    now = 0.0
    watched = Heap(lambda: now)
    with watched.watched():
        cycle = Cycle()
        gone = weakref.ref(cycle)
        gc.collect()
        assert gc.get_freeze_count() > 0
        del cycle
        gc.collect()
        assert gone() is not None
        for _ in range(heap.LEAST - 1):
            watched.ended(10)
        assert gone() is not None
        watched.ended(10)
        assert gone() is None
        young = weakref.ref(Cycle())
        gc.collect()
        assert young() is None
        cycle = Cycle()
        old = weakref.ref(cycle)
        gc.collect()
        del cycle
        watched.look(10)
        assert old() is not None
        now = heap.WHOLE_SECONDS
        watched.look(10)
        assert old() is None
    assert gc.get_freeze_count() == 0
