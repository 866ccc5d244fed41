"""Reads the worker's Connect properties from the file, typed, with values in place of references."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.connector_keys import WORKER_SUPPORT
from keelman.kafka.security.oauth import ALLOWED_KEY, allow_urls
from keelman.model.errors import InvalidArgument
from keelman.worker.config.basic_auth import read_basic_auth
from keelman.worker.config.java_options import with_allowed_urls
from keelman.worker.config.own_references import with_values
from keelman.worker.config.source import PropertySource
from keelman.workers.properties.reader import PropertyReader
from keelman.workers.properties.typed import WorkerProperties, read_typed


def read_properties(source: PropertySource, *, standalone: bool = False) -> WorkerProperties:
    """Returns the typed properties of a source. Raises InvalidArgument with one message of all problems: file and line,
    key, value and the legal values."""
    if source.file is None and not source.given:
        raise InvalidArgument(
            f"a file is missing: keelman worker {'standalone' if standalone else 'run'} worker.properties"
        )
    with source.named(all_ours=True):
        return checked(source.written, standalone=standalone)


def checked(raw: Mapping[str, str], *, standalone: bool = False) -> WorkerProperties:
    """Returns the typed properties, with values in place of references. Raises InvalidArgument.

    From here on this process may request tokens from the URLs of `keelman.oauthbearer.allowed.urls`.
    """
    written, raw = raw, with_allowed_urls(with_values(raw))
    if standalone:
        raw = {**raw, WORKER_SUPPORT: "disabled"}  # so that its readers refuse a connector that requires it
    allow_urls(raw.get(ALLOWED_KEY, ""))
    reader = PropertyReader(raw, written)
    properties = read_typed(reader, lambda: read_basic_auth(raw), standalone=standalone)
    reader.end()
    return properties
