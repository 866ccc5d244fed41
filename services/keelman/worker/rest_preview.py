"""The part of REST, beyond Connect's, that tries a connector without copying: POST /connectors/x/preview."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from keelman.model.errors import DeadlineExceeded
from keelman.worker.bodies import Number, json_body, text_map
from keelman.worker.operations import other_name
from keelman.worker.previews import MOST_RECORDS, USUAL_RECORDS
from keelman.worker.rest_context import RestContext, name_in
from keelman.worker.rest_errors import RestError, json_response

FIELDS = ("config", "records", "from")


class Trials:
    """Handlers; `context` raises 503 while the worker starts."""

    def __init__(self, context: Callable[[], RestContext]) -> None:
        self._context = context

    async def preview(self, request: Request) -> Response:
        """POST /connectors/x/preview: `config` to try another configuration, `records`, `from`; all may be absent."""
        name = name_in(request)
        body = await fields_in(request, FIELDS)
        given = body.get("config")
        config = None if given is None else _config(given)
        if config is not None and config.setdefault("name", name) != name:
            raise other_name(config["name"] or "", name)
        records = whole_in(body, "records", USUAL_RECORDS, 1, MOST_RECORDS)
        begin = text_in(body, "from")
        context = self._context()

        async def do() -> Response:
            await context.views.fresh()
            try:
                return json_response(await context.previews.preview(name, config, records=records, begin=begin))
            except DeadlineExceeded as error:
                raise RestError(504, error.message) from None

        return await context.forwarder.done(request, do)


def _config(given: Any) -> dict[str, str | None]:
    try:
        return text_map(given)
    except RestError as error:
        raise RestError(400, f"config: {error.message}") from None


async def fields_in(request: Request, known: tuple[str, ...]) -> Mapping[str, Any]:
    """The fields of a body that may be missing. Raises 400 for what is no JSON object, or has another field."""
    try:
        body = await json_body(request)
    except RestError as error:
        raise RestError(400, error.message) from None
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise RestError(400, f"The request's body must be an object with fields of {', '.join(known)}")
    for field in body:
        if field not in known:
            raise RestError(400, f"{field}: there is no such field: {', '.join(known)}")
    return body


def whole_in(body: Mapping[str, Any], field: str, default: int, least: int, most: int) -> int:
    """A whole number of the body. Raises 400."""
    given = body.get(field)
    if given is None:
        return default
    legal = isinstance(given, Number) and given.isdigit() and len(given) < 20 and least <= int(given) <= most
    if not legal:
        raise RestError(400, f"{field}: {given!r} is not legal: a whole number from {least} to {most}")
    return int(given)


def text_in(body: Mapping[str, Any], field: str) -> str:
    """A text of the body; empty when it is missing. Raises 400."""
    given = body.get(field)
    if given is None:
        return ""
    if not isinstance(given, str) or isinstance(given, Number):
        raise RestError(400, f"{field}: {given!r} is not legal: a text")
    return given
