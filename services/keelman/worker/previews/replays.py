"""Lists dead letters of connectors and sends them back: gathers the worker's part, and has a side process do it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from keelman.connect.config.connector_keys import DEAD_LETTERS
from keelman.connect.plugin import Direction
from keelman.connect.policy.topics import InternalTopics
from keelman.connectors.registry import find_connector
from keelman.worker.errors import RestError
from keelman.worker.previews.side_process import SideProcess, asking
from keelman.worker.storage.store import WorkerStore

LOOK_SECONDS = 20.0
SEND_SECONDS = 20.0
MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Replay:
    """The choice of dead letters, and where they go. Empty and None choose all; `cursor` is that of an answer, to
    continue its replay.

    `since_ms` is about the records' own timestamps.
    """

    to: str = ""
    stage: str = ""
    exception: str = ""
    since_ms: int | None = None
    most: int = MOST
    dry_run: bool = False
    cursor: dict[str, Any] | None = None


class Replays:
    """Lists and replays dead letters; one per worker."""

    def __init__(self, store: WorkerStore, side_process: SideProcess) -> None:
        self._store = store
        self._side_process = side_process

    async def survey(self, name: str, *, records: int) -> dict[str, Any]:
        """Returns the number of each kind, and the newest. Raises RestError, KeelmanError."""
        return await self._ask(name, "dead_letters", LOOK_SECONDS, records=records)

    async def replay(self, name: str, replay: Replay) -> dict[str, Any]:
        """Sends them back for some seconds; returns the result, with a `cursor` if there are more. Raises as
        `survey`."""
        return await self._ask(name, "replay", SEND_SECONDS, **asdict(replay))

    async def _ask(self, name: str, method: str, seconds: float, **arguments: Any) -> dict[str, Any]:
        config = self._store.config.config_of(name)
        kind = find_connector(config.get("connector.class", ""), config.get("connector.plugin.version"))
        if (to := arguments.get("to")) and self._store.judge.topics.has(to):
            raise RestError(400, f"to: {InternalTopics.why(to)}")
        if arguments.get("to") and kind.direction is Direction.SOURCE:
            raise RestError(400, "to: a source's dead letters go where its configuration leads them")
        async with asking():
            resolved = await self._store.secrets.read(config)
            self._store.judge.require(resolved)
            if not resolved.get(DEAD_LETTERS):
                raise RestError(400, f"connector {name} keeps no dead letters: {DEAD_LETTERS} is not set")
            sink = kind.direction is Direction.SINK
            return await self._side_process.ask(kind, method, name, resolved, seconds=seconds, sink=sink, **arguments)
