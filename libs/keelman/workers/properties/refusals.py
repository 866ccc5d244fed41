"""Checks a worker's properties on another host than the worker's: finds what any worker would refuse at its start."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.providers import LEGAL_SCOPE, SCOPE, provided, provider_problems
from keelman.connect.config.secret_keys import is_secret_key, literal_secrets
from keelman.kafka.security.oauth import ALLOWED_KEY
from keelman.model.errors import Violation
from keelman.runtime.logs.redaction import HIDDEN, Redactor
from keelman.workers.properties.client_checks import check_clients
from keelman.workers.properties.listeners import check_tls
from keelman.workers.properties.reader import PropertyReader
from keelman.workers.properties.typed import read_typed


def refusals(properties: Mapping[str, str]) -> tuple[Violation, ...]:
    """Returns the problems of the complete properties of a worker of a group, in the worker's own words, each under its
    key; secrets are hidden.

    Values that only the worker's host knows count as right: values behind references, files, its environment.
    """
    written = {key: value.strip() for key, value in properties.items()}  # as a properties file is read
    elsewhere = provided(written)
    present = {key: value for key, value in written.items() if key not in elsewhere}
    reader = PropertyReader(present, unknown=elsewhere | ({ALLOWED_KEY} - present.keys()))
    for key, text in provider_problems(written):
        reader.note(key, text)
    if SCOPE in elsewhere:  # it limits the worker's secrets, so the worker cannot be the one to resolve it
        reader.refuse(SCOPE, written[SCOPE], LEGAL_SCOPE)
    check_tls(reader, read_typed(reader).listeners)
    return _hidden(reader.problems, present)


def client_refusals(properties: Mapping[str, str]) -> tuple[Violation, ...]:
    """Returns the problems of the properties of Kafka clients."""
    reader = PropertyReader(properties, unknown={ALLOWED_KEY} - properties.keys())
    check_clients(reader)
    return _hidden(reader.problems, properties)


def _hidden(problems: tuple[Violation, ...], properties: Mapping[str, str]) -> tuple[Violation, ...]:
    redactor = Redactor()
    redactor.add(literal_secrets(properties))
    unique = {}
    for problem in problems:
        text, value = redactor.hide(problem.description), properties.get(problem.field, "")
        if value and is_secret_key(problem.field):  # also a value that is too short for the redactor
            text = text.replace(repr(value), repr(HIDDEN))
        unique[problem.field, text] = Violation(problem.field, text)
    return tuple(unique.values())
