"""Judges a connector's configuration by the policies of its worker: before it is stored, and again before it runs.

It follows links of this host's files, and opens nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from keelman.connect.config.connector_keys import OFFSETS
from keelman.connect.config.info import ConfigError
from keelman.connect.config.plugin_keys import CLASS
from keelman.connect.config.secret_keys import shown_value
from keelman.connect.errors import ConfigValueError
from keelman.connect.policy import named
from keelman.connect.policy.folders import is_inside
from keelman.connect.policy.policy import (
    ALLOWED,
    CLASSES,
    CODE,
    HOSTS,
    NO_CLASSES,
    NO_HOSTS,
    OVERRIDES,
    PATHS,
    ConnectorPolicy,
    matches,
    policies_of,
)
from keelman.connect.policy.topics import OFFSET_TOPIC, InternalTopics

Config = Mapping[str, str | None]
FullName = Callable[[str], str | None]


class PolicyRefused(ConfigValueError):
    """The policies of the worker refuse a connector's configuration."""

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        first = problems[0]
        super().__init__(first.key, first.value, whole="\n".join(problem.message for problem in problems))


class PolicyJudge:
    """Judges by one worker's properties."""

    def __init__(self, worker: Mapping[str, str], full_name: FullName) -> None:
        """`full_name` returns the full name of a plugin class, None for an unknown one. Raises InvalidArgument for a
        policy that is not legal."""
        self.topics = InternalTopics(worker)
        self._offset_topic = worker.get(OFFSET_TOPIC, "").strip()  # where offsets are kept without the key, too
        self._policies = policies_of(worker)
        self._full_name = full_name

    def require(self, config: Config) -> None:
        """Raises PolicyRefused unless a connector of this resolved configuration may run."""
        if problems := self.refusals(config):
            raise PolicyRefused(problems)

    def require_reachable(self, config: Config) -> None:
        """Raises PolicyRefused where keys name files or hosts that no connector may name."""
        problems = [error for policy in self._policies for error in _places(policy, config)]
        if problems:
            raise PolicyRefused(problems)

    def refusals(self, config: Config) -> list[ConfigError]:
        """Returns the errors of the policies about a resolved configuration, in the form of Connect's."""
        problems = [
            _error(config, key, InternalTopics.why(topic))
            for key, topic in named.topics_in(config)
            if self.topics.has(topic) and not (key == OFFSETS and topic == self._offset_topic)
        ]
        for policy in self._policies:
            if not policy.is_open:
                problems += self._of_policy(policy, config)
        return list(dict.fromkeys(problems))

    def _of_policy(self, policy: ConnectorPolicy, config: Config) -> Iterator[ConfigError]:
        yield from self._classes(policy, config)
        yield from _places(policy, config)
        if not policy.code_by_name:
            for key, _ in named.code_in(config):
                why = "connectors here may not name code to be loaded"
                yield _error(config, key, why, f"{policy.setting(CODE)}={ALLOWED}")
        for key, name in named.overrides_in(config):
            if not matches(policy.overrides_allowed, name):
                legal = _listed(policy.overrides_allowed)
                why = f"connectors here may not override the client property {name}: legal are {legal}"
                yield _error(config, key, why, policy.setting(OVERRIDES))

    def _classes(self, policy: ConnectorPolicy, config: Config) -> Iterator[ConfigError]:
        names = self._names(config.get(CLASS) or "")
        if not any(matches(policy.classes_allowed, name) for name in names):
            why = f"connectors here may not be of this class: legal are {_listed(policy.classes_allowed)}"
            yield _error(config, CLASS, why, policy.setting(CLASSES))
        for key, text in [(CLASS, config.get(CLASS) or ""), *named.classes_in(config)]:
            if any(matches(policy.classes_denied, name) for name in self._names(text)):
                why = "connectors here may not use this class"
                yield _error(config, key, why, policy.setting(NO_CLASSES))

    def _names(self, text: str) -> tuple[str, ...]:
        """Returns the names of a class that a pattern may mean: the full one, and those that Connect makes of it."""
        full = self._full_name(text) or text.strip()
        simple = full.rpartition(".")[2]
        return full, simple, simple.removesuffix("Connector")


def _places(policy: ConnectorPolicy, config: Config) -> Iterator[ConfigError]:
    """Judges files and hosts."""
    if not policy.any_path:
        legal = ", ".join(f"files below {folder}" for folder in policy.paths_allowed) or "no files"
        for key, path in named.paths_in(config):
            if not is_inside(path, policy.paths_allowed):
                why = f"{path} is outside of what connectors may name: legal are {legal}"
                yield _error(config, key, why, policy.setting(PATHS))
    for key, host in named.hosts_in(config):
        yield from _host(policy, config, key, host)


def _host(policy: ConnectorPolicy, config: Config, key: str, host: str) -> Iterator[ConfigError]:
    """Judges an address with and without its port, which a pattern may leave open."""
    forms = (host, host.rpartition(":")[0]) if ":" in host.rpartition("]")[2] else (host,)
    if not any(matches(policy.hosts_allowed, form) for form in forms):
        why = f"connectors here may not name the host {host}: legal are {_listed(policy.hosts_allowed)}"
        yield _error(config, key, why, policy.setting(HOSTS))
    elif any(matches(policy.hosts_denied, form) for form in forms):
        yield _error(config, key, f"connectors here may not name the host {host}", policy.setting(NO_HOSTS))


def _error(config: Config, key: str, why: str, setting: str = "") -> ConfigError:
    value = config.get(key)
    advice = f" (an administrator allows it by {setting})" if setting else ""
    error = ConfigValueError(key, None if value is None else shown_value(key, value), f"{why}{advice}")
    return ConfigError(key, value, str(error))


def _listed(patterns: Iterable[str]) -> str:
    return ", ".join(patterns) or "none"
