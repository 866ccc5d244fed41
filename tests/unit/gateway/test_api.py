"""How a change of a connector reaches its workers: whole or by keys, on the caller's terms."""

from __future__ import annotations

from typing import Any, cast

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import connector_service_pb2 as wire
from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.gateway.api import ConnectorApi
from keelman.model.errors import InvalidArgument

TERMS = {"etag": "e", "request_id": "r"}
CONTEXT: Any = None


class Asked:
    """Replaces the client of the workers' REST API, and records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        async def call(*values: Any, **terms: Any) -> Connector | None:
            self.calls.append((name, values, terms))
            return Connector() if name in ("update", "patch") else None

        return call


def update(*paths: str, **config: str) -> wire.UpdateConnectorRequest:
    named = {key.replace("_", "."): value for key, value in config.items()}
    mask = FieldMask(paths=paths)
    return wire.UpdateConnectorRequest(worker_cluster="w", name="c", config=named, update_mask=mask, **TERMS)


def api(request: Asked) -> ConnectorApi:
    nothing = cast(Any, None)
    return ConnectorApi(cast(Any, request), nothing, nothing)


@pytest.mark.parametrize(
    ("request_", "verb", "config"),
    [
        (update(tasks_max="2"), "update", {"tasks.max": "2"}),
        (update("config", tasks_max="2"), "update", {"tasks.max": "2"}),
        (update("config.tasks.max", "config.topic", tasks_max="2"), "patch", {"tasks.max": "2", "topic": None}),
    ],
)
async def test_a_configuration_is_replaced_or_some_of_its_keys(request_: Any, verb: str, config: Any) -> None:
    request = Asked()
    await api(request).UpdateConnector(request_, CONTEXT)
    ((name, value, terms),) = request.calls
    assert (name, value[:2], dict(value[2]), terms) == (verb, ("w", "c"), config, TERMS)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (update("state"), "update_mask"),
        (update("config."), "update_mask"),
        (update("config", "spec.foo"), "update_mask"),
        (update("config.a", b="2"), "config"),
    ],
)
async def test_a_mask_names_keys_and_no_others_are_given(request_: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await api(Asked()).UpdateConnector(request_, CONTEXT)
    assert caught.value.violations[0].field == field


@pytest.mark.parametrize("verb", ["Delete", "Pause", "Resume", "Stop", "Restart"])
async def test_every_verb_is_on_the_callers_terms(verb: str) -> None:
    requested, request = Asked(), getattr(wire, f"{verb}ConnectorRequest")
    await getattr(api(requested), f"{verb}Connector")(request(worker_cluster="w", name="c", **TERMS), CONTEXT)
    ((name, _, terms),) = requested.calls
    assert name == verb.lower()
    assert terms.items() >= TERMS.items()
    wrong = request(worker_cluster="w", name="c", request_id="\n")
    with pytest.raises(InvalidArgument, match="request_id"):
        await getattr(api(requested), f"{verb}Connector")(wrong, CONTEXT)
