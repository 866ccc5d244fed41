"""`PUT /v0/validate/connectors`: has a running worker cluster validate settings by the connector's class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from keelman.connect.config.secret_keys import shown_value
from keelman.gateway.ohara.connectors.class_settings import Json, own_setting, setting_of
from keelman.gateway.ohara.connectors.connectors import SENT, checked_settings, without_internal
from keelman.gateway.ohara.connectors.life import answers
from keelman.gateway.ohara.connectors.specs import ConnectorSettings, spec_of
from keelman.gateway.ohara.connectors.worker_classes import WorkerClasses
from keelman.gateway.ohara.definitions import config
from keelman.gateway.ohara.definitions.connector import CONNECTOR
from keelman.gateway.ohara.routes import Endpoint
from keelman.gateway.ohara.state import lookups
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.wire.call import OharaCall, ok_with_nulls
from keelman.gateway.ohara.wire.errors import illegal_argument
from keelman.gateway.ohara.wire.keys import ObjectKey, key_of
from keelman.gateway.ohara.wire.setting_def import by_key
from keelman.gateway.ohara.wire.values import created
from keelman.gateway.ohara.wire.wording import checked_running
from keelman.model.errors import Internal, InvalidArgument, NotFound

CLASS_SECONDS = 10.0


class Validation:
    """Validates connectors."""

    def __init__(self, control: OharaControl, classes: WorkerClasses) -> None:
        self._control = control
        self._classes = classes

    @property
    def endpoints(self) -> list[Endpoint]:
        """The endpoints of the validation."""
        return [Endpoint("PUT", f"validate/{word}", self.connector) for word in ("connectors", "connector")]

    async def connector(self, call: OharaCall) -> Response:
        """Answers the settings of a connector, each with its value and errors."""
        settings = checked_settings(created(SENT, without_internal(await call.settings())))
        key = ObjectKey(settings["group"], settings["name"])
        worker = key_of(settings[config.WORKER_KEY], config.WORKER_KEY)
        cluster = checked_running("worker", worker, await lookups.worker_cluster(self._control, worker), answers)
        names = []
        for topic_key in config.topic_keys(settings):
            topic = await lookups.topic(self._control, topic_key)
            names.append(config.kafka_name(topic_key) if topic is None else topic.spec.topic)
        info = await self._classes.of_class(cluster, settings[config.CLASS], seconds=CLASS_SECONDS)
        spec = spec_of(key, ConnectorSettings(settings, info, names), cluster.name)
        target = f"/connector-plugins/{quote(settings[config.CLASS], safe='')}/config/validate"
        try:
            answer = await self._classes.ask(cluster.name, "PUT", target, {**spec.config, "name": spec.connector})
        except (InvalidArgument, NotFound, Internal) as error:
            raise illegal_argument(error.message) from None  # a class that the worker cluster does not have
        return ok_with_nulls(report(answer, settings))


def report(answer: Mapping[str, Any], settings: Mapping[str, Any]) -> Json:
    """Returns Connect's ConfigInfos in Ohara's form: the settings that all connectors share as Ohara defines them,
    others as the class defines them, each with its errors."""
    shared = by_key(CONNECTOR)
    shown: dict[str, Json] = {}
    for entry in answer.get("configs", ()):
        value, definition = entry.get("value") or {}, entry.get("definition") or {}
        name = value.get("name") or definition.get("name")
        if not name:
            continue
        if name in shared:
            setting = shared[name].json
        elif definition:
            setting = own_setting(definition) or setting_of(definition).json
        else:
            continue
        shown[name] = _setting_json(setting, name, value.get("value"), value.get("errors") or [])
    for own in CONNECTOR:  # settings that Connect does not know
        if own.key not in shown and own.key in settings:
            shown[own.key] = _setting_json(own.json, own.key, config.plain_text(settings[own.key]) or None, [])
    if config.TOPICS in shown and config.TOPIC_KEYS in shown:
        shown[config.TOPIC_KEYS]["value"]["errors"] += [
            e for e in shown[config.TOPICS]["value"]["errors"] if not settings[config.TOPIC_KEYS]
        ]
    rows = list(shown.values())
    return {"errorCount": sum(bool(row["value"]["errors"]) for row in rows), "settings": rows}


def _setting_json(setting: Json, name: str, value: Any, errors: list[Any]) -> Json:
    shown = shown_value(name, value) or None if isinstance(value, str) else value
    return {
        "definition": setting,
        "value": {"key": name, "value": shown, "errors": [str(problem) for problem in errors]},
    }
