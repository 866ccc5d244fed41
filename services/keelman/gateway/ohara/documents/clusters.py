"""`/v0/streams` and `/v0/shabondis`: stored and listed like clusters. They do not run, and refuse a start with that
reason."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from keelman.gateway.ohara.definitions import shabondi, stream
from keelman.gateway.ohara.definitions.common import DENIED_NODES
from keelman.gateway.ohara.documents.stored import StoredKind
from keelman.gateway.ohara.wire.call import OharaCall
from keelman.gateway.ohara.wire.errors import OharaError, bad_value, illegal_state, no_such, unsupported_operation
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, ObjectKey
from keelman.gateway.ohara.wire.resource import Json
from keelman.gateway.ohara.wire.setting_def import Definitions, Necessary, SettingDef, Type
from keelman.gateway.ohara.wire.values import Settings

NODE_NAMES = "nodeNames"
MIN_PORT, MAX_PORT = 20_000, 60_000


class StoredCluster(StoredKind):
    """A kind of cluster that is stored and does not run."""

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        """Refuses start, ignores stop, pause and resume, and adds a node to the settings if the kind allows several."""
        document = await self._present(key)
        if verb == "start":
            raise self._does_not_run(key)
        if verb in ("stop", "pause", "resume"):
            return
        self._check_new_node(key)
        if verb in DENIED_NODES:
            raise bad_value(f"the {verb} is protected word")
        if await self._kinds.find("node", ObjectKey(DEFAULT_GROUP, verb)) is None:
            raise no_such(f"node {verb} does not exist")
        settings = dict(document.content)
        names = settings.get(NODE_NAMES, [])
        if verb not in names:
            await self._put(key, {**settings, NODE_NAMES: [*names, verb]}, etag=document.etag)

    async def remove(self, key: ObjectKey, part: str, call: OharaCall) -> None:
        """Removes a node from the settings."""
        if (document := await self._found(key)) is None:
            return
        settings = dict(document.content)
        names = settings.get(NODE_NAMES, [])
        if names == [part]:
            raise illegal_state("there is only one instance. Please call remove to delete whole cluster")
        if part in names:
            left = [name for name in names if name != part]
            await self._put(key, {**settings, NODE_NAMES: left}, etag=document.etag)

    def _check_new_node(self, key: ObjectKey) -> None:
        """Raises OharaError for a kind that allows no further node."""

    def _does_not_run(self, key: ObjectKey) -> OharaError:
        return unsupported_operation(
            f"{self.KIND} {key} does not start: {self.KIND}s are stored and listed here, and nothing runs them"
        )

    async def _checked(self, settings: Settings) -> Settings:
        definitions = self._definitions(settings)
        await self._kinds.check(definitions, settings)
        ports = {
            definition.key: _port()
            for definition in definitions
            if _has_random_port(definition) and definition.key not in settings
        }
        return {**settings, **ports}

    async def _completed(self, objects: Sequence[Json]) -> Sequence[Json]:
        return [{**cluster, "aliveNodes": [], "nodeMetrics": {}} for cluster in objects]


class Streams(StoredCluster):
    """Kafka Streams applications."""

    KIND = "stream"
    DEFINITIONS = stream.STREAM

    def _check_new_node(self, key: ObjectKey) -> None:
        raise unsupported_operation(f"stream {key} takes no further node")


class Shabondis(StoredCluster):
    """HTTP sources and sinks of topics."""

    KIND = "shabondi"
    DEFINITIONS = shabondi.SHABONDI

    def _definitions(self, settings: Settings) -> Sequence[SettingDef]:
        match settings.get(shabondi.CLASS):
            case shabondi.SOURCE_CLASS:
                table: Definitions = shabondi.SHABONDI_SOURCE
            case shabondi.SINK_CLASS:
                table = shabondi.SHABONDI_SINK
            case str() as other:
                raise bad_value(f"{other} is NOT supported")
            case _:
                table = shabondi.SHABONDI
        return [setting for setting in table if not setting.internal]

    async def _checked(self, settings: Settings) -> Settings:
        checked = await super()._checked(settings)
        if names := checked.get(NODE_NAMES):
            path = "" if checked[shabondi.CLASS] == shabondi.SOURCE_CLASS else "groups/${groupName}"
            checked[shabondi.ENDPOINT] = f"http://{names[0]}:{checked[shabondi.CLIENT_PORT]}/{path}"
        return checked


def _has_random_port(setting: SettingDef) -> bool:
    return setting.type is Type.BINDING_PORT and setting.necessary is Necessary.RANDOM_DEFAULT


def _port() -> int:
    return MIN_PORT + secrets.randbelow(MAX_PORT - MIN_PORT)
