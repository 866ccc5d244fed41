"""`POST /v0/inspect/rdb`: the tables of a database, read by a worker with its JDBC drivers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from keelman.gateway.ohara.connectors.life import is_wanted
from keelman.gateway.ohara.connectors.worker_classes import WorkerClasses
from keelman.gateway.ohara.definitions.config import WORKER_KEY
from keelman.gateway.ohara.routes import Endpoint
from keelman.gateway.ohara.state import lookups
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.wire.call import OharaCall, ok
from keelman.gateway.ohara.wire.errors import illegal_argument
from keelman.gateway.ohara.wire.keys import key_of
from keelman.gateway.ohara.wire.resource import Json
from keelman.gateway.ohara.wire.setting_def import Necessary, SettingDef, Type
from keelman.gateway.ohara.wire.values import created
from keelman.gateway.ohara.wire.wording import checked_running
from keelman.model.errors import KeelmanError

QUERY = (
    SettingDef("url", Type.STRING, "the JDBC URL", necessary=Necessary.REQUIRED),
    SettingDef("user", Type.STRING, "the user", necessary=Necessary.REQUIRED),
    SettingDef("password", Type.PASSWORD, "the password", necessary=Necessary.REQUIRED),
    SettingDef(WORKER_KEY, Type.OBJECT_KEY, "the worker cluster", necessary=Necessary.REQUIRED, reference="WORKER"),
    SettingDef("catalogPattern", Type.STRING, "a pattern of catalogs"),
    SettingDef("schemaPattern", Type.STRING, "a pattern of schemas"),
    SettingDef("tableName", Type.STRING, "a table"),
)

FIELDS = {
    "url": "url", "user": "user", "password": "password",
    "catalogPattern": "catalog", "schemaPattern": "schema", "tableName": "table",
}  # fmt: skip
"""The worker's name for each field of the request."""
QUERY_SECONDS = 18.0
"""The limit for the worker's answer: users wait 20 s."""


class Rdb:
    """Lists tables."""

    def __init__(self, control: OharaControl, classes: WorkerClasses) -> None:
        self._control = control
        self._classes = classes

    @property
    def endpoints(self) -> list[Endpoint]:
        """The endpoint of the inspection."""
        return [Endpoint("POST", "inspect/rdb", self.tables)]

    async def tables(self, call: OharaCall) -> Response:
        """Returns the tables with their columns. Raises OharaError with the error of the database or the worker."""
        query = created(QUERY, await call.settings())
        key = key_of(query[WORKER_KEY], WORKER_KEY)
        cluster = checked_running("worker", key, await lookups.worker_cluster(self._control, key), is_wanted)
        if not query["url"].startswith("jdbc:"):
            raise illegal_argument("url: a JDBC URL is needed, such as jdbc:postgresql://host/name")
        queries = {ours: query.get(theirs, "") for theirs, ours in FIELDS.items()}
        try:
            answer = await self._classes.ask(cluster.name, "POST", "/database-tables", queries, seconds=QUERY_SECONDS)
        except KeelmanError as error:
            raise illegal_argument(
                f"worker cluster:{key}: {error.message.replace(repr(cluster.name), str(key))}"
            ) from None
        return ok({"name": answer["name"], "tables": [_table(table) for table in answer["tables"]]})


def _table(table: Mapping[str, Any]) -> Json:
    place = {"catalogPattern": table["catalog"], "schemaPattern": table["schema"], "name": table["name"]}
    columns = [{"name": column["name"], "dataType": column["type"], "pk": column["key"]} for column in table["columns"]]
    return {name: text for name, text in place.items() if text} | {"columns": columns}
