"""Serves the part of REST, beyond Connect's, about copied records: previews of connectors, their dead letters, and the
tables of a database."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import Response

from keelman.connect.failed_record import StageName
from keelman.model.errors import DeadlineExceeded
from keelman.worker.errors import RestError
from keelman.worker.previews.previews import MAX_RECORDS, USUAL_RECORDS
from keelman.worker.previews.replays import MOST, Replay
from keelman.worker.rest.answers import json_response
from keelman.worker.rest.bodies import WrittenNumber, json_body, text_map
from keelman.worker.rest.context import RestContext, name_in
from keelman.worker.rest.operations import other_name
from keelman.workers.properties.typed import TOPIC_NAME, is_topic

PREVIEW = ("config", "records", "from")
TABLES = ("url", "user", "password", "catalog", "schema", "table")
REPLAY = ("to", "stage", "exception", "since", "most", "dry_run", "cursor")


class RecordRoutes:
    """Handlers; `context` raises 503 while the worker starts."""

    def __init__(self, context: Callable[[], RestContext]) -> None:
        self._context = context

    async def preview(self, request: Request) -> Response:
        """POST /connectors/x/preview: `config` to try another configuration, `records`, `from`; all may be absent."""
        name = name_in(request)
        body = await fields_in(request, PREVIEW)
        submitted = body.get("config")
        config = None if submitted is None else _config(submitted)
        if config is not None and config.setdefault("name", name) != name:
            raise other_name(config["name"] or "", name)
        records = whole_in(body, "records", USUAL_RECORDS, 1, MAX_RECORDS)
        begin = text_in(body, "from")

        async def do(context: RestContext) -> Mapping[str, Any]:
            return await context.previews.preview(name, config, records=records, begin=begin)

        return await self._answer(request, do)

    async def dead_letters(self, request: Request) -> Response:
        """GET /connectors/x/dead-letters: the number of each kind, and the newest, `records` of them."""
        name, count = name_in(request), request.query_params.get("records", str(USUAL_RECORDS))
        records = whole_in({"records": WrittenNumber(count)}, "records", USUAL_RECORDS, 0, MAX_RECORDS)
        return await self._answer(request, lambda context: context.replays.survey(name, records=records))

    async def replay(self, request: Request) -> Response:
        """POST /connectors/x/dead-letters/replay: sends them back, for some seconds; `cursor` continues with the
        rest."""
        name, body = name_in(request), await fields_in(request, REPLAY)
        to = text_in(body, "to")
        if to and not is_topic(to):
            raise RestError(400, f"to: {to!r} is not legal: {TOPIC_NAME}")
        dry, cursor = body.get("dry_run", False), body.get("cursor")
        if not isinstance(dry, bool):
            raise RestError(400, f"dry_run: {_json(dry)} is not legal: true or false")
        replay = Replay(
            to=to,
            stage=_stage(text_in(body, "stage").upper()),
            exception=text_in(body, "exception"),
            since_ms=_since(text_in(body, "since")),
            most=whole_in(body, "most", MOST, 1, MOST),
            dry_run=dry,
            cursor=None if cursor is None else _cursor(cursor),
        )
        return await self._answer(request, lambda context: context.replays.replay(name, replay))

    async def database_tables(self, request: Request) -> Response:
        """POST /database-tables: a database's tables, by a JDBC driver of this worker. `url`, `user` and
        `password`, which may be references, and the patterns `catalog`, `schema` and `table`, which may be absent."""
        body = await fields_in(request, TABLES)
        fields = {field: text_in(body, field) for field in TABLES}
        for field in TABLES[:1]:
            if not fields[field].startswith("jdbc:"):
                raise RestError(400, f"{field}: a JDBC URL is needed, such as jdbc:postgresql://host/name")
        try:
            return json_response(await self._context().databases.tables(fields))
        except DeadlineExceeded as error:
            raise RestError(504, error.message) from None

    async def _answer(self, request: Request, ask: Callable[[RestContext], Awaitable[Mapping[str, Any]]]) -> Response:
        context = self._context()

        async def do() -> Response:
            await context.views.fresh()
            try:
                return json_response(await ask(context))
            except DeadlineExceeded as error:
                raise RestError(504, error.message) from None

        return await context.forwarder.done(request, do)


def _stage(name: str) -> str:
    legal = get_args(StageName)
    if name and name not in legal:
        raise RestError(400, f"stage: {name!r} is not legal: one of {', '.join(legal)}")
    return name


def _since(text: str) -> int | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        legal = "a time such as 2026-05-01T12:00:00Z"
        raise RestError(400, f"since: {text!r} is not legal: {legal}") from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _cursor(value: Any) -> dict[str, Any]:
    parts = value if isinstance(value, dict) else {}
    cursor: dict[str, Any] = {}
    for key in ("at", "ends"):
        offsets = parts.get(key)
        if not isinstance(offsets, dict) or not all(n.isdigit() and str(o).isdigit() for n, o in offsets.items()):
            raise RestError(400, "cursor: not a cursor from the answer of a replay")
        cursor[key] = {number: int(offset) for number, offset in offsets.items()}
    return cursor


def _config(value: Any) -> dict[str, str | None]:
    try:
        return text_map(value)
    except RestError as error:
        raise RestError(400, f"config: {error.message}") from None


async def fields_in(request: Request, legal: tuple[str, ...]) -> Mapping[str, Any]:
    """Returns the fields of a body that may be missing. Raises 400 for other values than a JSON object, and for an
    unknown field."""
    try:
        body = await json_body(request)
    except RestError as error:
        raise RestError(400, error.message) from None
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise RestError(400, f"The request's body must be an object with fields of {', '.join(legal)}")
    for field in body:
        if field not in legal:
            raise RestError(400, f"{field}: unknown field: one of {', '.join(legal)}")
    return body


def whole_in(body: Mapping[str, Any], field: str, default: int, least: int, most: int) -> int:
    """Returns a whole number of the body. Raises 400."""
    value = body.get(field)
    if value is None:
        return default
    legal = isinstance(value, WrittenNumber) and value.isdigit() and len(value) < 20 and least <= int(value) <= most
    if not legal:
        raise RestError(400, f"{field}: {_json(value)} is not legal: a whole number from {least} to {most}")
    return int(value)


def text_in(body: Mapping[str, Any], field: str) -> str:
    """Returns a text of the body; empty when it is missing. Raises 400."""
    value = body.get(field)
    if value is None:
        return ""
    if not isinstance(value, str) or isinstance(value, WrittenNumber):
        raise RestError(400, f"{field}: {_json(value)} is not legal: a text")
    return value


def _json(value: Any) -> str:
    """Returns a value as it was sent: a number differs from a text of digits."""
    return str(value) if isinstance(value, WrittenNumber) else json.dumps(value, ensure_ascii=False)
