"""Translates Java's client properties by the table: into librdkafka's settings, aiokafka's arguments, and problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keelman.kafka.properties.keys import ClientKey, ClientKind
from keelman.kafka.properties.table import ASSIGNMENT, COOPERATIVE, FETCHED, TABLE
from keelman.kafka.security import jaas, oauth
from keelman.kafka.security import tls_sasl as security
from keelman.model.errors import InvalidArgument

_SASL = ("sasl.mechanism", "sasl.jaas.config")
_LOGIN_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_BLANK = ("ssl.endpoint.identification.algorithm",)
"""Keys for which a blank value has a meaning: here, that any host will do."""
_SESSION_MS, _POLL_MS = 45_000, 300_000  # of both libraries
_BEHIND_PREFIX = "the worker's own clients ignore it; for connectors it follows producer., consumer. or admin."
_BY_FETCHER = "a mirror reads with keelman's own fetcher, which ignores it"
_ROWS: dict[ClientKind, dict[str, ClientKey]] = {
    client: {row.name: row for row in TABLE if row.of(client)} for client in ("producer", "consumer", "admin")
}


def for_java(properties: Mapping[str, str], client: ClientKind) -> dict[str, str]:
    """Returns the Java properties that such a Java client uses; leaves out blank ones without a
    meaning. Callers have checked the properties."""
    rows = _ROWS[client]
    heeded = {
        k: v for k, v in properties.items() if k in rows and rows[k].use != "ignored" and (v.strip() or k in _BLANK)
    }
    if heeded.get(oauth.URL_KEY):
        heeded.setdefault("sasl.login.callback.handler.class", _LOGIN_HANDLER)
    return heeded


def librdkafka_settings(properties: Mapping[str, str], client: ClientKind) -> dict[str, Any]:
    """Returns the settings of such a client, without its defaults. Raises InvalidArgument, which names the key."""
    check(properties, client)
    settings: dict[str, Any] = {}
    for key, row in _ROWS[client].items():
        if row.librdkafka and properties.get(key, "").strip():
            settings[row.librdkafka] = row.value.of(key, properties[key].strip())
    _reconcile(settings)
    return {**settings, **security.for_librdkafka(properties)}


def aiokafka_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Returns aiokafka's arguments for a connection, except for its brokers and its login. Raises InvalidArgument."""
    check(properties, "admin")
    settings: dict[str, Any] = {}
    for key, row in _ROWS["admin"].items():
        if row.aiokafka.endswith("_ms") and properties.get(key, "").strip():
            settings[row.aiokafka] = int(row.value.of(key, properties[key].strip()))
    if settings.get("connections_max_idle_ms") == 0:
        settings["connections_max_idle_ms"] = None
    return settings


def check(properties: Mapping[str, str], client: ClientKind) -> None:
    """Raises InvalidArgument for the first key that is refused."""
    for key, reason in refusals(properties, client):
        raise InvalidArgument(f"{key}: {properties[key]!r} is refused: {reason}", metadata={"field": key})


def refusals(properties: Mapping[str, str], client: ClientKind) -> Iterable[tuple[str, str]]:
    """Yields the keys whose values such a client cannot use, and why."""
    for key, value in properties.items():
        row = _ROWS[client].get(key)
        if row is not None and row.refuses(value):
            yield key, row.says


def ignored(properties: Mapping[str, str], client: ClientKind) -> dict[str, str]:
    """Returns the keys that such a client ignores, with reasons, unless the value describes what it does anyway."""
    rows = ((key, _ROWS[client].get(key), value) for key, value in properties.items())
    return {key: row.says for key, row, value in rows if row is not None and row.passes_over(value, client)}


def ignored_by_workers(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the same for the unprefixed keys in a worker's properties, which are for the worker's own clients."""
    notes: dict[str, str] = {}
    for row in TABLE:
        if row.name in properties and not row.of_workers and properties[row.name].strip():
            notes.setdefault(row.name, row.says if row.use == "ignored" else _BEHIND_PREFIX)
    return notes


def ignored_by_mirrors(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the same for the keys of a mirror's consumer."""
    notes = ignored(properties, "consumer")
    for key, row in _ROWS["consumer"].items():
        text = properties.get(key, "").strip()
        heeded = key in FETCHED or (row.of_workers and "p" not in row.not_by)  # as keelman's own producers, too
        if text and row.use == "used" and not heeded and not row.accepts(text):
            notes[key] = _BY_FETCHER
    return notes


def problems(properties: Mapping[str, str], client: ClientKind, allowed_urls: str = "") -> list[tuple[str, str]]:
    """Returns faulty keys, and why: refused values, malformed numbers, login modules and URLs that are not
    allowed. Opens no file and no connection. `allowed_urls` is the worker's list."""
    faults = [(key, f"{key}: {properties[key]!r} is refused: {reason}") for key, reason in refusals(properties, client)]
    for key, row in _ROWS[client].items():
        if properties.get(key, "").strip():
            faults += _fault(key, lambda key=key, row=row: row.value.of(key, properties[key].strip()))
    faults += _fault("security.protocol", lambda: security.protocol(properties))
    if not faults and security.protocol(properties).startswith("SASL"):
        faults += _fault("sasl.mechanism", lambda: security.login(properties))
    elif properties.get("sasl.jaas.config", "").strip():
        faults += _fault("sasl.jaas.config", lambda: jaas.parse(properties["sasl.jaas.config"]))
    url = properties.get(oauth.URL_KEY, "").strip()
    if url:
        faults += _fault(oauth.URL_KEY, lambda: oauth.checked_url(url, oauth.listed(allowed_urls)))
    return faults


def _fault(key: str, work: Any) -> list[tuple[str, str]]:
    try:
        work()
    except InvalidArgument as error:
        named = error.message.partition(":")[0].partition(" ")[0]
        return [(named if named in _SASL else key, error.message)]
    return []


def _reconcile(settings: dict[str, Any]) -> None:
    """Adjusts settings that Java accepts and librdkafka does not."""
    if (age := settings.get("topic.metadata.refresh.interval.ms")) is not None:
        # By default librdkafka refreshes every five minutes and drops metadata three times as old.
        settings["metadata.max.age.ms"] = str(3 * int(age))
    if (assignors := settings.get(ASSIGNMENT)) is not None:
        # As in Java the group's protocol is cooperative only if each assignor is.
        eager = [assignor for assignor in assignors.split(",") if assignor != COOPERATIVE]
        settings[ASSIGNMENT] = ",".join(eager) or COOPERATIVE
    first, most = settings.get("reconnect.backoff.ms"), settings.get("reconnect.backoff.max.ms")
    if first is not None or most is not None:
        wait = int(first or 50)
        settings["reconnect.backoff.ms"] = str(wait)
        settings["reconnect.backoff.max.ms"] = str(max(wait, int(most or 1_000)))
    if "max.poll.interval.ms" in settings or "session.timeout.ms" in settings:
        least = int(settings.get("session.timeout.ms", _SESSION_MS))
        settings["max.poll.interval.ms"] = str(max(least, int(settings.get("max.poll.interval.ms", _POLL_MS))))
