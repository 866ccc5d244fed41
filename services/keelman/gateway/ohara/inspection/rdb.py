"""`POST /v0/inspect/rdb`: the tables of a database, which no worker can be asked for."""

from __future__ import annotations

from starlette.responses import Response

from keelman.gateway.ohara import lookups
from keelman.gateway.ohara.call import Call
from keelman.gateway.ohara.connectors.config import WORKER_KEY
from keelman.gateway.ohara.connectors.life import is_wanted
from keelman.gateway.ohara.control import Control
from keelman.gateway.ohara.definitions.setting import Necessary, SettingDef, Type
from keelman.gateway.ohara.errors import illegal_argument
from keelman.gateway.ohara.keys import key_of
from keelman.gateway.ohara.routes import Endpoint
from keelman.gateway.ohara.values import created
from keelman.gateway.ohara.wording import must_run, not_stored

QUERY = (
    SettingDef("url", Type.STRING, "the JDBC URL", necessary=Necessary.REQUIRED),
    SettingDef("user", Type.STRING, "the user", necessary=Necessary.REQUIRED),
    SettingDef("password", Type.PASSWORD, "the password", necessary=Necessary.REQUIRED),
    SettingDef(WORKER_KEY, Type.OBJECT_KEY, "the worker cluster", necessary=Necessary.REQUIRED, reference="WORKER"),
    SettingDef("catalogPattern", Type.STRING, "a pattern of catalogs"),
    SettingDef("schemaPattern", Type.STRING, "a pattern of schemas"),
    SettingDef("tableName", Type.STRING, "a table"),
)


class Rdb:
    """Checks a query and says why it is not answered."""

    def __init__(self, control: Control) -> None:
        self._control = control

    @property
    def endpoints(self) -> list[Endpoint]:
        """Where it is asked."""
        return [Endpoint("POST", "inspect/rdb", self.tables)]

    async def tables(self, call: Call) -> Response:
        """Raises OharaError, whatever the query: Ohara asks by a connector of its own, which no worker here has."""
        key = key_of(created(QUERY, await call.settings())[WORKER_KEY], WORKER_KEY)
        cluster = await lookups.worker_cluster(self._control, key)
        if cluster is None:
            raise not_stored("worker", [key])
        if not is_wanted(cluster):
            raise must_run("worker", [key])
        raise illegal_argument(
            f"worker cluster:{key} has no connector that lists the tables of a database: name them in the settings of "
            "the connector"
        )
