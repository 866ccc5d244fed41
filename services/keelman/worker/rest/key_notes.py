"""Notes which keys of a configuration nothing reads, and which key a refusal is about, beside Connect's own answers: in
the worker's log and in headers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

from keelman.connect.config.info import ConfigError
from keelman.connect.config.secret_keys import is_secret_key
from keelman.connectors.registry import find_connector
from keelman.connectors.validation import unknown_keys
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.own_thread import in_thread
from keelman.workers.rest.problem_keys import PROBLEMS

log = get_logger()
HEADER = "keelman-notes"
"""Header of an answer about a configuration: a JSON list of notes, one a key. A GET requests it by the same header."""
ASK_SECONDS = 5.0
MAX_HEADER = 4_000
MAX_KEPT = 256


class KeyNotes:
    """Notes keys of configurations; one per worker; remembers its notes on the last configurations, so that their
    classes are loaded once."""

    def __init__(self, worker_config: Mapping[str, str]) -> None:
        self._worker = worker_config
        self._kept: dict[frozenset[tuple[str, str]], Sequence[str]] = {}

    async def of(self, config: Mapping[str, str]) -> Sequence[str]:
        """Returns the notes on a configuration; none where its class cannot list its keys, or not in `ASK_SECONDS`."""
        same = frozenset(config.items())
        if same in self._kept:
            return self._kept[same]

        def found() -> Sequence[str]:
            kind = find_connector(config.get("connector.class", ""), config.get("connector.plugin.version"))
            return unknown_keys.notes(kind, config, self._worker)

        try:
            async with asyncio.timeout(ASK_SECONDS):
                note = await in_thread(found)[1]
        except Exception:  # any error of a plugin: the next call of it shows the error
            return ()
        while len(self._kept) >= MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[same] = note
        return note

    async def log(self, name: str, config: Mapping[str, str]) -> None:
        """Logs one line for a connector with such keys."""
        if notes := await self.of(config):
            log.warning("connector_keys_unknown", connector=name, keys="; ".join(notes))

    async def header(self, config: Mapping[str, str]) -> dict[str, str]:
        """Returns the notes as a header; no header where there are none."""
        return _header(HEADER, await self.of(config))


def text_of(problem: ConfigError) -> str:
    """Returns the problem's text with the whole key, of which Connect's text may hold the end alone, or nothing. For
    the log: without the text about a secret."""
    if is_secret_key(problem.key):
        return f"{problem.key}: its value is refused"
    return problem.message if problem.key in problem.message else f"{problem.key}: {problem.message}"


def problem_header(problems: Sequence[ConfigError]) -> dict[str, str]:
    """Returns a header with the keys that the texts of a refusal do not name."""
    return _header(
        PROBLEMS, [[problem.key, problem.message] for problem in problems if problem.key not in problem.message]
    )


def _header(name: str, items: Sequence[object]) -> dict[str, str]:
    """Returns a header with a JSON list of as many of these as it may hold; none for none."""
    texts = [json.dumps(item) for item in items]
    while sum(map(len, texts)) + 2 * len(texts) > MAX_HEADER:
        texts.pop()
    return {name: f"[{', '.join(texts)}]"} if texts else {}
