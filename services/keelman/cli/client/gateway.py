"""A client of the gateway: one method a question, in the kinds and verbs of the command line."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import plugin_service_pb2 as pl
from keelman.api.connect.v1.operation_pb2 import OperationTarget
from keelman.api.connect.v1.plugin_import_pb2 import PluginImport
from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration
from keelman.api.copy.v1 import copy_run_service_pb2 as cr
from keelman.cli import kinds
from keelman.cli.client.plugins import split_name
from keelman.cli.kinds import Kind
from keelman.model.document import document_parts
from keelman.model.errors import DeadlineExceeded, FailedPrecondition, InvalidArgument, NotFound, Unavailable
from keelman.rpc.batches import packed
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated_stream
from keelman.rpc.generated import messages_of, stub_of
from keelman.runtime.conflicts import again
from keelman.runtime.logs.redaction import HIDDEN

Resource: TypeAlias = Any  # one of the wire contract's resources; the kind says which

CALL_SECONDS = 30.0
REPEAT_SECONDS = 1.0
"""After this a write that nobody answered is sent again: who was being started again answers then."""
UID_LENGTH = 32
NO_LABELS: Mapping[str, str] = {}
WITH_TASKS: Mapping[str, bool] = {"include_tasks": True}


class Gateway:
    """Calls on one channel, its `link`. Errors come as the classes of keelman.model.errors."""

    def __init__(self, link: Any) -> None:
        self.link = link
        self._services: dict[Kind, Any] = {}

    def _service(self, kind: Kind) -> Any:
        """What calls the service of a kind."""
        if kind not in self._services:
            self._services[kind] = stub_of(self.link, kind.area, kind.field)
        return self._services[kind]

    async def list(
        self,
        kind: Kind,
        *,
        cluster: str = "",
        ended: bool = False,
        labels: Mapping[str, str] = NO_LABELS,
        workload: str = "",
        brokers: str = "",
        target: tuple[str, str] = ("", ""),
    ) -> Sequence[Resource]:
        """All resources of a kind, page by page; `cluster` narrows workers, connectors, copy runs and definitions,
        `labels` what has any, `workload` plans, `brokers` topics, `target` (noun and name) operations. Raises NotFound
        for a cluster that is unknown."""
        fields: dict[str, Any] = {"worker_cluster": cluster} if kind.in_cluster and kind is not kinds.PLUGINS else {}
        if labels:
            fields["labels"] = labels
        if workload:
            fields["workload"] = workload
        if brokers:
            fields["broker_cluster"] = brokers
        if any(target):
            fields["target"] = OperationTarget(noun=target[0], name=target[1])
        if kind is kinds.COPY_RUNS:
            fields["include_ended"] = ended
        items: list[Resource] = []
        while True:
            answer = await self.call("List", kind, **fields)
            for name, reason in getattr(answer, "unreachable", {}).items():
                print_unreachable(name, reason)
            items += getattr(answer, kind.fields)
            if not answer.next_page_token:
                return items
            fields["page_token"] = answer.next_page_token

    async def get(self, kind: Kind, name: str, *, cluster: str = "") -> Resource:
        """One resource; `cluster` is the worker cluster that it is of. Raises NotFound."""
        fields = {"name": name}
        match kind:
            case kinds.PLANS:
                for plan in await self.list(kind):
                    if str(plan.revision) == name:
                        return plan
                raise NotFound(f"there is no plan {name!r}: the newest are in `keelman get plans`")
            case kinds.WORKLOADS:
                for workload in await self.list(kind):
                    if workload.name == name:
                        return workload
                raise NotFound(f"there is no workload {name!r}")
            case kinds.WORKERS:
                fields = {"name": await self.full_name(kind, name, cluster)}
            case kinds.CONNECTORS:
                owner, plain = await self.connector_name(name, cluster)
                fields = {"worker_cluster": owner, "name": plain}
            case kinds.DOCUMENTS:
                fields = dict(zip(("kind", "scope", "key"), document_parts(name), strict=True))
            case kinds.PLUGINS:
                plugin, version = split_name(name)
                fields = {"name": plugin, "version": version}
            case kinds.COPY_RUNS:
                fields = {"uid": await self._uid(name)}
        found = _resource(kind, await self.call("Get", kind, **fields))
        if kind is kinds.COPY_RUNS and cluster not in ("", found.worker_cluster):
            raise NotFound(f"copy run {name} belongs to worker cluster {found.worker_cluster!r}, not to {cluster!r}")
        return found

    def watch_copy_runs(self, *, cluster: str, connector: str) -> AsyncIterator[cr.WatchCopyRunsResponse]:
        """The present copy runs of a worker cluster and connector, where these are named, then each change."""
        request = cr.WatchCopyRunsRequest(worker_cluster=cluster, connector=connector)
        return translated_stream(self._service(kinds.COPY_RUNS).WatchCopyRuns(request))

    async def _uid(self, name: str) -> str:
        """The uid of a copy run that is named by the beginning of it. Raises InvalidArgument for that of several."""
        if len(name) >= UID_LENGTH:
            return name
        found = sorted({r.uid for r in await self.list(kinds.COPY_RUNS, ended=True) if r.uid.startswith(name)})
        if len(found) > 1:
            raise InvalidArgument.of(
                "copy run", name, "more characters: several uids begin with it: " + ", ".join(found)
            )
        return found[0] if found else name

    async def full_name(self, kind: Kind, name: str, cluster: str) -> str:
        """The name that says all: a connector's and a worker's with its worker cluster. Raises NotFound, and
        InvalidArgument for a name of another worker cluster than `cluster`."""
        if kind is kinds.CONNECTORS:
            return "/".join(await self.connector_name(name, cluster))
        if kind is kinds.WORKERS:
            return "/".join(filter(None, kinds.cluster_and_name(kind, name, cluster)))
        if kind is kinds.PLUGINS:
            return ":".join(await self.plugin_name(name))
        return name

    async def plugin_name(self, text: str) -> tuple[str, str]:
        """Name and version of a plugin; without a version, of the only one that it has. Raises InvalidArgument."""
        name, version = split_name(text)
        if version:
            return name, version
        found = await self.get(kinds.PLUGINS, name)  # which says it where there is none
        versions = [one.version for one in await self.list(kinds.PLUGINS) if one.name == name]
        if len(versions) > 1:
            raise InvalidArgument.of("plugin", text, f"NAME:VERSION, with one of {', '.join(versions)}")
        return name, found.version

    async def connector_name(self, name: str, cluster: str) -> tuple[str, str]:
        """Worker cluster and plain name of a connector; without a cluster, the only one that has it."""
        owner, plain = kinds.cluster_and_name(kinds.CONNECTORS, name, cluster)
        if owner:
            return owner, plain
        owners = [c.worker_cluster for c in await self.list(kinds.CONNECTORS) if c.name == name]
        if not owners:  # a list may be a second or two behind
            running = [c.name for c in await self.list(kinds.WORKER_CLUSTERS) if c.status.ready_workers]
            owners = [one for one in running if await self._has_connector(one, name)]
        if len(owners) == 1:
            return owners[0], name
        if not owners:
            raise NotFound(f"there is no connector {name!r}")
        raise InvalidArgument.of("connector", name, "CLUSTER/NAME, as it is in " + ", ".join(owners))

    async def _has_connector(self, cluster: str, name: str) -> bool:
        try:
            await self.call("Get", kinds.CONNECTORS, worker_cluster=cluster, name=name)
        except (NotFound, Unavailable):
            return False
        return True

    async def act(
        self,
        verb: str,
        kind: Kind,
        name: str,
        *,
        cluster: str = "",
        of: Mapping[str, bool] = WITH_TASKS,
        force: bool = False,
        etag: str = "",
    ) -> Resource:
        """Does a verb on one resource; returns the resource where the answer carries it. `of` are the fields
        of a RestartConnectorRequest that say what of a connector is restarted; `force` is for `stop` of clusters. With
        an `etag` only where it is the present one; else raises Conflict."""
        fields: dict[str, Any] = {"name": name}
        if kind is kinds.CONNECTORS:
            owner, plain = await self.connector_name(name, cluster)
            fields = {"worker_cluster": owner, "name": plain, **(of if verb == "restart" else {})}
            verb = "resume" if verb == "start" else verb
        if kind is kinds.PLUGINS:
            fields = dict(zip(("name", "version"), await self.plugin_name(name), strict=True))
        if force:
            fields["force"] = True
        if etag:
            fields["etag"] = etag
        return _resource(kind, await self.call(verb.capitalize(), kind, **fields))

    async def apply(self, kind: Kind, name: str, goal: int = 0) -> tuple[Resource, Any]:
        """Begins an operation on a topic or a definition; returns what it is on, and the operation. A `goal` of 0 is
        what was asked for last."""
        answer = await self.call("Apply", kind, name=name, goal=goal)
        return _resource(kind, answer), answer.operation

    async def write_batch(self, writes: Sequence[Any], *, validate_only: bool) -> Any:
        """Does requests of several kinds in one transaction, or none where one is refused; or has them judged only."""
        return await self.call(
            "Write", kinds.BATCHES, writes=[packed(one) for one in writes], validate_only=validate_only
        )

    async def create(self, kind: Kind, name: str, spec: Any = None, **fields: Any) -> Resource:
        """Creates one of a kind, of a spec or of other fields: a broker cluster, which is to run, a worker cluster,
        stopped, a node whose agent is to come, or a topic or definition, which nothing is done about yet.

        Prints notes on the properties of workers to stderr; so does `update` on those that it sets."""
        fields |= {} if spec is None else {"spec": spec}
        return _noted(kind, await self.call("Create", kind, name=name, **fields))

    async def update(self, kind: Kind, name: str, edit: Callable[[Any], Sequence[str]]) -> tuple[Resource, bool]:
        """Changes the spec of a resource, or what is said of a plugin; returns it, and whether that is a change.

        `edit` changes the spec that it gets, and names its fields. Where somebody else changes the resource in between,
        it is read and edited once more. Raises Conflict when that happens again.
        """
        if kind is kinds.PLUGINS:
            name = ":".join(await self.plugin_name(name))

        async def work() -> tuple[Resource, bool]:
            found = await self.get(kind, name)
            spec, present = _spec_of(kind, found), _spec_of(kind, found)
            mask = FieldMask(paths=edit(spec))
            if spec == present:
                return found, False
            fields = {"name": name, "spec": spec}
            if kind in (kinds.PLUGINS, kinds.SECRETS):
                fields = {"name": found.name, "description": spec.description, "labels": dict(spec.labels)}
                fields |= {"version": found.version} if kind is kinds.PLUGINS else {}
            if kind in (kinds.WORKER_CONFIGURATIONS, kinds.PLUGIN_IMPORTS):
                fields = {"name": name, kind.field: spec}
            answer = await self.call("Update", kind, etag=found.etag, update_mask=mask, **fields)
            return _noted(kind, answer), True

        return await again(work)

    async def add_revision(self, name: str, content: bytes, description: str) -> Resource:
        """Gives a worker configuration another revision."""
        fields = {"name": name, "content": content, "description": description}
        answer = await self.call("Create", kinds.WORKER_CONFIGURATIONS, "Revision", **fields)
        return _resource(kinds.WORKER_CONFIGURATIONS, answer)

    async def create_connector(self, cluster: str, name: str, config: Mapping[str, str]) -> Resource:
        """Creates a connector in a running worker cluster; prints the notes on its configuration to stderr."""
        return await self._put_connector("Create", cluster, name, config)

    async def configure_connector(
        self, cluster: str, name: str, config: Mapping[str, str], *, etag: str = ""
    ) -> Resource:
        """Replaces a connector's whole configuration; prints the notes on it to stderr. With an `etag` only where it is
        the present one's; else raises Conflict."""
        return await self._put_connector("Update", cluster, name, config, etag=etag)

    async def _put_connector(
        self, verb: str, cluster: str, name: str, config: Mapping[str, str], **more: str
    ) -> Resource:
        answer = await self.call(verb, kinds.CONNECTORS, worker_cluster=cluster, name=name, config=config, **more)
        for note in answer.connector.notes:
            print(f"keelman: note: {note}", file=sys.stderr)
        return answer.connector

    async def only_broker_cluster(self) -> str:
        """The name of the only broker cluster, or `default`. Raises NotFound, InvalidArgument for several others."""
        names = [one.name for one in await self.list(kinds.BROKER_CLUSTERS)]
        if not names:
            raise NotFound("there is no broker cluster: see `keelman create broker-cluster --help`")
        if len(names) > 1 and "default" not in names:
            raise InvalidArgument(f"--broker-cluster: there are several: give one of {', '.join(names)}")
        return names[0] if len(names) == 1 else "default"

    async def client_properties(self, broker_cluster: str) -> dict[str, str]:
        """Java's client properties that reach a broker cluster; without a name the only one, or `default`.

        Raises as `only_broker_cluster`, and FailedPrecondition for one that has no address yet, and (HIDDEN) where its
        clients need what nobody is shown.
        """
        name = broker_cluster or await self.only_broker_cluster()
        found = await self.get(kinds.BROKER_CLUSTERS, name)
        servers = found.status.bootstrap_servers or found.spec.external.bootstrap_servers
        if not servers:
            raise FailedPrecondition(f"broker cluster {name} has no address yet: see `keelman get bc {name}`")
        client = found.spec.external.client_properties or found.status.client_properties
        hidden = [key for key, value in sorted(client.items()) if HIDDEN in value]
        if profile := found.spec.external.credential_profile:
            hidden.append(f"what secret {profile!r} says")
        if hidden:
            raise FailedPrecondition(
                f"broker cluster {name}: its clients need {', '.join(hidden)}, which nobody is shown: ask its brokers "
                "with a client of your own",
                reason="HIDDEN",
            )
        return {**client, "bootstrap.servers": servers}

    async def storage_topics(self, worker_cluster: str) -> Any:
        """What the state service hears of the topics in which a worker cluster keeps its own records."""
        request = messages_of("connect", "worker_cluster").DescribeStorageTopicsRequest(name=worker_cluster)
        return await self._service(kinds.WORKER_CLUSTERS).DescribeStorageTopics(request, timeout=CALL_SECONDS)

    async def call(self, verb: str, kind: Kind, part: str = "", /, **fields: Any) -> Any:
        """The answer of the RPC that is named by the verb and the kind: GetNode, ListNodes; or of a `part` of these.

        A write has a request id, where it can have one, and is sent once more under the same id when nobody answered.
        Raises Unavailable when there is no answer in time, and what the gateway refuses.
        """
        name = kind.rpc(verb) + part
        call = getattr(self._service(kind), name)
        request = getattr(messages_of(kind.area, kind.field), f"{name}Request")(**fields)
        repeats = "request_id" in request.DESCRIPTOR.fields_by_name
        if repeats:
            request.request_id = uuid.uuid4().hex
        try:
            try:
                return await call(request, timeout=CALL_SECONDS)
            except Unavailable as error:
                if not (repeats and error.reason == "UNREACHABLE"):
                    raise
            await asyncio.sleep(REPEAT_SECONDS)
            return await call(request, timeout=CALL_SECONDS, wait_for_ready=True)
        except DeadlineExceeded as error:
            raise Unavailable(f"the gateway gave no answer in time: {error.message}") from None


def print_unreachable(cluster: str, reason: str) -> None:
    """Says on stderr that the connectors of a worker cluster are not known."""
    who = "" if repr(cluster) in reason else f"worker cluster {cluster} could not be asked: "
    print(f"keelman: {who}{reason}", file=sys.stderr, flush=True)


def _spec_of(kind: Kind, found: Resource) -> Any:
    """What of a resource can be changed, as a message of its own."""
    if kind in (kinds.PLUGINS, kinds.SECRETS):
        return pl.UpdatePluginRequest(description=found.description, labels=dict(found.labels))
    if kind in (kinds.WORKER_CONFIGURATIONS, kinds.PLUGIN_IMPORTS):
        made: Any = WorkerConfiguration if kind is kinds.WORKER_CONFIGURATIONS else PluginImport
        return made(description=found.description, labels=dict(found.labels))
    made = type(found.spec)()
    made.CopyFrom(found.spec)
    return made


def _noted(kind: Kind, answer: Any) -> Resource:
    """What the answer carries; its notes, where there are any, are printed to stderr."""
    for note in getattr(answer, "notes", ()):
        print(f"keelman: note: {note}", file=sys.stderr)
    return _resource(kind, answer)


def _resource(kind: Kind, answer: Any) -> Resource:
    """What the answer carries; None where it carries nothing."""
    return getattr(answer, kind.field, None)


@contextlib.asynccontextmanager
async def connect(address: str) -> AsyncIterator[Gateway]:
    """A client of the gateway at host:port."""
    async with channel(address) as link:
        yield Gateway(link)
