"""Resolves references in the worker's own properties: once, at its start, as Connect does."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.providers import read
from keelman.connect.config.references import references, references_of, resolved
from keelman.connect.config.secret_keys import is_secret_key, literal_secrets
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.policy.providers import providers_of
from keelman.model.errors import InvalidArgument
from keelman.runtime.logs.redaction import REDACTOR


def with_values(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties with values in place of references, and makes sure that this process never shows their
    secrets.

    Raises InvalidArgument naming the keys whose values cannot be read, or the key of an illegal provider.
    """
    try:
        providers = providers_of(properties)
    except ConfigValueError as error:
        raise InvalidArgument(str(error), metadata={"field": error.key}) from None
    except ConnectError as error:
        raise InvalidArgument(str(error)) from None
    needed = references_of(properties)
    if not needed:
        REDACTOR.add(literal_secrets(properties))
        return dict(properties)
    try:
        values = read(providers, needed)
    except ConnectError as error:
        keys = ", ".join(sorted(key for key, text in properties.items() if references(text)))
        raise InvalidArgument(f"{error} (there are references in {keys})") from None
    with_secrets = resolved(properties, values)
    for key, text in properties.items():
        # Only values under a key for secrets: addresses may come from elsewhere too, and logs are full of them.
        if is_secret_key(key) and (held := references(text)):
            REDACTOR.add(
                {
                    with_secrets[key]: text,
                    **{values[reference]: str(reference) for reference in held if reference in values},
                }
            )
    REDACTOR.add(literal_secrets(properties))
    return with_secrets
