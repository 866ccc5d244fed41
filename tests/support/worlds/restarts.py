"""A world of words for the restart policy's tests: a task fails for some reason, and is well for some time."""

from keelman.worker.restart_policy import RestartPolicy, Restarts
from support.worlds.script import ScriptWorld


class World(ScriptWorld):
    """One task. Random values are always the middle, so that delays are predictable."""

    def __init__(self) -> None:
        self.restarts = Restarts(RestartPolicy(), lambda: 0.5)

    def do_policy(self, attempts: str, first: str, longest: str, reset: str) -> None:
        self.restarts.policy = RestartPolicy(int(attempts), float(first), float(longest), float(reset))

    def do_fail(self, reason: str, *how: str, well: str = "0", times: str = "1") -> list[str]:
        """How: `retriable`, `alone` (its process ran nothing else); `well`: seconds for which it was healthy before."""
        told = []
        for _ in range(int(times)):
            cause, delay = self.restarts.failed(
                reason, retriable="retriable" in how, alone="alone" in how, healthy_seconds=float(well)
            )
            again = "not again" if delay is None else f"again after {delay:g} s"
            told.append(f"{cause.value}: {again}, {self.restarts.attempts} of {self.restarts.policy.attempts} used")
        return told

    def do_restart(self) -> None:
        self.restarts.healthy()
