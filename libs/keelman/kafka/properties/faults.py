"""Finds faults in a connector's client properties without opening a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from keelman.kafka.properties.connector_clients import merged
from keelman.kafka.properties.keys import ClientKind
from keelman.kafka.properties.settings import problems
from keelman.kafka.security import jaas, oauth
from keelman.model.errors import InvalidArgument

_JAAS = "sasl.jaas.config"


def client_faults(config: Mapping[str, str | None], worker: Mapping[str, str]) -> dict[str, str]:
    """Returns messages by key of the configuration. Checks for forbidden login modules and token URLs under every
    prefix (`source.consumer.`, `target.cluster.` and any other of a connector); all other keys under
    `producer.override.`, `consumer.override.` and `admin.override.`.

    Called at validation, with references resolved; an unresolved one, `${...}`, is not checked.
    """
    own_config = {k: v for k, v in config.items() if v is not None and not v.startswith("${")}
    faults: dict[str, str] = {}
    for client in get_args(ClientKind):
        prefix = f"{client}.override."
        own = [key for key in own_config if key.startswith(prefix)]
        if own:
            for key, message in problems(merged(worker, own_config, client), client, worker.get(oauth.ALLOWED_KEY, "")):
                faults[f"{prefix}{key}" if f"{prefix}{key}" in own_config else own[0]] = message
    allowed = oauth.listed(worker.get(oauth.ALLOWED_KEY, ""))
    for key, value in own_config.items():
        try:
            if key.endswith(_JAAS) and value.strip():
                jaas.parse(value)
            elif key.endswith(oauth.URL_KEY) and value.strip():
                oauth.checked_url(value.strip(), allowed)
        except InvalidArgument as error:
            faults.setdefault(key, error.message)
    return faults
