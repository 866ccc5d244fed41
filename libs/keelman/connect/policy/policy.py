"""The rules that an installation, and the owner of a worker cluster, set for connectors. Pure.

They are worker properties, so that they reach every process that runs a connector: those of the installation, which its
state service sets, under `keelman.policy.installation.`, the worker's own under `keelman.policy.`. Both have to allow
the values that a connector names, so that the worker's own can only be stricter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from keelman.model.errors import InvalidArgument
from keelman.model.keys import under

OWN = "keelman.policy."
INSTALLATION = "keelman.policy.installation."
ANY = "*"
ALLOWED, DENIED = "allowed", "denied"
DATA_FOLDER = "data"
"""In `paths.allowed`: the worker cluster's own data folder, which its agent names to its workers."""
CLASSES, NO_CLASSES = "classes.allowed", "classes.denied"
PATHS, CODE, OVERRIDES = "paths.allowed", "code.by.name", "overrides.allowed"
PROVIDERS = "providers.allowed"
HOSTS, NO_HOSTS, NO_TOPICS = "hosts.allowed", "hosts.denied", "topics.denied"
RULES = (CLASSES, NO_CLASSES, PATHS, PROVIDERS, CODE, OVERRIDES, HOSTS, NO_HOSTS, NO_TOPICS)


@dataclass(frozen=True, slots=True)
class ConnectorPolicy:
    """One set of rules. Patterns have `*` for any text; by default all is allowed, and nothing denied.

    `prefix` is that of its properties, for messages.
    """

    prefix: str = OWN
    classes_allowed: tuple[str, ...] = (ANY,)
    classes_denied: tuple[str, ...] = ()
    paths_allowed: tuple[str, ...] = (ANY,)
    """Folders by absolute paths."""
    providers_allowed: tuple[str, ...] = (ANY,)
    """Folders whose files config providers may read."""
    code_by_name: bool = True
    """Whether a configuration may name code to be loaded: Python modules, packages to be fetched, Java classes."""
    overrides_allowed: tuple[str, ...] = (ANY,)
    hosts_allowed: tuple[str, ...] = (ANY,)
    """Of host:port or host."""
    hosts_denied: tuple[str, ...] = ()
    topics_denied: tuple[str, ...] = ()

    @property
    def any_path(self) -> bool:
        """Whether connectors may name every file."""
        return ANY in self.paths_allowed

    @property
    def is_open(self) -> bool:
        """Whether it allows all that a configuration may name; topics are judged apart."""
        rules = (self.classes_allowed, self.paths_allowed, self.overrides_allowed, self.hosts_allowed)
        denied = (*self.classes_denied, *self.hosts_denied)
        return self.code_by_name and not denied and all(ANY in rule for rule in rules)

    def setting(self, rule: str) -> str:
        """Returns the property with a rule, for messages: where an administrator allows more."""
        return self.prefix + rule


def policies_of(worker: Mapping[str, str]) -> tuple[ConnectorPolicy, ...]:
    """Returns the sets of rules in a worker's properties: all of them have to allow the values that a connector names.
    Raises InvalidArgument for a property that is not legal: a slip in it must not allow anything."""
    return tuple(_read(prefix, worker) for prefix in (INSTALLATION, OWN))


def _read(prefix: str, worker: Mapping[str, str]) -> ConnectorPolicy:
    given = {key: text for key, text in under(prefix, worker).items() if prefix == INSTALLATION or not _is_inner(key)}
    for rule, text in given.items():
        if rule not in RULES:
            legal = f"no property of a policy; they are {', '.join(f'{prefix}{known}' for known in RULES)}"
            raise InvalidArgument.of(f"{prefix}{rule}", text, legal)
    paths, provided = (_words(given, rule, (ANY,)) for rule in (PATHS, PROVIDERS))
    for rule, path in [*((PATHS, path) for path in paths), *((PROVIDERS, path) for path in provided)]:
        if path not in (ANY, DATA_FOLDER) and not path.startswith("/"):
            legal = f"absolute paths of folders, `{DATA_FOLDER}` for the cluster's data folder, or {ANY}"
            raise InvalidArgument.of(f"{prefix}{rule}", path, legal)
    code = given.get(CODE, "").strip().lower() or ALLOWED
    if code not in (ALLOWED, DENIED):
        raise InvalidArgument.of(f"{prefix}{CODE}", given[CODE], f"{ALLOWED} or {DENIED}")
    return ConnectorPolicy(
        prefix,
        _words(given, CLASSES, (ANY,)),
        _words(given, NO_CLASSES, ()),
        paths,
        provided,
        code == ALLOWED,
        _words(given, OVERRIDES, (ANY,)),
        _words(given, HOSTS, (ANY,)),
        _words(given, NO_HOSTS, ()),
        _words(given, NO_TOPICS, ()),
    )


def with_data_folder(worker: Mapping[str, str], folder: str) -> dict[str, str]:
    """Returns a worker's properties with its cluster's data folder where a policy allows it. Without one nothing is
    allowed in its place."""
    properties = dict(worker)
    for key in (prefix + rule for prefix in (INSTALLATION, OWN) for rule in (PATHS, PROVIDERS)):
        if key in properties:
            paths = [folder if path == DATA_FOLDER and folder else path for path in _words(properties, key, ())]
            properties[key] = ",".join(paths)
    return properties


def matches(patterns: tuple[str, ...], text: str) -> bool:
    """Returns whether a text matches a pattern. Only `*` has a meaning in patterns."""
    return any(fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]")) for pattern in patterns)


def _is_inner(key: str) -> bool:
    return f"{OWN}{key}".startswith(INSTALLATION)


def _words(given: Mapping[str, str], rule: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the words of a list; an empty list allows, or denies, nothing."""
    if rule not in given:
        return default
    return tuple(word.strip() for word in given[rule].split(",") if word.strip())
