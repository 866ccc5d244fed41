"""Judges a worker's properties on another host than the worker's: what any worker would refuse at its start."""

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
    """What is wrong with the complete properties of a worker of a group, in the worker's own words, each under its
    key; secrets are hidden.

    What only the worker's host knows is taken to be right: values that references stand for, files, its environment.
    """
    written = {key: value.strip() for key, value in properties.items()}  # as a file of properties is read
    elsewhere = provided(written)
    known = {key: value for key, value in written.items() if key not in elsewhere}
    reader = PropertyReader(known, unknown=elsewhere | ({ALLOWED_KEY} - known.keys()))
    for key, text in provider_problems(written):
        reader.note(key, text)
    if SCOPE in elsewhere:  # it bounds what is given to the worker, so it cannot be the worker's to find out
        reader.refuse(SCOPE, written[SCOPE], LEGAL_SCOPE)
    check_tls(reader, read_typed(reader).listeners)
    return _hidden(reader.problems, known)


def client_refusals(properties: Mapping[str, str]) -> tuple[Violation, ...]:
    """The same of properties of Kafka clients, which reach the brokers by them."""
    reader = PropertyReader(properties, unknown={ALLOWED_KEY} - properties.keys())
    check_clients(reader)
    return _hidden(reader.problems, properties)


def _hidden(problems: tuple[Violation, ...], known: Mapping[str, str]) -> tuple[Violation, ...]:
    redactor = Redactor()
    redactor.add(literal_secrets(known))
    found = {}
    for one in problems:
        text, value = redactor.hide(one.description), known.get(one.field, "")
        if value and is_secret_key(one.field):  # also one that is too short to be looked for everywhere
            text = text.replace(repr(value), repr(HIDDEN))
        found[one.field, text] = Violation(one.field, text)
    return tuple(found.values())
