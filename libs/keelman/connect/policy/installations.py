"""The rules that kinds of installations begin with, and the worker properties that carry them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.policy.policy import (
    CODE,
    DATA_FOLDER,
    DENIED,
    INSTALLATION,
    NO_HOSTS,
    OWN,
    PATHS,
    PROVIDERS,
    policies_of,
)
from keelman.model.errors import InvalidArgument
from keelman.model.keys import under

OPEN, STRICT, AUTO = "open", "strict", "auto"
KINDS: Mapping[str, Mapping[str, str]] = {
    OPEN: {},
    STRICT: {
        PATHS: DATA_FOLDER,
        PROVIDERS: DATA_FOLDER,
        CODE: DENIED,
        NO_HOSTS: "localhost,*.localhost,127.*,0.0.0.0,[::1],::1,169.254.*,[fe80:*",
    },
}


def rules_of(kind: str, own: Mapping[str, str], *, field: str) -> dict[str, str]:
    """Returns the worker properties of an installation: the rules of its kind, and over them its own, by their names.
    Raises InvalidArgument, which names the setting `field`, for a rule that is not legal."""
    rules = {f"{INSTALLATION}{name}": text for name, text in {**KINDS[kind], **own}.items()}
    try:
        policies_of(rules)
    except InvalidArgument as error:
        raise InvalidArgument(f"{field}: {error.message}", metadata={"field": field}) from None
    return rules


def summary(worker: Mapping[str, str]) -> str:
    """Returns the policy in a worker's properties in a few words: `strict`, or `open, with its own topics.denied`."""
    rules = under(INSTALLATION, worker)
    kind = STRICT if KINDS[STRICT].keys() <= rules.keys() else OPEN
    own = {key for key in under(OWN, worker) if not f"{OWN}{key}".startswith(INSTALLATION)}
    own |= {rule for rule, text in rules.items() if KINDS[kind].get(rule) != text}
    return f"{kind}, with its own {', '.join(sorted(own))}" if own else kind
