"""`GET /v0/inspect/...`: the settings of each kind of cluster, the classes of a cluster, and this API's version."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from keelman.gateway.ohara.connectors.class_settings import Json, class_info, generic_class
from keelman.gateway.ohara.connectors.worker_classes import WorkerClasses
from keelman.gateway.ohara.definitions import shabondi
from keelman.gateway.ohara.definitions.broker import BROKER
from keelman.gateway.ohara.definitions.common import VERSION
from keelman.gateway.ohara.definitions.config import CLASS, WORKER_KEY, is_ohara_class
from keelman.gateway.ohara.definitions.connector import KIND, UNKNOWN, meta
from keelman.gateway.ohara.definitions.stream import STREAM
from keelman.gateway.ohara.definitions.topic import TOPIC
from keelman.gateway.ohara.definitions.worker import WORKER
from keelman.gateway.ohara.definitions.zookeeper import ZOOKEEPER
from keelman.gateway.ohara.kinds import Kinds
from keelman.gateway.ohara.routes import Endpoint
from keelman.gateway.ohara.state import lookups
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.wire.call import OharaCall, ok_with_nulls
from keelman.gateway.ohara.wire.keys import ObjectKey, checked_key, key_of
from keelman.gateway.ohara.wire.setting_def import Definitions
from keelman.gateway.ohara.wire.wording import not_found
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.version import version

log = get_logger()
NO_CLASS = "N/A"
MODE = "DOCKER"
"""Node agents run the processes, as Ohara's do in Docker."""
TOPIC_CLASS = class_info("topic", NO_CLASS, [setting.json for setting in TOPIC])
CONNECTOR_SECONDS = 10.0


class Inspect:
    """Answers inspections that change nothing and read no data."""

    def __init__(self, control: OharaControl, kinds: Kinds, classes: WorkerClasses) -> None:
        self._control = control
        self._kinds = kinds
        self._classes = classes

    @property
    def endpoints(self) -> list[Endpoint]:
        """The calls, each under its plural and its singular."""
        endpoints = [Endpoint("GET", "inspect/configurator", self.configurator)]
        for word, all_of, one_of in (
            ("worker", self.workers, self.worker),
            ("broker", self.brokers, self.broker),
            ("zookeeper", self.zookeepers, self.zookeeper),
            ("stream", self.streams, self.stream),
            ("shabondi", self.shabondis, self.shabondis),
        ):
            for path in (f"{word}s", word):
                endpoints += [
                    Endpoint("GET", f"inspect/{path}", all_of),
                    Endpoint("GET", f"inspect/{path}/{{name}}", one_of),
                ]
        return [
            *endpoints,
            *(Endpoint("GET", f"inspect/{w}/{{name}}", self.connector) for w in ("connectors", "connector")),
        ]

    async def configurator(self, call: OharaCall) -> Response:
        """Returns this API's version, and its mode of running processes."""
        shown = {"version": VERSION, "branch": "0.11", "user": "keelman", "revision": version(), "date": "unknown"}
        return ok_with_nulls({"versionInfo": shown, "mode": MODE})

    async def workers(self, call: OharaCall) -> Response:
        """Returns the settings of workers."""
        return _service("connect-worker", WORKER)

    async def worker(self, call: OharaCall) -> Response:
        """Returns the settings of workers, and the connector classes that a running worker cluster has loaded."""
        return _service("connect-worker", WORKER, await self._load(_key(call)))

    async def brokers(self, call: OharaCall) -> Response:
        """Returns the settings of brokers and of topics."""
        return _service("broker", BROKER, [TOPIC_CLASS])

    async def broker(self, call: OharaCall) -> Response:
        """Returns the settings of brokers and topics, for an existing broker cluster."""
        await self._check("broker", _key(call))
        return await self.brokers(call)

    async def zookeepers(self, call: OharaCall) -> Response:
        """Returns the settings of zookeepers."""
        return _service("zookeeper", ZOOKEEPER)

    async def zookeeper(self, call: OharaCall) -> Response:
        """Returns the settings of zookeepers, for an existing zookeeper."""
        await self._check("zookeeper", _key(call))
        return await self.zookeepers(call)

    async def streams(self, call: OharaCall) -> Response:
        """Returns the settings of streams."""
        return _service("stream", STREAM)

    async def stream(self, call: OharaCall) -> Response:
        """Returns the settings of streams, without the class of the stream, as no process runs it."""
        _key(call)
        return await self.streams(call)

    async def shabondis(self, call: OharaCall) -> Response:
        """Returns the settings of shabondis, and of each of the two classes."""
        if "name" in call.variables:
            _key(call)
        both = (("source", shabondi.SOURCE_CLASS, shabondi.SHABONDI_SOURCE),
                ("sink", shabondi.SINK_CLASS, shabondi.SHABONDI_SINK))  # fmt: skip
        infos = [
            class_info(kind, name, [setting.json for setting in (*table, *meta(kind, VERSION))])
            for kind, name, table in both
        ]
        return _service("shabondi", shabondi.SHABONDI, infos)

    async def connector(self, call: OharaCall) -> Response:
        """Returns the class of a connector, as its worker cluster reports it; else a generic description."""
        key = _key(call)
        kind = await self._kinds.find("connector", key)
        if kind is None:
            raise not_found("connector", key)
        name = kind[CLASS]
        cluster = await lookups.worker_cluster(self._control, key_of(kind[WORKER_KEY], WORKER_KEY))
        info = None
        if cluster is not None and cluster.status.ready_workers:
            info = await self._classes.of_class(cluster, name, seconds=CONNECTOR_SECONDS)
        class_document = info or generic_class(kind.get(KIND, UNKNOWN), name, ohara=is_ohara_class(name))
        return _service("connect-worker", (), [class_document])

    async def _load(self, key: ObjectKey) -> Sequence[Json]:
        """Returns the connector classes of a worker cluster; none if it does not exist or does not run."""
        cluster = await lookups.worker_cluster(self._control, key)
        if cluster is None or not cluster.status.ready_workers:
            return []
        try:
            return await self._classes.of_cluster(cluster)
        except KeelmanError as error:
            log.info("connector_classes_not_told", worker_cluster=cluster.name, error=error.message)
            return []

    async def _check(self, kind: str, key: ObjectKey) -> None:
        if await self._kinds.find(kind, key) is None:
            raise not_found(kind, key)


def _key(call: OharaCall) -> ObjectKey:
    return checked_key(call.group, call.variables["name"])


def _service(image: str, definitions: Definitions, infos: Sequence[Json] = ()) -> Response:
    return ok_with_nulls(
        {
            "imageName": f"oharastream/{image}:{VERSION}",
            "settingDefinitions": [definition.json for definition in definitions],
            "classInfos": list(infos),
        }
    )
