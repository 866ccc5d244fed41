"""For any mixture of good and bad worker properties, another process refuses those that the worker refuses."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.model.errors import InvalidArgument, Violation
from keelman.worker.config.typed import checked
from keelman.workers.properties.refusals import refusals
from support.worker.refused_properties import ILLEGAL, REFUSED, TAKEN
from support.worker_properties import OF_A_GROUP

HOSTS = ("keelman.jaas.file", "rest.extension.classes", "config.providers", "keelman.oauthbearer.allowed.urls")
"""Keys that the worker's host decides, or that end its check of the rest."""
CHANGES = [
    entry
    for entry in (*REFUSED.values(), *TAKEN.values())
    if not set(HOSTS) & entry.keys() and "https" not in str(entry)
]
CHANGES += [{key: value} for key, value, _ in ILLEGAL]
CHANGES += [{key: ""} for key in OF_A_GROUP]


def worker_says(properties: dict[str, str]) -> tuple[Violation, ...]:
    try:
        checked(properties)
    except InvalidArgument as error:
        return error.violations
    return ()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(CHANGES), max_size=6))
def test_both_say_the_same_of_any_mixture(changes: list[dict[str, str]]) -> None:
    properties = dict(OF_A_GROUP)
    for change in changes:
        properties |= change
    if "sasl.oauthbearer.token.endpoint.url" in properties:  # Java's options may allow it
        properties["keelman.oauthbearer.allowed.urls"] = "https://others.example"
    mine = {(refusal.field, refusal.description) for refusal in refusals(properties)}
    assert mine == {(worker_say.field, worker_say.description) for worker_say in worker_says(properties)}
