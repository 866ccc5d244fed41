"""Writes down a worker's place in the group, and removes it from the group once it is dead: `python -m
keelman.worker.group.farewell`.

The observer of a worker's death, its agent or else a process that the worker has started for that, runs this: the dead
member leaves the group, and a member with its address announces that it leaves, so that the leader hands its work on at
once and does not wait for it to come back.

No worker copies the dead worker's data until this process has begun, so it imports little: not the check of a worker's
properties, which took half of the processor seconds of its start.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from keelman.kafka.clients import low_level_client
from keelman.kafka.groups.farewell import say_farewell
from keelman.kafka.groups.protocol import GroupClient
from keelman.kafka.security.oauth import ALLOWED_KEY, allow_urls
from keelman.model.errors import KeelmanError
from keelman.runtime.home import write_json
from keelman.runtime.logs.logging import configure, get_logger
from keelman.runtime.processes.last_words import LastWords
from keelman.worker.config.file import file_properties
from keelman.worker.config.java_options import with_allowed_urls
from keelman.worker.config.own_references import with_values

log = get_logger()
SECONDS = 30.0
JOIN_MARGIN_MS = 10_000


@dataclass(frozen=True, slots=True)
class Note:
    """A worker's place: its member id, its address, whether it leads, its group and how long that waits for members."""

    member: str
    url: str
    leader: bool
    group: str
    session_ms: int
    rebalance_ms: int

    def write(self, file: Path) -> None:
        """Writes it down in one step. Raises OSError."""
        write_json(file, self)

    @staticmethod
    def read(file: Path) -> Note | None:
        """Returns the stored note; None without a file, or for illegal content."""
        try:
            return Note.of(json.loads(file.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @staticmethod
    def of(data: Mapping[str, Any]) -> Note:
        """Makes a note from its fields. Raises KeyError, ValueError, TypeError."""
        times = int(data["session_ms"]), int(data["rebalance_ms"])
        return Note(str(data["member"]), str(data["url"]), bool(data["leader"]), str(data["group"]), *times)


class LastFarewell:
    """Runs the farewell for a worker without an agent, once it has died."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Starts the process that waits for the end of this one; `properties` are the worker's, without references."""
        self._properties = dict(properties)
        self._words: LastWords | None = None
        try:
            self._words = LastWords([sys.executable, "-m", "keelman.worker.group.farewell", "--given"])
        except OSError as error:
            self._give_up(error)

    def note(self, note: Note | None) -> None:
        """Stores the worker's present place; None when it has left."""
        words = b"" if note is None else json.dumps({"note": asdict(note), "properties": self._properties}).encode()
        if self._words is not None:
            try:
                self._words.change(words)
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Ends with the worker: a farewell that the worker could not run itself runs now."""
        if self._words is not None:
            self._words.close()

    def _give_up(self, error: OSError) -> None:
        log.warning("farewell_unkept", error=str(error), note="no process will report the death of this worker")
        self._words = None


class NoteKeeper:
    """Keeps a worker's note up to date while it lives, in a file or with the receiver `give`."""

    def __init__(
        self,
        file: Path | None,
        url: str,
        *,
        group: str,
        session_ms: int,
        rebalance_ms: int,
        give: Callable[[Note | None], None],
    ) -> None:
        """Calls `give` with each new note, before the file is written; with None when the worker has left."""
        self._file = file
        self._give = give
        self._note = Note("", url, leader=False, group=group, session_ms=session_ms, rebalance_ms=rebalance_ms)
        self._kept: Note | None = None

    def __call__(self, member: str, leader: bool) -> None:
        """Takes the worker's present place; the member id is empty when it has left. Raises OSError."""
        note = replace(self._note, member=member, leader=leader) if member else None
        if note == self._kept:
            return
        self._give(note)
        if self._file is not None and note is None:
            self._file.unlink(missing_ok=True)
        elif self._file is not None and note is not None:
            note.write(self._file)
        self._kept = note


async def _say_noted(properties_file: Path, file: Path) -> None:
    note = Note.read(file)
    if note is None:
        return
    await _say(with_allowed_urls(with_values(file_properties(properties_file))), note)
    file.unlink(missing_ok=True)


async def _say_given(payload: bytes) -> None:
    data = json.loads(payload)
    await _say(data["properties"], Note.of(data["note"]))


async def _say(properties: Mapping[str, str], note: Note) -> None:
    allow_urls(properties.get(ALLOWED_KEY, ""))
    wait = note.rebalance_ms + JOIN_MARGIN_MS
    async with low_level_client(properties, client_id=f"farewell-{note.url}", timeout_ms=wait) as client:
        group = GroupClient(client, note.group, session_ms=note.session_ms, rebalance_ms=note.rebalance_ms)
        done = await say_farewell(group, note.member, note.url, leader=note.leader)
    log.info("farewell", member=note.member, url=note.url, done=done)


def main(arguments: list[str]) -> int:
    """Runs with the dead worker's `--properties-file` and `--member-file`, or with `--given` and the data of
    `LastFarewell` on standard input; returns 0, or 1 when the farewell failed."""
    parser = argparse.ArgumentParser(prog="keelman worker farewell")
    parser.add_argument("--given", action="store_true")
    parser.add_argument("--properties-file", type=Path)
    parser.add_argument("--member-file", type=Path)
    options = parser.parse_args(arguments)
    if not options.given and None in (options.properties_file, options.member_file):
        parser.error("--properties-file and --member-file, or --given")
    configure("worker", json=False, level="INFO")
    saying = (
        _say_given(sys.stdin.buffer.read())
        if options.given
        else _say_noted(options.properties_file, options.member_file)
    )

    async def within() -> None:
        async with asyncio.timeout(SECONDS):
            await saying

    try:
        asyncio.run(within())
    except (KeelmanError, TimeoutError, OSError) as error:
        log.warning("farewell_unsaid", error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
