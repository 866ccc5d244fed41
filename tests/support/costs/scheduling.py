"""Hands files of tests to pytest workers, also after one of these has crashed."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class FileScheduling(LoadFileScheduling):  # type: ignore[misc]
    """The scheduling of `--dist loadfile`. Of a crashed worker's files it hands on those that are not done, and not the
    test that crashed it: pytest-xdist 3.8 hands on all, other workers wait without end for the results of files that
    are done, and the test crashes them, too."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Takes back the files of a worker that is gone; returns the test that it ran, if it crashed."""
        files = {file: tests for file, tests in self.assigned_work.pop(node).items() if not all(tests.values())}
        if not files:
            return None
        tests = next(iter(files.values()))
        crashed = next(test for test, is_done in tests.items() if not is_done)
        tests[crashed] = True
        self.workqueue.update({file: tests for file, tests in files.items() if not all(tests.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return str(crashed)

    def _reschedule(self, node: WorkerController) -> None:
        """Does nothing yet for a new worker that has not collected the tests: it is called again then.

        A worker runs a test only when it knows the next one, so it gets a second file behind a single test.
        """
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)
