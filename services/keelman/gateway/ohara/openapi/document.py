"""The OpenAPI document: every call with the schemas of its request and answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from starlette.responses import Response

from keelman.gateway.ohara.definitions.common import VERSION
from keelman.gateway.ohara.openapi.calls import OTHER_CALLS, ApiCall
from keelman.gateway.ohara.openapi.kinds import FILE, KINDS, ApiKind
from keelman.gateway.ohara.openapi.schemas import COMMON, HOSTNAME, WORD, Schema, array, ref
from keelman.gateway.ohara.routes import Endpoint
from keelman.gateway.ohara.wire.call import OharaCall as Request
from keelman.gateway.ohara.wire.call import ok_with_nulls

JSON = "application/json"
ACCEPTED = "The request has been accepted for processing, but the processing has not been completed."
GROUP: Schema = {**WORD, "default": "default"}
VARIABLES: Mapping[str, Schema] = {"name": WORD, "group": WORD, "nodeName": HOSTNAME, "hostname": HOSTNAME}


def endpoints() -> list[Endpoint]:
    """Returns the endpoint of the document."""

    async def answer(_: Request) -> Response:
        return ok_with_nulls(document())

    return [Endpoint("GET", "openapi.json", answer)]


@cache
def document() -> dict[str, Any]:
    """Returns the document, OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for call in (*_calls(KINDS), *OTHER_CALLS):
        path = call.path if call.path.startswith("/") else f"/v0/{call.path}"
        paths.setdefault(path, {})[call.method.lower()] = _operation(call)
    schemas = COMMON | {"File": FILE, "FileChange": {"type": "object", "properties": {"tags": {"type": "object"}}}}
    for kind in KINDS:
        schemas |= {
            kind.schema: kind.answered,
            f"{kind.schema}Creation": kind.sent,
            f"{kind.schema}Change": kind.changed,
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ohara's API, served by keelman",
            "version": VERSION,
            "description": "An object that does not exist is 400, not 404; 404 is a call that does not exist.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _calls(kinds: Iterable[ApiKind]) -> Iterable[ApiCall]:
    for kind in kinds:
        answer, path = ref(kind.schema), f"{kind.path}/{{{kind.variable}}}"
        group = {"group": GROUP} if kind.variable == "name" else {}
        yield ApiCall(
            "GET", kind.path, f"Lists {kind.path}; each query parameter is a filter", array(answer), filters=True
        )
        yield ApiCall("POST", kind.path, f"Creates one of {kind.path}", answer, ref(f"{kind.schema}Creation"))
        yield ApiCall("GET", path, f"One of {kind.path}", answer, query=group)
        yield ApiCall(
            "PUT", path, f"Changes one of {kind.path}, or creates it", answer, ref(f"{kind.schema}Change"), group
        )
        yield ApiCall(
            "DELETE", path, f"Deletes one of {kind.path}; nothing when there is none", None, query=group, status=204
        )
        for verb in kind.verbs:
            more = {**group, **(kind.queries if verb == "stop" else {})}
            yield ApiCall("PUT", f"{path}/{verb}", f"{verb} for one of {kind.path}", None, query=more, status=202)
        if kind.has_nodes:
            node = f"{path}/{{nodeName}}"
            yield ApiCall("PUT", node, f"Adds a node to one of {kind.path}", None, query=group, status=202)
            yield ApiCall("DELETE", node, f"Takes a node from one of {kind.path}", None, query=group, status=204)


def _operation(call: ApiCall) -> dict[str, Any]:
    words = [w[1:-1] for w in call.path.split("/") if w.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": w, "in": "path", "required": True, "schema": call.variables.get(w, VARIABLES.get(w, WORD))}
        for w in words
    ]
    parameters += [
        {"name": name, "in": "query", "required": name in call.required, "schema": schema}
        for name, schema in call.query.items()
    ]
    if call.filters:
        parameters.append(
            {
                "name": "filters", "in": "query", "required": False, "style": "form", "explode": True,
                "schema": {"type": "object", "additionalProperties": {"type": "string"}},
                "description": "Any field of the answer with its value; `none` where it must be absent.",
            }
        )  # fmt: skip
    own = {status: _error(text, "Error") for status, text in call.errors.items()}
    operation: dict[str, Any] = {
        "operationId": call.id,
        "summary": call.summary,
        "responses": {str(call.status): _answer(call), **own, **ERRORS},
    }
    if parameters:
        operation["parameters"] = parameters
    if call.sent is not None:
        operation["requestBody"] = {"required": True, "content": {call.sent_type: {"schema": call.sent}}}
    return operation


def _answer(call: ApiCall) -> dict[str, Any]:
    match call.status:
        case 204:
            return {"description": "Done."}
        case 202:
            return {"description": "Begun.", "content": {"text/plain": {"schema": {"const": ACCEPTED}}}}
    return {"description": "As it is now.", "content": {call.answer_type: {"schema": call.answer or {}}}}


def _error(description: str, schema: str) -> dict[str, Any]:
    return {"description": description, "content": {JSON: {"schema": ref(schema)}}}


ERRORS = {
    "400": _error("The request cannot be: a bad field, an object that does not exist, or one in use.", "Error"),
    "404": _error("There is no such call.", "UnknownApi"),
    "500": _error("The objects do not allow it now: one exists already, runs, or does not run.", "Error"),
}
