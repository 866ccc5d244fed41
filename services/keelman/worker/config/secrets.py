"""Resolves the references to secrets in connectors' configurations, and notices when a secret has changed.

Values are read here and nowhere else, go into start tickets and into queries of connectors' classes, and never into a
topic, an answer or a log.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from keelman.connect.config.providers import ConfigProvider, ConfigProviderError, Stamp, read
from keelman.connect.config.references import ConfigReference, Values, references_of, resolved, restored
from keelman.connect.config.secret_keys import literal_secrets
from keelman.connect.policy.providers import providers_of
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.own_thread import in_thread
from keelman.runtime.supervise import wait_or_stop
from keelman.worker.intervals import LOOK_AGAIN_SECONDS

log = get_logger()
LOOK_SECONDS = 1.0
READ_SECONDS = 30.0  # seconds that a value may go unread though nothing shows that its file has changed
UNUSED_SECONDS = 3 * LOOK_AGAIN_SECONDS
RELOAD = "config.action.reload"
_SALT = secrets.token_bytes(32)  # a hash in the log must not help to find a value


@dataclass(slots=True)
class _Source:
    """The values of one provider under one path, as they were read last. `versions` distinguish the values of a key.

    A key that disappears, or a file that becomes unreadable, leaves the former value: files are often emptied before
    they are written again.
    """

    keys: set[str]
    used: float
    known: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    error: ConfigProviderError | None = None
    stamp: Stamp = ()
    seen: Stamp = ()
    read: float = 0.0
    logged: set[str] = field(default_factory=set)


_Where = tuple[str, str]
_Look = tuple[Stamp, Mapping[str, str] | ConfigProviderError]


class Secrets:
    """`run()` must run. Calls `changed` when there is a value that was waited for, or a new one."""

    def __init__(
        self, properties: Mapping[str, str], changed: Callable[[], None], *, look_seconds: float = LOOK_SECONDS
    ) -> None:
        """Raises ConfigValueError, ConfigProviderError for illegal providers."""
        self._providers: dict[str, ConfigProvider] = providers_of(properties)
        self._changed = changed
        self._look_seconds = look_seconds
        self._sources: dict[_Where, _Source] = {}
        self._some = asyncio.Event()
        self._own = literal_secrets(properties)
        REDACTOR.add(self._own)

    def versions(self, connector: Mapping[str, str], *others: Mapping[str, str]) -> tuple[int, ...] | None:
        """Returns a stamp that changes once a value differs that a reference in these configurations stands for; None
        while one is read for the first time. Constant for a connector that must not be restarted for that."""
        needed = self._known(connector, *others)
        if needed is None:
            return None
        if connector.get(RELOAD, "").strip().lower() == "none":
            return ()
        return tuple(
            self._sources[reference.provider, reference.path].versions.get(reference.key, 0) for reference in needed
        )

    def resolved(self, config: Mapping[str, str]) -> Mapping[str, str] | None:
        """Returns the configuration with all known values; None while one is read for the first time.

        Raises ConfigProviderError with Connect's text.
        """
        values = self._values(config)
        return None if values is None else resolved(config, values) if values else config

    def restored(self, tasks: list[dict[str, str]], connector: Mapping[str, str]) -> list[dict[str, str]]:
        """Returns task configurations, made from the present result of `resolved` for the connector's, as they are
        stored."""
        values = self._values(connector)
        return restored(tasks, connector, values) if values else tasks

    def hidden(self, *configs: Mapping[str, str]) -> dict[str, str]:
        """Returns all secret values of the worker's properties and of these configurations, once they are resolved,
        each with the text that is shown in its place."""
        own = dict(self._own)
        for config in configs:
            own |= literal_secrets(config)
            own |= {value: str(reference) for reference, value in (self._values(config) or {}).items()}
        REDACTOR.add(own)
        return own

    async def resolve(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """As `resolved`, but waits for values that have not been read yet."""
        REDACTOR.add(literal_secrets(config))
        config_now = self.resolved(config)
        return await self.read(config) if config_now is None else config_now

    async def read(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the configuration with the present values; it need not be a connector's yet.

        Raises ConfigProviderError.
        """
        REDACTOR.add(literal_secrets(config), passing=True)
        needed = self._provided(config)
        if not needed:
            return config
        _, reading = in_thread(lambda: read(self._providers, needed))
        values = await reading
        REDACTOR.add({value: str(reference) for reference, value in values.items()})
        return resolved(config, values)

    async def run(self) -> None:
        """Reads requested values, and checks now and then whether they have changed. Runs for ever."""
        while True:
            await wait_or_stop(self._some, self._look_seconds if self._sources else None)
            self._some.clear()
            now = time.monotonic()
            self._sources = {
                where: source for where, source in self._sources.items() if now - source.used < UNUSED_SECONDS
            }
            await self._read(self._due(await self._look_at(), now))

    def _provided(self, *configs: Mapping[str, str]) -> tuple[ConfigReference, ...]:
        return tuple(reference for reference in references_of(*configs) if reference.provider in self._providers)

    def _known(self, *configs: Mapping[str, str]) -> tuple[ConfigReference, ...] | None:
        """Returns the references in the configurations; None, and has them read soon, unless all are known."""
        if not self._providers:
            return ()
        needed, now, complete = self._provided(*configs), time.monotonic(), True
        for reference in needed:
            source = self._sources.setdefault((reference.provider, reference.path), _Source(set(), now))
            source.used = now
            if reference.key not in source.known:
                source.keys.add(reference.key)
                self._some.set()
                complete = False
        return needed if complete else None

    def _values(self, config: Mapping[str, str]) -> Values | None:
        needed = self._known(config)
        if needed is None:
            return None
        values: dict[ConfigReference, str] = {}
        for reference in needed:
            source = self._sources[reference.provider, reference.path]
            if source.error is not None:
                raise source.error
            if reference.key in source.values:
                values[reference] = source.values[reference.key]
        return values

    async def _look_at(self) -> dict[_Where, Stamp]:
        sources = [(where, sorted(source.keys)) for where, source in self._sources.items()]
        _, looking = in_thread(lambda: {(p, path): self._providers[p].stamp(path, keys) for (p, path), keys in sources})
        return await looking

    def _due(self, stamps: Mapping[_Where, Stamp], now: float) -> list[_Where]:
        """Returns the sources to read: those never read, those written and unchanged since the last look, old ones."""
        due = []
        for where, source in self._sources.items():
            stamp = stamps.get(where, source.seen)
            written = stamp != source.stamp and stamp == source.seen
            source.seen = stamp
            if written or not source.keys <= source.known or now - source.read > READ_SECONDS:
                due.append(where)
        return due

    async def _read(self, due: Iterable[_Where]) -> None:
        sources = [(where, sorted(self._sources[where].keys)) for where in due]
        if not sources:
            return
        _, reading = in_thread(lambda: [(where, keys, self._read_one(where, keys)) for where, keys in sources])
        changed = [self._take(where, keys, look) for where, keys, look in await reading]
        if any(changed):
            self._changed()

    def _read_one(self, where: _Where, keys: list[str]) -> _Look:
        provider, path = where
        stamp = self._providers[provider].stamp(path, keys)
        try:
            return stamp, self._providers[provider].get(path, keys)
        except ConfigProviderError as error:
            return stamp, error

    def _take(self, where: _Where, keys: list[str], look: _Look) -> bool:
        """Stores a look at a source; returns whether anything is new in it."""
        source = self._sources.get(where)
        if source is None:
            return False
        source.stamp, texts = look
        source.read, source.seen = time.monotonic(), source.stamp
        first = set(keys) - source.known
        source.known |= first
        if isinstance(texts, ConfigProviderError):
            self._log_once(source, where, "", "secret_unreadable", error=str(texts))
            if not source.values:
                news = bool(first) or source.error is None
                source.error = texts
                return news
            return bool(first)
        mended, source.error = source.error is not None, None
        source.logged.discard("")
        changed = [key for key in keys if key in texts and texts[key] != source.values.get(key)]
        for key in keys:
            if key not in texts:
                self._log_once(source, where, key, "secret_missing")
            else:
                source.logged.discard(key)
        for key in changed:
            reference = str(ConfigReference(*where, key))
            REDACTOR.add({texts[key]: reference})
            source.values[key] = texts[key]
            source.versions[key] = _version(texts[key])
            if key not in first:
                log.info("secret_changed", reference=reference)
        return bool(changed or first or mended)

    def _log_once(self, source: _Source, where: _Where, key: str, event: str, **fields: str) -> None:
        if key not in source.logged:
            source.logged.add(key)
            log.warning(event, reference=str(ConfigReference(*where, key or "*")), **fields)


def _version(value: str) -> int:
    return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8, key=_SALT).digest())
