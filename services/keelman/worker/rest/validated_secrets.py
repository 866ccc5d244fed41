"""Resolves secrets where configurations are validated: for the classes that check them, never in an answer."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keelman.connect.config.definition import ConfigValue, Type
from keelman.connect.config.info import ConfigError, config_infos, infos
from keelman.connect.config.plugin_keys import CLASS
from keelman.connect.config.providers import ConfigProviderError
from keelman.connect.config.references import references
from keelman.connect.config.secret_keys import is_secret_key, shown_value, without_users
from keelman.connect.policy.judging import PolicyJudge
from keelman.connectors.registry import find_connector, full_name
from keelman.runtime.logs.redaction import HIDDEN, REDACTOR
from keelman.runtime.own_thread import in_thread
from keelman.worker.asking.third_party import problems_of
from keelman.worker.config.secrets import Secrets
from keelman.worker.errors import RestError
from keelman.worker.rest import plugins
from keelman.workers.properties.typed import ALLOW, REFERENCES, SECRETS_POLICY


async def problems_with(
    secrets: Secrets, config: Mapping[str, str | None], worker_config: Mapping[str, str]
) -> list[ConfigError]:
    """Returns all problems of a connector's configuration, its references resolved, in texts without their values.

    Raises 500 with Connect's text where a value cannot be read, and a plugin's own errors.
    """
    resolved = await _resolve(secrets, config)
    if refused := await _refusals(resolved, worker_config):  # no code of the class has run
        return refused
    _, problems = in_thread(lambda: problems_of(resolved, worker_config) + _literals(config, worker_config))
    return [ConfigError(problem.key, None, REDACTOR.hide(problem.message)) for problem in await problems]


async def validate_with(
    secrets: Secrets, plugin: str, config: Mapping[str, str | None], worker_config: Mapping[str, str]
) -> dict[str, Any]:
    """Returns ConfigInfos of a configuration, its references resolved, without their values. Raises as
    `validate_config`."""
    resolved = await _resolve(secrets, config)
    if refused := await _refusals(resolved, worker_config):
        return _refusing(config, refused)
    answer = await plugins.validate_config(plugin, resolved, worker_config)
    _, literals = in_thread(lambda: _literals(config, worker_config))
    return hidden_answer(answer, config, await literals)


async def _resolve(secrets: Secrets, config: Mapping[str, str | None]) -> Mapping[str, str | None]:
    try:
        values = await secrets.read({key: value for key, value in config.items() if value is not None})
    except ConfigProviderError as error:
        raise RestError(500, str(error)) from None
    return {key: values.get(key) for key in config}


async def _refusals(resolved: Mapping[str, str | None], worker_config: Mapping[str, str]) -> list[ConfigError]:
    """Returns what the worker's policies refuse, in texts without secrets. It follows links: in a thread."""
    problems = await asyncio.to_thread(lambda: PolicyJudge(worker_config, full_name).refusals(resolved))
    return [ConfigError(problem.key, None, REDACTOR.hide(problem.message)) for problem in problems]


def _refusing(config: Mapping[str, str | None], refused: Sequence[ConfigError]) -> dict[str, Any]:
    """Returns ConfigInfos of a configuration that a policy refuses: its keys as given, without definitions."""
    values = {
        key: ConfigValue(key, None if value is None else shown_value(key, value)) for key, value in config.items()
    }
    return hidden_answer(config_infos(config.get(CLASS) or "", (), infos({}, values)), config, refused)


def _literals(config: Mapping[str, str | None], worker_config: Mapping[str, str]) -> list[ConfigError]:
    """Returns the literal secrets in a configuration as it was given, where the worker takes references only.

    Secrets are the values of the connector's own PASSWORD keys and those of keys that are secrets by their names. In a
    thread; raises a plugin's own errors.
    """
    if worker_config.get(SECRETS_POLICY, ALLOW).strip().lower() != REFERENCES:
        return []
    keys = (
        find_connector(config.get("connector.class") or "", config.get("connector.plugin.version"))
        .config_def()
        .keys.values()
    )
    passwords = {key.name for key in keys if key.type is Type.PASSWORD}
    return [
        ConfigError(
            key,
            None,
            f"Invalid value {HIDDEN} for configuration {key}: this worker takes secrets as references only "
            f"({SECRETS_POLICY}={REFERENCES}): put it where a config provider finds it and name it here, "
            "e.g. ${file:/path/to/secrets.properties:key}",
        )
        for key, text in sorted(config.items())
        if text and (key in passwords or is_secret_key(key)) and not references(text)
    ]


def hidden_answer(
    answer: Mapping[str, Any], config: Mapping[str, str | None], problems: Iterable[ConfigError] = ()
) -> dict[str, Any]:
    """Returns the answer of `validate` about a resolved configuration, with references where `config` as given has
    them, and with these problems besides."""
    shown: dict[str, Any] = copy.deepcopy(dict(answer))
    for info in shown["configs"]:
        value = info["value"]
        text = config.get(value["name"]) or ""
        if references(text) and value["value"] not in (None, HIDDEN):
            value["value"] = text
        elif value["value"] is not None:
            value["value"] = without_users(value["value"])
        value["errors"] = [REDACTOR.hide(text) for text in value["errors"]]
        value["recommended_values"] = [REDACTOR.hide(text) for text in value["recommended_values"] or ()]
    values = {info["value"]["name"]: info["value"] for info in shown["configs"]}
    for problem in problems:
        if problem.key not in values:
            values[problem.key] = {
                "name": problem.key,
                "value": HIDDEN,
                "recommended_values": [],
                "errors": [],
                "visible": True,
            }
            shown["configs"].append({"definition": None, "value": values[problem.key]})
        values[problem.key]["errors"].append(problem.message)
        shown["error_count"] += 1
    return shown
